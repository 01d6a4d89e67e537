//! Exports the notes of a project into one file, and imports them elsewhere.
//!
//! The file is JSON: each note's path, size, hash and text. All of it is checked before anything
//! is written, and no existing file is replaced unless asked for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FILE_MAX, FOLDER, Folder, NotesError};
use crate::redact::thorough;

const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub struct Archive {
    foreword_notes: u32,
    /// The version of the program that wrote it.
    foreword: String,
    date: String,
    pub files: Vec<ArchivedFile>,
    /// How many secrets were redacted in the export.
    #[serde(skip)]
    pub redacted: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// Below `_memory/`.
    path: String,
    size: usize,
    hash: String,
    text: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("this is not an archive of notes")]
    Form(#[from] serde_json::Error),
    #[error(
        "this archive has format {0}, and this program reads only format {VERSION}; update Foreword"
    )]
    Version(u32),
    #[error("`{0}` is not a path in a project's memory; nothing was written")]
    Path(String),
    #[error("`{0}` does not have the size and hash in the archive; nothing was written")]
    Damaged(String),
}

/// The result of an import.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub new: Vec<PathBuf>,
    pub same: usize,
    /// Files that existed with another text; it was kept, or moved to `archive/`.
    pub differ: Vec<PathBuf>,
}

impl Archive {
    /// All files below a folder, and the errors of those that cannot be read.
    pub fn of(folder: &Folder, version: &str, date: &str) -> (Archive, Vec<NotesError>) {
        let mut archive = Archive {
            foreword_notes: VERSION,
            foreword: version.to_owned(),
            date: date.to_owned(),
            files: Vec::new(),
            redacted: 0,
        };
        let mut errors = Vec::new();
        let memory = folder.root.join(FOLDER);
        for path in files(&folder.path) {
            let name = path.strip_prefix(&memory).ok().and_then(Path::to_str);
            match (folder.read(&path), name) {
                (Ok(Some(text)), Some(name)) if name != "README.md" => {
                    let redacted = thorough(&text);
                    archive.redacted += redacted.count;
                    archive.files.push(ArchivedFile {
                        path: name.to_owned(),
                        size: redacted.text.len(),
                        hash: hash(&redacted.text),
                        text: redacted.text.into_owned(),
                    });
                }
                (Ok(_), Some(_)) => {}
                (Ok(_), None) => errors.push(NotesError::NotText(path)),
                (Err(error), _) => errors.push(error),
            }
        }
        (archive, errors)
    }

    /// Reads an archive and checks every file in it.
    pub fn read(text: &str) -> Result<Archive, ArchiveError> {
        let archive: Archive = serde_json::from_str(text)?;
        if archive.foreword_notes != VERSION {
            return Err(ArchiveError::Version(archive.foreword_notes));
        }
        let plain = |it: Component<'_>| matches!(it, Component::Normal(name) if !name.to_string_lossy().starts_with('.'));
        let mut paths = BTreeSet::new();
        for file in &archive.files {
            let (path, text) = (&file.path, &file.text);
            let is_ours = path.ends_with(".md") || path.rsplit('/').next() == Some("synthesis");
            let is_place =
                is_ours && !path.contains('\\') && Path::new(path).components().all(plain);
            if !is_place || !paths.insert(path.to_lowercase()) {
                return Err(ArchiveError::Path(path.clone()));
            }
            let is_whole = text.len() == file.size && hash(text) == file.hash;
            if !is_whole || text.len() as u64 > FILE_MAX {
                return Err(ArchiveError::Damaged(path.clone()));
            }
        }
        Ok(archive)
    }

    /// Writes the files that do not exist yet, and with `overwrite` also those that have another
    /// text; the old text goes to `archive/`.
    pub fn import(&self, folder: &Folder, overwrite: bool) -> Result<Imported, NotesError> {
        let mut imported = Imported::default();
        let mut wanted = Vec::new();
        for ArchivedFile { path, text, .. } in &self.files {
            let path = folder.path.join(path);
            wanted.push((folder.read(&path)?, path, text));
        }
        for (there, path, text) in wanted {
            let Some(there) = there else {
                folder.write(&path, text)?;
                imported.new.push(path);
                continue;
            };
            if there == *text {
                imported.same += 1;
                continue;
            }
            if overwrite {
                let name = path.strip_prefix(&folder.path).unwrap_or(&path);
                let name = name.with_extension("").to_string_lossy().replace('/', "-");
                let aside = format!("{name}-{}.md", &hash(&there)[..8]);
                folder.write(&folder.archive().join(aside), &there)?;
                folder.write(&path, text)?;
            }
            imported.differ.push(path);
        }
        Ok(imported)
    }
}

/// All files below a folder, by name, except hidden ones. Links to folders are not followed.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in super::entries(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match fs::symlink_metadata(&path) {
            _ if name.starts_with('.') => {}
            Ok(it) if it.is_dir() => files.extend(self::files(&path)),
            Ok(_) => files.push(path),
            Err(_) => {}
        }
    }
    files.sort();
    files
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
