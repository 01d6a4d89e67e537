//! The compressor: has a model turn a batch of events into observations and a summary.
//!
//! `question` writes the question from `prompts`, a provider answers, `reply` finds the known tags
//! in the answer, `judge` removes what does not rest on the recording, and `repair` turns the rest
//! into model types. A question that is too long is sent once more with shorter texts, and one whose
//! answer cannot be used once more with a reminder. Every call is in the ledger, also one that failed.

use std::time::Duration;

use foreword_core::fault;
use foreword_core::ledger::{Entry, Failed};
use foreword_core::model::{Derived, Event, FailureKind, Mark, Millis, Observation, Provenance};
use foreword_core::redact;
use foreword_core::store::Store;
use foreword_core::text;

use super::budget::Budget;
use super::conversation::Conversation;
use super::judge::Judge;
use super::prompts::{ANSWER_SCHEMA, Prompts};
use super::question::{self, QuestionSubject, QuestionText};
use super::repair;
use super::reply::{self, Reply};
use crate::agent::provider::{Failure, Model, ModelCall, Provider as _, Question};
use crate::config;

/// A model with everything that is needed to ask it.
pub struct Compressor {
    pub provider: &'static str,
    /// The model's name in the settings.
    pub asked_model: String,
    pub model: Model,
    pub prompts: Prompts,
    pub settings: config::ModelSection,
    pub budget: Budget,
    /// The conversation that the next question goes into; none if it stands alone.
    pub conversation: Option<Conversation>,
}

/// The observations and the summary that a model derived from a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Compressed {
    pub derived: Derived,
    /// Whether the model said that there is nothing worth keeping.
    pub nothing: bool,
    pub provenance: Provenance,
}

/// Why a batch could not be compressed.
#[derive(Debug)]
pub enum CompressError {
    Storage(rusqlite::Error),
    /// A budget has no room for the call, for the reason in this text.
    OverBudget(String),
    /// The model cannot be asked until the pause is over; the batch is not at fault.
    Paused(Failure),
    /// This batch failed; a smaller one may succeed.
    Failure(Failure),
}

impl From<rusqlite::Error> for CompressError {
    fn from(error: rusqlite::Error) -> CompressError {
        CompressError::Storage(error)
    }
}

impl Compressor {
    /// Asks about a batch, at least once and at most `calls` times. `pause` returns the end of the pause
    /// that follows a failure, if any; it is stored with the call.
    pub async fn compress(
        &mut self,
        store: &Store,
        subject: &QuestionSubject<'_>,
        mut calls: u32,
        clock: fn() -> Millis,
        pause: impl Fn(&Failure) -> Option<Millis>,
    ) -> Result<Compressed, CompressError> {
        let mut question_text = question::write(&self.prompts, subject);
        let asked_model = self.asked_model.clone();
        let entry = || Entry {
            at: clock(),
            provider: self.provider,
            model: &asked_model,
            turn: Some(question::turn_name(subject.events)),
            host_session_id: subject.events.first().map_or("", |it| &it.host_session_id),
            events: subject.events.len(),
            raw_tokens: question::raw_tokens(subject.events),
        };
        let mut judge = Judge::new(&question_text, subject.events);
        judge.know(&self.prompts);
        if let Some(conversation) = &self.conversation {
            judge.also(conversation);
        }
        let is_new = self.conversation.as_ref().is_none_or(Conversation::is_new);
        let read = |call: &ModelCall| read(call, subject, &judge);
        let mut asked = self
            .ask(store, &entry(), &question_text, &pause, read)
            .await;
        calls = calls.saturating_sub(1);
        if failed(&asked) == Some(FailureKind::TooLong) && is_new && calls > 0 {
            calls -= 1;
            let cut = QuestionSubject {
                cut: HARDER,
                ..*subject
            };
            question_text = question::write(&self.prompts, &cut);
            asked = self
                .ask(store, &entry(), &question_text, &pause, read)
                .await;
        }
        if failed(&asked).is_some_and(is_unreadable) && calls > 0 {
            let again = question::write_again(&self.prompts, &question_text, subject.sum_up);
            asked = self.ask(store, &entry(), &again, &pause, read).await;
        }
        let ((derived, nothing), provenance) = asked?;
        if let Some(conversation) = &mut self.conversation {
            let shown = subject.digest.shown();
            conversation.shown.extend(shown.map(|it| it.id));
        }
        Ok(Compressed {
            derived,
            nothing,
            provenance,
        })
    }

