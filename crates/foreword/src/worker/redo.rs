//! Derives from a session again, and replaces what was made of it before.
//!
//! It needs the events, which are kept for some days, and the worker's lock, so that nothing else
//! writes at the same time. Each batch is replaced in one transaction: where deriving fails, the old
//! items stay.

use anyhow::{Context as _, bail};
use foreword_core::model::{Event, EventKind, Turn};
use foreword_core::recall::digest::Digest;
use foreword_core::store::{HostSession, WholeTurns};
use foreword_core::text;

use super::derive::{DeriveFailure, Deriver, has_content};
use crate::agent::prompts::Prompts;
use crate::agent::question::{self, QuestionSubject};
use crate::config::Config;
use crate::home::{self, Home};
use crate::progress::Progress;
use crate::service;

/// The session or turn to derive from again, with its events.
pub struct RedoTarget {
    pub session: HostSession,
    pub kept: WholeTurns,
}

/// The extent of a completed redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redone {
    pub batches: usize,
    pub events: usize,
}

/// The extent of a redo that would be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub batches: usize,
    pub events: usize,
    /// About how many tokens the questions have, without the text about the session so far.
    pub input_tokens: usize,
}

/// Computes the plan without asking a model.
pub fn plan(home: &Home, config: &Config, events: Vec<Event>) -> Plan {
    let prompts = Prompts::load(&home.prompts());
    let mut plan = Plan {
        batches: 0,
        events: events.len(),
        input_tokens: 0,
    };
    for batch in batches(events, config) {
        if !has_content(&batch, true) {
            continue;
        }
        let turn = Turn {
            prompt_id: None,
            events: batch,
        };
        let question_text = question::write(
            &prompts,
            &QuestionSubject {
                events: &turn.events,
                turn: &turn,
                digest: &Digest::default(),
                sum_up: true,
                cut: 1,
            },
        );
        plan.batches += 1;
        plan.input_tokens +=
            text::tokens(&question_text.system) + text::tokens(&question_text.text);
    }
    plan
}

/// Only the holder of the worker's lock may call this.
pub fn redo(home: &Home, config: &Config, events: Vec<Event>) -> anyhow::Result<Redone> {
    let store = service::memory_to_write(home)?;
    let mut deriver = Deriver::new(store, home, config);
    deriver.leash.lift();
    let batches = batches(events, config);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the runtime")?;
    let mut redone = Redone {
        batches: 0,
        events: 0,
    };
    let mut progress = Progress::steps("batches", batches.len() as u64);
    for (number, batch) in batches.iter().enumerate() {
        let next = batches.get(number + 1).and_then(|batch| batch.first());
        let turn_over = next.is_none_or(|event| event.kind == EventKind::Prompt);
        let derived = runtime.block_on(deriver.derive_again(batch, turn_over, home::now()));
        let so_far = format!(
            "{} of {} batches were done again",
            redone.batches,
            batches.len()
        );
        match derived {
            Ok(()) => {}
            Err(DeriveFailure::Storage(error)) => {
                return Err(error).with_context(|| format!("could not store; {so_far}"));
            }
            Err(DeriveFailure::Event(error)) => {
                bail!("{error}; {so_far}, the others are as they were")
            }
            Err(DeriveFailure::Paused(failure)) => {
                bail!("{}; {so_far}, the others are as they were", failure.text)
            }
        }
        redone.batches += 1;
        progress.set(redone.batches as u64);
        redone.events += batch.len();
    }
    Ok(redone)
}

/// Splits events into batches like the queue: one turn, of limited size. Offline derives from the
/// whole session at once.
fn batches(events: Vec<Event>, config: &Config) -> Vec<Vec<Event>> {
    let (events_max, bytes_max) = (
        config.worker.batch_max as usize,
        config.model.batch_max_tokens as usize * 4,
    );
    let size = |event: &Event| event.payload.json_bytes().min(question::EVENT_BYTES);
    let mut batches: Vec<Vec<Event>> = Vec::new();
    let mut bytes = 0;
    for event in events {
        bytes += size(&event);
        let goes_on = batches.last().is_some_and(|batch: &Vec<Event>| {
            let new_turn =
                event.kind == EventKind::Prompt && batch.iter().any(|it| it.kind.is_of_a_turn());
            batch.len() < events_max && bytes <= bytes_max && !new_turn
        });
        match batches.last_mut() {
            Some(batch) if goes_on => batch.push(event),
            _ => {
                bytes = size(&event);
                batches.push(vec![event]);
            }
        }
    }
    batches
}
