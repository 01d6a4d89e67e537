//! Stores the observations and summaries of a batch together with its events.
//!
//! In one transaction: either all of it is stored, with the events' ids and keys in
//! `processed_events`, or nothing is and the events are still in the queue. If a turn is derived
//! from again, its results are replaced; an observation that is derived again keeps its number.
//! The statements are in the files by table; this file runs them in order.

use std::collections::HashMap;

use rusqlite::{Transaction, named_params};

use super::closing::{retract, supersede};
use super::events::{keep_events, mark_processed};
use super::forget::{forgotten_prompts, is_settled, without_titles};
use super::observations::{self, TOUCHED, keep_observation};
use super::prompts::{
    insert_prompt, number_prompts, owner, prompt_identity, prompt_row, set_reply, settle_prompt,
    upsert_summary,
};
use super::sessions::{SessionRow, name_session, set_digest, upsert_session};
use super::{Store, json};
use crate::fault;
use crate::model::{
    Derived, Event, EventKind, Mark, Millis, Outcome, Provenance, SessionDigest, Turn,
};

/// The name of the offline provider in columns.
pub(super) const OFFLINE: &str = "offline";

/// Events of one session, and what was derived from the turns they belong to.
#[derive(Debug)]
pub struct Batch<'a> {
    /// In order of time, at least one.
    pub events: &'a [Event],
    pub turns: &'a [DerivedTurn],
    pub replaces: Replaces,
    /// What the whole session came to, as the offline provider sees it.
    pub digest: Option<&'a SessionDigest>,
    /// The provider that processed the events.
    pub provider: &'a str,
    pub now: Millis,
}

/// A turn, what was derived from it, and by which provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivedTurn {
    pub turn: Turn,
    pub derived: Derived,
    pub provenance: Provenance,
}

impl DerivedTurn {
    pub fn offline(turn: Turn, derived: Derived) -> DerivedTurn {
        DerivedTurn {
            turn,
            derived,
            provenance: Provenance::offline(),
        }
    }
}

/// Which earlier results a batch replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    /// Everything that the same provider derived from these turns and from none but their events:
    /// a long turn has observations of events that are not in the batch.
    Turns,
    /// Nothing: this is a further part of its turn.
    Nothing,
    /// Everything that any provider derived from these events, which were processed before.
    Events,
}

impl Store {
    pub fn commit(&mut self, batch: &Batch<'_>) -> rusqlite::Result<()> {
        let Some(first) = batch.events.first() else {
            return Ok(());
        };
        if !self.is_in_place() {
            let moved = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY_DBMOVED);
            return Err(rusqlite::Error::SqliteFailure(moved, None));
        }
        let before = self.session_id(&first.host, &first.host_session_id)?;
        let marks = self.prompt_marks(before, batch.events)?;
        let tx = self.connection.transaction()?;

