//! The ledger: every call to a model, its cost and its outcome.
//!
//! The worker also reads from it how a provider has been doing: a streak of failures, and the
//! time until which the provider is not called, outlive the worker.

use rusqlite::named_params;
use serde::Deserialize;

use crate::db::Rows as _;
use crate::model::{FailureKind, Millis};
use crate::store::Store;

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub at: Millis,
    pub provider: &'a str,
    /// The model's name in the settings.
    pub model: &'a str,
    pub host_session_id: &'a str,
    /// The turn that the question is about: the host's id of its prompt, or empty before the first
    /// prompt. None if it is about something else.
    pub turn: Option<&'a str>,
    pub events: usize,
    pub raw_tokens: u64,
}

/// The most that a call may cost, and what it probably costs: the estimate counts if its outcome is
/// never known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reservation {
    /// None if the price is not known.
    pub usd: Option<f64>,
    pub tokens: u64,
    pub probable_usd: Option<f64>,
    pub probable_input: u64,
    pub probable_output: u64,
    /// Until when the call may still be answered.
    pub until: Millis,
}

/// The budgets that a call must fit into: dollars, and tokens for calls whose price is not known.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The start of the day.
    pub day: Millis,
    pub daily: (f64, u64),
    /// None if the call is about no session.
    pub session: Option<(f64, u64)>,
}

/// The budget that has no room for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    Day,
    Session,
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

/// The calls about one turn that gave nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct TurnTrouble {
    /// Calls that broke off while the model may have been working, and answers that could not be used.
    pub failed: u32,
    /// Whether the offline provider has processed a part of the turn in the model's place.
    pub stood_in: bool,
}

/// How many of a model's last answers could be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    pub judged: u64,
    pub usable: u64,
    pub is_last_usable: bool,
    pub last_at: Millis,
}

/// The number of last answers that a model is judged by.
const JUDGED_MAX: u32 = 10;

/// The cost of calls: in money if the price is known, otherwise in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub struct Spent {
    pub usd: f64,
    pub unpriced_tokens: u64,
}

impl Spent {
    /// Whether a call that may cost this much would exceed these limits, or one is reached already.
    pub fn exceeds(&self, most: &Reservation, usd: f64, tokens: u64) -> bool {
        // Sums of many small amounts are not exact.
        const ROUNDING: f64 = 1e-9;
        let more = match most.usd {
            Some(more) => self.usd + more > usd + ROUNDING,
            None => self.unpriced_tokens.saturating_add(most.tokens) > tokens,
        };
        more || self.usd >= usd || self.unpriced_tokens >= tokens
    }
}

impl Store {
    /// Records a call before it is made, and takes the most that it may cost from the budgets; if one
    /// has no room for it, nothing is recorded.
    pub fn reserve(
        &self,
        entry: &Entry<'_>,
        most: &Reservation,
        limits: &Limits,
    ) -> rusqlite::Result<Result<OpenCall, Exceeded>> {
        // Begins with the write lock, so that no other process reserves between the check and the row.
        let tx = self.connection.unchecked_transaction()?;
        let today = self.spent(limits.day, None, entry.at)?;
        if today.exceeds(most, limits.daily.0, limits.daily.1) {
            return Ok(Err(Exceeded::Day));
        }
        if let Some((usd, tokens)) = limits.session {
            let session = self.spent(0, Some(entry.host_session_id), entry.at)?;
            if session.exceeds(most, usd, tokens) {
                return Ok(Err(Exceeded::Session));
            }
        }
        let open = self.ask(entry, most)?;
        tx.commit()?;
        Ok(Ok(open))
    }

    /// Records a call before it is made, whatever it may cost.
    pub fn ask(&self, entry: &Entry<'_>, most: &Reservation) -> rusqlite::Result<OpenCall> {
        self.add(entry, None)?;
        let open = OpenCall(self.connection.last_insert_rowid());
        self.connection.execute(
            "update ledger
             set input_tokens = :input, output_tokens = :output, cost_usd = :probable,
                 reserved_usd = :usd, reserved_tokens = :tokens, reserved_until = :until
             where id = :id",
            named_params! {
                ":id": open.0,
                ":input": most.probable_input as i64,
                ":output": most.probable_output as i64,
                ":probable": most.probable_usd,
                ":usd": most.usd,
                ":tokens": most.tokens as i64,
                ":until": most.until,
            },
        )?;
        Ok(open)
    }

