//! A project's memory in files: `_memory/`, plain markdown that people read, edit and commit.
//!
//! A *note* is about one conversation and named after its session, so the same conversation is
//! always the same file, and two people never write to the same one. The *master* is synthesised
//! from all notes. A *scope* is a folder of notes and a master for a part of the project.
//! All but `mirror` works without a database. `note` defines the form of a note, `keep` updates a
//! note without losing a person's edits; `conversation` reads the turns that a note is made from,
//! `archive` exports and imports notes. `synthesis` derives statements from all notes, `evidence`
//! compares them with the project's files, `master` and `record` read and write the results.

pub mod archive;
mod conversation;
pub mod evidence;
mod keep;
pub mod master;
pub mod mirror;
pub mod note;
pub mod record;
pub mod synthesis;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fault;
use crate::files::{self, ReadError};
use crate::text::is_in;
pub use conversation::conversation;
pub use keep::{MergedNote, keep};
pub use note::{DraftProblem, Note, Point};

/// The folder of the memory below a project's root.
pub const FOLDER: &str = "_memory";

/// Longer files are not read.
const FILE_MAX: u64 = 1 << 20;

/// Names that no scope may have.
const RESERVED: &str = "conversations archive master readme proposal synthesis";

#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    #[error("`{0}` is not a session id: use letters, digits, `-`, `_` and `.`")]
    SessionId(String),
    #[error("`{0}` cannot be a scope: {1}")]
    Scope(String, &'static str),
    #[error("{0} leads out of the project; Foreword writes nothing there")]
    Outside(PathBuf),
    #[error("{0} is not UTF-8; fix or move it, it was left alone")]
    NotText(PathBuf),
    #[error("{0} is longer than 1 MB; it was left alone")]
    TooLong(PathBuf),
    #[error("{0} holds conflict markers of a merge; resolve them first, it was left alone")]
    Conflict(PathBuf),
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

/// The memory of a project, or of one of its scopes. The folder need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The project's working tree, canonical.
    pub root: PathBuf,
    /// `_memory`, or `_memory/SCOPE`.
    pub path: PathBuf,
    pub scope: Option<String>,
}

/// A note's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteFile {
    pub session: String,
    pub path: PathBuf,
    pub text: String,
}

impl Folder {
    /// Fails if a symbolic link leads out of the project.
    pub fn at(root: &Path, scope: Option<&str>) -> Result<Folder, NotesError> {
        let root = root.canonicalize().map_err(io_at(root))?;
        let mut path = root.join(FOLDER);
        if let Some(scope) = scope {
            check_scope(scope)?;
            path.push(scope);
        }
        let folder = Folder {
            root,
            path,
            scope: scope.map(str::to_owned),
        };
        for path in [&folder.path, &folder.conversations(), &folder.archive()] {
            folder.require_inside(path)?;
        }
        Ok(folder)
    }

    pub fn conversations(&self) -> PathBuf {
        self.path.join("conversations")
    }

    pub fn archive(&self) -> PathBuf {
        self.path.join("archive")
    }

    pub fn master(&self) -> PathBuf {
        self.path.join("master.md")
    }

    /// The record of the last synthesis.
    pub fn record(&self) -> PathBuf {
        self.path.join("synthesis")
    }

    /// A path relative to the project's root, to be shown to people.
    pub fn name<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// The path of a session's note, whether or not it exists.
    pub fn note(&self, session: &str) -> Result<PathBuf, NotesError> {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        let is_id = (1..=128).contains(&session.len())
            && !session.starts_with('.')
            && session.chars().all(is_plain);
        if !is_id {
            return Err(NotesError::SessionId(session.to_owned()));
        }
        Ok(self.conversations().join(format!("{session}.md")))
    }

    /// The folders of a project's memory: its own, and those of its scopes.
    pub fn all(root: &Path) -> Result<Vec<Folder>, NotesError> {
        let top = Folder::at(root, None)?;
        let scopes = top.scopes().into_iter();
        let scopes = scopes.filter_map(|it| Folder::at(root, Some(&it)).ok());
        Ok([top.clone()].into_iter().chain(scopes).collect())
    }

    /// The scopes below this folder, by name.
    pub fn scopes(&self) -> Vec<String> {
        let mut names: Vec<_> = entries(&self.path)
            .filter(|path| path.join("conversations").is_dir() || path.join("master.md").is_file())
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .filter(|name| check_scope(name).is_ok())
            .collect();
        names.sort();
        names
    }

