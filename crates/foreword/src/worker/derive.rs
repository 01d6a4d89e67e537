//! The work on one batch: from claimed events to what is stored of them.
//!
//! Events that were taken in before are left out here, so that neither a crash
//! between the two databases nor a hook fired again makes anything twice. A turn can
//! change what an earlier one of its session seemed to be (an edit is undone, a
//! failing command passes): then that one is stored again, too.

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
    let session = store.session(&new).map_err(failure)?;
    let turns = derive_session(session, &new)?;
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

/// The turns that have new events, and the earlier ones that these put in another light.
fn derive_session(session: Vec<Turn>, new: &[Event]) -> Result<Vec<(Turn, Derived)>, Failure> {
    let is_new = |event: &Event| new.iter().any(|it| it.id == event.id);
    let known: Vec<Turn> = session
        .iter()
        .map(|turn| Turn {
            prompt_id: turn.prompt_id.clone(),
            events: turn
                .events
                .iter()
                .filter(|it| !is_new(it))
                .cloned()
                .collect(),
        })
        .collect();
    // A defect in the extractor must cost one batch, not the worker.
    let told = |session: &[Turn]| {
        std::panic::catch_unwind(|| offline::derive(session))
            .map_err(|_| Failure::Event("the offline provider panicked".to_owned()))
    };
    let (before, after) = (told(&known)?, told(&session)?);
    let turns = session.into_iter().zip(after).zip(before);
    Ok(turns
        .filter(|((turn, after), before)| turn.events.iter().any(is_new) || after != before)
        .map(|(turn, _)| turn)
        .collect())
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
