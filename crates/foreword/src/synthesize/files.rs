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
}

/// Held on the folder itself, so that nothing is left behind; the kernel drops it with us.
pub fn lock(folder: &Folder) -> anyhow::Result<File> {
    let path = &folder.path;
    let file = File::open(path).with_context(|| format!("could not open {}", path.display()))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another synthesis is at work in {}; wait for its end",
                path.display()
            )
        }
        // Some file systems know no locks; renames keep the files whole there as well.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
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
        let archived: String = self
            .archived
            .iter()
            .map(|it| format!("archive {it}\n"))
            .collect();
        let text = format!("{}{BEFORE_RECORD}{record}{archived}-->\n", self.text);
        folder.write(&proposal_path(folder), &text)
    }

    /// The proposal that lies there, and whether all that it rests on is as it was.
    pub fn waiting(
        folder: &Folder,
        sources: &Sources,
        master: &str,
    ) -> Result<Option<(Proposal, bool)>, NotesError> {
        let text = folder.read(&proposal_path(folder))?.unwrap_or_default();
        let Some((text, rest)) = text.rsplit_once(BEFORE_RECORD) else {
            return Ok(None);
        };
        let record = Record::read(rest);
        let holds = record.notes == sources.record.notes
            && record.docs == sources.record.docs
            && record.master == Some(hash(master));
        let archived = rest.lines().filter_map(|it| it.strip_prefix("archive "));
        let proposal = Proposal {
            text: text.to_owned(),
            archived: archived.map(str::to_owned).collect(),
            record: Record {
                master: None,
                ..record
            },
        };
        Ok(Some((proposal, holds)))
    }

    /// Adds what fell out to the month's file, each line once.
    fn archive(&self, folder: &Folder) -> Result<(), NotesError> {
        let month = self.record.date.as_deref().and_then(|it| it.get(..7));
        let month = month.unwrap_or("undated");
        let path = folder.archive().join(format!("{month}.md"));
        let there = folder.read(&path)?;
        let begin = || format!("# No longer in the master: {month}\n\n");
        let mut text = there.clone().unwrap_or_else(begin);
        for line in &self.archived {
            if !text.lines().any(|it| it == line) {
                text += &format!("{line}\n");
            }
        }
        if self.archived.is_empty() || there.as_ref() == Some(&text) {
            return Ok(());
        }
        folder.write(&path, &text)
    }
}
