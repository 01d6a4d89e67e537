//! Asks a model about a session that is over, as a whole.
//!
//! The model sees what the user asked in each turn with the agent's last words, the observations of
//! the session by number, and older ones about the same files. It answers with a title, a subtitle
//! and the fields of a summary, and can retract, supersede or merge observations by number. The
//! store accepts only numbers that the model was shown.

use std::collections::BTreeSet;

use foreword_core::ledger::Entry;
use foreword_core::model::{Event, Millis, Provenance};
use foreword_core::redact;
use foreword_core::store::{Closing, ShownObservation, ShownSession, ShownTurn, Store};
use foreword_core::text;

use super::compress::{CompressError, Compressor, unreadable, unusable};
use super::fence::Fence;
use super::judge::Judge;
use super::prompts::Prompts;
use super::question::{self, QuestionText, middle_cut, name, session_name};
use super::repair;
use super::reply::{self, numbers};
use crate::agent::provider::{Failure, ModelCall};

// The longest texts of each kind, in characters. The middle of a longer one is left out.

const REQUEST_MAX: usize = 400;
const REPLY_MAX: usize = 1_200;
const FACTS_MAX: usize = 3;

/// The digest for a new conversation has at most this many observations, the newest.
const OPENING_MAX: usize = 20;

/// The longest text of a question, in bytes. Above it texts are cut further, and then the
/// oldest turns are left out.
const TEXT_MAX: usize = 40_000;

impl Compressor {
    /// Asks once. None if the model says that nothing is worth keeping.
    pub async fn close(
        &mut self,
        store: &Store,
        ended: &ShownSession,
        now: Millis,
        pause: impl Fn(&Failure) -> Option<Millis>,
    ) -> Result<Option<(Closing, Provenance)>, CompressError> {
        let mut question_text = write(&self.prompts, ended);
        if self.conversation.is_some() {
            // A conversation keeps the system prompt that it began with.
            let instructions = std::mem::take(&mut question_text.system);
            question_text.system = self.prompts.fill("init", &[]);
            question_text.text = format!("{instructions}\n\n{}", question_text.text);
        }
        let entry = Entry {
            at: now,
            provider: self.provider,
            model: &self.asked_model.clone(),
            turn: None,
            host_session_id: &ended.session.id,
            events: 0,
            raw_tokens: 0,
        };
        let mut judge = Judge::new(&question_text, &[]);
        judge.know(&self.prompts);
        if let Some(conversation) = &self.conversation {
            judge.also(conversation);
        }
        let read = |call: &ModelCall| read(call, &judge);
        let asked = self.ask(store, &entry, &question_text, &pause, read).await;
        let (closing, provenance) = asked?;
        let events = store.whole_turns(&ended.session, None)?.events;
        let events: Vec<&Event> = events.iter().collect();
        let closing = closing.and_then(|it| without_copied(it, &events));
        Ok(closing.map(|closing| (closing, provenance)))
    }
}

/// The digest that a new conversation begins with: the session's observations so far, what is open,
/// and the last turn. Empty if there are no observations. Also returns the numbers of the observations
/// in it.
pub fn opening(prompts: &Prompts, so_far: &ShownSession) -> (String, BTreeSet<i64>) {
    if so_far.observations.is_empty() {
        return Default::default();
    }
    let fence = Fence::new();
    let fenced = |text: &str| fence.around(text);
    let first = so_far.observations.len().saturating_sub(OPENING_MAX);
    let observations = &so_far.observations[first..];
    let last = so_far.turns.len().saturating_sub(1);
    let values = [
        ("observations", fenced(&listed(observations))),
        ("open", fenced(&so_far.open.join("\n"))),
        ("turn", fenced(&turns(&so_far.turns[last..], 1))),
    ];
    let values: Vec<(&str, &str)> = values.iter().map(|(name, it)| (*name, &**it)).collect();
    let shown = observations.iter().map(|it| it.id).collect();
    (prompts.fill("opening", &values) + "\n\n", shown)
}