        let session = upsert_session(&tx, batch, first)?;
        // What comes late of a forgotten turn is not stored.
        let forgotten = forgotten_prompts(&tx, session.id)?;
        let is_forgotten = |event: &Event| {
            let owner = owner(&marks, event).map(|it| &it.host_prompt_id);
            !forgotten.is_empty() && owner.is_some_and(|it| forgotten.contains(it))
        };
        let is_forgotten_turn = |derived: &DerivedTurn| {
            let prompt = derived.turn.prompt_id.as_ref();
            prompt.is_some_and(|it| forgotten.contains(it))
        };
        let mut outcome = Outcome::Nothing;
        let is_prompt = |event: &&Event| {
            event.kind == EventKind::Prompt && !forgotten.contains(&prompt_identity(event))
        };
        for event in batch.events.iter().filter(is_prompt) {
            insert_prompt(&tx, session.id, event)?;
            outcome = Outcome::Stored;
        }
        if outcome == Outcome::Stored {
            number_prompts(&tx, session.id)?;
        }
        withdraw(&tx, &session, batch)?;
        let mut kept: HashMap<&str, i64> = HashMap::new();
        let mut left_out: Vec<&str> = Vec::new();
        for derived in batch.turns {
            if is_forgotten_turn(derived) {
                let titles = derived.derived.observations.iter().map(|it| &*it.title);
                left_out.extend(titles);
                continue;
            }
            let prompt = prompt_row(&tx, session.id, derived.turn.prompt_id.as_deref())?;
            set_reply(&tx, prompt, &derived.turn)?;
            for observation in &derived.derived.observations {
                if is_settled(&tx, &session, observation, &derived.provenance.provider)? {
                    left_out.push(&observation.title);
                    continue;
                }
                let id = keep_observation(&tx, &session, prompt, observation, derived)?;
                kept.insert(&observation.seed, id);
                outcome = Outcome::Stored;
            }
            if let (Some(prompt), Some(summary)) = (prompt, &derived.derived.summary) {
                let last = derived.turn.events.last();
                let at = last.map_or(batch.now, |event| event.at);
                upsert_summary(&tx, &session, prompt, summary, &derived.provenance, at)?;
                outcome = Outcome::Stored;
            }
            if let Some(prompt) = prompt {
                settle_prompt(&tx, prompt, derived, batch.replaces)?;
            }
            for mark in &derived.derived.marks {
                if let (Mark::OfTurn(id), Some(prompt)) = (mark, prompt) {
                    observations::give_to_turn(&tx, *id, &session, prompt)?;
                    settle_prompt(&tx, prompt, derived, batch.replaces)?;
                    outcome = Outcome::Stored;
                }
            }
            // Triggers have added all of it to the full text, too.
            fault::point("store:after-index");
        }
        for mark in batch.turns.iter().flat_map(|it| &it.derived.marks) {
            match mark {
                Mark::Retracted(id, reason) => retract(&tx, *id, reason)?,
                Mark::SupersededBy(old, seed) => {
                    if let Some(new) = kept.get(&**seed).filter(|new| *new != old) {
                        supersede(&tx, *old, *new)?;
                    }
                }
                Mark::OfTurn(_) => {}
            }
        }
        if let Some(digest) = batch.digest {
            let digest = without_titles(digest, &left_out);
            set_digest(&tx, session.id, &digest, OFFLINE)?;
        }
        name_session(&tx, session.id)?;
        if batch.replaces != Replaces::Events {
            let events: Vec<&Event> = batch.events.iter().filter(|it| !is_forgotten(it)).collect();
            keep_events(&tx, session.id, &events, &marks)?;
        }
        mark_processed(&tx, batch, outcome)?;
        fault::point("store:before-commit");
        tx.commit()?;
        fault::point("store:after-commit");
        Ok(())
    }
}

/// SQL: no observation that a person changed stands for all events of this one. If one does, what is
/// derived from them is not stored (`is_settled`), so what was derived before stays.
fn is_open() -> String {
    format!(
        "not exists (
             select 1
             from (
                 select provider as settled_by, events as settled
                 from observations
                 where session_id = :session and {TOUCHED}
             )
             where not (settled_by = 'offline' and :by = 'offline')
               and not exists (
                   select 1
                   from json_each(events) as derived
                   where derived.value not in (select value from json_each(settled))
               )
         )"
    )
}

/// Deletes earlier observations that are not derived any more. An observation that is now derived
/// from another turn of the batch keeps its number.
fn withdraw(tx: &Transaction<'_>, session: &SessionRow, batch: &Batch<'_>) -> rusqlite::Result<()> {
    let observations = batch.turns.iter().flat_map(|it| &it.derived.observations);
    let seeds: Vec<&str> = observations.map(|it| it.seed.as_str()).collect();
    let seeds = json(&seeds)?;
    let is_open = is_open();
    match batch.replaces {
        Replaces::Turns => {
            let events = batch.turns.iter().flat_map(|it| &it.turn.events);
            let read = json(&events.map(|it| it.id).collect::<Vec<_>>())?;
            for derived in batch.turns {
                let prompt = prompt_row(tx, session.id, derived.turn.prompt_id.as_deref())?;
                let outdated = format!(
                    "session_id = :session
                    and prompt_id is :prompt
                    and provider = :provider
                    and seed not in (select value from json_each(:seeds))
                    and not exists (
                        select 1
                        from json_each(events) as derived
                        where derived.value not in (select value from json_each(:read))
                    )
                    and {is_open}"
                );
                let parameters = named_params! {
                    ":session": session.id,
                    ":prompt": prompt,
                    ":provider": derived.provenance.provider,
                    ":seeds": seeds,
                    ":read": read,
                    ":by": derived.provenance.provider,
                };
                observations::withdraw(tx, &outdated, parameters)?;
            }
            Ok(())
        }
        Replaces::Nothing => Ok(()),
        Replaces::Events => {
            let events: Vec<String> = batch.events.iter().map(|it| it.id.to_string()).collect();
            let outdated = format!(
                "session_id = :session
                and seed not in (select value from json_each(:seeds))
                and exists (
                    select 1
                    from json_each(events) as derived
                    join json_each(:events) as event on event.value = derived.value
                )
                and {is_open}"
            );
            let parameters = named_params! {
                ":session": session.id,
                ":seeds": seeds,
                ":events": json(&events)?,
                ":by": batch.provider,
            };
            observations::withdraw(tx, &outdated, parameters)
        }
    }
}
