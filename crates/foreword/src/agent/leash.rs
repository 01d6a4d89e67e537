//! Limits the calls to a model: budgets (`budget`), and pauses after failures.
//!
//! All state is in the ledger, so the next worker continues with it. A failure that no batch caused
//! (no credit, an outage) starts a pause, longer each time. While it lasts events wait; after
//! `model.offline_after_minutes` they are derived offline. When a budget is used up, or when few of
//! a model's answers can be used, they are derived offline at once.

use foreword_core::ledger::{Failed, Judged, Streak};
use foreword_core::model::{FailureKind, Millis};
use foreword_core::store::Store;

use crate::agent::budget::Budget;
use crate::agent::provider::{self, Failure, Remedy};
use crate::config::Config;
use crate::config::provider::Name;

/// The first pause. Each further failure in a row doubles it.
const PAUSE_FIRST: Millis = 2_000;
/// The longest pause that doubling leads to.
const PAUSE_LAST: Millis = 600_000;
/// The pause after a failure that only the user can repair.
const PAUSE_FOR_A_PERSON: Millis = 300_000;
/// The longest pause that a provider's own reset time leads to.
const PAUSE_MAX: Millis = 24 * 3_600_000;

/// A model is unfit if less than a third of at least this many last answers could be used.
const JUDGED_MIN: u64 = 6;
/// A model is unfit if none of at least this many last answers could be used.
const JUDGED_MIN_IF_NONE: u64 = 4;
/// After this time an unfit model is asked about one turn again.
const UNFIT_PAUSE: Millis = 6 * 3_600_000;

/// Decides whether the provider may be asked.
pub struct Leash {
    pub provider: Name,
    /// The model's name in the settings.
    model: String,
    budget: Budget,
    offline_after: Millis,
    /// The user asked for everything to be done now: the present pause is ignored.
    lifted: bool,
}

/// A model that gave few usable answers. It is not asked for some hours; meanwhile events are derived
/// offline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// The model with its provider: `openai (qwen3:8b)`.
    pub name: String,
    pub usable: u64,
    pub judged: u64,
    pub until: Millis,
}

impl Unfit {
    pub fn line(&self) -> String {
        let Unfit {
            name,
            usable,
            judged,
            ..
        } = self;
        format!("only {usable} of the last {judged} answers of {name} could be used")
    }
}

/// Whether a model is unfit, by its last answers. A usable one ends the pause, and so does
/// `foreword retry`.
pub fn unfit(
    store: &Store,
    provider: Name,
    model: &str,
    now: Millis,
) -> rusqlite::Result<Option<Unfit>> {
    let Judged {
        judged,
        usable,
        is_last_usable,
        last_at,
    } = store.judged(provider.as_str(), model)?;
    let is_enough = judged >= JUDGED_MIN || judged >= JUDGED_MIN_IF_NONE && usable == 0;
    if !is_enough || usable * 3 >= judged || is_last_usable {
        return Ok(None);
    }
    let name = format!("{} ({model})", provider.as_str());
    let until = last_at + UNFIT_PAUSE;
    let unfit = Unfit {
        name,
        usable,
        judged,
        until,
    };
    Ok((last_at..until).contains(&now).then_some(unfit))
}

/// A time in which the provider is not asked, after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub since: Millis,
    pub until: Millis,
    pub kind: FailureKind,
    pub reason: String,
}

/// The pause that follows from the last failure, if it is not over.
pub fn pause(store: &Store, provider: Name, now: Millis) -> rusqlite::Result<Option<Pause>> {
    let streak = store.streak(provider.as_str())?;
    Ok(streak.last.and_then(|last| {
        Some(Pause {
            since: streak.since?,
            until: last.retry_at.filter(|&until| now < until)?,
            kind: last.kind,
            reason: last.note,
        })
    }))
}

/// Whether a model may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    Ask,
    /// Derive offline instead, for this reason.
    StandIn(String),
}

impl Leash {
    pub fn new(provider: Name, config: &Config) -> Leash {
        Leash {
            provider,
            model: provider.model(config).to_owned(),
            budget: Budget::new(provider, config),
            offline_after: Millis::from(config.model.offline_after_minutes) * 60_000,
            lifted: false,
        }
    }

    /// The end of the pause; none if there is no pause, or if it has lasted so long that events are
    /// derived offline.
    pub fn waits_until(&self, store: &Store, now: Millis) -> rusqlite::Result<Option<Millis>> {
        if !self.provider.has_model() || self.lifted {
            return Ok(None);
        }
        let streak = store.streak(self.provider.as_str())?;
        Ok(self
            .paused_until(&streak, now)
            .filter(|_| !self.is_given_up(&streak, now)))
    }

