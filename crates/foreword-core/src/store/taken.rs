//! The events that a batch took in: kept for some days, and marked so that none is taken in
//! twice. Called by `commit` alone, within its transaction.

use rusqlite::{Transaction, named_params};

use super::commit::Batch;
use super::turns::{PromptMark, owner};
use crate::fault;
use crate::model::{Event, EventKind, Outcome};

pub(super) fn keep_events(
    tx: &Transaction<'_>,
    session: i64,
    events: &[Event],
    marks: &[PromptMark],
) -> rusqlite::Result<()> {
    for event in events {
        let turn = Some(event)
            .filter(|event| event.kind.is_of_a_turn())
            .and_then(|event| owner(marks, event))
            .map(|mark| mark.host_prompt_id.as_str());
        // A prompt that came late takes its events back from the turn they were put in.
        if event.kind == EventKind::Prompt {
            tx.execute(
                "update events
                 set turn = :turn
                 where session_id = :session and prompt_id = :turn and turn is not :turn",
                named_params! {":turn": turn, ":session": session},
            )?;
        }
        // An id that is there already fails, and with it the whole batch: `commit` is only given
        // events that were not taken in before.
        tx.prepare_cached(
            "insert into events (id, session_id, turn, prompt_id, key, kind, at, event)
             values (:id, :session, :turn, :prompt, :key, :kind, :at, :event)",
        )?
        .execute(named_params! {
            ":id": event.id.to_string(),
            ":session": session,
            ":turn": turn,
            ":prompt": event.prompt_id,
            ":key": event.key,
            ":kind": event.kind,
            ":at": event.at,
            ":event": event,
        })?;
        keep_receipt(tx, session, event)?;
    }
    Ok(())
}

/// What an agent asked for need not be there, and what it was shown may be gone since.
fn keep_receipt(tx: &Transaction<'_>, session: i64, event: &Event) -> rusqlite::Result<()> {
    let Some(receipt) = &event.payload.receipt else {
        return Ok(());
    };
    for (item, because) in &receipt.items {
        tx.prepare_cached(
            "insert into receipts (session_id, item_id, shown, because, at)
             select :session, id, :shown, :because, :at
             from items
             where id = :item",
        )?
        .execute(named_params! {
            ":session": session,
            ":shown": receipt.shown,
            ":because": because,
            ":at": event.at,
            ":item": item,
        })?;
    }
    Ok(())
}

pub(super) fn mark_processed(
    tx: &Transaction<'_>,
    batch: &Batch<'_>,
    outcome: Outcome,
) -> rusqlite::Result<()> {
    if fault::planted("processed-events-off") {
        return Ok(());
    }
    let mut statement = tx.prepare_cached(
        "insert into processed_events (event_id, key, outcome, provider, at)
         values (:id, :key, :outcome, :provider, :now)",
    )?;
    for event in batch.events {
        statement.execute(named_params! {
            ":id": event.id.to_string(),
            ":key": event.key,
            ":outcome": outcome,
            ":provider": batch.provider,
            ":now": batch.now,
        })?;
    }
    Ok(())
}

/// Events that were taken in before now have another outcome.
pub(super) fn mark_again(
    tx: &Transaction<'_>,
    batch: &Batch<'_>,
    outcome: Outcome,
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "update processed_events
         set outcome = :outcome, provider = :provider
         where event_id = :id",
    )?;
    for event in batch.events {
        statement.execute(named_params! {
            ":id": event.id.to_string(),
            ":outcome": outcome,
            ":provider": batch.provider,
        })?;
    }
    Ok(())
}
