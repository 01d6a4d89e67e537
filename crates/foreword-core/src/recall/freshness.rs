//! Checks whether the files of an observation have changed since it was made.
//!
//! An observation keeps the size, time and hash of its files. The check is a `stat`; only a file
//! of the same size and another time is read, and only if it is small.

use std::path::{Path, PathBuf};

use rusqlite::named_params;

use crate::files;
use crate::model::{Freshness, Millis, TouchedFile};
use crate::project::Place;
use crate::store::{Item, ItemBody, ItemFreshness, Store};

/// The largest file that is read to compare it. Larger ones have no hash.
const HASH_MAX: u64 = 131_072;

/// The state of a file now; none if there is nothing to compare with. Relative paths are below
/// `root`.
#[must_use]
pub fn look(root: Option<&Path>, file: &TouchedFile) -> Option<Freshness> {
    let size = file.size?;
    let path = match (Path::new(&file.path), root) {
        (path, _) if path.is_absolute() => path.to_owned(),
        (path, Some(root)) => root.join(path),
        (_, None) => return None,
    };
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(Freshness::Gone),
        Err(_) => return None,
    };
    if metadata.len() != size {
        return Some(Freshness::Changed);
    }
    let since_1970 = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let mtime = since_1970.and_then(|age| Millis::try_from(age.as_millis()).ok());
    if mtime.is_some() && mtime == file.mtime {
        return Some(Freshness::Fresh);
    }
    let hash = file.hash.as_ref().filter(|_| size <= HASH_MAX)?;
    let content = files::read(&path, HASH_MAX).ok()?;
    let same = blake3::hash(&content).to_hex().as_str() == hash;
    Some(if same {
        Freshness::Fresh
    } else {
        Freshness::Changed
    })
}

impl Store {
    /// The files of an observation, as they were when it was made.
    pub fn touched(&self, observation: i64) -> rusqlite::Result<Vec<TouchedFile>> {
        let mut statement = self.connection.prepare_cached(
            "select path, role, size, mtime, hash
             from observation_files
             where observation_id = :id
             order by path, role",
        )?;
        let rows = statement.query_map(named_params! {":id": observation}, |row| {
            Ok(TouchedFile {
                path: row.get("path")?,
                role: row.get("role")?,
                size: row
                    .get::<_, Option<i64>>("size")?
                    .and_then(|it| it.try_into().ok()),
                mtime: row.get("mtime")?,
                hash: row.get("hash")?,
            })
        })?;
        rows.collect()
    }

    /// The folder that an observation's relative paths are below: the working tree `here` if it is
    /// of the same project, else the working tree of its session, if that still exists.
    pub fn root_of(&self, observation: i64, here: &Place) -> rusqlite::Result<Option<PathBuf>> {
        let mut statement = self.connection.prepare_cached(
            "select s.root,
                    exists (
                        select 1
                        from project_keys k
                        where k.project_id = o.project_id and k.key = :here
                    ) as is_here
             from observations o
             join sessions s on s.id = o.session_id
             where o.id = :id",
        )?;
        statement.query_row(
            named_params! {":id": observation, ":here": here.project},
            |row| {
                if row.get("is_here")? {
                    return Ok(here.root.clone());
                }
                let root = row.get::<_, Option<String>>("root")?.map(PathBuf::from);
                Ok(root.filter(|it| it.is_dir()))
            },
        )
    }

    /// The item with this number; an observation with the freshness of its files.
    pub fn item_from(&self, id: i64, here: &Place) -> rusqlite::Result<Option<Item>> {
        let Some(mut item) = self.item(id)? else {
            return Ok(None);
        };
        if matches!(item.body, ItemBody::Observation { .. }) {
            let root = self.root_of(id, here)?;
            let files = self.touched(id)?.into_iter();
            let states: Vec<_> = files
                .filter_map(|file| Some((look(root.as_deref(), &file)?, file.path)))
                .collect();
            item.freshness = Some(ItemFreshness {
                stale: states.iter().map(|(state, _)| *state).max(),
                stale_files: states
                    .into_iter()
                    .filter(|(state, _)| *state != Freshness::Fresh)
                    .map(|(state, path)| (path, state))
                    .collect(),
            });
        }
        Ok(Some(item))
    }

    /// The worst state of an observation's files; none if unknown.
    pub fn freshness(
        &self,
        observation: i64,
        root: Option<&Path>,
    ) -> rusqlite::Result<Option<Freshness>> {
        let files = self.touched(observation)?;
        Ok(files.iter().filter_map(|file| look(root, file)).max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FileRole;

    #[test]
    fn a_file_is_fresh_changed_or_gone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.rs"), "one").unwrap();
        let file = |hash: Option<&str>, size| TouchedFile {
            path: "a.rs".into(),
            role: FileRole::Modified,
            size,
            mtime: Some(1),
            hash: hash.map(|text| blake3::hash(text.as_bytes()).to_hex().to_string()),
        };
        let seen = |file: &TouchedFile| look(Some(dir.path()), file);
        // Another time, but the same content.
        assert_eq!(seen(&file(Some("one"), Some(3))), Some(Freshness::Fresh));
        assert_eq!(seen(&file(Some("two"), Some(3))), Some(Freshness::Changed));
        assert_eq!(
            seen(&file(Some("three"), Some(5))),
            Some(Freshness::Changed)
        );
        assert_eq!(seen(&file(None, Some(3))), None, "unknown");
        assert_eq!(seen(&file(Some("one"), None)), None);
        assert_eq!(look(None, &file(Some("one"), Some(3))), None);
        std::fs::remove_file(dir.path().join("a.rs")).unwrap();
        assert_eq!(seen(&file(Some("one"), Some(3))), Some(Freshness::Gone));
    }
}
