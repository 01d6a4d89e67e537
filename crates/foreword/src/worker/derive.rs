//! The work on one batch: derives observations and summaries from claimed events and stores them.
//!
//! Events that are already stored are left out, so that neither a crash between the two databases
//! nor a repeated hook stores anything twice. A model is asked if one was chosen and `leash` permits
//! it; else `offline` derives. A model sees each event once, while `offline` derives from whole
//! turns, because a later event can change the meaning of an earlier one. Of a turn in which nothing
//! happened only the prompt is kept. `converse` handles the conversation that questions go into.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use foreword_core::capture;
use foreword_core::ledger::{Entry, TurnTrouble};
use foreword_core::model::{
    Derived, Event, EventKind, FailureKind, Mark, Millis, SessionDigest, Turn,
};
use foreword_core::project;
use foreword_core::queue::{Claim, Portion};
use foreword_core::recall::digest::{Digest, KnownTurns};
use foreword_core::redact;
use foreword_core::store::{
    Batch, DerivedTurn, HostSession, RecentTurns, Replaces, ShownObservation, Store,
};
use uuid::Uuid;

use crate::agent::budget::Budget;
use crate::agent::compress::{CompressError, Compressed, Compressor};
use crate::agent::leash::{Leash, Permission};
use crate::agent::prompts::Prompts;
use crate::agent::provider::{Failure, Model};
use crate::agent::question::{self, QuestionSubject};
use crate::agent::repair::files::relative;
use crate::config::Config;
use crate::config::policy::{Policy, ProjectPolicy};
use crate::config::provider::{self, Name};
use crate::home::{self, Home};
use crate::log::Log;
use crate::offline::{self, DerivedSession, LaterTurns};

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

/// What was derived from a batch.
struct DerivedBatch {
    turns: Vec<DerivedTurn>,
    digest: Option<SessionDigest>,
    replaces: Replaces,
    provider: Name,
}

/// After this many tool uses a turn is summed up before it stops.
const CHECKPOINT: usize = 80;

/// After this many failed calls about a turn, it is derived offline. The ledger has them, so that they
/// count for the next worker, too.
const CALLS_MAX: u32 = 3;

