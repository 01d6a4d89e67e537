//! The queue between the hooks and the worker.
//!
//! Hooks push an event and exit; the worker claims events, processes them and removes them.
//! The queue is a database of its own: if the worker wrote observations into the same
//! file, hooks would have to wait (measured: 431 ms at the 95th percentile, against 2-3 ms). If the worker dies, its successor frees the events that it had claimed,
//! so processing an event twice must be safe.

use std::io;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, named_params};
use serde::Deserialize;

use crate::db::place::Place;
use crate::db::{self, Guest, Migration, OpenError, Rows as _};
use crate::fault;
use crate::model::{Event, EventKind, Millis, Receipt};

pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    number: 100,
    sql: include_str!("queue/0001_events.sql"),
}];
const SCHEMA: i64 = 100;

/// An event that fails this many times while processed alone is skipped; `status` shows it.
pub const FAILURES_MAX: u32 = 3;

/// Checkpoint when the write-ahead log exceeds 256 pages (1 MB).
const LOG_MAX: u32 = 256;

/// The number of events that are claimed or removed in one transaction, which takes less than a
/// millisecond.
const STEP: usize = 16;

/// An event that was claimed in this many crashes is processed alone.
const CRASHES_BEFORE_ALONE: u32 = 3;

/// An event that was claimed in this many crashes is skipped.
const CRASHES_MAX: u32 = 6;

/// The hook's side of the queue: it can append events and read receipts.
pub struct Inlet(Connection);

impl Inlet {
    /// Opens the queue if it exists and has the schema of this program.
    pub fn open(path: &Path) -> Result<Inlet, OpenError> {
        db::open_guest(path, Guest::Writes, SCHEMA).map(Inlet)
    }

    /// Appends an event, unless one with its key is queued already; returns whether it is new.
    pub fn push(&self, event: &Event) -> rusqlite::Result<bool> {
        insert(&self.0, event)
    }

    /// The receipts of a session that are still in the queue.
    pub fn shown_in(&self, host_session_id: &str) -> rusqlite::Result<Vec<Receipt>> {
        let events: Vec<(Event,)> = self.0.all(
            "select event
             from events
             where host_session_id = :session and kind = :receipt",
            named_params! {":session": host_session_id, ":receipt": EventKind::Receipt},
        )?;
        let receipts = events.into_iter().filter_map(|(it,)| it.payload.receipt);
        Ok(receipts.collect())
    }

    /// Leaves the connection open for the end of the process to close, which is as safe as a
    /// kill. Closing it here would take a fifth as long as the write itself.
    pub fn leave(self) {
        std::mem::forget(self);
    }
}

fn insert(connection: &Connection, event: &Event) -> rusqlite::Result<bool> {
    let inserted = connection.run(
        "insert into events (id, key, kind, host_session_id, at, event)
         values (:id, :key, :kind, :session, :at, :event)
         on conflict do nothing",
        named_params! {
        ":id": event.id.to_string(),
        ":key": event.key,
        ":kind": event.kind,
        ":session": event.host_session_id,
        ":at": event.at,
        ":event": event,
        },
    )?;
    Ok(inserted == 1)
}

/// The worker's side of the queue.
pub struct Queue {
    pub(crate) connection: Connection,
    /// The files of a queue that is open for writing.
    place: Option<Place>,
}

/// Some events of one session that the worker has claimed.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    pub host_session_id: String,
    /// In order of time.
    pub events: Vec<Event>,
    /// Whether the last event's turn is over: the next prompt or the session's end is queued, or
    /// the session has been silent, or the queue is being drained.
    pub turn_over: bool,
}

/// The number of events in the queue, for `status` and for deciding when the worker ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Counts {
    pub pending: u64,
    pub skipped: u64,
    pub oldest_at: Option<Millis>,
    /// The time of the newest event, in whatever state.
    pub newest_at: Option<Millis>,
}

/// An event that is no longer tried, and its last error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Skipped {
    pub id: String,
    pub kind: String,
    pub at: Millis,
    pub last_error: Option<String>,
}

impl Queue {
    /// Opens or creates the queue.
    pub fn open(path: &Path, backups: &Path) -> Result<Queue, OpenError> {
        let before = Place::before(path);
        let connection = db::open_owner(path, MIGRATIONS, backups)?;
        // Only `checkpoint` shortens the log, and it remains when the worker ends: a hook that
        // has to create a log waits for the disk twice (measured: 10 ms).
        // Deleted events are overwritten: they had only the fast stage of redaction.
        connection.execute_batch("pragma wal_autocheckpoint = 0; pragma secure_delete = on")?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(Queue {
            connection,
            place: Some(Place::after(path, before)),
        })
    }

