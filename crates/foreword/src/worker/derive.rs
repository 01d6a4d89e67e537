//! The work on one batch: from claimed events to what is stored of them.
//!
//! Events that were taken in before are left out here, so that neither a crash
//! between the two databases nor a hook fired again makes anything twice.

use foreword_core::model::{Derived, Event, Millis, Provenance, Turn};
use foreword_core::store::{Batch, Store};

use crate::provider::offline;

/// Why a batch was not stored, by what is to be done about it.
#[derive(Debug)]
pub enum Failure {
    /// The database cannot be written now; no event is to blame.
    Storage(rusqlite::Error),
    /// Something about these events.
    Event(String),
}

pub fn derive(store: &mut Store, events: &[Event], now: Millis) -> Result<(), Failure> {
    let mut new = Vec::new();
    for event in events {
        if !store.knows(event).map_err(failure)? {
            new.push(event.clone());
        }
    }
    let turns = store.turns(&new).map_err(failure)?;
    let turns = derive_turns(turns)?;
    store
        .commit(&Batch {
            events: &new,
            turns: &turns,
            provenance: &Provenance {
                provider: "offline".to_owned(),
                model: None,
                prompt_version: None,
            },
            now,
        })
        .map_err(failure)
}

fn derive_turns(turns: Vec<Turn>) -> Result<Vec<(Turn, Derived)>, Failure> {
    turns
        .into_iter()
        .map(|turn| {
            // A defect in the extractor must cost one turn, not the worker.
            let derived = std::panic::catch_unwind(|| offline::derive(&turn))
                .map_err(|_| Failure::Event("the offline provider panicked".to_owned()))?;
            Ok((turn, derived))
        })
        .collect()
}

/// A full disk or a busy file is nobody's fault; a broken rule is the batch's.
fn failure(error: rusqlite::Error) -> Failure {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        | None => Failure::Event(error.to_string()),
        Some(_) => Failure::Storage(error),
    }
}
