//! The work on one batch: from claimed events to what is stored of them.
//!
//! Events that were taken in before are left out here, so that neither a crash
//! between the two databases nor a hook fired again makes anything twice. A model is
//! asked if one was chosen, its budget is not used up and it can be reached (`leash`
//! says so); else `offline` derives. A model sees each event once, while `offline` looks
//! at whole turns, since a later one can change what an earlier one seemed to be.

use foreword_core::model::{Derived, Event, EventKind, FailureKind, Millis, Turn};
use foreword_core::queue::{Claim, Portion};
use foreword_core::store::ledger::Entry;
use foreword_core::store::{Batch, DerivedTurn, Digest, Replaces, Store};

use crate::agent::compress::{Compressed, Compressor, Trouble};
use crate::agent::leash::{Leash, Word};
use crate::agent::prompts::Prompts;
use crate::agent::provider::Failure as ProviderFailure;
use crate::agent::provider::Model;
use crate::agent::question::{self, Subject};
use crate::config::Config;
use crate::config::provider::{self, Name};
use crate::home::{self, Home};
use crate::log::Log;
use crate::offline;

/// Why a batch was not stored, by what is to be done about it.
#[derive(Debug)]
pub enum Failure {
    /// The database cannot be written now; no event is to blame.
    Storage(rusqlite::Error),
    /// Something about these events.
    Event(String),
    /// The model cannot be asked now; no event is to blame.
    Paused(ProviderFailure),
}

/// So many tool uses of one turn are summed up on the way, before it stops.
const CHECKPOINT: usize = 80;

/// Where a question is too long although it is about one event, its texts are cut so much harder.
const HARDER: usize = 4;

pub struct Deriver {
    pub store: Store,
    pub leash: Leash,
    /// The time now; tests have their own.
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

    /// Has this model asked in the place of the one that the settings name.
    #[cfg(test)]
    pub fn ask_instead(&mut self, model: Model) {
        let compressor = self.compressor.as_mut();
        compressor.expect("the settings name a model").model = model;
    }

    /// How much goes into one batch, if it is to have at most so many events.
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

    pub async fn derive(&mut self, claim: &Claim, now: Millis) -> Result<(), Failure> {
        let mut new = Vec::new();
        for event in &claim.events {
            if !self.store.knows(event).map_err(failure)? {
                new.push(event.clone());
            }
        }
        let Some(first) = new.first() else {
            return Ok(());
        };
        let (told, replaces, provider) = match &self.compressor {
            None => (
                offline_told(&self.store, &new)?,
                Replaces::Turns,
                Name::Offline,
            ),
            Some(_) if !says_something(&new, claim.turn_over) => {
                let told = floor_beside(&self.store, &new, &[])?;
                (told, Replaces::Nothing, self.leash.provider)
            }
            Some(_) => match self.leash.word(&self.store, first, now).map_err(failure)? {
                Word::Ask => {
                    let told = self.ask(&new, claim.turn_over, Millis::MAX).await?;
                    (told, Replaces::Nothing, self.leash.provider)
                }
                Word::StandIn(why) => {
                    self.note_stand_in(&new, &why, now)?;
                    (
                        offline_told(&self.store, &new)?,
                        Replaces::Turns,
                        Name::Offline,
                    )
                }
            },
        };
        self.store
            .commit(&Batch {
                events: &new,
                turns: &told,
                replaces,
                provider: provider.as_str(),
                now,
            })
            .map_err(failure)
    }

    /// Derives from events again that were taken in before, and replaces what came of them.
    pub async fn derive_again(
        &mut self,
        events: &[Event],
        turn_over: bool,
        now: Millis,
    ) -> Result<(), Failure> {
        let Some(first) = events.first() else {
            return Ok(());
        };
        let (told, provider) = if self.compressor.is_none() {
            (offline_again(&self.store, events)?, Name::Offline)
        } else if says_something(events, turn_over) {
            if let Word::StandIn(why) = self.leash.word(&self.store, first, now).map_err(failure)? {
                let failure = ProviderFailure::new(FailureKind::Billing, why);
                return Err(Failure::Paused(failure));
            }
            let told = self.ask(events, turn_over, first.at).await?;
            (told, self.leash.provider)
        } else {
            return Ok(());
        };
        self.store
            .commit(&Batch {
                events,
                turns: &told,
                replaces: Replaces::Events,
                provider: provider.as_str(),
                now,
            })
            .map_err(failure)
    }

