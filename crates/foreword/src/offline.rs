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

use foreword_core::model::{Derived, Event, EventKind, SessionDigest, Turn};
use foreword_core::text::{self, shorten};

use findings::Findings;
pub use note::{NOTHING, note};
use steps::Step;
use teller::Teller;

/// A session as the offline provider sees it.
struct Story<'a> {
    /// Of all turns, in order of time.
    steps: Vec<Step>,
    findings: Findings,
    turns: Vec<Words<'a>>,
}

/// What was said in one turn.
#[derive(Clone, Copy)]
struct Words<'a> {
    prompt_id: Option<&'a str>,
    prompt: Option<&'a Event>,
    /// The last event of the turn: it stopped or failed.
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

    /// The agent's last words, unless they say that the turn failed.
    fn conclusion(self) -> Option<&'a str> {
        self.reply().filter(|_| !self.failed())
    }

    fn failed(self) -> bool {
        let stop = self.stop.map(|event| event.kind);
        stop == Some(EventKind::StopFailure)
    }
}

/// What was derived from a session: of each turn, in order, and of all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DerivedSession {
    pub turns: Vec<Derived>,
    pub digest: SessionDigest,
}

/// What each turn of a session came to. The turns are in order of time; the
/// session may go on later, and its earlier turns be derived from again.
pub fn derive(session: &[Turn]) -> DerivedSession {
    let mut steps: Vec<Step> = Vec::new();
    for (turn, it) in session.iter().enumerate() {
        steps.extend(it.events.iter().filter_map(|it| Step::of(turn, it)));
    }
    steps.sort_by_key(|step| (step.at, step.event));
    let story = Story {
        findings: Findings::of(&steps),
        steps,
        turns: session.iter().map(Words::of).collect(),
    };
    let tellers = (0..session.len()).map(|turn| Teller {
        story: &story,
        turn,
    });
    let turns = tellers.map(|teller| {
        let observations = observe::observations(&teller);
        let summary = summarise::summary(&teller).filter(|_| !observations.is_empty());
        Derived {
            observations,
            summary,
        }
    });
    let mut requests = story.turns.iter().filter_map(|words| words.request());
    let request = requests.find(|it| !it.starts_with('/'));
    DerivedSession {
        turns: turns.collect(),
        digest: SessionDigest {
            title: request.map(text::title).unwrap_or_default(),
            ..SessionDigest::default()
        },
    }
}

/// Somebody's words, in quotes.
fn quote(words: &str, max: usize) -> String {
    format!("“{}”", shorten(words, max))
}

/// A command or a line, as code.
fn code(text: &str, max: usize) -> String {
    format!("`{}`", shorten(text, max))
}

/// Each one once, where it came first.
fn once<T>(items: impl IntoIterator<Item = T>, same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut once: Vec<T> = Vec::new();
    for item in items {
        if !once.iter().any(|known| same(known, &item)) {
            once.push(item);
        }
    }
    once
}

#[cfg(test)]
mod tests;
