//! Recovers a damaged database: sets it aside, puts the newest good backup in its place, and
//! brings over the rows that can still be read.
//!
//! The caller must hold the worker's lock. The damaged file is called `memory.db.damaged` until
//! the recovery is complete and `memory.db.damaged-TIME` after, so a recovery that was killed is
//! continued where it stopped. No file is deleted here, except the oldest of those set aside.
//!
//! Databases that were written before the first release are set aside too: no migration leads from
//! them to the present schema, and memory begins empty. Their paths are recorded in
//! `unreleased.json` beside them, for `status` and `doctor`. Events in the spool stay there: its
//! format is the same, so the next worker reads them.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, named_params};
use serde::{Deserialize, Serialize};

use crate::db::{self, Migration, OpenError, Rows as _, foreign};
use crate::fault;
use crate::files;
use crate::model::Millis;
use crate::queue::{self, Queue};
use crate::safety::backup::{self, Backup};
use crate::safety::salvage::{self, Salvaged};
use crate::store::{self, Store};
use crate::text;

/// A database that was damaged and has been recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// What was wrong; none if an earlier recovery was merely completed.
    pub damage: Option<String>,
    /// Where the damaged file is now.
    pub aside: PathBuf,
    /// The backup it was restored from.
    pub backup: Option<Backup>,
    pub salvaged: Salvaged,
}

/// How many damaged, and how many replaced, files of a database are kept.
const ASIDE_KEPT: usize = 2;

const PAGE: u64 = 4096;

/// Whether a recovery was begun and not completed.
pub fn is_unfinished(path: &Path) -> bool {
    damaged(path).exists()
}

/// Recovers memory.db if it is damaged.
pub fn memory(path: &Path, backups: &Path, now: Millis) -> Result<Option<Recovered>, OpenError> {
    let base = || -> Result<_, OpenError> {
        let Some(backup) = backup::newest_good(backups, now)? else {
            return Ok(None);
        };
        let partial = db::beside(path, ".partial");
        let built = rebuild(&backup.path, &partial)?;
        built.connection.close().map_err(|(_, error)| error)?;
        std::fs::File::open(&partial)?.sync_all()?;
        std::fs::rename(partial, path)?;
        Ok(Some(backup))
    };
    recover(path, backups, store::MIGRATIONS, base, now)
}

/// Recovers queue.db if it is damaged. Hooks write to the spool meanwhile.
pub fn queue(path: &Path, backups: &Path, now: Millis) -> Result<Option<Recovered>, OpenError> {
    recover(path, backups, queue::MIGRATIONS, || Ok(None), now)
}