pub struct Deriver {
    pub store: Store,
    pub leash: Leash,
    /// Returns the time; tests replace it.
    pub clock: fn() -> Millis,
    pub(super) compressor: Option<Compressor>,
    /// Whether the questions about a session share a conversation.
    pub(super) converses: bool,
    batch_max: u32,
    batch_bytes: usize,
    /// The user's restrictions for single projects.
    projects: BTreeMap<String, Policy>,
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
                asked_model: name.model(config).to_owned(),
                model,
                prompts,
                settings: config.model.clone(),
                budget: Budget::new(name, config),
                conversation: None,
            }
        });
        let setting = config.model.conversation;
        let converses = |it: &Compressor| it.model.converses(setting);
        let converses = compressor.as_ref().is_some_and(converses);
        Deriver {
            store,
            leash: Leash::new(name, config),
            clock: home::now,
            compressor,
            converses,
            batch_max: config.worker.batch_max,
            batch_bytes: config.model.batch_max_tokens as usize * 4,
            projects: config.projects.clone(),
        }
    }

    /// Replaces the model of the settings.
    #[cfg(test)]
    pub fn ask_instead(&mut self, model: Model) {
        self.compressor().model = model;
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

    pub async fn derive(&mut self, claim: &Claim, now: Millis) -> Result<(), DeriveFailure> {
        let mut new = Vec::new();
        for event in &claim.events {
            if !self.store.knows(event).map_err(failure)? {
                // The hook had time for the fast stage only.
                let mut event = event.clone();
                redact::event(&mut event);
                new.push(event);
            }
        }
        let Some(first) = new.first() else {
            return Ok(());
        };
        let session = session_of(first);
        let batch = match &self.compressor {
            None => derive_offline(&self.store, &new),
            Some(_) if self.forbids_models(&new) => derive_offline(&self.store, &new),
            Some(_) if !has_content(&new, claim.turn_over) || is_small(&new)? => {
                plain_summaries(&self.store, &new, Vec::new(), None, self.leash.provider)
            }
            Some(_) => match self
                .leash
                .may_ask(&self.store, &session.id, now)
                .map_err(failure)?
            {
                Permission::Ask => {
                    self.ask_or_stand_in(&session, &new, claim.turn_over, now)
                        .await
                }
                Permission::StandIn(why) => self.stand_in(&new, &why, now),
            },
        };
        let stored = batch.and_then(|batch| self.commit(&new, &batch, now));
        self.settle(&session, &stored).await?;
        stored
    }

    /// Whether events must not be sent to a model, because of the policy of their project.
    fn forbids_models(&self, events: &[Event]) -> bool {
        let forbids = |it: &Event| ProjectPolicy::of_event(it, &self.projects).forbids_models();
        // Events of one session mostly have the same root; each root is looked at once.
        let mut roots = BTreeSet::new();
        let mut events = events
            .iter()
            .filter(|it| roots.insert((&it.root, &it.project)));
        events.any(forbids)
    }

    /// Whether a session must not be sent to a model, because of the policy of its project.
    pub(super) fn forbids_models_in(&self, session: &HostSession) -> Result<bool, DeriveFailure> {
        let Some(root) = self.store.session_root(session).map_err(failure)? else {
            return Ok(false);
        };
        let project = project::resolve(&root, &home::project_rules(false)).project;
        let policy = ProjectPolicy::of(Some(&root), project.as_deref(), &self.projects);
        Ok(policy.forbids_models())
    }

    /// Has the model derive, or `offline` if the model has failed on this turn too often.
    async fn ask_or_stand_in(
        &mut self,
        session: &HostSession,
        events: &[Event],
        turn_over: bool,
        now: Millis,
    ) -> Result<DerivedBatch, DeriveFailure> {
        let name = self.leash.provider.as_str();
        let calls = self.calls_left(session, events)?;
        if calls == 0 {
            let why = format!("the answers of {name} about this turn could not be used");
            return self.stand_in(events, &why, now);
        }
        self.converse(session, now).await?;
        let why = match self.ask(events, turn_over, calls, Millis::MAX).await {
            Ok(Ok(derived)) => return Ok(derived),
            // A budget has no room for the call.
            Ok(Err(failed)) if failed.kind == FailureKind::Billing => failed.text,
            Ok(Err(unusable)) => {
                self.end_conversation().await;
                format!("{name} gave no answer that can be used: {}", unusable.text)
            }
            Err(DeriveFailure::Paused(failed)) => {
                if self.calls_left(session, events)? > 0 {
                    return Err(DeriveFailure::Paused(failed));
                }
                failed.text
            }
            Err(failed) => return Err(failed),
        };
        self.stand_in(events, &why, now)
    }

    /// How many further calls may be made about the turn of these events. None after a part of it was
    /// derived offline because calls failed.
    fn calls_left(&self, session: &HostSession, events: &[Event]) -> Result<u32, DeriveFailure> {
        let turn = question::turn_name(events);
        let provider = self.leash.provider.as_str();
        let trouble = self.store.turn_trouble(provider, &session.id, turn);
        Ok(match trouble.map_err(failure)? {
            TurnTrouble {
                failed: 1..,
                stood_in: true,
            } => 0,
            TurnTrouble { failed, .. } => CALLS_MAX.saturating_sub(failed),
        })
    }

    fn stand_in(
        &self,
        events: &[Event],
        why: &str,
        now: Millis,
    ) -> Result<DerivedBatch, DeriveFailure> {
        let session = events.first().map_or("", |it| &it.host_session_id);
        self.note_stand_in(session, events, why, now)?;
        derive_offline(&self.store, events)
    }

    fn commit(
        &mut self,
        events: &[Event],
        batch: &DerivedBatch,
        now: Millis,
    ) -> Result<(), DeriveFailure> {
        self.store
            .commit(&Batch {
                events,
                turns: &batch.turns,
                replaces: batch.replaces,
                digest: batch.digest.as_ref(),
                provider: batch.provider.as_str(),
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
        let mut batch = if self.compressor.is_none() || self.forbids_models(events) {
            derive_offline_again(&self.store, events)?
        } else if has_content(events, turn_over) {
            if let Permission::StandIn(why) = self
                .leash
                .may_ask(&self.store, &first.host_session_id, now)
                .map_err(failure)?
            {
                let failure = Failure::new(FailureKind::Billing, why);
                return Err(DeriveFailure::Paused(failure));
            }
            let asked = self.ask(events, turn_over, CALLS_MAX, first.at).await?;
            asked.map_err(|failed| match failed.kind {
                FailureKind::Billing => DeriveFailure::Paused(failed),
                _ => DeriveFailure::Event(failed.text),
            })?
        } else {
            return Ok(());
        };
        batch.replaces = Replaces::Events;
        self.commit(events, &batch, now)
    }

    /// Has the model derive from events, given the session before a time, by at most this many calls.
    /// The inner failure is that of answers that could not be used or, of the kind `Billing`, that a
    /// budget has no room for the call.
    async fn ask(
        &mut self,
        events: &[Event],
        turn_over: bool,
        calls: u32,
        before: Millis,
    ) -> Result<Result<DerivedBatch, Failure>, DeriveFailure> {
        let provider = self.leash.provider;
        let Some(last) = events.last() else {
            return plain_summaries(&self.store, events, Vec::new(), None, provider).map(Ok);
        };
        let (session, files) = (session_of(last), files_of(events));
        let store = &self.store;
        let mut digest = store
            .digest(&session.host, &session.id, before)
            .map_err(failure)?;
        digest.older = store
            .older_about(events, &files, provider.as_str(), before)
            .map_err(failure)?;
        if let Some(conversation) = &self.compressor().conversation {
            // The model saw these earlier in the conversation. Of the observations it is shown those
            // whose numbers it does not know yet: mostly those of its last answer.
            let is_new = |it: &ShownObservation| !conversation.shown.contains(&it.id);
            digest.observations.retain(is_new);
            digest.older.retain(is_new);
            (digest.completed, digest.task) = (None, None);
        }
        let turns = self.store.turns(events).map_err(failure)?;
        let none = Turn {
            prompt_id: None,
            events: events.to_vec(),
        };
        let turn = turns.last().unwrap_or(&none);
        let subject = QuestionSubject {
            events,
            turn,
            digest: &digest,
            sum_up: has_happened(turn)
                && (turn_over || has_stopped(events) || is_long(turn, &digest)),
            cut: 1,
        };
        let mut compressed = self.compress(&subject, calls).await;
        if let Err(CompressError::Failure(failed)) = &compressed
            && calls > 1
            && self.begin_again(&session, failed).await?
        {
            compressed = self.compress(&subject, calls - 1).await;
        }
        match compressed {
            Ok(mut compressed) => {
                if compressed.nothing && compressed.derived.observations.is_empty() {
                    // The summary of a turn of several batches can rest on an earlier one.
                    let known = known_turns(&self.store, events)?;
                    let observed = known.observed.contains(&turn.prompt_id);
                    compressed.derived.summary.take_if(|_| !observed);
                }
                let lacks = subject.sum_up && compressed.derived.summary.is_none();
                let lacks = (lacks && !compressed.nothing).then_some(turn);
                let derived_turns = by_turn(&turns, compressed);
                plain_summaries(&self.store, events, derived_turns, lacks, provider).map(Ok)
            }
            Err(CompressError::Storage(error)) => Err(failure(error)),
            Err(CompressError::Paused(failed)) => Err(DeriveFailure::Paused(failed)),
            Err(CompressError::Failure(unusable)) => Ok(Err(unusable)),
            Err(CompressError::OverBudget(why)) => Ok(Err(Failure::new(FailureKind::Billing, why))),
        }
    }

    /// The model, for functions that are called only if there is one.
    pub(super) fn compressor(&mut self) -> &mut Compressor {
        let compressor = self.compressor.as_mut();
        compressor.expect("only a deriver with a model asks")
    }

    async fn compress(
        &mut self,
        subject: &QuestionSubject<'_>,
        calls: u32,
    ) -> Result<Compressed, CompressError> {
        let compressor = self.compressor.as_mut().expect("there is a model");
        let (leash, store, clock) = (&self.leash, &self.store, self.clock);
        let compressed = compressor
            .compress(store, subject, calls, clock, |failure| {
                leash.pause_after(store, failure, clock())
            })
            .await;
        self.leash.tighten();
        compressed
    }

    pub(super) fn note_stand_in(
        &self,
        host_session_id: &str,
        events: &[Event],
        why: &str,
        now: Millis,
    ) -> Result<(), DeriveFailure> {
        let entry = Entry {
            at: now,
            provider: Name::Offline.as_str(),
            model: "",
            host_session_id,
            turn: (!events.is_empty()).then(|| question::turn_name(events)),
            events: events.len(),
            raw_tokens: question::raw_tokens(events),
        };
        self.store.stood_in(&entry, why).map_err(failure)
    }
}

/// The files that events are about, relative to their working tree.
fn files_of(events: &[Event]) -> Vec<String> {
    let files = events.iter().flat_map(|event| {
        let root = event.root.as_deref();
        event.files.iter().map(move |it| relative(&it.path, root))
    });
    let files: BTreeSet<String> = files.collect();
    files.into_iter().collect()
}

fn session_of(event: &Event) -> HostSession {
    HostSession {
        host: event.host.clone(),
        id: event.host_session_id.clone(),
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

/// Whether events are a whole turn of a few words ("yes", "thanks") from which `offline` derives no
/// observation. They are stored without asking; the question about the next turn begins with them.
fn is_small(events: &[Event]) -> Result<bool, DeriveFailure> {
    let texts = events.iter().flat_map(|event| {
        let payload = &event.payload;
        payload.prompt.iter().chain(&payload.reply)
    });
    let is_talk = |it: &Event| {
        let kind = it.kind;
        !question::is_tool(it) && !matches!(kind, EventKind::Refusal | EventKind::StopFailure)
    };
    let is_whole = events.iter().any(|it| it.kind == EventKind::Prompt);
    let is_short = texts.map(String::len).sum::<usize>() <= question::SMALL;
    if !(is_whole && is_short && events.iter().all(is_talk)) {
        return Ok(false);
    }
    let turn = Turn {
        prompt_id: events.first().and_then(|it| it.prompt_id.clone()),
        events: events.to_vec(),
    };
    let derived = offline_derive(&[turn])?;
    Ok(derived.turns.iter().all(|it| it.observations.is_empty()))
}

/// Whether a turn has more than a question and its answer, so that there can be something to sum up.
fn has_happened(turn: &Turn) -> bool {
    let mut events = turn.events.iter();
    events.any(|it| question::is_tool(it) || it.kind == EventKind::Refusal)
}

fn has_stopped(events: &[Event]) -> bool {
    let mut turn = events
        .iter()
        .rev()
        .filter(|event| event.kind.is_of_a_turn());
    turn.next().is_some_and(stops)
}

fn stops(event: &Event) -> bool {
    matches!(event.kind, EventKind::Stop | EventKind::StopFailure)
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

/// Assigns each observation to the turn of the first event that it cites, and the summary and the
/// marks to the last turn.
fn by_turn(turns: &[Turn], compressed: Compressed) -> Vec<DerivedTurn> {
    let Compressed {
        derived,
        provenance,
        ..
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
    derived_turns[last].derived.marks = derived.marks;
    derived_turns
}

/// Derives from new events offline. Items that models derived from the session stay. Earlier turns
/// are derived from again, since new events can change what they meant.
fn derive_offline(store: &Store, new: &[Event]) -> Result<DerivedBatch, DeriveFailure> {
    let mut recent = store.recent_turns(new).map_err(failure)?;
    let by_agent = take_remembered(&mut recent.turns);
    let DerivedSession { mut turns, digest } = offline_derive(&recent.turns)?;
    leave_to_agent(&mut turns, by_agent);
    mark_reversals(store, &recent.turns, &mut turns)?;
    let observations = turns.iter().flat_map(|it| &it.observations);
    let cited: HashSet<Uuid> = observations.flat_map(|it| it.events.clone()).collect();
    let by_models = store.taken_in_by_models(&cited).map_err(failure)?;
    let known = known_turns(store, new)?;
    let mut derived_turns = with_turns(recent, turns);
    for DerivedTurn { turn, derived, .. } in &mut derived_turns {
        // The agent's last words alone do not make work new that a model has derived from.
        let is_stop = |id: &Uuid| turn.events.iter().any(|it| it.id == *id && stops(it));
        derived.observations.retain(|it| {
            let by_model = |id: &Uuid| by_models.contains(id);
            !it.events.iter().any(by_model)
                || !it.events.iter().all(|id| by_model(id) || is_stop(id))
        });
        if known.summed_up.contains(&turn.prompt_id) {
            derived.summary = None;
        }
    }
    Ok(DerivedBatch {
        turns: derived_turns,
        digest: Some(digest),
        replaces: Replaces::Turns,
        provider: Name::Offline,
    })
}

/// Marks changes of earlier sessions that this one takes back, once its last turn has stopped: until
/// then, what was deleted may come back.
fn mark_reversals(
    store: &Store,
    turns: &[Turn],
    derived: &mut [Derived],
) -> Result<(), DeriveFailure> {
    let mut events = turns.iter().flat_map(|turn| &turn.events);
    let (Some(first), true) = (events.next(), events.last().is_some_and(stops)) else {
        return Ok(());
    };
    let later = LaterTurns::read(turns);
    let (files, titles) = (later.changed_files(), later.reverted_titles());
    if files.is_empty() && titles.is_empty() {
        return Ok(());
    }
    let earlier = store.earlier_changes(first, &files, &titles);
    for change in earlier.map_err(failure)? {
        later.mark(&change, derived);
    }
    Ok(())
}

/// Derives offline from stored events, and replaces also the items of models.
fn derive_offline_again(store: &Store, events: &[Event]) -> Result<DerivedBatch, DeriveFailure> {
    let mut recent = store.recent_turns(events).map_err(failure)?;
    let by_agent = take_remembered(&mut recent.turns);
    let DerivedSession { mut turns, digest } = offline_derive(&recent.turns)?;
    leave_to_agent(&mut turns, by_agent);
    mark_reversals(store, &recent.turns, &mut turns)?;
    let again = ids(events);
    let mut derived_turns = with_turns(recent, turns);
    derived_turns.retain(|it| it.turn.events.iter().any(|it| again.contains(&it.id)));
    Ok(DerivedBatch {
        turns: derived_turns,
        digest: Some(digest),
        replaces: Replaces::Events,
        provider: Name::Offline,
    })
}

/// Takes the agent's calls of `remember` out of the turns, and returns for each turn the numbers of
/// the observations that they wrote.
fn take_remembered(turns: &mut [Turn]) -> Vec<Vec<i64>> {
    let take = |turn: &mut Turn| {
        let written = turn.events.iter().filter_map(capture::remembered).collect();
        turn.events.retain(|it| capture::remembered(it).is_none());
        written
    };
    turns.iter_mut().map(take).collect()
}

/// Of a turn about which the agent itself wrote observations, nothing else is kept.
fn leave_to_agent(turns: &mut [Derived], by_agent: Vec<Vec<i64>>) {
    for (derived, written) in turns.iter_mut().zip(by_agent) {
        if !written.is_empty() {
            *derived = Derived {
                marks: written.into_iter().map(Mark::OfTurn).collect(),
                ..Derived::default()
            };
        }
    }
}

/// Adds offline summaries to what a model derived, for turns that have an observation and that no
/// model has summed up yet. A model's summary stays until a model writes another, also while a turn
/// is done again in parts; but not if it `lacks` that of the whole turn, because its answer had none that
/// can be used. The digest is that of `offline`, until a model is asked for one.
fn plain_summaries(
    store: &Store,
    new: &[Event],
    mut derived_turns: Vec<DerivedTurn>,
    lacks: Option<&Turn>,
    provider: Name,
) -> Result<DerivedBatch, DeriveFailure> {
    let mut known = known_turns(store, new)?;
    if let Some(turn) = lacks {
        known.summed_up.remove(&turn.prompt_id);
    }
    let recent = store.recent_turns(new).map_err(failure)?;
    let DerivedSession { turns, digest } = offline_derive(&recent.turns)?;
    let new = ids(new);
    for DerivedTurn { turn, derived, .. } in with_turns(recent, turns) {
        let by_model = derived_turns
            .iter()
            .find(|it| it.turn.prompt_id == turn.prompt_id)
            .map(|it| &it.derived);
        let observed = known.observed.contains(&turn.prompt_id)
            || by_model.is_some_and(|it| !it.observations.is_empty());
        let summed_up = known.summed_up.contains(&turn.prompt_id)
            || by_model.is_some_and(|it| it.summary.is_some());
        if turn.events.iter().any(|it| new.contains(&it.id)) && !summed_up {
            let summary = Derived {
                observations: Vec::new(),
                summary: derived.summary.filter(|_| observed),
                ..Derived::default()
            };
            derived_turns.push(DerivedTurn::offline(turn, summary));
        }
    }
    Ok(DerivedBatch {
        turns: derived_turns,
        digest: Some(digest),
        replaces: Replaces::Nothing,
        provider,
    })
}

/// The turns with what was derived from them, without those that were not read whole.
fn with_turns(recent: RecentTurns, derived: Vec<Derived>) -> Vec<DerivedTurn> {
    let turns = recent.turns.into_iter().zip(derived);
    turns
        .filter(|(turn, _)| !recent.outlines.contains(&turn.prompt_id))
        .map(|(turn, derived)| DerivedTurn::offline(turn, derived))
        .collect()
}

fn known_turns(store: &Store, events: &[Event]) -> Result<KnownTurns, DeriveFailure> {
    let Some(first) = events.first() else {
        return Ok(KnownTurns::default());
    };
    let known = store.known_turns(&first.host, &first.host_session_id);
    known.map_err(failure)
}

fn ids(events: &[Event]) -> HashSet<Uuid> {
    events.iter().map(|event| event.id).collect()
}

/// Derives offline. A panic in it fails the batch and not the worker.
fn offline_derive(session: &[Turn]) -> Result<DerivedSession, DeriveFailure> {
    std::panic::catch_unwind(|| offline::derive(session))
        .map_err(|_| DeriveFailure::Event("the offline provider panicked".to_owned()))
}

/// A broken constraint is the batch's failure; others, such as a full disk, are the storage's.
pub(super) fn failure(error: rusqlite::Error) -> DeriveFailure {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        | None => DeriveFailure::Event(error.to_string()),
        Some(_) => DeriveFailure::Storage(error),
    }
}
