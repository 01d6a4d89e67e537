//! The ledger: every call to a model, its cost and its outcome.
//!
//! The worker also reads from it how a provider has been doing: a streak of failures, and the
//! time until which the provider is not called, outlive the worker.

use rusqlite::named_params;
use serde::{Deserialize, Serialize};

use super::Store;
use crate::db::Rows as _;
use crate::model::{FailureKind, Millis};

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub at: Millis,
    pub provider: &'a str,
    pub host_session_id: &'a str,
    pub events: usize,
    pub raw_tokens: u64,
}

/// The outcome of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answered {
    pub requests: u32,
    pub model: Option<String>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub cost_usd: Option<f64>,
    pub failure: Option<Failed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    pub kind: FailureKind,
    pub note: String,
    /// Until when the provider is not called.
    pub retry_at: Option<Millis>,
}

/// A call that was recorded and whose outcome is not known yet.
#[derive(Debug)]
#[must_use]
pub struct OpenCall(i64);

/// How a provider has been doing since it last answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streak {
    /// Failed calls in a row.
    pub failures: u32,
    /// Those of them after which the provider was not to be called for a while. A batch that could
    /// not be answered, or a worker that ended, does not count here.
    pub pauses: u32,
    /// When the first of these pauses began.
    pub since: Option<Millis>,
    /// The last failure with a pause, or else the last failure.
    pub last: Option<Failed>,
}

/// The cost of calls: in money if the price is known, otherwise in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub struct Spent {
    pub usd: f64,
    pub unpriced_tokens: u64,
}

/// The totals since a time, to be shown to the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub calls: u64,
    pub failed: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// None if there were answers and none of them has a known price.
    #[serde(rename(serialize = "cost_usd"))]
    pub usd: Option<f64>,
    /// Calls whose price is not known and that are not in `usd`.
    #[serde(rename(serialize = "unpriced_calls"))]
    pub unpriced: u64,
    /// Tokens of the events in batches that were answered.
    pub raw_tokens: u64,
    /// Tokens of the observations and summaries that models wrote.
    pub memory_tokens: u64,
}

/// The calls to one model of a provider, and their cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCost {
    pub provider: String,
    /// None for calls that failed before a model was named.
    pub model: Option<String>,
    pub calls: u64,
    pub failed: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(rename(serialize = "cost_usd"))]
    pub usd: Option<f64>,
}

/// Batches that the offline provider processed in place of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoodIn {
    pub batches: u64,
    #[serde(serialize_with = "crate::text::serialize_time")]
    pub last_at: Millis,
    #[serde(rename(serialize = "reason"))]
    pub why: String,
}

impl Store {
    /// Records a call before it is made.
    pub fn ask(&self, entry: &Entry<'_>) -> rusqlite::Result<OpenCall> {
        self.add(entry, None)?;
        Ok(OpenCall(self.connection.last_insert_rowid()))
    }

    /// Adds a row that is open; with a note it is of no question and complete.
    fn add(&self, entry: &Entry<'_>, note: Option<&str>) -> rusqlite::Result<()> {
        self.connection.execute(
            "insert into ledger
                 (at, provider, host_session_id, events, raw_tokens, requests, cost_usd, state, note)
             values
                 (:at, :provider, :session, :events, :raw_tokens, :note is null,
                  iif(:note is null, null, 0), iif(:note is null, 'open', 'answered'), :note)",
            named_params! {
                ":at": entry.at,
                ":provider": entry.provider,
                ":session": entry.host_session_id,
                ":events": entry.events as i64,
                ":raw_tokens": entry.raw_tokens as i64,
                ":note": note,
            },
        )?;
        Ok(())
    }

    /// Records the outcome of a call.
    pub fn answered(&self, open: OpenCall, answered: &Answered) -> rusqlite::Result<()> {
        let failure = answered.failure.as_ref();
        self.connection.execute(
            "update ledger
             set requests = :requests, model = :model, input_tokens = :input, output_tokens = :output,
                 cache_read_tokens = :cache_read, cache_write_tokens = :cache_write, cost_usd = :cost,
                 state = :state, failure = :failure, note = :note, retry_at = :retry_at
             where id = :id",
            named_params! {
                ":id": open.0,
                ":requests": answered.requests,
                ":model": answered.model,
                ":input": answered.input_tokens as i64,
                ":output": answered.output_tokens as i64,
                ":cache_read": answered.cache_read_tokens as i64,
                ":cache_write": answered.cache_write_tokens as i64,
                ":cost": answered.cost_usd,
                ":state": if failure.is_some() { "failed" } else { "answered" },
                ":failure": failure.map(|it| it.kind),
                ":note": failure.map(|it| it.note.as_str()),
                ":retry_at": failure.and_then(|it| it.retry_at),
            },
        )?;
        Ok(())
    }

