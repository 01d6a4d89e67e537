//! Notices that the files of an open database were deleted or replaced.
//!
//! SQLite goes on writing to a file that has no name any more, and reports no error. The files are
//! only looked at (`stat`), never opened: closing a second descriptor of a database file would
//! release the locks that SQLite holds on it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::beside;

/// The device and the number of a file, which no other file has while it is open.
type FileId = (u64, u64);

fn id(path: &Path) -> Option<FileId> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// The files of an open database, as they were when it was opened: the database, its log and the
/// log's index.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    database: Option<FileId>,
    log: [(PathBuf, Option<FileId>); 2],
}

impl Place {
    /// To be called before the database is opened.
    pub fn before(path: &Path) -> Option<FileId> {
        id(path)
    }

    /// To be called after it was opened. `before` guards against a file that was replaced meanwhile.
    pub fn after(path: &Path, before: Option<FileId>) -> Place {
        let log = ["-wal", "-shm"].map(|suffix| beside(path, suffix));
        Place {
            path: path.to_owned(),
            database: before.or_else(|| id(path)),
            log: log.map(|file| {
                let id = id(&file);
                (file, id)
            }),
        }
    }

    fn has_database(&self) -> bool {
        id(&self.path) == self.database
    }

    /// Whether the names still lead to the files that the connection uses.
    pub fn is_kept(&self) -> bool {
        let is_kept = |(file, was): &(PathBuf, Option<FileId>)| was.is_none() || id(file) == *was;
        self.has_database() && self.log.iter().all(is_kept)
    }

    /// Closes the connection to a database that was deleted or replaced. Its log must not be applied
    /// to another database of the same name, so it is removed; if only the log was removed, what it
    /// holds is written into the database first.
    pub fn forsake(&self, connection: Connection) {
        if self.has_database() {
            let checkpoint = "pragma wal_checkpoint(truncate)";
            let _ = connection.query_row(checkpoint, [], |_| Ok(()));
        } else {
            for (file, was) in &self.log {
                if was.is_some() && id(file) == *was {
                    let _ = std::fs::remove_file(file);
                }
            }
        }
        // SQLite would remove the log by its name, which may be that of another database's by now.
        let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
}