    /// Whether the worker should end instead of waiting for the end of the pause: it is long, or only
    /// the user can end it. The next worker may also inherit a key that this one lacks.
    pub fn is_hopeless(&self, store: &Store, now: Millis) -> rusqlite::Result<bool> {
        let Some(until) = self.waits_until(store, now)? else {
            return Ok(false);
        };
        let last = store.streak(self.provider.as_str())?.last;
        let for_a_person = last.is_some_and(|failed| is_for_a_person(failed.kind));
        Ok(for_a_person || until > now + PAUSE_LAST)
    }

    /// A line for the user about a model that cannot be asked; none while it can.
    pub fn notice(&self, store: &Store, now: Millis) -> rusqlite::Result<Option<String>> {
        let streak = store.streak(self.provider.as_str())?;
        let name = self.provider.as_str();
        let more = "`foreword status` says more";
        if let Some(unfit) = unfit(store, self.provider, &self.model, now)? {
            let line = unfit.line();
            return Ok(Some(format!(
                "{line}, so memory is made without it for now; {more}"
            )));
        }
        let is_up_to_the_user = |failed: &Failed| is_for_a_person(failed.kind);
        Ok(match &streak.last {
            Some(failed) if is_up_to_the_user(failed) => Some(format!(
                "{name} cannot be asked ({}) until you change something; {more}",
                failed.kind
            )),
            Some(_) if self.is_given_up(&streak, now) => Some(format!(
                "{name} has not answered for long, so memory is made without it for now; {more}"
            )),
            _ => None,
        })
    }

    /// Whether the model may be asked about this session: the budgets and the pause allow it.
    pub fn may_ask(
        &self,
        store: &Store,
        host_session_id: &str,
        now: Millis,
    ) -> rusqlite::Result<Permission> {
        if let Some(limit) = self.budget.used_up_today(store, now)? {
            return Ok(Permission::StandIn(format!(
                "the daily budget of {limit} is used up"
            )));
        }
        if let Some(limit) = self.budget.used_up_by(store, host_session_id, now)? {
            return Ok(Permission::StandIn(format!(
                "the session's budget of {limit} is used up"
            )));
        }
        if let Some(unfit) = unfit(store, self.provider, &self.model, now)? {
            return Ok(Permission::StandIn(unfit.line()));
        }
        let streak = store.streak(self.provider.as_str())?;
        if !self.lifted
            && self.paused_until(&streak, now).is_some()
            && self.is_given_up(&streak, now)
            && let Some(last) = streak.last
        {
            let name = self.provider.as_str();
            return Ok(Permission::StandIn(format!(
                "{name} is paused: {}",
                last.note
            )));
        }
        Ok(Permission::Ask)
    }

    /// The end of the pause that follows this failure; none if the batch is at fault.
    pub fn pause_after(&self, store: &Store, failure: &Failure, now: Millis) -> Option<Millis> {
        let streak = store.streak(self.provider.as_str()).unwrap_or_default();
        let doublings = match provider::remedy(failure.kind) {
            Remedy::StandIn => return None,
            Remedy::Pause => streak.pauses,
        };
        if let Some(retry_at) = failure.retry_at {
            return Some(retry_at.clamp(now + 1_000, now + PAUSE_MAX));
        }
        let pause = if is_for_a_person(failure.kind) {
            PAUSE_FOR_A_PERSON
        } else {
            (PAUSE_FIRST << doublings.min(16)).min(PAUSE_LAST)
        };
        Some(now + pause)
    }

    /// Undoes `lift` after a call, so that the next pause holds again.
    pub fn tighten(&mut self) {
        self.lifted = false;
    }

    /// Ignores the present pause until the next call.
    pub fn lift(&mut self) {
        self.lifted = true;
    }

    fn paused_until(&self, streak: &Streak, now: Millis) -> Option<Millis> {
        let until = streak.last.as_ref()?.retry_at?;
        // If the clock was set back, the pause ends after PAUSE_MAX at the latest.
        (now < until).then_some(until.min(now + PAUSE_MAX))
    }

    fn is_given_up(&self, streak: &Streak, now: Millis) -> bool {
        streak
            .since
            .is_some_and(|since| now >= since + self.offline_after)
    }
}

/// Whether only the user can repair this: by logging in, paying, or changing a setting.
pub fn is_for_a_person(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Auth | FailureKind::Billing | FailureKind::Model | FailureKind::Missing
    )
}