    /// Marks the calls that a dead worker left open as failed: they were made, and nothing more is
    /// known.
    pub fn close_abandoned_calls(&self) -> rusqlite::Result<()> {
        self.connection.execute(
            "update ledger
             set state = 'failed', failure = :broken, note = 'the worker ended before the answer came'
             where state = 'open'",
            named_params! {":broken": FailureKind::Broken},
        )?;
        Ok(())
    }

    /// Records that the offline provider processed a batch in place of a model.
    pub fn stood_in(&self, entry: &Entry<'_>, why: &str) -> rusqlite::Result<()> {
        let provider = "offline";
        self.add(&Entry { provider, ..*entry }, Some(why))
    }

    /// Ends a provider's streak of failures, so that it is called again at once.
    pub fn forgive(&self, provider: &str, now: Millis) -> rusqlite::Result<()> {
        let nothing = Entry {
            at: now,
            provider,
            host_session_id: "",
            events: 0,
            raw_tokens: 0,
        };
        self.add(&nothing, Some("asked to try again"))
    }

    pub fn streak(&self, provider: &str) -> rusqlite::Result<Streak> {
        let failures: Vec<(Millis, FailureKind, String, Option<Millis>)> = self.connection.all(
            "select at, failure, coalesce(note, ''), retry_at
             from ledger
             where provider = :provider
               and state = 'failed'
               and id > coalesce(
                   (select max(id) from ledger where provider = :provider and state = 'answered'), 0)
             order by id",
            named_params! {":provider": provider},
        )?;
        let mut streak = Streak::default();
        for (at, kind, note, retry_at) in failures {
            streak.failures += 1;
            if retry_at.is_some() {
                streak.pauses += 1;
                streak.since.get_or_insert(at);
            }
            // A failure without a pause does not replace an earlier one with a pause.
            let paused = streak.last.as_ref().is_some_and(|it| it.retry_at.is_some());
            if !paused || retry_at.is_some() {
                streak.last = Some(Failed {
                    kind,
                    note,
                    retry_at,
                });
            }
        }
        Ok(streak)
    }

    /// The cost since a time, of all sessions or of one.
    pub fn spent(&self, since: Millis, session: Option<&str>) -> rusqlite::Result<Spent> {
        self.connection.one(
            "select coalesce(sum(cost_usd), 0.0) as usd,
                    coalesce(sum(input_tokens + output_tokens) filter (where cost_usd is null), 0)
                        as unpriced_tokens
             from ledger
             where at >= :since and (:session is null or host_session_id = :session)",
            named_params! {":since": since, ":session": session},
        )
    }

    /// Tokens of memory are counted as four characters of what models wrote.
    pub fn cost(&self, since: Millis) -> rusqlite::Result<Cost> {
        let cost: Cost = self.connection.one(
            "select coalesce(sum(requests), 0) as calls,
                    count(*) filter (where state <> 'answered' and requests > 0) as failed,
                    coalesce(sum(input_tokens), 0) as input_tokens,
                    coalesce(sum(output_tokens), 0) as output_tokens,
                    coalesce(sum(cache_read_tokens), 0) as cache_read_tokens,
                    coalesce(sum(cache_write_tokens), 0) as cache_write_tokens,
                    sum(cost_usd) filter (where requests > 0) as usd,
                    coalesce(sum(requests) filter (where cost_usd is null and output_tokens > 0), 0) as unpriced,
                    coalesce(sum(raw_tokens) filter (where state = 'answered' and requests > 0), 0) as raw_tokens,
                    (
                        select coalesce(sum(length(title) + length(subtitle) + length(facts) + length(narrative)
                            + length(concepts)), 0)
                        from observations
                        where provider <> 'offline' and at >= :since
                    ) / 4 + (
                        select coalesce(sum(length(request) + length(investigated) + length(learned)
                            + length(completed) + length(next_steps) + length(notes)), 0)
                        from summaries
                        where provider <> 'offline' and at >= :since
                    ) / 4 as memory_tokens
             from ledger
             where at >= :since",
            named_params! {":since": since},
        )?;
        Ok(Cost {
            usd: cost.usd.or((cost.unpriced == 0).then_some(0.0)),
            ..cost
        })
    }

    /// The cost by provider and model, the one with most calls first.
    pub fn cost_by_model(&self, since: Millis) -> rusqlite::Result<Vec<ModelCost>> {
        self.connection.all(
            "select provider, model,
                    sum(requests) as calls,
                    count(*) filter (where state <> 'answered') as failed,
                    sum(input_tokens) as input_tokens,
                    sum(output_tokens) as output_tokens,
                    sum(cost_usd) as usd
             from ledger
             where at >= :since and requests > 0
             group by provider, model
             order by calls desc, provider, model",
            named_params! {":since": since},
        )
    }

    /// How often the offline provider stood in for a model, by reason, the latest first.
    pub fn stand_ins(&self, since: Millis) -> rusqlite::Result<Vec<StoodIn>> {
        self.connection.all(
            "select count(*) as batches, max(at) as last_at, coalesce(note, '') as why
             from ledger
             where provider = 'offline' and at >= :since
             group by why
             order by max(id) desc",
            named_params! {":since": since},
        )
    }
}
