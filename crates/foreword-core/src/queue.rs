//! The queue between the hooks and the worker.
//!
//! Hooks push and leave; the worker claims, works and finishes. It is a database
//! of its own, because a worker writing observations into the file that hooks
//! write would make them wait (in a prototype: 431 ms at the 95th percentile, against
//! 2-3 ms). If the worker dies, its successor frees the events that it had claimed,
//! so every job must be safe to run twice.

mod ready;

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, named_params};

use crate::db::{self, Guest, Migration, OpenError};
use crate::fault;
use crate::model::{Event, EventKind, Millis, Receipt};
use ready::{Claimable, FUTURE, claimable, ready_session};
pub use ready::{Portion, Readiness};

pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    number: 100,
    sql: include_str!("queue/0001_events.sql"),
}];
const SCHEMA: i64 = 100;

/// An event that failed this often by itself is skipped; `status` names it.
pub const FAILURES_MAX: u32 = 3;

/// The log is checkpointed when it has this many pages (1 MB).
const LOG_MAX: u32 = 256;

/// Events that are claimed or removed in one transaction, which takes less than a millisecond.
const STEP: usize = 16;

/// An event that was claimed at this many crashes is claimed alone from then on.
const CRASHES_BEFORE_ALONE: u32 = 3;

/// An event that was claimed at this many crashes is skipped.
const CRASHES_MAX: u32 = 6;

/// The hook's side: it may only append.
pub struct Inlet(Connection);

impl Inlet {
    /// Opens the queue if it is there and has the schema that we know.
    pub fn open(path: &Path) -> Result<Inlet, OpenError> {
        db::open_guest(path, Guest::Writes, SCHEMA).map(Inlet)
    }

    /// Appends an event, unless one with its key is there; returns whether it is new.
    pub fn push(&self, event: &Event) -> rusqlite::Result<bool> {
        insert(&self.0, event)
    }

    /// A session's receipts that the worker has not taken in yet.
    pub fn shown_in(&self, host_session_id: &str) -> rusqlite::Result<Vec<Receipt>> {
        let mut statement = self.0.prepare_cached(
            "select event
             from events
             where host_session_id = :session and kind = :receipt",
        )?;
        let rows = statement.query_map(
            named_params! {":session": host_session_id, ":receipt": EventKind::Receipt},
            |row| row.get::<_, Event>(0),
        )?;
        rows.filter_map(|event| event.map(|it| it.payload.receipt).transpose())
            .collect()
    }

    /// Leaves the queue open: the process is about to end, and that closes it, as a
    /// kill would. Closing it by hand costs as much as a fifth of the writing.
    pub fn leave(self) {
        std::mem::forget(self);
    }
}

fn insert(connection: &Connection, event: &Event) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "insert into events (id, key, kind, host_session_id, at, event)
         values (:id, :key, :kind, :session, :at, :event)
         on conflict do nothing",
    )?;
    let inserted = statement.execute(named_params! {
        ":id": event.id.to_string(),
        ":key": event.key,
        ":kind": event.kind,
        ":session": event.host_session_id,
        ":at": event.at,
        ":event": event,
    })?;
    Ok(inserted == 1)
}

/// The worker's side.
pub struct Queue {
    pub(crate) connection: Connection,
}

/// Some events of one session, claimed by whoever holds this.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    pub host_session_id: String,
    /// In order of time.
    pub events: Vec<Event>,
    /// As far as the queue can tell, nothing more will come of the last event's turn: the
    /// next prompt is there, or the session's end, or it has been silent, or nobody waits.
    pub turn_over: bool,
}

/// How much is in the queue, for `status` and for deciding when to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub pending: u64,
    pub skipped: u64,
    pub oldest_at: Option<Millis>,
}

/// An event that is not tried any more, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub id: String,
    pub kind: String,
    pub last_error: Option<String>,
}

impl Queue {
    /// Opens or creates the queue.
    pub fn open(path: &Path, backups: &Path) -> Result<Queue, OpenError> {
        let connection = db::open_owner(path, MIGRATIONS, backups)?;
        // The log is kept short by `checkpoint` alone, and stays when the worker ends: a
        // hook that has to make one waits for the disk twice (measured: 10 ms).
        connection.execute_batch("pragma wal_autocheckpoint = 0")?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(Queue { connection })
    }