    /// Adds a row that is open; with a note it is of no question and complete.
    fn add(&self, entry: &Entry<'_>, note: Option<&str>) -> rusqlite::Result<()> {
        self.connection.execute(
            "insert into ledger
                 (at, provider, asked_model, host_session_id, turn, events, raw_tokens, requests, cost_usd,
                  state, note)
             values
                 (:at, :provider, :model, :session, :turn, :events, :raw_tokens, :note is null,
                  iif(:note is null, null, 0), iif(:note is null, 'open', 'answered'), :note)",
            named_params! {
                ":at": entry.at,
                ":provider": entry.provider,
                ":model": entry.model,
                ":session": entry.host_session_id,
                ":turn": entry.turn,
                ":events": entry.events as i64,
                ":raw_tokens": entry.raw_tokens as i64,
                ":note": note,
            },
        )?;
        Ok(())
    }

    /// Records the outcome of a call, in place of its reservation.
    pub fn answered(&self, open: OpenCall, answered: &Answered) -> rusqlite::Result<()> {
        let failure = answered.failure.as_ref();
        self.connection.execute(
            "update ledger
             set requests = :requests, model = :model, input_tokens = :input, output_tokens = :output,
                 cache_read_tokens = :cache_read, cache_write_tokens = :cache_write, cost_usd = :cost,
                 state = :state, failure = :failure, note = :note, retry_at = :retry_at,
                 reserved_usd = null, reserved_tokens = null, reserved_until = null
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
    /// known. Their reservations hold until their time is over, then their estimates count.
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
            model: "",
            host_session_id: "",
            turn: None,
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

    /// The calls to a provider about one turn that gave nothing. An outage does not count.
    pub fn turn_trouble(
        &self,
        provider: &str,
        host_session_id: &str,
        turn: &str,
    ) -> rusqlite::Result<TurnTrouble> {
        self.connection.one(
            "select count(*) filter (
                        where provider = :provider and state = 'failed'
                          and (failure in ('timeout', 'broken') or requests > 0 and retry_at is null)
                    ) as failed,
                    coalesce(max(provider = 'offline'), 0) as stood_in
             from ledger
             where host_session_id = :session and turn = :turn",
            named_params! {":provider": provider, ":session": host_session_id, ":turn": turn},
        )
    }

    /// How many of a model's last answers could be used, since the last `foreword retry`. No answer
    /// in time counts as one that could not; an outage does not count.
    pub fn judged(&self, provider: &str, model: &str) -> rusqlite::Result<Judged> {
        let mut statement = self.connection.prepare_cached(
            "select at, state = 'answered' as usable
             from ledger
             where provider = :provider and asked_model = :model
               and requests > 0 and events > 0
               and (state = 'answered' or failure = 'timeout'
                    or state = 'failed' and retry_at is null and failure <> 'broken')
               and id > coalesce(
                   (select max(id) from ledger
                    where provider = :provider and state = 'answered' and requests = 0), 0)
             order by id desc
             limit :max",
        )?;
        let mut rows = statement
            .query(named_params! {":provider": provider, ":model": model, ":max": JUDGED_MAX})?;
        let mut judged = Judged::default();
        while let Some(row) = rows.next()? {
            let usable: bool = row.get("usable")?;
            if judged.judged == 0 {
                judged.is_last_usable = usable;
                judged.last_at = row.get("at")?;
            }
            judged.judged += 1;
            judged.usable += u64::from(usable);
        }
        Ok(judged)
    }

    /// The cost since a time, of all sessions or of one. A call that may still be answered counts with
    /// the most that it may cost.
    pub fn spent(
        &self,
        since: Millis,
        session: Option<&str>,
        now: Millis,
    ) -> rusqlite::Result<Spent> {
        self.connection.one(
            "select coalesce(sum(iif(reserved_until > :now, reserved_usd, cost_usd)), 0.0) as usd,
                    coalesce(sum(
                        case
                            when reserved_until > :now then iif(reserved_usd is null, reserved_tokens, 0)
                            when cost_usd is null then input_tokens + output_tokens
                        end
                    ), 0) as unpriced_tokens
             from ledger
             where at >= :since and (:session is null or host_session_id = :session)",
            named_params! {":since": since, ":session": session, ":now": now},
        )
    }
}