    /// All notes by name, and the errors of those that could not be read.
    pub fn notes(&self) -> (Vec<NoteFile>, Vec<NotesError>) {
        let mut notes = Vec::new();
        let mut errors = Vec::new();
        for path in self.note_paths() {
            let Some(session) = session_of(&path) else {
                errors.push(NotesError::NotText(path));
                continue;
            };
            match self.read(&path) {
                Ok(Some(text)) => notes.push(NoteFile {
                    session,
                    path,
                    text,
                }),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        (notes, errors)
    }

    fn note_paths(&self) -> Vec<PathBuf> {
        let is_note = |path: &PathBuf| path.extension().is_some_and(|it| it == "md");
        let mut paths: Vec<_> = entries(&self.conversations()).filter(is_note).collect();
        paths.sort();
        paths
    }

    /// The sessions whose notes are not in the master yet. Compares names and times only, since a
    /// hook calls this. In a fresh clone notes and master have about the same time.
    pub fn newer(&self) -> Vec<String> {
        const SAME: Duration = Duration::from_secs(60);
        let changed = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
        let master = changed(&self.master());
        let record = self.record_text();
        let known: HashSet<&str> = record
            .lines()
            .filter_map(|line| line.strip_prefix("note ")?.split(' ').next())
            .collect();
        let new = |path: PathBuf| {
            let session = session_of(&path)?;
            let Some(master) = master else {
                return Some(session);
            };
            // An older note that is not in the record could not be read at the last synthesis.
            let since = changed(&path)?.duration_since(master).ok()?;
            (!known.contains(session.as_str()) || since > SAME).then_some(session)
        };
        self.note_paths().into_iter().filter_map(new).collect()
    }

    /// Reads a file of the memory; none if it does not exist.
    pub fn read(&self, path: &Path) -> Result<Option<String>, NotesError> {
        let Some(text) = self.read_as_is(path)? else {
            return Ok(None);
        };
        if has_conflict(&text) {
            return Err(NotesError::Conflict(path.to_owned()));
        }
        // Some editors write a byte order mark and Windows line ends.
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        Ok(Some(text))
    }

    /// The record of the last synthesis, with the conflict markers that a merge left in it; empty if
    /// there is none that can be read.
    pub fn record_text(&self) -> String {
        let text = self.read_as_is(&self.record()).ok().flatten();
        text.unwrap_or_default()
    }

    fn read_as_is(&self, path: &Path) -> Result<Option<String>, NotesError> {
        let memory = self.memory(path)?;
        let bytes = files::read_in(&memory, path, FILE_MAX);
        let text = files::if_there(bytes.and_then(files::text));
        text.map_err(|error| match error {
            ReadError::TooLarge(_) => NotesError::TooLong(path.to_owned()),
            ReadError::NotText => NotesError::NotText(path.to_owned()),
            ReadError::Outside(_) => NotesError::Outside(path.to_owned()),
            error => io_at(path)(error.into()),
        })
    }

    /// Writes a file completely or not at all, and the README if there is none.
    pub fn write(&self, path: &Path, text: &str) -> Result<(), NotesError> {
        self.require_inside(path)?;
        let folder = path.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder).map_err(io_at(folder))?;
        let readme = self.root.join(FOLDER).join("README.md");
        if !readme.exists() {
            put(&readme, include_str!("notes/README.md"))?;
        }
        put(path, text)
    }

    /// Fails unless the existing part of the path, with links followed, is inside the memory's
    /// folder.
    fn require_inside(&self, path: &Path) -> Result<(), NotesError> {
        let memory = self.memory(path)?;
        if real(path).is_some_and(|it| it.starts_with(&memory)) {
            return Ok(());
        }
        Err(NotesError::Outside(path.to_owned()))
    }

    /// The memory's folder with links followed. Fails for `path` if it is not inside the project, or
    /// inside `.git`.
    fn memory(&self, path: &Path) -> Result<PathBuf, NotesError> {
        let memory = real(&self.root.join(FOLDER)).unwrap_or_default();
        if memory.starts_with(&self.root) && !memory.iter().any(|it| it == ".git") {
            return Ok(memory);
        }
        Err(NotesError::Outside(path.to_owned()))
    }
}

fn check_scope(scope: &str) -> Result<(), NotesError> {
    let refuse = |why| Err(NotesError::Scope(scope.to_owned(), why));
    if is_in(RESERVED, &scope.to_ascii_lowercase()) {
        return refuse("this name is reserved");
    }
    let is_plain = |it: char| it.is_alphanumeric() || "-_".contains(it);
    if scope.is_empty() || scope.len() > 64 || !scope.chars().all(is_plain) {
        return refuse("use letters, digits, `-` and `_`");
    }
    Ok(())
}

/// The existing part of a path, with links followed.
fn real(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find(|it| it.symlink_metadata().is_ok())?;
    there.canonicalize().ok()
}

fn session_of(note: &Path) -> Option<String> {
    Some(note.file_stem()?.to_str()?.to_owned())
}

/// Whether a text has unresolved conflict markers of a merge.
fn has_conflict(text: &str) -> bool {
    let begins = |mark: &str| text.lines().any(|line| line.starts_with(mark));
    begins("<<<<<<< ") && begins(">>>>>>> ")
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn put(path: &Path, text: &str) -> Result<(), NotesError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    // `create_new` below fails on anything that is there, so that no link is followed.
    let _ = fs::remove_file(&beside);
    let written = File::create_new(&beside)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| {
            fault::point("notes:before-rename");
            fs::rename(&beside, path)
        });
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        io_at(path)(error)
    })
}

fn io_at(path: &Path) -> impl Fn(io::Error) -> NotesError {
    let path = path.to_owned();
    move |error| NotesError::Io {
        path: path.clone(),
        error,
    }
}

#[cfg(test)]
mod tests;