    fn on(connection: Connection) -> Queue {
        Queue {
            connection,
            place: None,
        }
    }

    /// Whether the file has been neither deleted nor replaced since it was opened for writing.
    pub fn is_in_place(&self) -> bool {
        self.place.as_ref().is_none_or(Place::is_kept)
    }

    /// Closes a queue that is not in its place any more, after moving its events into the spool.
    pub fn forsake(self, spool: impl Fn(&Event) -> io::Result<()>) -> Result<(), OpenError> {
        let events: Vec<(Event,)> = self.connection.all("select event from events", [])?;
        for (event,) in &events {
            spool(event)?;
        }
        if let Some(place) = self.place {
            place.forsake(self.connection);
        }
        Ok(())
    }

    /// Opens the queue for reading; none if it does not exist.
    pub fn look(path: &Path) -> Result<Option<Queue>, OpenError> {
        let opened = db::if_there(db::open_guest(path, Guest::Reads, SCHEMA))?;
        Ok(opened.map(Queue::on))
    }

    /// Opens the queue for reading without changing any file; none if it does not exist.
    pub fn inspect(path: &Path) -> Result<Option<Queue>, OpenError> {
        let opened = db::if_there(db::open_inspector(path, SCHEMA))?;
        Ok(opened.map(Queue::on))
    }

    /// What is wrong with the file itself or its schema; none if it is sound.
    pub fn damage(&self) -> Option<String> {
        let defect = db::defect(&self.connection, MIGRATIONS);
        defect.unwrap_or_else(|error| Some(error.to_string()))
    }

    /// As `Store::check_schema`.
    pub fn check_schema(&self) -> Result<(), OpenError> {
        db::check_own_schema(&self.connection, MIGRATIONS)
    }

    /// Appends an event from the spool or from a transcript; returns whether it is new.
    pub fn push(&self, event: &Event) -> rusqlite::Result<bool> {
        insert(&self.connection, event)
    }

    /// Frees the events that a dead worker had claimed, and counts a crash for each. Only for the
    /// holder of the worker's lock, who knows that the other worker is dead.
    pub fn free_claims_of_dead_worker(&self) -> rusqlite::Result<()> {
        self.connection.execute(
            "update events
             set state = case when crashes + 1 >= :max then 'skipped' else 'queued' end,
                 last_error = case
                     when crashes + 1 >= :max then 'the worker crashed each time it processed this event'
                     else last_error
                 end,
                 crashes = crashes + 1
             where state = 'claimed'",
            named_params! {":max": CRASHES_MAX},
        )?;
        Ok(())
    }

    /// Frees the events that this worker claimed and, in an outage, could neither finish nor give
    /// back. No crash is counted. Not to be called while a batch is being processed.
    pub fn take_back_claims(&self) -> rusqlite::Result<()> {
        self.connection.execute(
            "update events set state = 'queued' where state = 'claimed'",
            [],
        )?;
        Ok(())
    }

