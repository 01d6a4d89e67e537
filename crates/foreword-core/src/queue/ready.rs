//! Chooses the session whose events are claimed next, and how many of them at once.

use rusqlite::{Connection, named_params};

use super::{CRASHES_BEFORE_ALONE, skip};
use crate::model::{Event, EventKind, Millis};

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
pub(super) const FUTURE: Millis = 60_000;

/// A session whose events are ready.
pub(super) struct Ready {
    pub host_session_id: String,
    /// No event has come for `batch_wait`.
    pub silent: bool,
}

/// The session to process next. A session is ready when its turn stopped, when it has enough
/// events for a batch, or when no event has come for a while.
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

/// The events that a claim may take.
pub(super) struct Claimable {
    pub events: Vec<Event>,
    /// The kind of the event after them.
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
    for (id, error) in unreadable {
        skip(connection, &id, &format!("unreadable: {error}"))?;
    }
    Ok(Claimable { events, next })
}
