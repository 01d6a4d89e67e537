//! Processed events: kept for some days, and marked so that none is processed twice.

use std::collections::HashSet;

use rusqlite::{Transaction, named_params};
use uuid::Uuid;

use super::commit::{Batch, Replaces};
use super::prompts::{PromptMark, owner};
use super::receipts::keep_receipt;
use super::{Store, json};
use crate::fault;
use crate::model::{Event, EventKind, Millis, Outcome};

/// A turn with more than two pieces of this many steps is not read whole. Its oldest pieces are
/// left out one at a time, not step by step, so that what is derived from the others stays the same
/// from event to event.
const PIECE: usize = 200;

/// Which steps of a turn are read: its tool uses and the agent's words between them. Its other
/// events, few in any turn, are always read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steps {
    None,
    All,
    /// All of a turn that is not long. Of a long one the last whole piece up to this time, and
    /// what came after it.
    NewestUntil(Millis),
}

impl Store {
    /// Whether an event was processed before: recognised by its id (after a crash between the
    /// commits of the two databases) or by its key (a hook that fired again).
    pub fn knows(&self, event: &Event) -> rusqlite::Result<bool> {
        if crate::fault::planted("processed-events-off") {
            return Ok(false);
        }
        let mut statement = self.connection.prepare_cached(
            "select exists (
                 select 1 from processed_events where event_id = :id or key = :key
             )",
        )?;
        statement.query_row(
            named_params! {":id": event.id.to_string(), ":key": event.key},
            |row| row.get(0),
        )
    }

    /// Those of these events that a model, not the offline provider, has processed.
    pub fn taken_in_by_models(&self, events: &HashSet<Uuid>) -> rusqlite::Result<HashSet<Uuid>> {
        let mut statement = self.connection.prepare_cached(
            "select p.event_id
             from json_each(:events) as event
             join processed_events p on p.event_id = event.value
             where p.provider <> 'offline'",
        )?;
        let rows = statement.query_map(named_params! {":events": json(events)?}, |row| {
            row.get::<_, String>(0)
        })?;
        rows.map(|id| Ok(id?.parse().unwrap_or_default())).collect()
    }

    /// How many steps of a turn up to this time are still kept.
    pub(super) fn count_steps(
        &self,
        session: i64,
        turn: Option<&str>,
        until: Millis,
    ) -> rusqlite::Result<usize> {
        let mut statement = self.connection.prepare_cached(
            "select count(*)
             from events
             where session_id = :session and turn is :turn
               and (kind in ('tool_use', 'tool_failure', 'words')) = 1
               and at <= :until",
        )?;
        let parameters = named_params! {":session": session, ":turn": turn, ":until": until};
        statement.query_row(parameters, |row| row.get(0))
    }

    /// The events of a turn that are still kept, in order of time; without a prompt's id those that
    /// belong to none.
    pub(super) fn events_of_turn(
        &self,
        session: i64,
        turn: Option<&str>,
        steps: Steps,
    ) -> rusqlite::Result<Vec<Event>> {
        const ALL: (i64, Millis) = (-1, Millis::MAX);
        let (limit, until) = match steps {
            Steps::None => (0, Millis::MAX),
            Steps::All => ALL,
            Steps::NewestUntil(_) if self.count_steps(session, turn, Millis::MAX)? <= PIECE * 2 => {
                ALL
            }
            Steps::NewestUntil(until) => {
                let count = self.count_steps(session, turn, until)?;
                ((PIECE + count % PIECE) as i64, until)
            }
        };
        // Events that came before their prompt are stored under another turn until it comes.
        let mut statement = self.connection.prepare_cached(
            "select event
             from (
                 select event, at, id
                 from events
                 where session_id = :session and turn is :turn
                   and (kind in ('tool_use', 'tool_failure', 'words')) = 0
                 union all
                 select event, at, id
                 from (
                     select event, at, id
                     from events
                     where session_id = :session and turn is :turn
                       and (kind in ('tool_use', 'tool_failure', 'words')) = 1
                       and at <= :until
                     order by at desc
                     limit :limit
                 )
                 union all
                 select event, at, id
                 from events
                 where session_id = :session and prompt_id = :turn and turn < :turn
                 union all
                 select event, at, id
                 from events
                 where session_id = :session and prompt_id = :turn and turn > :turn
                 union all
                 select event, at, id
                 from events
                 where session_id = :session and prompt_id = :turn and turn is null
             )
             order by at, id",
        )?;
        let parameters = named_params! {
            ":session": session, ":turn": turn, ":until": until, ":limit": limit,
        };
        let rows = statement.query_map(parameters, |row| row.get(0))?;
        rows.collect()
    }

    /// Fields that the host sent and Foreword does not know, with the number of kept events that
    /// have them.
    pub fn unknown_fields(&self) -> rusqlite::Result<Vec<(String, u64)>> {
        let mut statement = self.connection.prepare_cached(
            "select field.value, count(*) as events
             from events, json_each(events.event, '$.payload.unknown') as field
             group by field.value
             order by events desc, field.value
             limit 8",
        )?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }
}

/// Stores the events of a batch, each with its turn.
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
        // Events that came before their prompt were stored under the turn before: move them.
        if event.kind == EventKind::Prompt {
            tx.execute(
                "update events
                 set turn = :turn
                 where session_id = :session and prompt_id = :turn and turn is not :turn",
                named_params! {":turn": turn, ":session": session},
            )?;
        }
        // A known id fails the whole batch: the caller of `commit` passes only events that were not
        // processed before.
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

/// Marks the events of a batch as processed, with the outcome. An existing mark is updated if the
/// batch derives from its events again; otherwise it fails the batch.
pub(super) fn mark_processed(
    tx: &Transaction<'_>,
    batch: &Batch<'_>,
    outcome: Outcome,
) -> rusqlite::Result<()> {
    if fault::planted("processed-events-off") {
        return Ok(());
    }
    let again = match batch.replaces {
        Replaces::Events => {
            "on conflict (event_id) do update
             set outcome = excluded.outcome, provider = excluded.provider"
        }
        Replaces::Turns | Replaces::Nothing => "",
    };
    let mut statement = tx.prepare_cached(&format!(
        "insert into processed_events (event_id, key, outcome, provider, at)
         values (:id, :key, :outcome, :provider, :now)
         {again}"
    ))?;
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
