//! The leash that a model is on: budgets, and pauses while it cannot be asked.
//!
//! All of it is read from the ledger, so a worker that ends takes nothing with it. A
//! failure that is nobody's fault here (no credit, an outage) has everything wait, longer
//! each time; after `model.offline_after_minutes` the batches that come go on offline. A
//! budget that is used up sends them there at once.

use foreword_core::model::{Event, FailureKind, Millis};
use foreword_core::store::Store;
use foreword_core::store::ledger::{Failed, Spent, Streak};

use crate::agent::provider::{self, Failure, Remedy};
use crate::config::provider::Name;
use crate::config::{self, Config};

/// The first pause, doubled by each failure in a row up to the last.
const PAUSE_FIRST: Millis = 2_000;
const PAUSE_LAST: Millis = 600_000;
/// What only a person can mend is not tried every few seconds.
const PAUSE_FOR_A_PERSON: Millis = 300_000;
/// A reset time that lies further ahead is not believed.
const PAUSE_MAX: Millis = 24 * 3_600_000;

/// After so many failures in a row, whatever they were, the model itself is at fault.
const STREAK_MAX: u32 = 100;

const DAY: Millis = 24 * 3_600_000;

pub struct Leash {
    pub provider: Name,
    budget: config::BudgetSection,
    offline_after: Millis,
    /// Somebody asked for everything to be done now: a pause is not waited for, once.
    lifted: bool,
}

/// Whether a model may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    Ask,
    /// No, and offline goes on in its stead.
    StandIn(String),
}

impl Leash {
    pub fn new(provider: Name, config: &Config) -> Leash {
        Leash {
            provider,
            budget: config.budget.clone(),
            offline_after: Millis::from(config.model.offline_after_minutes) * 60_000,
            lifted: false,
        }
    }

    /// Until when everything waits; none if there is no pause, or if it has gone on for so
    /// long that offline stands in.
    pub fn waits_until(&self, store: &Store, now: Millis) -> rusqlite::Result<Option<Millis>> {
        if self.provider == Name::Offline || self.lifted {
            return Ok(None);
        }
        let streak = store.streak(self.provider.as_str())?;
        Ok(self
            .paused_until(&streak, now)
            .filter(|_| !self.is_given_up(&streak, now)))
    }

    /// Whether a pause is not worth staying for: only a person can end it, or it is long. The
    /// next worker may also know a key that this one was not given.
    pub fn is_hopeless(&self, store: &Store, now: Millis) -> rusqlite::Result<bool> {
        let Some(until) = self.waits_until(store, now)? else {
            return Ok(false);
        };
        let last = store.streak(self.provider.as_str())?.last;
        let for_a_person = last.is_some_and(|failed| is_for_a_person(failed.kind));
        Ok(for_a_person || until > now + PAUSE_LAST)
    }

    /// What to tell the user about a model that cannot be asked; none while it can.
    pub fn notice(&self, store: &Store, now: Millis) -> rusqlite::Result<Option<String>> {
        let streak = store.streak(self.provider.as_str())?;
        let name = self.provider.as_str();
        let more = "`foreword status` says more";
        let is_up_to_the_user = |failed: &Failed| is_for_a_person(failed.kind);
        Ok(match &streak.last {
            Some(failed) if is_up_to_the_user(failed) => Some(format!(
                "{name} cannot be asked ({}), and only you can mend that; {more}",
                failed.kind
            )),
            Some(_) if self.is_given_up(&streak, now) => Some(format!(
                "{name} has not answered for long, so memory is made without it for now; {more}"
            )),
            _ => None,
        })
    }

    pub fn word(&self, store: &Store, event: &Event, now: Millis) -> rusqlite::Result<Word> {
        let budget = &self.budget;
        let session = store.spent(0, Some(&event.host_session_id))?;
        if let Some(limit) = used_up_today(store, budget, now)? {
            return Ok(Word::StandIn(format!(
                "the daily budget of {limit} is used up"
            )));
        }
        if let Some(limit) = used_up(&session, budget.session_usd, budget.session_tokens) {
            return Ok(Word::StandIn(format!(
                "the session's budget of {limit} is used up"
            )));
        }
        let streak = store.streak(self.provider.as_str())?;
        if !self.lifted
            && self.paused_until(&streak, now).is_some()
            && self.is_given_up(&streak, now)
            && let Some(last) = streak.last
        {
            let name = self.provider.as_str();
            return Ok(Word::StandIn(format!("{name} is paused: {}", last.note)));
        }
        Ok(Word::Ask)
    }

    /// Until when nobody is asked after this failure; none if it is a matter of the batch.
    pub fn pause_after(&self, store: &Store, failure: &Failure, now: Millis) -> Option<Millis> {
        let streak = store.streak(self.provider.as_str()).unwrap_or_default();
        let doublings = match provider::remedy(failure.kind) {
            Remedy::Split if streak.failures < STREAK_MAX => return None,
            Remedy::Split => streak.failures,
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

    /// A call was made: a pause that follows from it is waited for again.
    pub fn tighten(&mut self) {
        self.lifted = false;
    }

    pub fn lift(&mut self) {
        self.lifted = true;
    }

    fn paused_until(&self, streak: &Streak, now: Millis) -> Option<Millis> {
        let until = streak.last.as_ref()?.retry_at?;
        // A clock that was put back must not make a pause endless.
        (now < until).then_some(until.min(now + PAUSE_MAX))
    }

    fn is_given_up(&self, streak: &Streak, now: Millis) -> bool {
        streak
            .since
            .is_some_and(|since| now >= since + self.offline_after)
    }
}

/// When the day began that a time is in; days are UTC's.
pub fn day(now: Millis) -> Millis {
    now - now.rem_euclid(DAY)
}

/// The daily limit that was reached, in words.
pub fn used_up_today(
    store: &Store,
    budget: &config::BudgetSection,
    now: Millis,
) -> rusqlite::Result<Option<String>> {
    let today = store.spent(day(now), None)?;
    Ok(used_up(&today, budget.daily_usd, budget.daily_tokens))
}

/// No waiting helps: the user has to log in, to pay, or to change a setting.
pub fn is_for_a_person(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Auth | FailureKind::Billing | FailureKind::Model | FailureKind::Missing
    )
}

/// The limit that was reached, in words.
fn used_up(spent: &Spent, usd: f64, tokens: u64) -> Option<String> {
    if spent.usd >= usd {
        return Some(format!("${usd:.2}"));
    }
    (spent.unpriced_tokens >= tokens).then(|| format!("{tokens} tokens"))
}
