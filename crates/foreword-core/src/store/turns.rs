//! Puts a batch of events together with what is known of their turns.
//!
//! A turn is what one prompt of the user set in motion. A background task that
//! reports back starts a turn of the host's own, without a user: it belongs to
//! the last prompt that somebody typed. Events of one turn can come in several
//! batches, so a turn is always looked at whole.

use std::collections::BTreeMap;

use rusqlite::named_params;

use super::Store;
use crate::model::{Event, EventKind, Millis, Turn};

/// A prompt of the user's, as far as it decides what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PromptMark {
    pub host_prompt_id: String,
    pub at: Millis,
}

/// How many earlier turns of a session are looked at again when it goes on.
const EARLIER_TURNS: usize = 12;

impl Store {
    /// The turns that these new events of one session belong to, and those shortly
    /// before them, in order of time. An earlier turn of which events are gone
    /// already is left out: half a turn would tell another story.
    pub fn session(&self, new: &[Event]) -> rusqlite::Result<Vec<Turn>> {
        let mut turns = self.turns(new)?;
        let Some(first) = new.first() else {
            return Ok(turns);
        };
        let Some(session) = self.session_id(&first.host, &first.host_session_id)? else {
            return Ok(turns);
        };
        for mark in self
            .prompt_marks(Some(session), new)?
            .iter()
            .rev()
            .take(EARLIER_TURNS)
        {
            let prompt_id = Some(mark.host_prompt_id.clone());
            if turns.iter().any(|turn| turn.prompt_id == prompt_id) {
                continue;
            }
            let events = self.kept_events(session, prompt_id.as_deref())?;
            // The prompt is the oldest event of its turn, so it is the first to go.
            if events.iter().any(|event| event.kind == EventKind::Prompt) {
                turns.push(Turn { prompt_id, events });
            }
        }
        turns.sort_by_key(|turn| turn.events.first().map(|event| event.at));
        Ok(turns)
    }

    /// The turns that these new events of one session belong to, whole.
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
                    let mut kept = self.kept_events(session, prompt_id.as_deref())?;
                    // Events that are looked at again are among the kept ones.
                    kept.retain(|kept| !events.iter().any(|event| event.id == kept.id));
                    events.extend(kept);
                }
                events.sort_by_key(|event| (event.at, event.id));
                Ok(Turn { prompt_id, events })
            })
            .collect()
    }

    pub(super) fn session_id(
        &self,
        host: &str,
        host_session_id: &str,
    ) -> rusqlite::Result<Option<i64>> {
        let mut statement = self.connection.prepare_cached(
            "select id from sessions where host = :host and host_session_id = :session",
        )?;
        let mut rows =
            statement.query(named_params! {":host": host, ":session": host_session_id})?;
        rows.next()?.map(|row| row.get(0)).transpose()
    }

    /// The session's prompts, stored and new, in order of time.
    pub(super) fn prompt_marks(
        &self,
        session: Option<i64>,
        new: &[Event],
    ) -> rusqlite::Result<Vec<PromptMark>> {
        let mut statement = self.connection.prepare_cached(
            "select host_prompt_id, at
             from prompts
             where session_id = :session and host_prompt_id is not null",
        )?;
        let rows = statement.query_map(named_params! {":session": session}, |row| {
            Ok(PromptMark {
                host_prompt_id: row.get(0)?,
                at: row.get(1)?,
            })
        })?;
        let mut marks = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        for event in new.iter().filter(|event| event.kind == EventKind::Prompt) {
            let host_prompt_id = prompt_identity(event);
            if !marks
                .iter()
                .any(|mark| mark.host_prompt_id == host_prompt_id)
            {
                marks.push(PromptMark {
                    host_prompt_id,
                    at: event.at,
                });
            }
        }
        marks.sort_by_key(|mark| mark.at);
        Ok(marks)
    }

    fn kept_events(&self, session: i64, prompt_id: Option<&str>) -> rusqlite::Result<Vec<Event>> {
        let mut statement = self.connection.prepare_cached(
            "select event
             from events
             where session_id = :session and (turn is :prompt or (:prompt is not null and prompt_id = :prompt))
             order by at, id",
        )?;
        let rows = statement.query_map(
            named_params! {":session": session, ":prompt": prompt_id},
            |row| row.get(0),
        )?;
        rows.collect()
    }
}

/// The host's id of a prompt; an older host has none, then the event's own.
pub(super) fn prompt_identity(event: &Event) -> String {
    event
        .prompt_id
        .clone()
        .unwrap_or_else(|| event.id.to_string())
}

/// The prompt that an event belongs to: its own, or the last one before it.
pub(super) fn owner<'a>(marks: &'a [PromptMark], event: &Event) -> Option<&'a PromptMark> {
    let identity = prompt_identity(event);
    marks
        .iter()
        .find(|mark| mark.host_prompt_id == identity)
        .or_else(|| marks.iter().rev().find(|mark| mark.at <= event.at))
}
