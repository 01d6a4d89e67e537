//! Recovers damaged databases, for the worker and `foreword restore`. The caller holds the worker's
//! lock. The work itself is done by `foreword_core::safety::recover`.

use std::fmt::Write as _;

use foreword_core::db::{self, OpenError};
use foreword_core::safety::recover::{self, Recovered};
use foreword_core::spool;
use foreword_core::text::{count, one_line};

use crate::home::{self, Home};

/// Recovers each database that is damaged, and returns a line for each of them.
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
