//! Completes a batch of events with the stored events of the same turns.
//!
//! A turn is a prompt of the user and all events that follow from it. A background task that
//! reports back starts a turn of the host's own, without a user: its events belong to the last
//! prompt that the user typed. Events of one turn can come in several batches, so the stored ones
//! are always added. A turn can have thousands of steps, so only the newest of them are read:
//! what an event costs must not grow with its turn.

use std::collections::{BTreeMap, HashSet};

use super::Store;
use super::events::Steps;
use super::prompts::owner;
use crate::model::{Event, EventKind, Millis, Turn};

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
        for mark in marks.iter().rev().take(EARLIER_TURNS) {
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
}
