//! Processed events: kept for some days, and marked so that none is processed twice. They complete a
//! batch of new events to whole turns.
//!
//! A turn is a prompt of the user and all events that follow from it. A background task that
//! reports back starts a turn of the host's own, without a user: its events belong to the last
//! prompt that the user typed. Events of one turn can come in several batches, so the stored ones
//! are always added. A turn can have thousands of steps, so only the newest of them are read:
//! what an event costs must not grow with its turn.
//!
//! A receipt (the items that an agent was shown or opened) is an event like others: a hook writes
//! it, the worker stores it. The latest may still be in the queue or the spool.

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Transaction, named_params};
use uuid::Uuid;

use super::commit::{Batch, Replaces};
use super::prompts::{PromptMark, owner};
use super::{Store, json};
use crate::db::Rows as _;
use crate::fault;
use crate::model::{Event, EventKind, Millis, Outcome, Receipt, Shown, Turn};

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

/// How many earlier turns of a session are read along with new events.
const EARLIER_TURNS: usize = 12;

/// Earlier turns are read whole while all turns together have no more steps than this.
const STEPS_MAX: usize = 800;

/// The turns that new events belong to and those shortly before them, in order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecentTurns {
    pub turns: Vec<Turn>,
    /// The earlier turns that were too long to be read along: they have only their prompt, stops and
    /// refusals. They are context for the others; nothing is derived from them alone.
    pub outlines: HashSet<Option<String>>,
}

/// A change that an earlier session made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierChange {
    pub id: i64,
    pub title: String,
    /// The events that the observation names as its sources.
    pub turn: Turn,
}

/// A session is compared with at most this many earlier changes.
const EARLIER_CHANGES: usize = 16;

impl Store {
    /// The turns that these new events of one session belong to, and those shortly
    /// before them, in order of time. An earlier turn that lacks some of its events is left out,
    /// since a part of a turn would give other results.
    pub fn recent_turns(&self, new: &[Event]) -> rusqlite::Result<RecentTurns> {
        let mut recent = RecentTurns {
            turns: self.turns(new)?,
            outlines: HashSet::new(),
        };
        let Some(first) = new.first() else {
            return Ok(recent);
        };
        let Some(session) = self.session_id(&first.host, &first.host_session_id)? else {
            return Ok(recent);
        };
        let events = recent.turns.iter().flat_map(|turn| &turn.events);
        let steps = events.filter(|event| event.kind.is_step()).count();
        let mut room = STEPS_MAX.saturating_sub(steps);
        let marks = self.prompt_marks(Some(session), new)?;
        let marks = marks.iter().filter(|mark| mark.at < Millis::MAX);
        for mark in marks.rev().take(EARLIER_TURNS) {
            let prompt_id = Some(mark.host_prompt_id.clone());
            if recent.turns.iter().any(|turn| turn.prompt_id == prompt_id) {
                continue;
            }
            let turn = Some(mark.host_prompt_id.as_str());
            let count = self.count_steps(session, turn, Millis::MAX)?;
            let steps = if count <= room {
                room -= count;
                Steps::All
            } else {
                recent.outlines.insert(prompt_id.clone());
                Steps::None
            };
            let events = self.events_of_turn(session, turn, steps)?;
            // The prompt is the oldest event of its turn, so it is deleted first.
            if events.iter().any(|event| event.kind == EventKind::Prompt) {
                recent.turns.push(Turn { prompt_id, events });
            }
        }
        let begins_at = |turn: &Turn| turn.events.first().map(|event| event.at);
        recent.turns.sort_by_key(begins_at);
        Ok(recent)
    }

    /// The turns that these new events of one session belong to, with their stored events. Of a
    /// long turn only the newest steps up to the new events are read.
    pub fn turns(&self, new: &[Event]) -> rusqlite::Result<Vec<Turn>> {
        let Some(first) = new.first() else {
            return Ok(Vec::new());
        };
        let session = self.session_id(&first.host, &first.host_session_id)?;
        let marks = self.prompt_marks(session, new)?;
        let mut turns: BTreeMap<(Millis, Option<String>), Vec<Event>> = BTreeMap::new();
        for event in new.iter().filter(|event| event.kind.is_of_a_turn()) {
            let mark = owner(&marks, event);
            let key = (
                mark.map_or(0, |mark| mark.at),
                mark.map(|mark| mark.host_prompt_id.clone()),
            );
            turns.entry(key).or_default().push(event.clone());
        }
        turns
            .into_iter()
            .map(|((_, prompt_id), mut events)| {
                if let Some(session) = session {
                    let last = events.iter().map(|event| event.at).max();
                    let steps = Steps::NewestUntil(last.unwrap_or(Millis::MAX));
                    // In a redo the new events are stored already.
                    let new: HashSet<_> = events.iter().map(|event| event.id).collect();
                    let kept = self.events_of_turn(session, prompt_id.as_deref(), steps)?;
                    events.extend(kept.into_iter().filter(|kept| !new.contains(&kept.id)));
                }
                events.sort_by_key(|event| (event.at, event.id));
                Ok(Turn { prompt_id, events })
            })
            .collect()
    }