    /// Sends one question and reads its answer. The entry stands in the ledger before the question
    /// is sent.
    pub(super) async fn ask<T>(
        &mut self,
        store: &Store,
        entry: &Entry<'_>,
        question_text: &QuestionText,
        pause: &impl Fn(&Failure) -> Option<Millis>,
        read: impl Fn(&ModelCall) -> Result<T, Failure>,
    ) -> Result<(T, Provenance), CompressError> {
        let conversation = self.conversation.as_ref();
        let opening = conversation.map_or("", |it| &it.opening);
        // Its events are redacted; what an earlier version stored of the session may not be.
        let opened = format!("{opening}{}", question_text.text);
        let opened = redact::thorough(&opened).text;
        let question = Question {
            system: &question_text.system,
            text: &opened,
            patience: Duration::from_secs(self.settings.timeout_seconds.into()),
            answer_max: self.settings.answer_max_tokens,
            schema: Some(ANSWER_SCHEMA),
            now: entry.at,
        };
        let open = self
            .budget
            .reserve(store, entry, &question, conversation, true)?
            .map_err(CompressError::OverBudget)?;
        fault::point("provider:before-call");
        let conversation = self.conversation.as_mut();
        let mut call = self.model.ask(&question, conversation).await;
        fault::point("provider:after-call");
        let conversation = self.conversation.as_ref();
        self.budget.estimate(&mut call, &question, conversation);
        let read = read(&call);
        if let Some(conversation) = self.conversation.as_mut().filter(|_| read.is_ok()) {
            conversation.add(&question, &call);
        }
        let failed = read.as_ref().err().map(|failure| Failed {
            kind: failure.kind,
            note: text::shorten(&failure.text, 300).into_owned(),
            retry_at: pause(failure),
        });
        let paused = failed.as_ref().is_some_and(|it| it.retry_at.is_some());
        store.answered(open, &call.answered(failed))?;
        let read = read.map_err(|failure| {
            if paused {
                CompressError::Paused(failure)
            } else {
                CompressError::Failure(failure)
            }
        })?;
        let provenance = Provenance {
            provider: self.provider.to_owned(),
            model: call.model,
            prompt_version: Some(self.prompts.version().to_owned()),
        };
        Ok((read, provenance))
    }
}

/// The most observations that are kept of one answer.
const OBSERVATIONS_MAX: usize = 12;

/// The limits of texts are divided by this after a question was too long.
const HARDER: usize = 4;

/// The kind of a failure that this batch caused.
fn failed<T>(asked: &Result<T, CompressError>) -> Option<FailureKind> {
    match asked {
        Err(CompressError::Failure(failure)) => Some(failure.kind),
        _ => None,
    }
}

/// Whether the same question may get a better answer the second time.
fn is_unreadable(kind: FailureKind) -> bool {
    use FailureKind::{CutOff, Empty, Prose, Schema};
    matches!(kind, Prose | Schema | Empty | CutOff)
}

/// Reads the observations and the summary of an answer, and whether it says that there is nothing
/// worth keeping; a failure if it has none of these.
fn read(
    call: &ModelCall,
    subject: &QuestionSubject<'_>,
    judge: &Judge,
) -> Result<(Derived, bool), Failure> {
    let failure = match &call.answer {
        Ok(answer) => return derived(answer, subject, judge),
        Err(failure) => failure.clone(),
    };
    // The complete blocks of an answer that was cut off are used.
    let partial = failure.partial.as_ref();
    let partial = partial.and_then(|partial| derived(partial, subject, judge).ok());
    partial
        .filter(|(derived, _)| !derived.observations.is_empty())
        .ok_or(failure)
}

