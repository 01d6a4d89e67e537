//! Completes a batch of events with the stored events of the same turns.
//!
//! A turn is a prompt of the user and all events that follow from it. A background task that
//! reports back starts a turn of the host's own, without a user: its events belong to the last
//! prompt that the user typed. Events of one turn can come in several batches, so the stored ones
//! are always added.

use std::collections::BTreeMap;

use super::Store;
use super::prompts::owner;
use crate::model::{Event, EventKind, Millis, Turn};

/// How many earlier turns of a session are read along with new events.
const EARLIER_TURNS: usize = 12;

impl Store {
    /// The turns that these new events of one session belong to, and those shortly
    /// before them, in order of time. An earlier turn that lacks some of its events is left out,
    /// since a part of a turn would give other results.
    pub fn recent_turns(&self, new: &[Event]) -> rusqlite::Result<Vec<Turn>> {
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
            let events = self.events_of_turn(session, prompt_id.as_deref())?;
            // The prompt is the oldest event of its turn, so it is deleted first.
            if events.iter().any(|event| event.kind == EventKind::Prompt) {
                turns.push(Turn { prompt_id, events });
            }
        }
        turns.sort_by_key(|turn| turn.events.first().map(|event| event.at));
        Ok(turns)
    }

    /// The turns that these new events of one session belong to, with their stored events.
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
                    let mut kept = self.events_of_turn(session, prompt_id.as_deref())?;
                    // In a redo the new events are stored already.
                    kept.retain(|kept| !events.iter().any(|event| event.id == kept.id));
                    events.extend(kept);
                }
                events.sort_by_key(|event| (event.at, event.id));
                Ok(Turn { prompt_id, events })
            })
            .collect()
    }
}
