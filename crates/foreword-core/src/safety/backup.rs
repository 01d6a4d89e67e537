//! Copies of memory.db in `backups/`: made, listed, rotated.
//!
//! A backup is a database like the memory, named by its time
//! (`memory.2026-11-18T101500Z.db`). It is written under another name, looked at and then
//! renamed, so one that is there is whole. The copies that migrations leave
//! (`memory.before-5.db`) are worse than any dated one and better than none.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::db::{self, OpenError};
use crate::model::Millis;
use crate::store::{self, Store};
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    pub path: PathBuf,
    /// None of a copy that a migration left.
    pub at: Option<Millis>,
    pub size: u64,
}

impl Backup {
    /// As people are told of it.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// How many backups are kept; without any, none is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupRetention {
    /// Of so many days the last one,
    pub daily: usize,
    /// and of so many weeks.
    pub weekly: usize,
}

/// Copies that migrations left: so many of the last ones stay.
const BEFORE_KEPT: usize = 2;

const DAY: Millis = 24 * 3_600_000;

impl Store {
    /// Makes a backup now.
    pub fn back_up(&self, backups: &Path, now: Millis) -> Result<Backup, OpenError> {
        std::fs::create_dir_all(backups)?;
        let time = text::rfc3339(now).replace(':', "");
        let path = backups.join(format!("memory.{time}.db"));
        // Else the worker's last checkpoint looks like a change that came after. A reader may not.
        let checkpoint = "pragma wal_checkpoint(truncate)";
        let _ = self.connection.query_row(checkpoint, [], |_| Ok(()));
        db::copy_to(&self.connection, &path)?;
        let size = std::fs::metadata(&path)?.len();
        let at = Some(now);
        Ok(Backup { path, at, size })
    }
}

/// All backups, the newest first. One from the future was made while the clock was wrong:
/// it comes after those that are not.
pub fn all(backups: &Path, now: Millis) -> io::Result<Vec<Backup>> {
    let entries = match std::fs::read_dir(backups) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in entries {
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

/// `2026-11-18T101500Z`, which is a name on every filesystem.
fn time(stamp: &str) -> Option<Millis> {
    let (date, time) = stamp.split_once('T')?;
    let [hour, minute, second] = [time.get(0..2)?, time.get(2..4)?, time.get(4..)?];
    let timestamp: jiff::Timestamp = format!("{date}T{hour}:{minute}:{second}").parse().ok()?;
    Some(timestamp.as_millisecond())
}

/// The newest backup that is sound and not of a later Foreword.
pub fn newest_good(backups: &Path, now: Millis) -> io::Result<Option<Backup>> {
    let mut all = all(backups, now)?.into_iter();
    Ok(all.find(|backup| is_good(&backup.path)))
}

#[must_use]
pub fn is_good(backup: &Path) -> bool {
    let known = store::MIGRATIONS.iter().rev();
    let mut opened = known.filter_map(|step| db::open_inspector(backup, step.number).ok());
    // Any other database may have the same number of its schema.
    let is_memory = |it: &Connection| {
        let ours = "select count(*) from sqlite_schema
                    where name in ('items', 'sessions', 'observations', 'processed_events', 'texts')";
        it.query_row(ours, [], |row| row.get::<_, u32>(0)) == Ok(5)
    };
    opened
        .next()
        .is_some_and(|it| is_memory(&it) && db::damage(&it).is_none())
}

/// Removes what need not be kept: of each day and each week the newest stays.
pub fn rotate(backups: &Path, kept: BackupRetention, now: Millis) -> io::Result<()> {
    let (dated, before): (Vec<_>, Vec<_>) = all(backups, now)?
        .into_iter()
        .partition(|backup| backup.at.is_some());
    let (mut days, mut weeks) = (Vec::new(), Vec::new());
    for backup in dated {
        // 1970 began on a Thursday; weeks begin on Monday.
        let day = backup.at.unwrap_or(0) / DAY;
        let is_daily = is_new(&mut days, day, kept.daily);
        let is_weekly = is_new(&mut weeks, (day + 3) / 7, kept.weekly);
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

/// Whether the memory was written since the last backup, and that is a day ago.
#[must_use]
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
