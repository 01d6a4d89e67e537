//! Takes from a session's transcript what its hooks could not deliver: a hook that was
//! killed, a client that was. The worker asks for it when a session is over or silent.
//!
//! What is taken goes the way of a hook's event: through `capture`, then the queue. It has
//! the key that the hook's event has, so what came by one way is not taken by the other,
//! however often it is looked for. Nothing is taken of a turn that no hook told anything
//! of: Foreword may have been switched off in it, or not there yet.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, named_params};
use uuid::Uuid;

use crate::capture::{self, CaptureContext, CaptureSettings, Captured};
use crate::host::{self, Hook, Host, ReplayedInput};
use crate::model::{Event, EventKind, Millis};
use crate::project::Rules;
use crate::queue::Queue;
use crate::store::{PROCESSED_KEPT, Store, uuid_at};

/// What may be taken.
pub struct FillRules<'a> {
    pub now: Millis,
    /// Nothing from before this time.
    pub since: Millis,
    pub project_rules: &'a Rules,
    pub settings: &'a CaptureSettings,
    /// Whether Foreword is switched off in this project, or for this session.
    pub is_off: &'a dyn Fn(Option<&str>) -> bool,
}

/// What hooks have told of a session.
#[derive(Default)]
struct KnownEvents {
    since: Option<Millis>,
    host: Option<String>,
    transcript: Option<String>,
    project_dir: Option<String>,
    turns: HashSet<String>,
}

/// Queues what is missing of a session, and says how many events that were.
pub fn fill(
    queue: &Queue,
    store: &Store,
    session: &str,
    rules: &FillRules<'_>,
) -> rusqlite::Result<usize> {
    let known = KnownEvents::of(queue, store, session)?;
    let host = known.host.as_deref().and_then(host::named);
    let (Some(first), Some(host), Some(transcript)) = (known.since, host, &known.transcript) else {
        return Ok(0);
    };
    // A fork's transcript begins with a copy of another session's, in the fork's name. And what is
    // older than keys are known might be taken in a second time.
    let since = first.max(rules.since).max(rules.now - PROCESSED_KEPT / 2);
    // Of what happened in the same millisecond, the first in the file comes first.
    let ids = uuid::ContextV7::new();
    let mut count = 0;
    let take = |told: ReplayedInput| -> rusqlite::Result<()> {
        if told.at < since
            || !known.turns.contains(&told.prompt_id)
            || is_known(queue, store, session, &told)?
        {
            return Ok(());
        }
        let id = uuid_at(told.at, &ids);
        let event = event(host, &told, id, known.project_dir.as_deref(), rules);
        let Some(event) = event.filter(|it| !(rules.is_off)(it.project.as_deref())) else {
            return Ok(());
        };
        // Whatever its key may be: what was taken in must not be new again, for ever.
        if !store.knows(&event)? {
            count += usize::from(queue.push(&event)?);
        }
        Ok(())
    };
    host.replay(Path::new(transcript), session, take)?;
    Ok(count)
}

pub(crate) fn event(
    host: &'static Host,
    told: &ReplayedInput,
    id: Uuid,
    project_dir: Option<&str>,
    rules: &FillRules<'_>,
) -> Option<Event> {
    let context = CaptureContext {
        host,
        now: told.at,
        event_id: id,
        project_dir: project_dir.map(PathBuf::from),
        rules: rules.project_rules.clone(),
    };
    let captured = capture::capture(told.hook, told.input.as_bytes(), &context, rules.settings);
    let Captured::Event(event) = captured else {
        return None;
    };
    let mut event = *event;
    // Capture looked at the repository and the file as they are now.
    event.branch.clone_from(&told.branch);
    event.commit = None;
    for file in &mut event.files {
        if file.mtime.is_some_and(|mtime| mtime > told.at) {
            (file.size, file.mtime, file.hash) = (None, None, None);
        }
    }
    Some(event)
}

/// Whether a hook told the same, or an earlier look at the transcript did. A turn's prompt and its
/// end have their words in their keys; one of each is enough.
fn is_known(
    queue: &Queue,
    store: &Store,
    session: &str,
    told: &ReplayedInput,
) -> rusqlite::Result<bool> {
    let turn = |kind| {
        let from = capture::turn_key(kind, session, &told.prompt_id);
        let to = format!("{from}~");
        (from, to)
    };
    let exactly = |key: String| (key.clone(), key);
    let keys = match (told.hook, &told.tool_use_id) {
        (_, Some(id)) => [
            exactly(capture::tool_key(session, id)),
            exactly(capture::opened_key(session, id)),
        ],
        (Hook::New, None) => [turn(EventKind::Prompt), turn(EventKind::Notification)],
        (_, None) => [turn(EventKind::Stop), turn(EventKind::StopFailure)],
    };
    for (from, to) in keys {
        for (connection, table) in [
            (&queue.connection, "events"),
            (&store.connection, "processed_events"),
        ] {
            let sql =
                format!("select exists (select 1 from {table} where key between :from and :to)");
            let known = connection
                .prepare_cached(&sql)?
                .query_row(named_params! {":from": from, ":to": to}, |row| row.get(0))?;
            if known {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

impl KnownEvents {
    fn of(queue: &Queue, store: &Store, session: &str) -> rusqlite::Result<KnownEvents> {
        let mut known = KnownEvents::default();
        known.add(
            &store.connection,
            session,
            "select started_at, transcript_path, root, null, host
             from sessions
             where host_session_id = :session
             union all
             select null, null, null, host_prompt_id, null
             from prompts
             where session_id in (select id from sessions where host_session_id = :session)
             union all
             select null, null, event ->> '$.project_dir', prompt_id, null
             from events
             where session_id in (select id from sessions where host_session_id = :session)",
        )?;
        known.add(
            &queue.connection,
            session,
            "select at, event ->> '$.transcript_path',
                    coalesce(event ->> '$.project_dir', event ->> '$.root'), event ->> '$.prompt_id',
                    event ->> '$.host'
             from events
             where host_session_id = :session and json_valid(event)",
        )?;
        Ok(known)
    }

    fn add(&mut self, connection: &Connection, session: &str, sql: &str) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(named_params! {":session": session})?;
        while let Some(row) = rows.next()? {
            let at: Option<Millis> = row.get(0)?;
            self.since = self.since.into_iter().chain(at).min();
            self.transcript = row.get::<_, Option<String>>(1)?.or(self.transcript.take());
            self.project_dir = row.get::<_, Option<String>>(2)?.or(self.project_dir.take());
            self.turns.extend(row.get::<_, Option<String>>(3)?);
            self.host = row.get::<_, Option<String>>(4)?.or(self.host.take());
        }
        Ok(())
    }
}
