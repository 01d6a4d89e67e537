//! The work on one batch: derives observations and summaries from claimed events and stores them.
//!
//! Events that are already stored are left out, so that neither a crash between the two databases
//! nor a repeated hook stores anything twice. A model is asked if one was chosen and `leash` permits
//! it; else `offline` derives. A model sees each event once, while `offline` derives from whole
//! turns, because a later event can change the meaning of an earlier one.

use foreword_core::model::{Derived, Event, EventKind, FailureKind, Millis, Turn};
use foreword_core::queue::{Claim, Portion};
use foreword_core::store::ledger::Entry;
use foreword_core::store::{Batch, DerivedTurn, Digest, Replaces, Store};

use crate::agent::compress::{CompressError, Compressed, Compressor};
use crate::agent::leash::{Leash, Permission};
use crate::agent::prompts::Prompts;
use crate::agent::provider::{Failure, Model};
use crate::agent::question::{self, QuestionSubject};
use crate::config::Config;
use crate::config::provider::{self, Name};
use crate::home::{self, Home};
use crate::log::Log;
use crate::offline;

/// Why a batch was not stored. The worker treats each kind differently.
#[derive(Debug)]
pub enum DeriveFailure {
    /// The database cannot be written now; no event is to blame.
    Storage(rusqlite::Error),
    /// These events caused the failure.
    Event(String),
    /// The model cannot be asked now; no event is to blame.
    Paused(Failure),
}

/// After this many tool uses a turn is summed up before it stops.
const CHECKPOINT: usize = 80;

/// The limits of texts are divided by this if a question about one event is too long.
const HARDER: usize = 4;

pub struct Deriver {
    pub store: Store,
    pub leash: Leash,
    /// Returns the time; tests replace it.
    pub clock: fn() -> Millis,
    compressor: Option<Compressor>,
    batch_max: u32,
    batch_bytes: usize,
}

impl Deriver {
    pub fn new(store: Store, home: &Home, config: &Config) -> Deriver {
        let name = provider::choose(config, home).name;
        let compressor = Model::new(name, config, home).map(|model| {
            let prompts = Prompts::load(&home.prompts());
            for problem in &prompts.problems {
                Log::Worker.line(home, problem);
            }
            Compressor {
                provider: name.as_str(),
                model,
                prompts,
                settings: config.model.clone(),
            }
        });
        Deriver {
            store,
            leash: Leash::new(name, config),
            clock: home::now,
            compressor,
            batch_max: config.worker.batch_max,
            batch_bytes: config.model.batch_max_tokens as usize * 4,
        }
    }

    /// Replaces the model of the settings.
    #[cfg(test)]
    pub fn ask_instead(&mut self, model: Model) {
        let compressor = self.compressor.as_mut();
        compressor.expect("the settings name a model").model = model;
    }

    /// The size of the next batch. `limit` is its largest number of events, if a batch failed before.
    pub fn portion(&self, limit: Option<u32>) -> Portion {
        if self.compressor.is_none() {
            return Portion::ALL;
        }
        Portion {
            events: limit
                .unwrap_or(self.batch_max)
                .clamp(1, self.batch_max.max(1)),
            bytes: self.batch_bytes,
            event_bytes: question::EVENT_BYTES,
            one_turn: true,
        }
    }

    /// Whether a batch that failed can be tried in smaller parts.
    pub fn splits(&self) -> bool {
        self.compressor.is_some()
    }

