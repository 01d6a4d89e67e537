//! The folder where a hook leaves an event when it cannot write to the queue.
//!
//! Each event is a file, written under a temporary name and then renamed, so that every
//! file is complete. (If many events were appended to one file, a kill would tear them.)
//! In a new data directory the first events come this way, since a hook never creates a
//! database. The worker moves the events into the queue.

use std::io;
use std::path::{Path, PathBuf};

use crate::fault;
use crate::files::{self, ReadError};
use crate::model::{Event, Millis, Receipt};
use crate::queue::Queue;
use crate::text;

#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// A partial file older than this was left by a killed hook; no hook takes that long to write.
const PARTIAL_KEPT: Millis = 3_600_000;

/// The largest file of an event; no hook writes a larger one.
const EVENT_MAX: u64 = 64 << 20;

/// The spool accepts no more files than this. So many wait only if no worker can run, and the
/// folder would grow without end.
pub const FILES_MAX: usize = 20_000;

/// Writes an event to a file of its own, completely or not at all.
pub fn write(spool: &Path, event: &Event) -> io::Result<()> {
    if std::fs::read_dir(spool).is_ok_and(|files| files.count() >= FILES_MAX) {
        let full = format!("{FILES_MAX} events are waiting already; `foreword doctor` shows why");
        return Err(io::Error::new(io::ErrorKind::QuotaExceeded, full));
    }
    let [partial, path] = paths(spool, event);
    let text = serde_json::to_vec(event)?;
    let written = std::fs::write(&partial, text).or_else(|error| {
        // The first event creates the folder.
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        std::fs::create_dir_all(spool)?;
        std::fs::write(&partial, serde_json::to_vec(event)?)
    });
    if let Err(error) = written {
        let _ = std::fs::remove_file(&partial);
        return Err(error);
    }
    fault::point("spool:before-rename");
    std::fs::rename(&partial, path)?;
    fault::point("spool:after-rename");
    Ok(())
}

/// The name under which an event is written, and the one that it gets when it is complete.
pub fn paths(spool: &Path, event: &Event) -> [PathBuf; 2] {
    let partial = spool.join(format!(".{}.partial", event.id));
    [partial, spool.join(format!("{}.json", event.id))]
}

/// The files of the events in the spool, oldest first.
pub fn waiting(spool: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in text::if_there(std::fs::read_dir(spool))?
        .into_iter()
        .flatten()
    {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    // Names are UUIDv7, so their order is the order of time.
    files.sort();
    Ok(files)
}

/// The receipts of a session that are in the spool.
pub fn shown_in(spool: &Path, host_session_id: &str) -> io::Result<Vec<Receipt>> {
    let mut shown = Vec::new();
    for file in waiting(spool)? {
        let Ok(event) = serde_json::from_slice::<Event>(&read(&file)?) else {
            continue;
        };
        if event.host_session_id == host_session_id {
            shown.extend(event.payload.receipt);
        }
    }
    Ok(shown)
}

/// Removes the partial files of hooks that were killed while writing.
pub fn sweep(spool: &Path, now: Millis) -> io::Result<()> {
    for entry in text::if_there(std::fs::read_dir(spool))?
        .into_iter()
        .flatten()
    {
        let entry = entry?;
        let partial = entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "partial");
        let written = entry.metadata().ok().and_then(|it| text::modified_at(&it));
        let age = written.map_or(0, |at| now.saturating_sub(at));
        if partial && age > PARTIAL_KEPT {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// The number of files that could not be read and were set aside for a person to look at.
pub fn unreadable(spool: &Path) -> io::Result<usize> {
    let files = text::if_there(std::fs::read_dir(spool.join("unreadable")))?;
    Ok(files.map_or(0, Iterator::count))
}

/// Moves the events of the spool into the queue; returns the number of files.
pub fn take_in(spool: &Path, queue: &Queue) -> Result<usize, IntakeError> {
    let files = waiting(spool)?;
    for file in &files {
        let text = match read(file) {
            Ok(text) => text,
            // Another process has moved it meanwhile.
            Err(ReadError::Missing) => continue,
            Err(ReadError::Io(error)) if error.kind() != io::ErrorKind::PermissionDenied => {
                return Err(error.into());
            }
            // A file that cannot be read must not block the others.
            Err(_) => {
                set_aside(spool, file)?;
                continue;
            }
        };
        let Ok(event) = serde_json::from_slice::<Event>(&text) else {
            set_aside(spool, file)?;
            continue;
        };
        queue.push(&event)?;
        fault::point("intake:after-insert");
        std::fs::remove_file(file)?;
    }
    Ok(files.len())
}

fn read(file: &Path) -> Result<Vec<u8>, ReadError> {
    files::read(file, EVENT_MAX)
}

fn set_aside(spool: &Path, file: &Path) -> io::Result<()> {
    let folder = spool.join("unreadable");
    std::fs::create_dir_all(&folder)?;
    let name = file.file_name().unwrap_or_default();
    std::fs::rename(file, folder.join(name))
}