fn write(prompts: &Prompts, ended: &ShownSession) -> QuestionText {
    let observations = listed(&ended.observations);
    let older = listed(&ended.older);
    let room = TEXT_MAX.saturating_sub(observations.len() + older.len());
    let turns = [1, 2, 4].map(|cut| turns(&ended.turns, cut));
    let [.., shortest] = &turns;
    let turns = turns.iter().find(|it| it.len() <= room);
    let turns = turns.unwrap_or(shortest);
    let first = turns.len().saturating_sub(room);
    let first = turns.ceil_char_boundary(first);
    let fence = Fence::new();
    let fenced = |text: &str| fence.around(text);
    let values = [
        ("project", name(ended.project.as_deref().unwrap_or("none"))),
        ("date", text::date(ended.last_event_at)),
        ("session", session_name(&ended.session.id)),
        ("turns", fenced(&turns[first..])),
        ("observations", fenced(&observations)),
        ("older", fenced(&older)),
    ];
    let values: Vec<(&str, &str)> = values.iter().map(|(name, it)| (*name, &**it)).collect();
    QuestionText {
        system: prompts.fill("closing", &[]),
        text: prompts.fill("ended", &values),
    }
}

fn turns(turns: &[ShownTurn], cut: usize) -> String {
    let mut lines = String::new();
    for turn in turns {
        let request = middle_cut(&turn.request, REQUEST_MAX / cut);
        lines.push_str(&format!("prompt {}: {request}\n", turn.number));
        if let Some(reply) = &turn.reply {
            let reply = middle_cut(reply, REPLY_MAX / cut);
            lines.push_str(&format!("last words: {reply}\n"));
        }
    }
    lines
}

fn listed(observations: &[ShownObservation]) -> String {
    let lines = observations
        .iter()
        .map(|it| question::listed(it, FACTS_MAX));
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads an answer. None if it says that nothing is worth keeping.
fn read(call: &ModelCall, judge: &Judge) -> Result<Option<Closing>, Failure> {
    let answer = call.answer.as_ref().map_err(Failure::clone)?;
    // A model may repeat or invent a secret: everything that is stored is redacted.
    let answer = &redact::thorough(answer).text;
    let mut reply = reply::read(answer, repair::CLOSING_TAGS);
    if let Some(why) = judge.sift(&mut reply) {
        return Err(unusable(answer, why));
    }
    let digest = reply.summary.as_ref().and_then(repair::digest);
    let (Some(digest), Some(found)) = (digest, &reply.summary) else {
        return match reply.nothing {
            Some(_) => Ok(None),
            None => Err(unreadable(answer, &reply)),
        };
    };
    let mut closing = Closing {
        digest,
        summary: repair::summary(found, &[]),
        ..Closing::default()
    };
    for (tag, content) in &reply.marks {
        match (*tag, pair(content)) {
            ("retract", _) => closing.retracted.extend(repair::retraction(content)),
            ("supersede", Some(pair)) => closing.superseded.push(pair),
            ("merge", Some(pair)) => closing.merged.push(pair),
            _ => {}
        }
    }
    Ok(Some(closing))
}

/// An answer without words that were merely read. None if they are its title: then what was derived
/// without a model stays.
fn without_copied(mut closing: Closing, events: &[&Event]) -> Option<Closing> {
    let clean = |text: &mut String| *text = repair::without_copied(text, events);
    let digest = &mut closing.digest;
    let lists = digest.open.iter_mut().chain(&mut digest.given_up);
    lists
        .chain([&mut digest.title, &mut digest.subtitle])
        .for_each(clean);
    digest.open.retain(|it| !it.is_empty());
    digest.given_up.retain(|it| !it.is_empty());
    if let Some(summary) = &mut closing.summary {
        [&mut summary.completed, &mut summary.next_steps]
            .into_iter()
            .for_each(clean);
    }
    (!closing.digest.title.is_empty()).then_some(closing)
}

/// The two numbers of `#12 by #15` or `#12 into #15`.
fn pair(content: &str) -> Option<(i64, i64)> {
    match numbers(content)[..] {
        [old, new] => Some((old.into(), new.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