    pub async fn derive(&mut self, claim: &Claim, now: Millis) -> Result<(), DeriveFailure> {
        let mut new = Vec::new();
        for event in &claim.events {
            if !self.store.knows(event).map_err(failure)? {
                new.push(event.clone());
            }
        }
        let Some(first) = new.first() else {
            return Ok(());
        };
        let (derived_turns, replaces, provider) = match &self.compressor {
            None => (
                derive_offline(&self.store, &new)?,
                Replaces::Turns,
                Name::Offline,
            ),
            Some(_) if !has_content(&new, claim.turn_over) => {
                let derived_turns = plain_summaries(&self.store, &new, &[])?;
                (derived_turns, Replaces::Nothing, self.leash.provider)
            }
            Some(_) => match self
                .leash
                .may_ask(&self.store, first, now)
                .map_err(failure)?
            {
                Permission::Ask => {
                    let derived_turns = self.ask(&new, claim.turn_over, Millis::MAX).await?;
                    (derived_turns, Replaces::Nothing, self.leash.provider)
                }
                Permission::StandIn(why) => {
                    self.note_stand_in(&new, &why, now)?;
                    (
                        derive_offline(&self.store, &new)?,
                        Replaces::Turns,
                        Name::Offline,
                    )
                }
            },
        };
        self.store
            .commit(&Batch {
                events: &new,
                turns: &derived_turns,
                replaces,
                digest: None,
                provider: provider.as_str(),
                now,
            })
            .map_err(failure)
    }

    /// Derives again from stored events, and replaces the items that were derived from them before.
    pub async fn derive_again(
        &mut self,
        events: &[Event],
        turn_over: bool,
        now: Millis,
    ) -> Result<(), DeriveFailure> {
        let Some(first) = events.first() else {
            return Ok(());
        };
        let (derived_turns, provider) = if self.compressor.is_none() {
            (derive_offline_again(&self.store, events)?, Name::Offline)
        } else if has_content(events, turn_over) {
            if let Permission::StandIn(why) = self
                .leash
                .may_ask(&self.store, first, now)
                .map_err(failure)?
            {
                let failure = Failure::new(FailureKind::Billing, why);
                return Err(DeriveFailure::Paused(failure));
            }
            let derived_turns = self.ask(events, turn_over, first.at).await?;
            (derived_turns, self.leash.provider)
        } else {
            return Ok(());
        };
        self.store
            .commit(&Batch {
                events,
                turns: &derived_turns,
                replaces: Replaces::Events,
                digest: None,
                provider: provider.as_str(),
                now,
            })
            .map_err(failure)
    }

    /// Has the model derive from events, given the session before a time.
    async fn ask(
        &mut self,
        events: &[Event],
        turn_over: bool,
        before: Millis,
    ) -> Result<Vec<DerivedTurn>, DeriveFailure> {
        let Some(last) = events.last() else {
            return Ok(Vec::new());
        };
        let digest = self
            .store
            .digest(&last.host, &last.host_session_id, before)
            .map_err(failure)?;
        let turns = self.store.turns(events).map_err(failure)?;
        let none = Turn {
            prompt_id: None,
            events: events.to_vec(),
        };
        let turn = turns.last().unwrap_or(&none);
        let mut subject = QuestionSubject {
            events,
            turn,
            digest: &digest,
            sum_up: turn_over || has_stopped(events) || is_long(turn, &digest),
            cut: 1,
        };
        let mut compressed = self.compress(&subject).await;
        if let Err(CompressError::Failure(failed)) = &compressed
            && failed.kind == FailureKind::TooLong
            && events.len() == 1
        {
            subject.cut = HARDER;
            compressed = self.compress(&subject).await;
        }
        match compressed {
            Ok(compressed) => {
                let mut derived_turns = by_turn(&turns, compressed);
                derived_turns.extend(plain_summaries(&self.store, events, &derived_turns)?);
                Ok(derived_turns)
            }
            Err(CompressError::Storage(error)) => Err(failure(error)),
            Err(CompressError::Paused(failed)) => Err(DeriveFailure::Paused(failed)),
            Err(CompressError::Failure(failed)) => Err(DeriveFailure::Event(failed.text)),
        }
    }

    async fn compress(
        &mut self,
        subject: &QuestionSubject<'_>,
    ) -> Result<Compressed, CompressError> {
        let compressor = self
            .compressor
            .as_mut()
            .expect("only a deriver with a model asks");
        let (leash, store, clock) = (&self.leash, &self.store, self.clock);
        let compressed = compressor
            .compress(store, subject, clock, |failure| {
                leash.pause_after(store, failure, clock())
            })
            .await;
        self.leash.tighten();
        compressed
    }

