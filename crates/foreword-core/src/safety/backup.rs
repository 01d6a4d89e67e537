//! Makes, lists and rotates copies of memory.db in `backups/`.
//!
//! A backup is a database like the memory, named by its time
//! (`memory.2026-11-18T101500Z.db`). It is written under another name, checked and then
//! renamed, so a file with such a name is complete. The copies that migrations make
//! (`memory.before-5.db`) are used only if there is no dated backup.

use std::io;
use std::path::{Path, PathBuf};

use crate::db::{self, OpenError, foreign};
use crate::files;
use crate::model::Millis;
use crate::safety::salvage;
use crate::store::{self, Store};
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    pub path: PathBuf,
    /// None for a copy that a migration made.
    pub at: Option<Millis>,
    pub size: u64,
}

impl Backup {
    /// The file name.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// How many backups are kept. If both are zero, none is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupRetention {
    /// For this many days, the last backup of the day is kept.
    pub daily: usize,
    /// For this many weeks, the last backup of the week is kept.
    pub weekly: usize,
}

/// How many of the latest copies that migrations made are kept.
const BEFORE_KEPT: usize = 2;

const DAY: Millis = 24 * 3_600_000;

impl Store {
    /// Makes a backup now.
    pub fn back_up(&self, backups: &Path, now: Millis) -> Result<Backup, OpenError> {
        std::fs::create_dir_all(backups)?;
        let time = text::rfc3339(now).replace(':', "");
        let path = backups.join(format!("memory.{time}.db"));
        // Otherwise a checkpoint after the backup would look like a change of the memory. It fails
        // if the memory is open for reading only.
        let checkpoint = "pragma wal_checkpoint(truncate)";
        let _ = self.connection.query_row(checkpoint, [], |_| Ok(()));
        db::copy_to(&self.connection, &path)?;
        let size = std::fs::metadata(&path)?.len();
        let at = Some(now);
        Ok(Backup { path, at, size })
    }
}

/// All backups, the newest first. One with a time in the future was made while the clock was wrong:
/// it comes after the others.
pub fn all(backups: &Path, now: Millis) -> io::Result<Vec<Backup>> {
    let mut all = Vec::new();
    for entry in text::if_there(std::fs::read_dir(backups))?
        .into_iter()
        .flatten()
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(stamp) = name
            .strip_prefix("memory.")
            .and_then(|name| name.strip_suffix(".db"))
        else {
            continue;
        };
        all.push(Backup {
            path: entry.path(),
            at: time(stamp),
            size: entry.metadata()?.len(),
        });
    }
    let rank = |backup: &Backup| {
        let timely = backup.at.is_some_and(|at| at <= now);
        (backup.at.is_some(), timely, backup.at, backup.path.clone())
    };
    all.sort_by_key(|backup| std::cmp::Reverse(rank(backup)));
    Ok(all)
}

/// Reads `2026-11-18T101500Z`; without colons it is a valid file name on every filesystem.
fn time(stamp: &str) -> Option<Millis> {
    let (date, time) = stamp.split_once('T')?;
    let [hour, minute, second] = [time.get(0..2)?, time.get(2..4)?, time.get(4..)?];
    let timestamp: jiff::Timestamp = format!("{date}T{hour}:{minute}:{second}").parse().ok()?;
    Some(timestamp.as_millisecond())
}

/// The newest backup that is undamaged and not of a later Foreword.
pub fn newest_good(backups: &Path, now: Millis) -> io::Result<Option<Backup>> {
    let mut all = all(backups, now)?.into_iter();
    Ok(all.find(|backup| is_good(&backup.path)))
}

/// Whether all tables of a memory are there and can be read. What else is there does not matter: only
/// rows are taken from a backup.
pub fn is_good(backup: &Path) -> bool {
    // SQLite would wait for a pipe.
    if files::open(backup).is_err() {
        return false;
    }
    let source = foreign::open_source(backup, store::MIGRATIONS);
    source.is_ok_and(|source| salvage::is_whole(&source, store::MIGRATIONS).unwrap_or(false))
}

/// Deletes the backups that need not be kept: the newest of each day and each week stays.
pub fn rotate(backups: &Path, retention: BackupRetention, now: Millis) -> io::Result<()> {
    let (dated, before): (Vec<_>, Vec<_>) = all(backups, now)?
        .into_iter()
        .partition(|backup| backup.at.is_some());
    let (mut days, mut weeks) = (Vec::new(), Vec::new());
    for backup in dated {
        // 1970 began on a Thursday; weeks begin on Monday.
        let day = backup.at.unwrap_or(0) / DAY;
        let is_daily = is_new(&mut days, day, retention.daily);
        let is_weekly = is_new(&mut weeks, (day + 3) / 7, retention.weekly);
        if !is_daily && !is_weekly {
            std::fs::remove_file(backup.path)?;
        }
    }
    for backup in before.iter().skip(BEFORE_KEPT) {
        std::fs::remove_file(&backup.path)?;
    }
    Ok(())
}

fn is_new(seen: &mut Vec<Millis>, number: Millis, max: usize) -> bool {
    let new = !seen.contains(&number) && seen.len() < max;
    if new {
        seen.push(number);
    }
    new
}

/// Whether the last backup is a day old and the memory was written since.
pub fn is_due(memory: &Path, backups: &Path, now: Millis) -> bool {
    let last = all(backups, now).unwrap_or_default().into_iter().next();
    let Some(last) = last.filter(|last| last.at.is_some_and(|at| at <= now)) else {
        return true;
    };
    let written = |path: PathBuf| std::fs::metadata(path).and_then(|it| it.modified()).ok();
    let log = db::beside(memory, "-wal");
    let log = Some(log).filter(|log| std::fs::metadata(log).is_ok_and(|it| it.len() > 0));
    let changed = written(memory.to_owned()).max(log.and_then(written));
    last.at.is_none_or(|at| now - at >= DAY) && changed > written(last.path)
}