    /// Claims the next batch: events of the ready session that has waited longest, as many as
    /// `portion` allows for that session.
    pub fn claim(
        &mut self,
        now: Millis,
        readiness: Readiness,
        portion: impl FnOnce(&str) -> Portion,
    ) -> rusqlite::Result<Option<Claim>> {
        // Reading takes longer the longer the queue is, so it happens outside of a transaction,
        // and no hook has to wait. The result stays valid: hooks only append, and only this worker
        // claims.
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

    /// Runs `step` for each event, `STEP` events in a transaction, and lets hooks write in between.
    /// One transaction for a whole batch would make hooks wait for tens of milliseconds. A kill
    /// between two transactions does no harm.
    fn in_short_steps(
        &mut self,
        events: &[Event],
        step: impl Fn(&Connection, &Event) -> rusqlite::Result<usize>,
    ) -> rusqlite::Result<()> {
        for (number, few) in events.chunks(STEP).enumerate() {
            if number > 0 {
                db::let_others_write();
            }
            let tx = self.connection.transaction()?;
            for event in few {
                step(&tx, event)?;
            }
            tx.commit()?;
        }
        self.checkpoint()
    }

    /// The time when the next session becomes ready (`ready_session`), at the latest; none if the queue
    /// is empty.
    pub fn next_due(&self, now: Millis, readiness: Readiness) -> rusqlite::Result<Option<Millis>> {
        self.connection.one(
            "select max(min(due), :now)
             from (
                 select min(
                     max(case when max(at) > :future then :now else max(at) + :wait end, min(due_at)),
                     coalesce(
                         min(due_at) filter (where kind in ('stop', 'stop_failure', 'session_end')),
                         :never),
                     case when count(*) >= :batch_max then max(due_at) else :never end
                 ) as due
                 from events
                 where state = 'queued'
                 group by host_session_id
             )",
            named_params! {
                ":now": now,
                ":never": Millis::MAX,
                ":future": now + FUTURE,
                ":wait": readiness.batch_wait,
                ":batch_max": readiness.batch_max,
            },
        )
    }

    /// Removes events whose results are stored.
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

    /// Gives events back unchanged, after a failure that they did not cause.
    pub fn give_back(&self, claim: Claim) -> rusqlite::Result<()> {
        self.connection.execute(
            "update events set state = 'queued' where id in (select value from json_each(:ids))",
            named_params! {":ids": ids(&claim.events)?},
        )?;
        Ok(())
    }

    /// Gives events back after a failure, to be tried again later and one by one; an event that has
    /// failed `FAILURES_MAX` times is skipped.
    pub fn fail(&self, claim: Claim, error: &str, now: Millis) -> rusqlite::Result<()> {
        // A batch that failed is tried again event by event, so that one bad event does not fail
        // the others; only a failure of a single event counts.
        let alone = claim.events.len() == 1;
        self.connection.execute(
            "update events
             set attempts = attempts + :alone,
                 crashes = max(crashes, :one_by_one),
                 state = case when attempts + :alone >= :max then 'skipped' else 'queued' end,
                 due_at = case when :alone then :now + (1000 << attempts) else :now end,
                 last_error = :error
             where id in (select value from json_each(:ids))",
            named_params! {
                ":alone": alone,
                ":one_by_one": CRASHES_BEFORE_ALONE,
                ":max": FAILURES_MAX,
                ":now": now,
                ":error": error,
                ":ids": ids(&claim.events)?,
            },
        )?;
        Ok(())
    }

    /// Whether an event of this session waits.
    pub fn has_session(&self, host_session_id: &str) -> rusqlite::Result<bool> {
        self.connection.one(
            "select exists (select 1 from events where host_session_id = :session)",
            named_params! {":session": host_session_id},
        )
    }

    pub fn counts(&self) -> rusqlite::Result<Counts> {
        self.connection.one(
            "select count(*) filter (where state <> 'skipped') as pending,
                    count(*) filter (where state = 'skipped') as skipped,
                    min(at) filter (where state <> 'skipped') as oldest_at,
                    max(at) as newest_at
             from events",
            [],
        )
    }

    /// The last error of a queued event, if one has failed.
    pub fn last_error(&self) -> rusqlite::Result<Option<String>> {
        self.connection.first(
            "select last_error
             from events
             where state = 'queued' and last_error is not null
             order by due_at desc
             limit 1",
            [],
        )
    }

    /// Queues skipped events again, or only the one with this id, with all counters at zero; returns
    /// how many.
    pub fn retry_skipped(&self, only: Option<&str>) -> rusqlite::Result<usize> {
        self.connection.execute(
            "update events
             set state = 'queued', attempts = 0, crashes = 0, due_at = 0, last_error = null
             where state = 'skipped' and (:only is null or id = :only)",
            named_params! {":only": only},
        )
    }

    /// The skipped events, the oldest first.
    pub fn skipped(&self) -> rusqlite::Result<Vec<Skipped>> {
        self.connection.all(
            "select id, kind, at, last_error
             from events
             where state = 'skipped'
             order by at, id",
            [],
        )
    }

    /// Moves the write-ahead log into the file when it has grown, since hooks never do it.
    /// A passive checkpoint makes no writer wait.
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
            // The next write restarts the log and waits some milliseconds for the disk. The worker
            // does this instead of a hook, with a write that changes nothing.
            self.connection
                .pragma_update(None, "user_version", SCHEMA)?;
        }
        Ok(())
    }
}

impl Queue {
    /// Overwrites what the log has of deleted events, once the queue is empty: they had only the fast
    /// stage of redaction. The log stays, with one page, for the reason given in `open`.
    pub fn wipe_log(&self) -> rusqlite::Result<()> {
        let pages = |pragma| self.connection.query_row(pragma, [], |row| row.get(1));
        let in_log: u32 = pages("pragma wal_checkpoint(noop)")?;
        if in_log > 1 {
            // The passive one waits for the disk while hooks can write; then little is left to do.
            pages("pragma wal_checkpoint(passive)")?;
            pages("pragma wal_checkpoint(truncate)")?;
            self.connection
                .pragma_update(None, "user_version", SCHEMA)?;
        }
        Ok(())
    }
}