    fn note_stand_in(&self, events: &[Event], why: &str, now: Millis) -> Result<(), DeriveFailure> {
        let Some(first) = events.first() else {
            return Ok(());
        };
        let entry = Entry {
            at: now,
            provider: Name::Offline.as_str(),
            host_session_id: &first.host_session_id,
            events: events.len(),
            raw_tokens: question::raw_tokens(events),
        };
        self.store.stood_in(&entry, why).map_err(failure)
    }
}

/// Whether there is anything in these events to ask a model about. A prompt alone is not asked
/// about: it is part of the question about the work that follows.
pub fn has_content(events: &[Event], turn_over: bool) -> bool {
    events.iter().any(|event| match event.kind {
        EventKind::ToolUse | EventKind::ToolFailure => true,
        EventKind::Stop | EventKind::StopFailure | EventKind::Refusal => true,
        EventKind::Prompt => turn_over,
        EventKind::Notification
        | EventKind::Words
        | EventKind::SessionStart
        | EventKind::SessionEnd
        | EventKind::Receipt => false,
    })
}

fn has_stopped(events: &[Event]) -> bool {
    let mut turn = events
        .iter()
        .rev()
        .filter(|event| event.kind.is_of_a_turn());
    turn.next()
        .is_some_and(|event| matches!(event.kind, EventKind::Stop | EventKind::StopFailure))
}

/// Whether a turn has had `CHECKPOINT` tool uses since a model last summed it up.
fn is_long(turn: &Turn, digest: &Digest) -> bool {
    let summed_up_at = summed_up_at(turn, digest).unwrap_or(0);
    let since = turn.events.iter().filter(|it| it.at > summed_up_at);
    since.filter(|it| question::is_tool(it)).count() >= CHECKPOINT
}

fn summed_up_at(turn: &Turn, digest: &Digest) -> Option<Millis> {
    let prompts = &digest.prompts;
    let mut same = prompts
        .iter()
        .filter(|it| it.host_prompt_id == turn.prompt_id);
    same.next()?.summed_up_at
}

/// Assigns each observation to the turn of the first event that it cites, and the summary to the
/// last turn.
fn by_turn(turns: &[Turn], compressed: Compressed) -> Vec<DerivedTurn> {
    let Compressed {
        derived,
        provenance,
    } = compressed;
    let mut derived_turns: Vec<DerivedTurn> = turns
        .iter()
        .map(|turn| DerivedTurn {
            turn: turn.clone(),
            derived: Derived::default(),
            provenance: provenance.clone(),
        })
        .collect();
    let Some(last) = derived_turns.len().checked_sub(1) else {
        return derived_turns;
    };
    for observation in derived.observations {
        let at = turns.iter().position(|turn| {
            let first = observation.events.first();
            turn.events.iter().any(|event| Some(&event.id) == first)
        });
        derived_turns[at.unwrap_or(last)]
            .derived
            .observations
            .push(observation);
    }
    derived_turns[last].derived.summary = derived.summary;
    derived_turns
}

/// Derives from new events offline. Items that models derived from the session stay.
fn derive_offline(store: &Store, new: &[Event]) -> Result<Vec<DerivedTurn>, DeriveFailure> {
    let Some(first) = new.first() else {
        return Ok(Vec::new());
    };
    let session = store.recent_turns(new).map_err(failure)?;
    let by_models = store
        .taken_in_by_models(&first.host, &first.host_session_id)
        .map_err(failure)?;
    let digest = store
        .digest(&first.host, &first.host_session_id, Millis::MAX)
        .map_err(failure)?;
    let mut derived_turns = derive_session(session, new)?;
    for DerivedTurn { turn, derived, .. } in &mut derived_turns {
        derived.observations.retain(|it| {
            it.events.is_empty() || !it.events.iter().all(|event| by_models.contains(event))
        });
        let goes_on = turn
            .events
            .iter()
            .any(|it| new.iter().any(|new| new.id == it.id));
        let says_what_was_done = derived
            .summary
            .as_ref()
            .is_some_and(|it| !it.completed.is_empty());
        if summed_up_at(turn, &digest).is_some() && !(goes_on && says_what_was_done) {
            derived.summary = None;
        }
    }
    Ok(derived_turns)
}