fn recover(
    path: &Path,
    backups: &Path,
    migrations: &[Migration],
    base: impl FnOnce() -> Result<Option<Backup>, OpenError>,
    now: Millis,
) -> Result<Option<Recovered>, OpenError> {
    let wreck = damaged(path);
    let unfinished = wreck.exists();
    let damage = match damage(path, migrations, backups) {
        // The file that replaced a damaged one is damaged too: recover that one now.
        Ok(damage) if unfinished && damage.is_some() => {
            rename_with_log(&wreck, &named(path, "damaged", now))?;
            damage
        }
        Ok(None) if !unfinished => return Ok(None),
        Ok(damage) => damage,
        Err(OpenError::Missing(_)) if unfinished => None,
        Err(OpenError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    if damage.is_some() {
        std::fs::rename(path, &wreck)?;
    }
    fault::point("recover:after-aside");
    let mut backup = None;
    if !path.exists() {
        move_log(path, &wreck)?;
        backup = base()?;
    }
    fault::point("recover:after-base");
    let mut connection = db::open_owner(path, migrations, backups)?;
    // Writes its first page from the log into the file, where `mend_header` reads it.
    connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
    mend_header(&wreck, path)?;
    let salvaged = salvage::salvage(&wreck, &mut connection)?;
    // Only memory.db has such a file beside it.
    if db::beside(path, ".forgotten").exists() {
        store::recall_forgotten(&connection, path)?;
        store::stay_forgotten(&connection)?;
    }
    fault::point("recover:after-salvage");
    let aside = named(path, "damaged", now);
    rename_with_log(&wreck, &aside)?;
    keep_newest(path, "damaged")?;
    Ok(Some(Recovered {
        damage,
        aside,
        backup,
        salvaged,
    }))
}

/// What is wrong with the file; none if it is undamaged.
fn damage(
    path: &Path,
    migrations: &[Migration],
    backups: &Path,
) -> Result<Option<String>, OpenError> {
    if !path.exists() {
        return Err(OpenError::Missing(path.to_owned()));
    }
    match db::open_owner(path, migrations, backups) {
        Ok(connection) => db::defect(&connection, migrations),
        Err(error) if error.is_damage() => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

/// If the header of the damaged file was overwritten, replaces it by that of an undamaged database.
fn mend_header(wreck: &Path, sound: &Path) -> io::Result<()> {
    let wreck = std::fs::File::options()
        .read(true)
        .write(true)
        .open(wreck)?;
    let mut header = [0; db::HEADER];
    let pages = wreck.metadata()?.len() / PAGE;
    if pages == 0 || wreck.read_exact_at(&mut header, 0).is_err() || db::is_header(&header) {
        return Ok(());
    }
    files::open(sound)?.0.read_exact_at(&mut header, 0)?;
    let pages = u32::try_from(pages).unwrap_or(u32::MAX);
    header[28..32].copy_from_slice(&pages.to_be_bytes());
    // An empty list of free pages.
    header[32..40].fill(0);
    wreck.write_all_at(&header, 0)
}

/// The changes by a restore, in items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub came_back: u64,
    pub gone: u64,
    /// Parts of the backup's schema that are not Foreword's, such as `trigger evil`.
    pub left_out: Vec<String>,
    /// Rows of the backup that our schema does not allow.
    pub refused: u64,
    /// The memory as it was before.
    pub aside: PathBuf,
}

/// Replaces an undamaged memory by the rows of a backup, after copying it aside. Items that were
/// forgotten since the backup stay forgotten, and those that a person changed by hand stay as they are.
///
/// The new memory is completed in a file of its own; its content then replaces the old one in one
/// transaction. A renamed file would not do: other processes may have the memory open, and its log
/// belongs to the old file.
pub fn restore(
    path: &Path,
    backup: &Path,
    backups: &Path,
    now: Millis,
) -> Result<Restored, OpenError> {
    let partial = db::beside(path, ".restored.partial");
    let Rebuilt {
        connection: new,
        salvaged,
        left_out,
    } = rebuild(backup, &partial)?;
    let mut memory = db::open_owner(path, store::MIGRATIONS, backups)?;
    let aside = named(path, "replaced", now);
    db::copy_to(&memory, &aside)?;
    let replaced = foreign::open_source(&aside, store::MIGRATIONS)?.connection;
    keep_forgotten(&replaced, &new)?;
    store::recall_forgotten(&new, path)?;
    store::stay_forgotten(&new)?;
    store::keep_changes_by_hand(&replaced, &new)?;
    salvage::keep_sequence(&replaced, &new)?;
    let (before, after) = (uuids(&replaced)?, uuids(&new)?);
    fault::point("restore:before-copy");
    db::copy_over(&new, &mut memory)?;
    drop(new);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(db::beside(&partial, suffix));
    }
    // The memory is restored; an old copy that cannot be deleted does not change that.
    let _ = keep_newest(path, "replaced");
    Ok(Restored {
        came_back: after.difference(&before).count() as u64,
        gone: before.difference(&after).count() as u64,
        left_out,
        refused: salvaged.lost,
        aside,
    })
}

/// A memory that our migrations made, with the rows of a backup.
struct Rebuilt {
    connection: Connection,
    salvaged: Salvaged,
    left_out: Vec<String>,
}

fn rebuild(backup: &Path, target: &Path) -> Result<Rebuilt, OpenError> {
    let source = foreign::open_source(backup, store::MIGRATIONS)?;
    let differs = foreign::difference(&source.connection, store::MIGRATIONS, source.schema)?;
    let mut connection = db::create(target, store::MIGRATIONS, source.schema)?;
    let salvaged = salvage::copy_rows(&source.connection, &mut connection)?;
    db::complete(&connection, store::MIGRATIONS)?;
    connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
    Ok(Rebuilt {
        connection,
        salvaged,
        left_out: differs.foreign,
    })
}

/// Adds what was forgotten in the replaced memory.
fn keep_forgotten(replaced: &Connection, memory: &Connection) -> rusqlite::Result<()> {
    let forgotten: Vec<(String, String, String, String, Millis, Option<String>)> = replaced.all(
        "select s.host, s.host_session_id, f.seed, f.events, f.at, f.uuid
         from forgotten f
         join sessions s on s.id = f.session_id",
        [],
    )?;
    for (host, session, seed, events, at, uuid) in forgotten {
        memory.execute(
            "insert or ignore into forgotten (session_id, seed, events, at, uuid)
             select id, :seed, :events, :at, :uuid
             from sessions
             where host = :host and host_session_id = :session",
            named_params! {
                ":host": host, ":session": session, ":seed": seed, ":events": events, ":at": at,
                ":uuid": uuid,
            },
        )?;
    }
    Ok(())
}

/// The items that can be found.
fn uuids(memory: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let uuids: Vec<String> = memory.all(
        "select uuid
         from items
         where id in (
             select id from observations
             union all
             select id from summaries
             union all
             select id from prompts where kept
             union all
             select id from notes
         )",
        [],
    )?;
    Ok(uuids.into_iter().collect())
}

fn damaged(path: &Path) -> PathBuf {
    db::beside(path, ".damaged")
}

/// `memory.db.damaged-2026-11-18T101500Z`, or the name of the next second if that is taken.
fn named(path: &Path, why: &str, now: Millis) -> PathBuf {
    let time = text::rfc3339(now).replace(':', "");
    let named = db::beside(path, &format!(".{why}-{time}"));
    if named.exists() {
        return self::named(path, why, now + 1000);
    }
    named
}

/// Moves the log first: while the database is not moved, the next run sees that it must go on.
fn rename_with_log(from: &Path, to: &Path) -> io::Result<()> {
    move_log(from, to)?;
    std::fs::rename(from, to)
}

fn move_log(from: &Path, to: &Path) -> io::Result<()> {
    let _ = std::fs::remove_file(db::beside(from, "-shm"));
    let moved = std::fs::rename(db::beside(from, "-wal"), db::beside(to, "-wal"));
    text::if_there(moved).map(drop)
}

/// Deletes all but the newest files that were set aside for the reason `why`.
fn keep_newest(path: &Path, why: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let start = format!("{name}.{why}-");
    let mut aside = Vec::new();
    for entry in std::fs::read_dir(path.parent().unwrap_or(path))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(&start) && name.ends_with('Z') {
            aside.push(path.with_file_name(name));
        }
    }
    aside.sort();
    aside.reverse();
    for old in aside.iter().skip(ASIDE_KEPT) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(db::beside(old, suffix));
        }
    }
    Ok(())
}

