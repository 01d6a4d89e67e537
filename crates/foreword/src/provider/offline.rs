//! Observations and summaries without a model: what the events prove, and no more.
//!
//! A turn is read as a list of steps (`steps`: edits, reads, commands). From their
//! order follow the findings (`findings`): a command that failed and passed after
//! an edit, a commit, a failure that stayed, edits that belong to nothing else.
//! `observe` words them, `summarise` words the turn. The whole turn is looked at
//! each time, so the same turn always gives the same words.

mod findings;
mod observe;
mod steps;
mod summarise;
mod words;

use foreword_core::model::{Derived, EventKind, Turn};

use findings::Findings;
use steps::Step;

/// A turn as the offline provider sees it.
struct Story<'a> {
    /// What the user typed.
    request: Option<&'a str>,
    /// The agent's last words.
    reply: Option<&'a str>,
    steps: Vec<Step>,
    failed: bool,
}

impl<'a> Story<'a> {
    fn of(turn: &'a Turn) -> Story<'a> {
        let last = |kinds: &[EventKind]| {
            turn.events
                .iter()
                .rev()
                .find(|event| kinds.contains(&event.kind))
        };
        let stop = last(&[EventKind::Stop, EventKind::StopFailure]);
        Story {
            request: turn
                .events
                .iter()
                .find(|event| event.kind == EventKind::Prompt)
                .and_then(|event| event.payload.prompt.as_deref()),
            reply: stop.and_then(|event| event.payload.reply.as_deref()),
            steps: turn.events.iter().filter_map(Step::of).collect(),
            failed: stop.is_some_and(|event| event.kind == EventKind::StopFailure),
        }
    }
}

/// What one turn came to.
pub fn derive(turn: &Turn) -> Derived {
    let story = Story::of(turn);
    let findings = Findings::of(&story.steps);
    Derived {
        observations: observe::observations(turn, &story, &findings),
        summary: story
            .request
            .map(|request| summarise::summary(request, &story, &findings)),
    }
}

#[cfg(test)]
mod tests;
