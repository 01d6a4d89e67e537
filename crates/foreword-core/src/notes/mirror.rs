//! Copies a project's notes into memory.db, so that a search finds them and they have numbers.
//!
//! The files are the original; the table `notes` has their content as of the last update. A search
//! updates it first: names, sizes and times show which files changed, and only those are read.

use std::collections::HashMap;
use std::path::Path;
use std::time::UNIX_EPOCH;

use rusqlite::named_params;

use super::{FOLDER, Folder, Note};
use crate::db::Rows as _;
use crate::model::{Kind, Millis};
use crate::redact::redact;
use crate::store::{Store, next_item, upsert_project};

/// The file of a note or a master, by its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenNote {
    /// Relative to the project's root.
    pub path: String,
    /// None for a master.
    session: Option<String>,
    size: i64,
    mtime: Millis,
}

/// All notes and masters in a project's `_memory/`, including scopes.
pub fn seen(root: &Path) -> Vec<SeenNote> {
    let Ok(top) = Folder::at(root, None) else {
        return Vec::new();
    };
    let scopes = top.scopes();
    let scopes = scopes
        .iter()
        .filter_map(|it| Folder::at(root, Some(it)).ok());
    let folders: Vec<Folder> = scopes.chain([top.clone()]).collect();
    let mut seen = Vec::new();
    for folder in folders {
        let notes = std::fs::read_dir(folder.conversations());
        let notes = notes.into_iter().flatten().flatten().map(|it| it.path());
        let notes = notes.filter(|it| it.extension().is_some_and(|it| it == "md"));
        for path in notes.chain([folder.master()]) {
            let Ok(metadata) = path.metadata() else {
                continue;
            };
            let modified = metadata
                .modified()
                .ok()
                .and_then(|it| it.duration_since(UNIX_EPOCH).ok());
            let name = path.strip_prefix(&top.root).ok().and_then(Path::to_str);
            let session = path.file_stem().and_then(|it| it.to_str());
            if let Some(name) = name {
                seen.push(SeenNote {
                    path: name.to_owned(),
                    session: session
                        .filter(|_| path != folder.master())
                        .map(str::to_owned),
                    size: i64::try_from(metadata.len()).unwrap_or(i64::MAX),
                    mtime: modified.map_or(0, |it| it.as_millis() as Millis),
                });
            }
        }
    }
    seen
}

impl Store {
    /// Whether the table differs from the files.
    pub fn notes_differ(&self, project: &str, seen: &[SeenNote]) -> rusqlite::Result<bool> {
        let mirrored = self.mirrored(project)?;
        Ok(mirrored.len() != seen.len()
            || seen.iter().any(|it| {
                mirrored
                    .get(&it.path)
                    .is_none_or(|&(_, size, mtime)| (size, mtime) != (it.size, it.mtime))
            }))
    }

    fn mirrored(&self, project: &str) -> rusqlite::Result<HashMap<String, (i64, i64, Millis)>> {
        let rows: Vec<(String, i64, i64, Millis)> = self.connection.all(
            "select path, id, size, mtime
             from notes
             where project_id = (select project_id from project_keys where key = :project)",
            named_params! {":project": project},
        )?;
        let rows = rows.into_iter();
        Ok(rows
            .map(|(path, id, size, mtime)| (path, (id, size, mtime)))
            .collect())
    }

    /// Updates the table from the files. A file that cannot be read keeps its last content.
    pub fn mirror_notes(
        &mut self,
        project: &str,
        root: &Path,
        seen: &[SeenNote],
        now: Millis,
    ) -> rusqlite::Result<()> {
        let Ok(folder) = Folder::at(root, None) else {
            return Ok(());
        };
        let mut mirrored = self.mirrored(project)?;
        let tx = self.connection.transaction()?;
        let project_id = upsert_project(&tx, project, now)?;
        for note in seen {
            let known = mirrored.remove(&note.path);
            if known.is_some_and(|(_, size, mtime)| (size, mtime) == (note.size, note.mtime)) {
                continue;
            }
            let Ok(Some(text)) = folder.read(&folder.root.join(&note.path)) else {
                continue;
            };
            // People edit notes, and may paste a secret.
            let text = redact(&text).text;
            let (read, _) = Note::read(&text);
            let day = read.last.as_deref().and_then(day);
            let title = match (&note.session, read.title.is_empty()) {
                (Some(session), true) => session.clone(),
                (None, true) => format!("{FOLDER}/master.md"),
                (_, false) => read.title,
            };
            let id = match known {
                Some((id, ..)) => id,
                None => next_item(&tx, Kind::Note, now)?,
            };
            tx.execute(
                "insert into notes (id, project_id, path, session, title, context, text, size, mtime, at)
                 values (:id, :project, :path, :session, :title, :context, :text, :size, :mtime, :at)
                 on conflict (id) do update
                 set title = excluded.title, context = excluded.context, text = excluded.text,
                     size = excluded.size, mtime = excluded.mtime, at = excluded.at",
                named_params! {
                    ":id": id, ":project": project_id, ":path": note.path,
                    ":session": note.session, ":title": title, ":context": read.context,
                    ":text": text, ":size": note.size, ":mtime": note.mtime,
                    ":at": day.unwrap_or(note.mtime),
                },
            )?;
        }
        for (id, ..) in mirrored.into_values() {
            tx.execute(
                "delete from notes where id = :id",
                named_params! {":id": id},
            )?;
            tx.execute(
                "delete from items where id = :id",
                named_params! {":id": id},
            )?;
        }
        tx.commit()
    }
}

/// The time at which a day begins, in UTC.
fn day(date: &str) -> Option<Millis> {
    let date: jiff::civil::Date = date.parse().ok()?;
    let begins = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(begins.timestamp().as_millisecond())
}