/// Reads an answer, or the part of it that came.
pub fn derived(
    answer: &str,
    subject: &QuestionSubject<'_>,
    judge: &Judge,
) -> Result<(Derived, bool), Failure> {
    // A model may repeat or invent a secret: everything that is stored is redacted.
    let answer = &redact::thorough(answer).text;
    let mut reply = reply::read(answer, repair::TAGS);
    if let Some(why) = judge.sift(&mut reply) {
        return Err(unusable(answer, why));
    }
    let events: Vec<&Event> = subject.events.iter().collect();
    let seed = events
        .first()
        .map(|it| it.id.to_string())
        .unwrap_or_default();
    let mut observations: Vec<Observation> = Vec::new();
    for (number, block) in reply.observations.iter().enumerate() {
        let repaired = repair::observation(block, &events, format!("{seed}/{number}"));
        // Small models repeat observations.
        let words = |it: &Observation| (it.title.clone(), it.narrative.clone());
        let is_new = |it: &Observation| observations.iter().all(|other| words(other) != words(it));
        observations.extend(repaired.filter(is_new));
    }
    observations.truncate(OBSERVATIONS_MAX);
    for observation in &mut observations {
        observation.files.retain(|it| judge.is_recorded(&it.path));
    }
    let summary = reply.summary.as_ref();
    let mut summary = summary.and_then(|it| repair::summary(it, &events));
    if let Some(summary) = &mut summary {
        summary.files_read.retain(|it| judge.is_recorded(it));
        summary.files_edited.retain(|it| judge.is_recorded(it));
    }
    if observations.is_empty() && summary.is_none() && reply.nothing.is_none() {
        return Err(unreadable(answer, &reply));
    }
    let derived = Derived {
        marks: marks(&reply, &observations, subject, judge),
        observations,
        summary,
    };
    Ok((derived, reply.nothing.is_some()))
}

/// What an answer says about earlier observations. Only the numbers that the model was shown count.
fn marks(
    reply: &Reply,
    observations: &[Observation],
    subject: &QuestionSubject<'_>,
    judge: &Judge,
) -> Vec<Mark> {
    let was_shown = |id: i64| {
        let mut shown = subject.digest.shown();
        shown.any(|it| it.id == id) || judge.was_shown(id)
    };
    let mut marks = Vec::new();
    for (_, content) in reply.marks.iter().filter(|(tag, _)| *tag == "retract") {
        let retraction = repair::retraction(content).filter(|(id, _)| was_shown(*id));
        marks.extend(retraction.map(|(id, reason)| Mark::Retracted(id, reason)));
    }
    for (number, block) in reply.observations.iter().enumerate() {
        let ending = format!("/{number}");
        let mut kept = observations.iter();
        let Some(new) = kept.find(|it| it.seed.ends_with(&ending)) else {
            continue;
        };
        let old = reply::numbers(&block.verbatim(&["supersedes"])).into_iter();
        let old = old.map(i64::from).filter(|id| was_shown(*id));
        marks.extend(old.map(|id| Mark::SupersededBy(id, new.seed.clone())));
    }
    marks
}

/// The failure of an answer whose blocks cannot be used.
pub(super) fn unusable(answer: &str, why: &str) -> Failure {
    let quote = text::shorten(&text::flat(answer), 120).into_owned();
    let why = format!("the answer cannot be used, because {why}: {quote}");
    Failure::new(FailureKind::Schema, why)
}

/// Why nothing could be read of an answer.
pub(super) fn unreadable(answer: &str, reply: &Reply) -> Failure {
    let quote = text::shorten(&text::flat(answer), 120).into_owned();
    let (kind, why) = if !reply.observations.is_empty() || reply.summary.is_some() {
        (
            FailureKind::Schema,
            "the answer's blocks are empty".to_owned(),
        )
    } else if answer.trim().is_empty() {
        (FailureKind::Empty, "the answer was empty".to_owned())
    } else if reply.open_end {
        let why = format!("the answer ends in the middle: {quote}");
        (FailureKind::CutOff, why)
    } else {
        let why = format!("the answer has none of the known tags: {quote}");
        (FailureKind::Prose, why)
    };
    Failure::new(kind, why)
}
