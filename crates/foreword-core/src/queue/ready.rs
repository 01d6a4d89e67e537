//! Which session's events are taken up next, and how many of them at once.

use rusqlite::{Connection, named_params};

use super::{CRASHES_BEFORE_ALONE, skip};
use crate::model::{Event, EventKind, Millis};

/// When a session's events are taken up.
#[derive(Debug, Clone, Copy)]
pub struct Readiness {
    /// Nothing waits: everything that is due is taken.
    pub drain: bool,
    /// This many events make a batch.
    pub batch_max: u32,
    /// Or this much silence of a session.
    pub batch_wait: Millis,
}

/// How much of what is ready goes into one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    pub events: u32,
    /// Of all payloads together, each counted up to `event_bytes`.
    pub bytes: usize,
    pub event_bytes: usize,
    /// Nothing beyond the first turn.
    pub one_turn: bool,
}

impl Portion {
    /// All that is ready, up to a limit that bounds the memory which a backlog takes.
    pub const ALL: Portion = Portion {
        events: 1_000,
        bytes: usize::MAX,
        event_bytes: usize::MAX,
        one_turn: false,
    };
}

/// An event that is later than now by this much came before the clock was put back: its session
/// counts as silent.
pub(super) const FUTURE: Millis = 60_000;

/// A session to take up.
pub(super) struct Ready {
    pub host_session_id: String,
    /// No event has come for as long as a batch waits.
    pub silent: bool,
}

/// The session to take up next. It is ready when its turn stopped, when enough has piled
/// up, or when nothing more has come for a while.
pub(super) fn ready_session(
    connection: &Connection,
    now: Millis,
    readiness: Readiness,
) -> rusqlite::Result<Option<Ready>> {
    let mut statement = connection.prepare_cached(
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
    )?;
    let mut rows = statement.query(named_params! {
        ":now": now,
        ":drain": readiness.drain,
        ":batch_max": readiness.batch_max,
        ":silent_since": now - readiness.batch_wait,
        ":future": now + FUTURE,
    })?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(Ready {
        host_session_id: row.get("host_session_id")?,
        silent: row.get("silent")?,
    }))
}

pub(super) struct Claimable {
    pub events: Vec<Event>,
    /// What kind of event comes after them.
    pub next: Option<EventKind>,
}

pub(super) fn claimable(
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
        // One more, to see what comes next.
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
        // One that workers died of goes by itself: the first of a batch, or not in this one.
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
    // After the reading: a write in the middle of it fails if a hook wrote meanwhile.
    drop(rows);
    drop(statement);
    for (id, error) in unreadable {
        skip(connection, &id, &format!("unreadable: {error}"))?;
    }
    Ok(Claimable { events, next })
}
