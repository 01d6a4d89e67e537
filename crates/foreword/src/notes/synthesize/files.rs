//! The files that a synthesis writes: the master, its record, the archive, or a proposal.
//!
//! A section is ours if its hash is in the record. So that this holds after a crash at any point, the record
//! first gets the hashes of the new sections beside the old ones, then the master is replaced, then the record.
//! A proposal holds the record that it would leave: sections that a person edits in it are theirs once it is accepted.

use std::fs::{self, File, TryLockError};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use foreword_core::fault;
use foreword_core::notes::record::{SynthesisRecord, hash};
use foreword_core::notes::{Folder, NotesError};

const BEFORE_RECORD: &str = "\n<!-- what this rests on, for `foreword synthesize --accept`\n";

/// A master that could be written.
pub struct Proposal {
    pub text: String,
    /// The hashes of its sources, and of the master that it would replace.
    pub record: SynthesisRecord,
    /// Statements that did not fit.
    pub archived: Vec<String>,
    /// Lines for the user about it.
    pub remarks: Vec<String>,
}

/// Locks the folder itself, so no lock file is left behind; the lock ends with the process.
pub fn lock(folder: &Folder) -> anyhow::Result<File> {
    let path = &folder.path;
    let file = File::open(path).with_context(|| format!("could not open {}", path.display()))?;
    // Some file systems have no locks; files stay whole there because they are replaced by renames.
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        let path = path.display();
        bail!("another synthesis is at work in {path}; wait for its end");
    }
    Ok(file)
}

/// The record of the last synthesis; an empty one if there is none.
pub fn last(folder: &Folder) -> SynthesisRecord {
    SynthesisRecord::read(&folder.record_text())
}

fn proposal_path(folder: &Folder) -> PathBuf {
    folder.path.join("proposal.md")
}

impl Proposal {
    pub fn write(&self, folder: &Folder) -> anyhow::Result<()> {
        self.archive(folder)?;
        let mut both = last(folder);
        both.sections.extend(self.record.sections.iter().cloned());
        folder.write(&folder.record(), &both.to_string())?;
        fault::point("synthesis:before-master");
        folder.write(&folder.master(), &self.text)?;
        fault::point("synthesis:after-master");
        self.write_record(folder)?;
        let _ = fs::remove_file(proposal_path(folder));
        Ok(())
    }

    pub fn write_record(&self, folder: &Folder) -> Result<(), NotesError> {
        let record = SynthesisRecord {
            master: None,
            ..self.record.clone()
        };
        folder.write(&folder.record(), &record.to_string())
    }

    /// Writes proposal.md, for somebody to read and accept.
    pub fn leave(&self, folder: &Folder) -> Result<(), NotesError> {
        let lines = |word: &str, lines: &[String]| -> String {
            lines.iter().map(|it| format!("{word} {it}\n")).collect()
        };
        let archived = lines("archive", &self.archived);
        let remarks = lines("remark", &self.remarks);
        let (text, record) = (&self.text, &self.record);
        let text = format!("{text}{BEFORE_RECORD}{record}{archived}{remarks}-->\n");
        folder.write(&proposal_path(folder), &text)
    }

    /// Reads proposal.md; none if there is none.
    pub fn waiting(folder: &Folder) -> Result<Option<Proposal>, NotesError> {
        let text = folder.read(&proposal_path(folder))?.unwrap_or_default();
        let Some((text, rest)) = text.rsplit_once(BEFORE_RECORD) else {
            return Ok(None);
        };
        let lines = |word| {
            let lines = rest.lines().filter_map(move |it| it.strip_prefix(word));
            lines.map(str::to_owned).collect()
        };
        Ok(Some(Proposal {
            text: text.to_owned(),
            record: SynthesisRecord::read(rest),
            archived: lines("archive "),
            remarks: lines("remark "),
        }))
    }

    /// Whether all that it was made of is still the same. There may be more notes now.
    pub fn holds(&self, now: &SynthesisRecord, master: &str) -> bool {
        let is_there = |(session, hash): (&String, &String)| now.notes.get(session) == Some(hash);
        self.record.notes.iter().all(is_there)
            && self.record.docs == now.docs
            && self.record.master == Some(hash(master))
    }

    /// Whether no note and no commit came since.
    pub fn has_all(&self, now: &SynthesisRecord) -> bool {
        self.record.notes.len() == now.notes.len() && self.record.head == now.head
    }

    /// Adds the archived statements to the month's file, each line once.
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
        if text.len() > before {
            folder.write(&path, &text)?;
        }
        Ok(())
    }
}