/// Derives offline from stored events, and replaces also the items of models.
fn derive_offline_again(
    store: &Store,
    events: &[Event],
) -> Result<Vec<DerivedTurn>, DeriveFailure> {
    let session = store.recent_turns(events).map_err(failure)?;
    let after = offline_derive(&session)?;
    let derived_turns = session.into_iter().zip(after);
    let again = |turn: &Turn| {
        turn.events
            .iter()
            .any(|it| events.iter().any(|again| again.id == it.id))
    };
    Ok(derived_turns
        .filter(|(turn, _)| again(turn))
        .map(|(turn, derived)| DerivedTurn::offline(turn, derived))
        .collect())
}

/// Offline summaries for turns that no model has summed up yet. A model's summary stays until a model
/// writes another, also while a turn is done again in parts.
fn plain_summaries(
    store: &Store,
    new: &[Event],
    derived_turns: &[DerivedTurn],
) -> Result<Vec<DerivedTurn>, DeriveFailure> {
    let Some(first) = new.first() else {
        return Ok(Vec::new());
    };
    let digest = store
        .digest(&first.host, &first.host_session_id, Millis::MAX)
        .map_err(failure)?;
    let session = store.recent_turns(new).map_err(failure)?;
    let derived = offline_derive(&session)?;
    let is_new = |turn: &Turn| {
        turn.events
            .iter()
            .any(|it| new.iter().any(|new| new.id == it.id))
    };
    let summed_up = |turn: &Turn| {
        let now = derived_turns
            .iter()
            .any(|it| it.turn.prompt_id == turn.prompt_id && it.derived.summary.is_some());
        now || summed_up_at(turn, &digest).is_some()
    };
    Ok(session
        .into_iter()
        .zip(derived)
        .filter(|(turn, _)| is_new(turn) && !summed_up(turn))
        .map(|(turn, derived)| {
            let summary = Derived {
                observations: Vec::new(),
                summary: derived.summary,
            };
            DerivedTurn::offline(turn, summary)
        })
        .collect())
}

/// The turns with new events, and the earlier turns whose items change through these.
fn derive_session(session: Vec<Turn>, new: &[Event]) -> Result<Vec<DerivedTurn>, DeriveFailure> {
    let is_new = |event: &Event| new.iter().any(|it| it.id == event.id);
    let known: Vec<Turn> = session
        .iter()
        .map(|turn| Turn {
            prompt_id: turn.prompt_id.clone(),
            events: turn
                .events
                .iter()
                .filter(|it| !is_new(it))
                .cloned()
                .collect(),
        })
        .collect();
    let (before, after) = (offline_derive(&known)?, offline_derive(&session)?);
    let turns = session.into_iter().zip(after).zip(before);
    Ok(turns
        .filter(|((turn, after), before)| turn.events.iter().any(is_new) || after != before)
        .map(|((turn, derived), _)| DerivedTurn::offline(turn, derived))
        .collect())
}

/// Derives offline. A panic in it fails the batch and not the worker.
fn offline_derive(session: &[Turn]) -> Result<Vec<Derived>, DeriveFailure> {
    std::panic::catch_unwind(|| offline::derive(session).turns)
        .map_err(|_| DeriveFailure::Event("the offline provider panicked".to_owned()))
}

/// A broken constraint is the batch's failure; others, such as a full disk, are the storage's.
fn failure(error: rusqlite::Error) -> DeriveFailure {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        | None => DeriveFailure::Event(error.to_string()),
        Some(_) => DeriveFailure::Storage(error),
    }
}
