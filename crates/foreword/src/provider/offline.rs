//! Observations and summaries without a model: what the events prove, and no more.
//!
//! A session is read as a list of steps (`steps`: edits, reads, commands). From
//! their order follow the findings (`findings`, `undone`): a command that failed
//! and passed after an edit, a commit, a failure that stayed, an edit taken back.
//! What was said (`said`, `decisions`) gives reasons and decisions, always as quotes. A `teller`
//! has what belongs to one turn; `observe` and `quotes` word it as observations,
//! `summarise` as a summary, `note` the conversation as a note. The whole session is looked at each
//! time, so the same session always gives the same words, and a later turn can
//! correct what an earlier one seemed to be.

mod call;
mod changes;
mod concepts;
mod decisions;
mod findings;
mod git;
mod note;
mod observe;
mod output;
mod quotes;
mod request;
mod runs;
mod said;
mod speech;
mod steps;
mod summarise;
mod teller;
mod undone;

use foreword_core::model::{Derived, Event, EventKind, Turn};

use findings::Findings;
pub use note::note;
use steps::Step;
use teller::Teller;

/// A session as the offline provider sees it.
struct Story<'a> {
    /// Of all turns, in order of time.
    steps: Vec<Step>,
    turns: Vec<Words<'a>>,
}

/// What was said in one turn.
#[derive(Clone, Copy)]
struct Words<'a> {
    prompt_id: Option<&'a str>,
    prompt: Option<&'a Event>,
    /// The last one: Stop or StopFailure.
    stop: Option<&'a Event>,
}

impl<'a> Words<'a> {
    fn of(turn: &'a Turn) -> Words<'a> {
        let is_stop =
            |event: &&Event| matches!(event.kind, EventKind::Stop | EventKind::StopFailure);
        Words {
            prompt_id: turn.prompt_id.as_deref(),
            prompt: turn.events.iter().find(|it| it.kind == EventKind::Prompt),
            stop: turn.events.iter().rev().find(is_stop),
        }
    }

    /// What the user typed.
    fn request(self) -> Option<&'a str> {
        self.prompt?.payload.prompt.as_deref()
    }

    /// The agent's last words.
    fn reply(self) -> Option<&'a str> {
        self.stop?.payload.reply.as_deref()
    }

    fn failed(self) -> bool {
        self.stop
            .is_some_and(|event| event.kind == EventKind::StopFailure)
    }
}

impl<'a> Story<'a> {
    fn of(session: &'a [Turn]) -> Story<'a> {
        let mut steps: Vec<Step> = session
            .iter()
            .enumerate()
            .flat_map(|(turn, it)| {
                it.events
                    .iter()
                    .filter_map(move |event| Step::of(turn, event))
            })
            .collect();
        steps.sort_by_key(|step| (step.at, step.event));
        Story {
            steps,
            turns: session.iter().map(Words::of).collect(),
        }
    }
}

/// What each turn of a session came to. The turns are in order of time; the
/// session may go on later, and its earlier turns be derived from again.
pub fn derive(session: &[Turn]) -> Vec<Derived> {
    let story = Story::of(session);
    let findings = Findings::of(&story.steps);
    (0..session.len())
        .map(|turn| {
            let teller = Teller::new(&story, &findings, turn);
            Derived {
                observations: observe::observations(&teller),
                summary: summarise::summary(&teller),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