    /// What a model makes of events, given what is known of the session before a time.
    async fn ask(
        &mut self,
        events: &[Event],
        turn_over: bool,
        before: Millis,
    ) -> Result<Vec<DerivedTurn>, Failure> {
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
        let mut subject = Subject {
            events,
            turn,
            digest: &digest,
            sum_up: turn_over || has_stopped(events) || is_long(turn, &digest),
            cut: 1,
        };
        let mut compressed = self.compress(&subject).await;
        if let Err(Trouble::Failure(failed)) = &compressed
            && failed.kind == FailureKind::TooLong
            && events.len() == 1
        {
            subject.cut = HARDER;
            compressed = self.compress(&subject).await;
        }
        match compressed {
            Ok(compressed) => {
                let mut told = by_turn(&turns, compressed);
                told.extend(floor_beside(&self.store, events, &told)?);
                Ok(told)
            }
            Err(Trouble::Storage(error)) => Err(failure(error)),
            Err(Trouble::Paused(failed)) => Err(Failure::Paused(failed)),
            Err(Trouble::Failure(failed)) => Err(Failure::Event(failed.text)),
        }
    }

    async fn compress(&mut self, subject: &Subject<'_>) -> Result<Compressed, Trouble> {
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

    fn note_stand_in(&self, events: &[Event], why: &str, now: Millis) -> Result<(), Failure> {
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

/// Whether there is anything in these events to ask a model about. A prompt alone says what
/// is wanted, and comes again with what was done about it.
pub fn says_something(events: &[Event], turn_over: bool) -> bool {
    events.iter().any(|event| match event.kind {
        EventKind::ToolUse | EventKind::ToolFailure => true,
        EventKind::Stop | EventKind::StopFailure => true,
        EventKind::Prompt => turn_over,
        EventKind::Notification
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

/// So much has happened in a turn since a model last summed it up that it is time again.
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

/// Puts each observation with the turn that the first event it rests on belongs to; the
/// summary is of the last one.
fn by_turn(turns: &[Turn], compressed: Compressed) -> Vec<DerivedTurn> {
    let Compressed {
        derived,
        provenance,
    } = compressed;
    let mut told: Vec<DerivedTurn> = turns
        .iter()
        .map(|turn| DerivedTurn {
            turn: turn.clone(),
            derived: Derived::default(),
            provenance: provenance.clone(),
        })
        .collect();
    let Some(last) = told.len().checked_sub(1) else {
        return told;
    };
    for observation in derived.observations {
        let at = turns.iter().position(|turn| {
            let first = observation.events.first();
            turn.events.iter().any(|event| Some(&event.id) == first)
        });
        told[at.unwrap_or(last)]
            .derived
            .observations
            .push(observation);
    }
    told[last].derived.summary = derived.summary;
    told
}

/// What `offline` says of events, beside whatever models have told of the session.
fn offline_told(store: &Store, new: &[Event]) -> Result<Vec<DerivedTurn>, Failure> {
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
    let mut told = derive_session(session, new)?;
    for DerivedTurn { turn, derived, .. } in &mut told {
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
    Ok(told)
}

/// The same of events that were taken in before, whoever told of them then.
fn offline_again(store: &Store, events: &[Event]) -> Result<Vec<DerivedTurn>, Failure> {
    let session = store.recent_turns(events).map_err(failure)?;
    let after = offline_derive(&session)?;
    let told = session.into_iter().zip(after);
    let again = |turn: &Turn| {
        turn.events
            .iter()
            .any(|it| events.iter().any(|again| again.id == it.id))
    };
    Ok(told
        .filter(|(turn, _)| again(turn))
        .map(|(turn, derived)| DerivedTurn::offline(turn, derived))
        .collect())
}

/// Every turn has a summary, if only a plain one, until a model sums it up. What a model
/// wrote stays until a model writes another: also while a turn is done again in parts.
fn floor_beside(
    store: &Store,
    new: &[Event],
    told: &[DerivedTurn],
) -> Result<Vec<DerivedTurn>, Failure> {
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
        let now = told
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

/// The turns that have new events, and the earlier ones that these put in another light.
fn derive_session(session: Vec<Turn>, new: &[Event]) -> Result<Vec<DerivedTurn>, Failure> {
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

/// A defect in the extractor must cost one batch, not the worker.
fn offline_derive(session: &[Turn]) -> Result<Vec<Derived>, Failure> {
    std::panic::catch_unwind(|| offline::derive(session))
        .map_err(|_| Failure::Event("the offline provider panicked".to_owned()))
}

/// A full disk or a busy file is nobody's fault; a broken rule is the batch's.
fn failure(error: rusqlite::Error) -> Failure {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        | None => Failure::Event(error.to_string()),
        Some(_) => Failure::Storage(error),
    }
}