/// The ids of events as JSON.
fn ids(events: &[Event]) -> rusqlite::Result<String> {
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    db::json(&ids)
}

/// The conditions under which a session's events are claimed.
#[derive(Debug, Clone, Copy)]
pub struct Readiness {
    /// Claim everything that is due, without waiting for a batch.
    pub drain: bool,
    /// A session with this many events is ready.
    pub batch_max: u32,
    /// A session without a new event for this long is ready.
    pub batch_wait: Millis,
}

/// The limits of one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    pub events: u32,
    /// The most bytes of all payloads together, each counted up to `event_bytes`.
    pub bytes: usize,
    pub event_bytes: usize,
    /// Whether the claim ends with the first turn.
    pub one_turn: bool,
}

impl Portion {
    /// Everything that is ready, up to a number of events that bounds the use of memory.
    pub const ALL: Portion = Portion {
        events: 1_000,
        bytes: usize::MAX,
        event_bytes: usize::MAX,
        one_turn: false,
    };
}

/// An event whose time is further in the future than this was queued before the clock was set
/// back; its session counts as silent, since waiting until then could take years.
const FUTURE: Millis = 60_000;

/// A session whose events are ready.
#[derive(Deserialize)]
struct Ready {
    host_session_id: String,
    /// No event has come for `batch_wait`.
    silent: bool,
}

/// The session to process next. A session is ready when its turn stopped, when it has enough
/// events for a batch, or when no event has come for a while.
fn ready_session(
    connection: &Connection,
    now: Millis,
    readiness: Readiness,
) -> rusqlite::Result<Option<Ready>> {
    connection.first(
        "select host_session_id, max(at) <= :silent_since or max(at) > :future as silent
         from events
         where state = 'queued' and due_at <= :now
         group by host_session_id
         having :drain
             or max(kind in ('stop', 'stop_failure', 'session_end'))
             or count(*) >= :batch_max
             or silent
         order by min(at)
         limit 1",
        named_params! {
            ":now": now,
            ":drain": readiness.drain,
            ":batch_max": readiness.batch_max,
            ":silent_since": now - readiness.batch_wait,
            ":future": now + FUTURE,
        },
    )
}

/// The events that a claim may take.
struct Claimable {
    events: Vec<Event>,
    /// The kind of the event after them.
    next: Option<EventKind>,
}

fn claimable(
    connection: &Connection,
    session: &str,
    now: Millis,
    portion: Portion,
) -> rusqlite::Result<Claimable> {
    let mut statement = connection.prepare_cached(
        "select id, kind, crashes, event
         from events
         where host_session_id = :session and state = 'queued' and due_at <= :now
         order by at, id
         limit :limit",
    )?;
    let mut rows = statement.query(named_params! {
        ":session": session,
        ":now": now,
        // One more, to know the kind of the next event.
        ":limit": portion.events.saturating_add(1),
    })?;
    let mut unreadable = Vec::new();
    let (mut events, mut next, mut bytes): (Vec<Event>, _, usize) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let event = match row.get::<_, Event>("event") {
            Ok(event) => event,
            Err(error) => {
                unreadable.push((row.get::<_, String>("id")?, error));
                continue;
            }
        };
        bytes = bytes.saturating_add(event.payload.json_bytes().min(portion.event_bytes));
        // An event that workers crashed on is claimed alone: if it is not the first of this batch,
        // the batch ends before it.
        let alone = row.get::<_, u32>("crashes")? >= CRASHES_BEFORE_ALONE;
        let full = events.len() >= portion.events as usize || bytes > portion.bytes;
        let new_turn = portion.one_turn
            && event.kind == EventKind::Prompt
            && events.iter().any(|it| it.kind.is_of_a_turn());
        if !events.is_empty() && (alone || full || new_turn) {
            next = Some(event.kind);
            break;
        }
        events.push(event);
        if alone {
            next = rows.next()?.map(|row| row.get("kind")).transpose()?;
            break;
        }
    }
    // Only after the read has ended: a write during a read fails if a hook has written meanwhile.
    drop(rows);
    drop(statement);
    // Skipped, they no longer hold up the events after them; `status` shows them.
    for (id, error) in unreadable {
        connection.execute(
            "update events set state = 'skipped', last_error = :error where id = :id",
            named_params! {":error": format!("unreadable: {error}"), ":id": id},
        )?;
    }
    Ok(Claimable { events, next })
}