    /// Looks at the queue without taking part; none if it is not there.
    pub fn look(path: &Path) -> Result<Option<Queue>, OpenError> {
        match db::open_guest(path, Guest::Reads, SCHEMA) {
            Ok(connection) => Ok(Some(Queue { connection })),
            Err(OpenError::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks at the queue without leaving a trace beside it; none if it is not there.
    pub fn inspect(path: &Path) -> Result<Option<Queue>, OpenError> {
        match db::open_inspector(path, SCHEMA) {
            Ok(connection) => Ok(Some(Queue { connection })),
            Err(OpenError::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The damage that SQLite finds in the file; none if it is sound.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        db::damage(&self.connection)
    }

    /// Appends an event that came by way of the spool.
    pub fn push(&self, event: &Event) -> rusqlite::Result<bool> {
        insert(&self.connection, event)
    }

    /// Frees the claims of the last worker, which is dead: its lock is held by this one.
    pub fn free_claims_of_the_dead(&self) -> rusqlite::Result<()> {
        self.connection.execute(
            "update events
             set state = case when crashes + 1 >= :max then 'skipped' else 'queued' end,
                 last_error = case
                     when crashes + 1 >= :max then 'the worker died each time it took up this event'
                     else last_error
                 end,
                 crashes = crashes + 1
             where state = 'claimed'",
            named_params! {":max": CRASHES_MAX},
        )?;
        Ok(())
    }

    /// Takes back what a live worker claimed and, in an outage, could neither finish
    /// nor give back. Nobody crashed, so nothing counts. Not while a batch is in hand.
    pub fn take_back_claims(&self) -> rusqlite::Result<()> {
        self.connection.execute(
            "update events set state = 'queued' where state = 'claimed'",
            [],
        )?;
        Ok(())
    }

    /// Takes the next batch: events of the session that has waited longest among
    /// those that are ready, as many as `portion` says of that session.
    pub fn claim(
        &mut self,
        now: Millis,
        readiness: Readiness,
        portion: impl FnOnce(&str) -> Portion,
    ) -> rusqlite::Result<Option<Claim>> {
        // Looking takes as long as the queue is long, and must keep no hook waiting;
        // what was seen stays true, since hooks only append and nobody else claims.
        let Some(ready) = ready_session(&self.connection, now, readiness)? else {
            return Ok(None);
        };
        let portion = portion(&ready.host_session_id);
        let Claimable { events, next } =
            claimable(&self.connection, &ready.host_session_id, now, portion)?;
        self.in_short_steps(&events, |tx, event| {
            tx.prepare_cached("update events set state = 'claimed' where id = :id")?
                .execute(named_params! {":id": event.id.to_string()})
        })?;
        if fault::planted("ack-before-commit") {
            self.delete(&events)?;
        }
        fault::point("claim:after-commit");
        Ok(Some(Claim {
            host_session_id: ready.host_session_id,
            events,
            turn_over: match next {
                Some(kind) => matches!(kind, EventKind::Prompt | EventKind::SessionEnd),
                None => readiness.drain || ready.silent,
            },
        }))
    }

    /// Does something to each event, a few in a transaction, and stays out of the way
    /// in between. A whole batch at once keeps hooks waiting for tens of milliseconds;
    /// a kill between two steps is no worse than one before or after them all.
    fn in_short_steps(
        &mut self,
        events: &[Event],
        step: impl Fn(&Connection, &Event) -> rusqlite::Result<usize>,
    ) -> rusqlite::Result<()> {
        for (number, few) in events.chunks(STEP).enumerate() {
            if number > 0 {
                db::let_others_write();
            }
            let tx = self
                .connection
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            for event in few {
                step(&tx, event)?;
            }
            tx.commit()?;
        }
        self.checkpoint()
    }

    /// When the next event becomes ready; none if nothing waits.
    pub fn next_due(&self, now: Millis, readiness: Readiness) -> rusqlite::Result<Option<Millis>> {
        self.connection.query_row(
            "select min(due)
             from (
                 select max(case when max(at) > :future then :now else max(at) + :wait end, min(due_at)) as due
                 from events
                 where state = 'queued'
                 group by host_session_id
             )",
            named_params! {
                ":now": now,
                ":future": now + FUTURE,
                ":wait": readiness.batch_wait,
            },
            |row| row.get(0),
        )
    }

    /// Removes events whose results are stored, or were before.
    pub fn finish(&mut self, claim: Claim) -> rusqlite::Result<()> {
        self.delete(&claim.events)?;
        fault::point("queue:after-delete");
        Ok(())
    }

    fn delete(&mut self, events: &[Event]) -> rusqlite::Result<()> {
        self.in_short_steps(events, |tx, event| {
            tx.prepare_cached("delete from events where id = :id")?
                .execute(named_params! {":id": event.id.to_string()})
        })
    }

    /// Gives events back untouched: what went wrong was not theirs.
    pub fn give_back(&mut self, claim: Claim) -> rusqlite::Result<()> {
        let tx = self.connection.transaction()?;
        for event in &claim.events {
            tx.execute(
                "update events set state = 'queued' where id = :id",
                named_params! {":id": event.id.to_string()},
            )?;
        }
        tx.commit()
    }

    /// Gives events back after a failure: alone and later, or skipped if each had its tries.
    pub fn fail(&mut self, claim: Claim, error: &str, now: Millis) -> rusqlite::Result<()> {
        // A batch that failed is tried again event by event, so that one poisoned
        // event does not take the others along; only a failure alone counts.
        let alone = claim.events.len() == 1;
        let tx = self.connection.transaction()?;
        for event in &claim.events {
            tx.execute(
                "update events
                 set attempts = attempts + :alone,
                     crashes = max(crashes, :one_by_one),
                     state = case when attempts + :alone >= :max then 'skipped' else 'queued' end,
                     due_at = case when :alone then :now + (1000 << attempts) else :now end,
                     last_error = :error
                 where id = :id",
                named_params! {
                    ":alone": alone,
                    ":one_by_one": CRASHES_BEFORE_ALONE,
                    ":max": FAILURES_MAX,
                    ":now": now,
                    ":error": error,
                    ":id": event.id.to_string(),
                },
            )?;
        }
        tx.commit()
    }

    pub fn counts(&self) -> rusqlite::Result<Counts> {
        self.connection.query_row(
            "select count(*) filter (where state <> 'skipped'),
                    count(*) filter (where state = 'skipped'),
                    min(at) filter (where state <> 'skipped')
             from events",
            [],
            |row| {
                Ok(Counts {
                    pending: row.get(0)?,
                    skipped: row.get(1)?,
                    oldest_at: row.get(2)?,
                })
            },
        )
    }

    /// Why the latest of the events that wait failed, if one has.
    pub fn last_error(&self) -> rusqlite::Result<Option<String>> {
        let mut statement = self.connection.prepare_cached(
            "select last_error
             from events
             where state = 'queued' and last_error is not null
             order by due_at desc
             limit 1",
        )?;
        let mut rows = statement.query([])?;
        rows.next()?.map(|row| row.get(0)).transpose()
    }

    /// Has skipped events tried again, as if for the first time; returns how many.
    pub fn retry_skipped(&self) -> rusqlite::Result<usize> {
        self.connection.execute(
            "update events
             set state = 'queued', attempts = 0, crashes = 0, due_at = 0, last_error = null
             where state = 'skipped'",
            [],
        )
    }

    pub fn skipped(&self) -> rusqlite::Result<Vec<Skipped>> {
        let mut statement = self.connection.prepare_cached(
            "select id, kind, last_error
             from events
             where state = 'skipped'
             order by at",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(Skipped {
                id: row.get(0)?,
                kind: row.get(1)?,
                last_error: row.get(2)?,
            })
        })?;
        rows.collect()
    }

    /// Moves the write-ahead log into the file when it has grown, since hooks never do.
    /// The passive kind keeps no writer waiting.
    pub fn checkpoint(&self) -> rusqlite::Result<()> {
        let pages = |pragma| {
            self.connection
                .query_row(pragma, [], |row| Ok((row.get(1)?, row.get(2)?)))
        };
        let (in_log, _): (u32, u32) = pages("pragma wal_checkpoint(noop)")?;
        if in_log < LOG_MAX {
            return Ok(());
        }
        let (in_log, moved) = pages("pragma wal_checkpoint(passive)")?;
        if moved == in_log {
            // The next write begins the log anew, and waits for the disk to do so: some
            // milliseconds. Rather us than a hook, so something is written that changes nothing.
            self.connection
                .pragma_update(None, "user_version", SCHEMA)?;
        }
        Ok(())
    }
}

/// Sets an event aside, visibly: nothing else waits for it.
fn skip(connection: &Connection, id: &str, error: &str) -> rusqlite::Result<()> {
    connection.execute(
        "update events set state = 'skipped', last_error = :error where id = :id",
        named_params! {":error": error, ":id": id},
    )?;
    Ok(())
}
