//! Databases that were written before the first release. No migration leads from them to the
//! present schema, so they are set aside under another name, and memory begins empty.
//!
//! The caller must hold the worker's lock. The paths of the files are recorded in `unreleased.json`
//! beside them, for `status` and `doctor`. Events in the spool stay there: its format is the same,
//! so the next worker reads them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::recover::{named, rename_with_log};
use crate::db::OpenError;
use crate::model::Millis;
use crate::queue::Queue;
use crate::store::Store;
use crate::{db, fault};

/// The files that were set aside, and when the last of them was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    pub at: Millis,
    pub files: Vec<PathBuf>,
}

fn record(dir: &Path) -> PathBuf {
    dir.join("unreleased.json")
}

/// The files that were set aside in a data directory and still exist; none if there are none.
pub fn recorded(dir: &Path) -> Option<SetAside> {
    let json = std::fs::read(record(dir)).ok()?;
    let mut aside: SetAside = serde_json::from_slice(&json).ok()?;
    aside.files.retain(|file| file.exists());
    (!aside.files.is_empty()).then_some(aside)
}

/// Whether a database in a data directory must be set aside.
pub fn is_there(dir: &Path) -> bool {
    !unreleased(dir).is_empty()
}

fn unreleased(dir: &Path) -> Vec<PathBuf> {
    let (memory, queue) = (dir.join("memory.db"), dir.join("queue.db"));
    let errors = [Store::inspect(&memory).err(), Queue::inspect(&queue).err()];
    let unreleased = errors
        .into_iter()
        .flatten()
        .filter_map(|error| match error {
            OpenError::Unreleased(path) => Some(path),
            _ => None,
        });
    unreleased.collect()
}

/// Sets aside the unreleased databases. Returns all files that were ever set aside; none if there was
/// nothing to do now.
pub fn set_aside(dir: &Path, now: Millis) -> Result<Option<SetAside>, OpenError> {
    let mut set = None;
    for database in unreleased(dir) {
        // A log that cannot be emptied is moved with the database.
        let _ = db::empty_log(&database);
        let aside = named(&database, "unreleased", now);
        // Recorded before the rename: if it does not happen, `recorded` leaves the name out.
        let files = recorded(dir).map_or(Vec::new(), |it| it.files);
        let all = SetAside {
            at: now,
            files: files.into_iter().chain([aside.clone()]).collect(),
        };
        let json = serde_json::to_vec_pretty(&all).map_err(std::io::Error::from)?;
        let partial = db::beside(&record(dir), ".partial");
        std::fs::write(&partial, json)?;
        std::fs::rename(partial, record(dir))?;
        fault::point("unreleased:after-record");
        rename_with_log(&database, &aside)?;
        set = Some(all);
    }
    Ok(set)
}
