//! Finds the turns that can be derived from again, and the items that were derived from them.
//!
//! Events are deleted after some days, the oldest first, so a part of a turn may be gone. Only
//! complete turns are returned, since a part of one would give other results.

use std::collections::BTreeSet;

use rusqlite::named_params;
use serde::Deserialize;

use super::events::Steps;
use super::observations::TOUCHED;
use super::{HostSession, Store, json};
use crate::db::Rows as _;
use crate::model::{Event, EventKind, Kind, Millis};

/// The events of complete turns, in order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WholeTurns {
    pub events: Vec<Event>,
    pub turns: usize,
    /// How many turns lack some of their events.
    pub gone: usize,
}

/// An observation or a summary, by its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct DerivedItem {
    pub id: i64,
    pub kind: Kind,
    pub title: String,
    /// The provider that derived it.
    pub provider: String,
}

impl Store {
    /// The turns of a session with all their events; if an item is given, only the turn that it
    /// belongs to.
    pub fn whole_turns(
        &self,
        session: &HostSession,
        item: Option<i64>,
    ) -> rusqlite::Result<WholeTurns> {
        let Some(session) = self.session_id(&session.host, &session.id)? else {
            return Ok(WholeTurns::default());
        };
        let only = item.map(|item| self.turn_of(item)).transpose()?;
        let mut whole_turns = WholeTurns::default();
        for turn in self.turns_of(session)? {
            if only.as_ref().is_some_and(|only| *only != turn) {
                continue;
            }
            let events = self.events_of_turn(session, turn.as_deref(), Steps::All)?;
            // The oldest event is deleted first: if it is there, all are.
            let is_whole = match &turn {
                Some(_) => events.iter().any(|it| it.kind == EventKind::Prompt),
                None => events.first().is_some_and(|it| self.begins(session, it)),
            };
            if is_whole {
                whole_turns.turns += usize::from(turn.is_some() || item.is_some());
                whole_turns.events.extend(events);
            } else {
                whole_turns.gone += usize::from(turn.is_some() || item.is_some());
            }
        }
        whole_turns.events.sort_by_key(|event| (event.at, event.id));
        Ok(whole_turns)
    }

    /// The turns of a session, by the host's id of their prompt; none stands for the events that
    /// belong to no prompt.
    fn turns_of(&self, session: i64) -> rusqlite::Result<Vec<Option<String>>> {
        let prompts = self.connection.all(
            "select host_prompt_id
             from prompts
             where session_id = :session and host_prompt_id is not null
             order by number",
            named_params! {":session": session},
        )?;
        Ok(std::iter::once(None).chain(prompts).collect())
    }

    fn turn_of(&self, item: i64) -> rusqlite::Result<Option<String>> {
        let turn: Option<Option<String>> = self.connection.first(
            "select host_prompt_id
             from prompts
             where id = coalesce(
                 (select prompt_id from observations where id = :item),
                 (select prompt_id from summaries where id = :item),
                 :item)",
            named_params! {":item": item},
        )?;
        Ok(turn.flatten())
    }

    /// Whether a session began with this event.
    fn begins(&self, session: i64, event: &Event) -> bool {
        let started_at = "select started_at from sessions where id = :session";
        let started_at = self
            .connection
            .one(started_at, named_params! {":session": session});
        started_at.is_ok_and(|started_at: Millis| event.at <= started_at)
    }

    /// The items that were derived from these events of one session, without those that a person
    /// changed by hand: these stay as they are.
    pub fn made_of(&self, events: &[Event]) -> rusqlite::Result<Vec<DerivedItem>> {
        let Some(first) = events.first() else {
            return Ok(Vec::new());
        };
        let session = self.session_id(&first.host, &first.host_session_id)?;
        let ids: BTreeSet<_> = events.iter().map(|event| event.id).collect();
        let ids = json(&ids)?;
        let sql = format!(
            "select id, 'observation' as kind, title, provider
             from observations
             where session_id = :session and not {TOUCHED}
               and exists (
                   select 1
                   from json_each(observations.events) as derived
                   join json_each(:ids) as event on event.value = derived.value
               )
             union all
             select s.id, 'summary', s.request, s.provider
             from summaries s
             join prompts p on p.id = s.prompt_id
             where s.session_id = :session
               and p.host_prompt_id in (
                   select turn
                   from events
                   where session_id = :session and id in (select value from json_each(:ids))
               )
             order by 1"
        );
        let parameters = named_params! {":session": session, ":ids": ids};
        self.connection.all(&sql, parameters)
    }
}
