//! The files that a synthesis writes: the master, its record, the archive, or a proposal.
//!
//! A crash leaves a master that is known as ours: first the record gets the hashes of the new
//! sections beside the old ones, then the master is replaced, then the record. A proposal carries the
//! record that it would leave, so whatever a person edits in it is theirs when it is put in place.

use std::fs::{self, File, TryLockError};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use foreword_core::fault;
use foreword_core::notes::record::{Record, hash};
use foreword_core::notes::{Folder, NotesError};

use super::sources::Sources;

const BEFORE_RECORD: &str = "\n<!-- what this rests on, for `foreword synthesize --accept`\n";

/// A master that could be written.
pub struct Proposal {
    pub text: String,
    pub record: Record,
    /// Lines that no longer fit.
    pub archived: Vec<String>,
    /// What is said about sections that a person edited, line by line.
    pub kept: Vec<String>,
}

/// A proposal that lies there.
pub struct Waiting {
    pub proposal: Proposal,
    /// All that it rests on is as it was.
    pub holds: bool,
    /// And there is nothing else.
    pub is_all: bool,
}

/// Held on the folder itself, so that nothing is left behind; the kernel drops it with us.
pub fn lock(folder: &Folder) -> anyhow::Result<File> {
    let path = &folder.path;
    let file = File::open(path).with_context(|| format!("could not open {}", path.display()))?;
    // Some file systems know no locks; renames keep the files whole there as well.
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        let path = path.display();
        bail!("another synthesis is at work in {path}; wait for its end");
    }
    Ok(file)
}

/// What the last synthesis took in, whatever a merge made of the file.
pub fn last(folder: &Folder) -> Record {
    let bytes = fs::read(record_path(folder)).unwrap_or_default();
    Record::read(&String::from_utf8_lossy(&bytes))
}

fn record_path(folder: &Folder) -> PathBuf {
    folder.path.join("synthesis")
}

fn proposal_path(folder: &Folder) -> PathBuf {
    folder.path.join("proposal.md")
}

impl Proposal {
    pub fn write(&self, folder: &Folder, last: &Record) -> anyhow::Result<()> {
        self.archive(folder)?;
        let mut both = last.clone();
        both.sections.extend(self.record.sections.iter().cloned());
        folder.write(&record_path(folder), &both.to_string())?;
        fault::point("synthesis:before-master");
        folder.write(&folder.master(), &self.text)?;
        fault::point("synthesis:after-master");
        self.write_record(folder)?;
        let _ = fs::remove_file(proposal_path(folder));
        Ok(())
    }

    pub fn write_record(&self, folder: &Folder) -> Result<(), NotesError> {
        folder.write(&record_path(folder), &self.record.to_string())
    }

    /// For somebody to look at, instead of the master that is there.
    pub fn leave(&self, folder: &Folder, master: &str) -> Result<(), NotesError> {
        let record = Record {
            master: Some(hash(master)),
            ..self.record.clone()
        };
        let lines = |word: &str, lines: &[String]| -> String {
            lines.iter().map(|it| format!("{word} {it}\n")).collect()
        };
        let archived = lines("archive", &self.archived);
        let kept = lines("kept", &self.kept);
        let text = format!("{}{BEFORE_RECORD}{record}{archived}{kept}-->\n", self.text);
        folder.write(&proposal_path(folder), &text)
    }

    /// The proposal that lies there.
    pub fn waiting(
        folder: &Folder,
        sources: &Sources,
        master: &str,
    ) -> Result<Option<Waiting>, NotesError> {
        let text = folder.read(&proposal_path(folder))?.unwrap_or_default();
        let Some((text, rest)) = text.rsplit_once(BEFORE_RECORD) else {
            return Ok(None);
        };
        let record = Record::read(rest);
        let now = &sources.record;
        let is_there = |(session, hash): (&String, &String)| now.notes.get(session) == Some(hash);
        let holds = record.notes.iter().all(is_there)
            && record.docs == now.docs
            && record.master == Some(hash(master));
        let is_all = record.notes.len() == now.notes.len() && record.head == now.head;
        let lines = |word| {
            let lines = rest.lines().filter_map(move |it| it.strip_prefix(word));
            lines.map(str::to_owned).collect()
        };
        let proposal = Proposal {
            text: text.to_owned(),
            archived: lines("archive "),
            kept: lines("kept "),
            record: Record {
                master: None,
                ..record
            },
        };
        Ok(Some(Waiting {
            proposal,
            holds,
            is_all,
        }))
    }

    /// Adds what fell out to the month's file, each line once.
    fn archive(&self, folder: &Folder) -> Result<(), NotesError> {
        let month = self.record.date.as_deref().and_then(|it| it.get(..7));
        let month = month.unwrap_or("undated");
        let path = folder.archive().join(format!("{month}.md"));
        let there = folder.read(&path)?;
        let begin = || format!("# No longer in the master: {month}\n\n");
        let mut text = there.unwrap_or_else(begin);
        let before = text.len();
        for line in &self.archived {
            if !text.lines().any(|it| it == line) {
                text += &format!("{line}\n");
            }
        }
        match text.len() == before {
            true => Ok(()),
            false => folder.write(&path, &text),
        }
    }
}