/// The files that were set aside, and when the last of them was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    pub at: Millis,
    pub files: Vec<PathBuf>,
}

fn unreleased_record(dir: &Path) -> PathBuf {
    dir.join("unreleased.json")
}

/// The files that were set aside in a data directory and still exist; none if there are none.
pub fn unreleased_aside(dir: &Path) -> Option<SetAside> {
    let json = files::read(&unreleased_record(dir), files::SMALL_MAX).ok()?;
    let mut aside: SetAside = serde_json::from_slice(&json).ok()?;
    aside.files.retain(|file| file.exists());
    (!aside.files.is_empty()).then_some(aside)
}

/// Whether a database in a data directory must be set aside.
pub fn is_unreleased_there(dir: &Path) -> bool {
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
pub fn set_unreleased_aside(dir: &Path, now: Millis) -> Result<Option<SetAside>, OpenError> {
    let mut set = None;
    for database in unreleased(dir) {
        // A log that cannot be emptied is moved with the database.
        let _ = db::empty_log(&database);
        let aside = named(&database, "unreleased", now);
        // Recorded before the rename: if it does not happen, `unreleased_aside` leaves the name out.
        let files = unreleased_aside(dir).map_or(Vec::new(), |it| it.files);
        let all = SetAside {
            at: now,
            files: files.into_iter().chain([aside.clone()]).collect(),
        };
        let json = serde_json::to_vec_pretty(&all).map_err(std::io::Error::from)?;
        let partial = db::beside(&unreleased_record(dir), ".partial");
        std::fs::write(&partial, json)?;
        std::fs::rename(partial, unreleased_record(dir))?;
        fault::point("unreleased:after-record");
        rename_with_log(&database, &aside)?;
        set = Some(all);
    }
    Ok(set)
}
