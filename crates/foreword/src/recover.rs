//! Puts a damaged database right, for the worker and for `foreword restore`: whoever holds
//! the worker's lock. How it is done is `foreword_core::recover`.

use foreword_core::db::{self, OpenError};
use foreword_core::{recover, spool};

use crate::home::{self, Home};
use crate::show;

/// Recovers both databases as far as they are damaged; a line on each.
pub fn recover(home: &Home) -> anyhow::Result<Vec<String>> {
    let (queue, memory, now) = (home.queue(), home.memory(), home::now());
    let queue = recover::queue(&queue, &home.backups(), now)?;
    let memory = recover::memory(&memory, &home.backups(), now)?;
    let queue = queue.map(|queue| show::recovered("queue.db", &queue));
    let memory = memory.map(|memory| show::recovered("memory.db", &memory));
    Ok(queue.into_iter().chain(memory).collect())
}

/// Whether a recovery was killed.
pub fn is_unfinished(home: &Home) -> bool {
    recover::is_unfinished(&home.queue()) || recover::is_unfinished(&home.memory())
}

/// Whether this went wrong because a file is damaged, rather than locked, newer or full.
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