    /// The newest changes that other sessions of the project made before this event, that touched one of
    /// these files or have one of these titles, and that still hold.
    pub fn earlier_changes(
        &self,
        event: &Event,
        files: &[String],
        titles: &[String],
    ) -> rusqlite::Result<Vec<EarlierChange>> {
        let found: Vec<(i64, String, String)> = self.connection.all(
            "select o.id, o.title, o.events
             from observations o
             join sessions s on s.id = o.session_id
             where o.project_id = (select project_id from project_keys where key = :project)
               and o.type <> 'discovery'
               and o.superseded_by is null
               and o.retracted is null
               and s.host_session_id <> :session
               and o.at < :at
               and (o.title in (select value from json_each(:titles))
                    or exists (
                        select 1
                        from observation_files f
                        where f.observation_id = o.id
                          and f.role = 'modified'
                          and f.path in (select value from json_each(:files))
                    ))
             order by o.id desc
             limit :max",
            named_params! {
                ":project": event.project,
                ":session": event.host_session_id,
                ":at": event.at,
                ":files": json(&files)?,
                ":titles": json(&titles)?,
                ":max": EARLIER_CHANGES,
            },
        )?;
        let with_events = |(id, title, events): (i64, String, String)| {
            let events: Vec<(Event,)> = self.connection.all(
                "select event from events where id in (select value from json_each(:events)) order by at, id",
                named_params! {":events": events},
            )?;
            let events = events.into_iter().map(|(event,)| event).collect();
            let turn = Turn {
                prompt_id: None,
                events,
            };
            Ok(EarlierChange { id, title, turn })
        };
        found.into_iter().map(with_events).collect()
    }

    /// Whether an event was processed before: recognised by its id (after a crash between the
    /// commits of the two databases) or by its key (a hook that fired again).
    pub fn knows(&self, event: &Event) -> rusqlite::Result<bool> {
        if fault::planted("processed-events-off") {
            return Ok(false);
        }
        self.connection.one(
            "select exists (
                 select 1 from processed_events where event_id = :id or key = :key
             )",
            named_params! {":id": event.id.to_string(), ":key": event.key},
        )
    }

    /// Those of these events that a model, not the offline provider, has processed.
    pub fn taken_in_by_models(&self, events: &HashSet<Uuid>) -> rusqlite::Result<HashSet<Uuid>> {
        let taken = self.connection.all(
            "select p.event_id
             from json_each(:events) as event
             join processed_events p on p.event_id = event.value
             where p.provider <> 'offline'",
            named_params! {":events": json(events)?},
        )?;
        Ok(taken.into_iter().collect())
    }

    /// How many steps of a turn up to this time are still kept.
    pub(super) fn count_steps(
        &self,
        session: i64,
        turn: Option<&str>,
        until: Millis,
    ) -> rusqlite::Result<usize> {
        self.connection.one(
            "select count(*)
             from events
             where session_id = :session and turn is :turn
               and (kind in ('tool_use', 'tool_failure', 'words')) = 1
               and at <= :until",
            named_params! {":session": session, ":turn": turn, ":until": until},
        )
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
        let events: Vec<(Event,)> = self.connection.all(
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
            named_params! {":session": session, ":turn": turn, ":until": until, ":limit": limit},
        )?;
        Ok(events.into_iter().map(|(event,)| event).collect())
    }

    /// Fields that the host sent and Foreword does not know, with the number of kept events that
    /// have them.
    pub fn unknown_fields(&self) -> rusqlite::Result<Vec<(String, u64)>> {
        self.connection.all(
            "select field.value, count(*) as events
             from events, json_each(events.event, '$.payload.unknown') as field
             group by field.value
             order by events desc, field.value
             limit 8",
            [],
        )
    }

    /// A session's stored receipts.
    pub fn shown_in(&self, host_session_id: &str) -> rusqlite::Result<Vec<Receipt>> {
        let rows: Vec<(Shown, i64, String)> = self.connection.all(
            "select r.shown, r.item_id, r.because
             from receipts r
             join sessions s on s.id = r.session_id
             where s.host_session_id = :session",
            named_params! {":session": host_session_id},
        )?;
        let receipt = |(shown, item, because)| Receipt {
            shown,
            items: vec![(item, because)],
        };
        Ok(rows.into_iter().map(receipt).collect())
    }
}

/// Stores the events of a batch, each with its turn.
pub(super) fn keep_events(
    tx: &Transaction<'_>,
    session: i64,
    events: &[&Event],
    marks: &[PromptMark],
) -> rusqlite::Result<()> {
    for &event in events {
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
        tx.run(
            "insert into events (id, session_id, turn, prompt_id, key, kind, at, event)
             values (:id, :session, :turn, :prompt, :key, :kind, :at, :event)",
            named_params! {
            ":id": event.id.to_string(),
            ":session": session,
            ":turn": turn,
            ":prompt": event.prompt_id,
            ":key": event.key,
            ":kind": event.kind,
            ":at": event.at,
            ":event": event,
            },
        )?;
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
    let insert = format!(
        "insert into processed_events (event_id, key, outcome, provider, at)
         values (:id, :key, :outcome, :provider, :now)
         {again}"
    );
    for event in batch.events {
        let parameters = named_params! {
            ":id": event.id.to_string(),
            ":key": event.key,
            ":outcome": outcome,
            ":provider": batch.provider,
            ":now": batch.now,
        };
        tx.run(&insert, parameters)?;
    }
    Ok(())
}

/// Stores the receipt of an event. Items that do not exist are skipped: an agent may ask for any
/// number, and an item may have been forgotten since.
pub(super) fn keep_receipt(
    tx: &Transaction<'_>,
    session: i64,
    event: &Event,
) -> rusqlite::Result<()> {
    let Some(receipt) = &event.payload.receipt else {
        return Ok(());
    };
    for (item, because) in &receipt.items {
        tx.run(
            "insert into receipts (session_id, item_id, shown, because, at)
             select :session, id, :shown, :because, :at
             from items
             where id = :item",
            named_params! {
            ":session": session,
            ":shown": receipt.shown,
            ":because": because,
            ":at": event.at,
            ":item": item,
            },
        )?;
    }
    Ok(())
}
