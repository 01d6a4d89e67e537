//! Recovers damaged databases, for the worker and `foreword restore`, and sets databases aside that
//! were written before the first release, for the worker and for the first command that finds one.
//! The work itself is done by `foreword_core::safety::recover`.

use std::fmt::Write as _;

use anyhow::Context as _;
use foreword_core::db::{self, OpenError};
use foreword_core::queue::Queue;
use foreword_core::safety::recover::{self, Recovered, SetAside};
use foreword_core::spool;
use foreword_core::store::Store;
use foreword_core::text::{count, one_line};

use crate::home::{self, Home};
use crate::log::Log;
use crate::notice::Notice;
use crate::platform::{self, Lock};
use crate::start::{self, anything_waits, end_running, wait_for_lock};

/// Recovers each database that is damaged, and returns a line for each of them. The caller holds the
/// worker's lock.
pub fn recover(home: &Home) -> anyhow::Result<Vec<String>> {
    let (queue, memory, now) = (home.queue(), home.memory(), home::now());
    let queue = recover::queue(&queue, &home.backups(), now)?;
    let memory = recover::memory(&memory, &home.backups(), now)?;
    let queue = queue.map(|queue| recovered("queue.db", &queue));
    let memory = memory.map(|memory| recovered("memory.db", &memory));
    Ok(queue.into_iter().chain(memory).collect())
}

/// The line about a database that was recovered.
fn recovered(file: &str, recovered: &Recovered) -> String {
    let damage = recovered.damage.as_deref().unwrap_or("found earlier");
    let mut line = format!("{file} was damaged ({}): ", one_line(damage));
    if let Some(backup) = &recovered.backup {
        let _ = write!(line, "restored from backups/{}, ", backup.name());
    }
    let salvaged = recovered.salvaged;
    let _ = write!(
        line,
        "{} recovered, {} known to be lost",
        count(salvaged.rows, "row", "rows"),
        count(salvaged.lost, "row", "rows"),
    );
    if salvaged.tables > 0 {
        let tables = count(salvaged.tables, "table", "tables");
        let _ = write!(line, ", {tables} could not be read whole");
    }
    let aside = recovered.aside.file_name().unwrap_or_default();
    let _ = write!(line, "; the damaged file is {}", aside.to_string_lossy());
    line
}

/// The names of the databases that are damaged, or whose recovery was interrupted.
pub fn damaged(home: &Home) -> Vec<&'static str> {
    let memory = Store::inspect(&home.memory());
    let memory = is_damaged(memory, Store::damage) || recover::is_unfinished(&home.memory());
    let queue = Queue::inspect(&home.queue());
    let queue = is_damaged(queue, Queue::damage) || recover::is_unfinished(&home.queue());
    let names = [(memory, "memory.db"), (queue, "queue.db")];
    let names = names.into_iter().filter(|(is_damaged, _)| *is_damaged);
    names.map(|(_, name)| name).collect()
}

fn is_damaged<T>(opened: Result<Option<T>, OpenError>, look: fn(&T) -> Option<String>) -> bool {
    match opened {
        Ok(database) => database.is_some_and(|it| look(&it).is_some()),
        Err(error) => error.is_damage(),
    }
}

/// Whether a recovery was interrupted before its end.
pub fn is_unfinished(home: &Home) -> bool {
    recover::is_unfinished(&home.queue()) || recover::is_unfinished(&home.memory())
}

/// Whether the cause of an error is a damaged file, rather than a locked or newer one or a full disk.
pub fn is_damage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let opening = cause.downcast_ref::<OpenError>();
        let intake = match cause.downcast_ref::<spool::IntakeError>() {
            Some(spool::IntakeError::Sqlite(error)) => Some(error),
            _ => None,
        };
        let error = cause.downcast_ref::<rusqlite::Error>().or(intake);
        opening.is_some_and(OpenError::is_damage) || error.is_some_and(db::is_damage)
    })
}

/// Sets unreleased databases aside, for a caller that holds the worker's lock.
pub fn set_unreleased_aside(home: &Home) -> anyhow::Result<()> {
    let set = recover::set_unreleased_aside(home.dir(), home::now())
        .context("could not set aside the databases from before the first release")?;
    if let Some(set) = set {
        Log::Worker.line(home, &unreleased_line(&set));
        Notice::Unreleased.post(home, &unreleased_line(&set));
    }
    Ok(())
}

/// For a command, which does not hold the lock. A worker of the older program is ended first.
pub fn set_unreleased_aside_alone(home: &Home) -> anyhow::Result<()> {
    let mut ended = false;
    while recover::is_unreleased_there(home.dir()) {
        let lock = Lock::acquire(&home.lock()).context("could not take the worker's lock")?;
        match lock {
            Ok(_lock) => set_unreleased_aside(home)?,
            // A worker of this program sets them aside itself.
            Err(holder) if platform::runs_this_program(holder) => {
                wait_for_lock(home, |now| now != Some(holder))?;
            }
            Err(_) => {
                end_running(home)?;
                ended = true;
            }
        }
    }
    if ended && anything_waits(home) {
        start::wake_worker(home);
    }
    Ok(())
}

/// The line that `status`, `doctor` and the notice at the start of a session show.
pub fn unreleased_line(set: &SetAside) -> String {
    let files = set.files.iter().map(|file| file.display().to_string());
    format!(
        "a Foreword from before the first release wrote files that this one cannot read; the memory begins empty, \
         and they are kept as {}",
        files.collect::<Vec<_>>().join(" and ")
    )
}
