//! Reads a conversation from its transcript, for a note about it.
//!
//! A person asked for the note, so no hook need have seen the conversation. But parts that Foreword
//! may not know, because it was switched off or they were excluded or forgotten, are left out.

use std::collections::HashSet;
use std::convert::Infallible;
use std::path::Path;

use crate::fill::{self, FillRules};
use crate::host::{Host, ReplayedInput};
use crate::model::{EventKind, Turn};
use crate::store::uuid_at;

/// The turns of a session, in order, without its subagents. `forgotten` has keys of events
/// and ids of prompts.
pub fn conversation(
    host: &'static Host,
    path: &Path,
    session: &str,
    rules: &FillRules<'_>,
    forgotten: &HashSet<String>,
) -> Vec<Turn> {
    let ids = uuid::ContextV7::new();
    let mut turns: Vec<Turn> = Vec::new();
    let take = |input: ReplayedInput| -> Result<(), Infallible> {
        let event = fill::event(host, &input, uuid_at(input.at, &ids), None, rules);
        let event = event.filter(|it| it.agent_id.is_none() && !(rules.is_barred)(it));
        let Some(event) = event else {
            return Ok(());
        };
        match turns.last_mut() {
            Some(turn) if event.kind != EventKind::Prompt => turn.events.push(event),
            _ => turns.push(Turn {
                prompt_id: event.prompt_id.clone(),
                events: vec![event],
            }),
        }
        Ok(())
    };
    let Ok(()) = host.replay(path, session, take);
    for turn in &mut turns {
        let is_forgotten = |name: &str| forgotten.contains(name);
        turn.events.retain(|it| {
            !is_forgotten(&it.key) && !it.prompt_id.as_deref().is_some_and(is_forgotten)
        });
    }
    turns.retain(|turn| !turn.events.is_empty());
    turns
}
