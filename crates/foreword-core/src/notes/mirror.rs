//! Copies a project's notes into memory.db, so that a search finds them and they have numbers.
//!
//! The files are the original; the table `notes` has their content as of the last update. A search
//! updates it first: names, sizes and times show which files changed, and only those are read.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, named_params};

use super::{FOLDER, Folder, Note};
use crate::db::Rows as _;
use crate::model::{Kind, Millis};
use crate::redact::thorough;
use crate::store::{Store, next_item, upsert_project};
use crate::text;

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
    let mut seen = Vec::new();
    for folder in Folder::all(root).unwrap_or_default() {
        let notes = folder.note_paths().into_iter();
        let notes = notes.map(|it| (super::session_of(&it), it));
        for (session, path) in notes.chain([(None, folder.master())]) {
            if let Ok(metadata) = path.metadata()
                && let Some(name) = folder.name(&path).to_str()
            {
                seen.push(SeenNote {
                    path: name.to_owned(),
                    session,
                    size: i64::try_from(metadata.len()).unwrap_or(i64::MAX),
                    mtime: text::modified_at(&metadata).unwrap_or(0),
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

    /// Updates the table from the files, the newest first, for as long as `go_on` says so. Returns how
    /// many are left for the next time. A file that cannot be read keeps its last content.
    pub fn mirror_notes(
        &mut self,
        project: &str,
        root: &Path,
        seen: &[SeenNote],
        now: Millis,
        go_on: &dyn Fn() -> bool,
    ) -> rusqlite::Result<usize> {
        let Ok(folder) = Folder::at(root, None) else {
            return Ok(0);
        };
        let mut mirrored = self.mirrored(project)?;
        let tx = self.connection.transaction()?;
        let project_id = upsert_project(&tx, project, now)?;
        let mut changed = Vec::new();
        for note in seen {
            let known = mirrored.remove(&note.path);
            if known.is_none_or(|(_, size, mtime)| (size, mtime) != (note.size, note.mtime)) {
                changed.push((note, known.map(|it| it.0)));
            }
        }
        changed.sort_by_key(|(note, _)| std::cmp::Reverse(note.mtime));
        let mut changed = changed.into_iter();
        for (note, known) in changed.by_ref() {
            let Ok(Some(text)) = folder.read(&folder.root.join(&note.path)) else {
                continue;
            };
            let id = match known {
                Some(id) => id,
                None => next_item(&tx, Kind::Note, now)?,
            };
            put(&tx, id, project_id, note, &text)?;
            if !go_on() {
                break;
            }
        }
        let mut gone = mirrored.into_values();
        for (id, ..) in gone.by_ref() {
            for sql in [
                "delete from notes where id = :id",
                "delete from items where id = :id",
            ] {
                tx.prepare_cached(sql)?.execute(named_params! {":id": id})?;
            }
            if !go_on() {
                break;
            }
        }
        tx.commit()?;
        Ok(changed.len() + gone.len())
    }
}

/// Writes a note into the table, in place of its older content.
fn put(
    connection: &Connection,
    id: i64,
    project: i64,
    note: &SeenNote,
    text: &str,
) -> rusqlite::Result<()> {
    // People edit notes, and may paste a secret.
    let text = thorough(text).text;
    let (read, _) = Note::read(&text);
    let day = read.last.as_deref().and_then(text::day_start);
    let title = match (&note.session, read.title.is_empty()) {
        (Some(session), true) => session.clone(),
        (None, true) => format!("{FOLDER}/master.md"),
        (_, false) => read.title,
    };
    let mut statement = connection.prepare_cached(
        "insert into notes (id, project_id, path, session, title, context, text, size, mtime, at)
         values (:id, :project, :path, :session, :title, :context, :text, :size, :mtime, :at)
         on conflict (id) do update
         set title = excluded.title, context = excluded.context, text = excluded.text,
             size = excluded.size, mtime = excluded.mtime, at = excluded.at",
    )?;
    statement.execute(named_params! {
        ":id": id, ":project": project, ":path": note.path,
        ":session": note.session, ":title": title, ":context": read.context,
        ":text": text, ":size": note.size, ":mtime": note.mtime,
        ":at": day.unwrap_or(note.mtime),
    })?;
    Ok(())
}
