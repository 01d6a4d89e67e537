//! Queues the events of a session that its hooks did not deliver, from its transcript.
//!
//! Events are missing if a hook or the client was killed. The worker looks for them when a
//! session is over or silent. A missing event is handled like a hook's: by `capture`, then the
//! queue. It has the key that the hook's event would have, so no event is stored twice,
//! however often a transcript is read. A turn without any event from a hook is left out:
//! Foreword may have been switched off then, or not installed yet.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, named_params};
use uuid::Uuid;

use crate::capture::{self, CaptureContext, CaptureSettings, Captured};
use crate::db::Rows as _;
use crate::host::{self, Host, ReplayedInput};
use crate::model::{Event, EventKind, Millis};
use crate::project::Rules;
use crate::queue::Queue;
use crate::redact;
use crate::store::{PROCESSED_KEPT, Store, uuid_at};

/// The rules for taking events from a transcript.
pub struct FillRules<'a> {
    pub now: Millis,
    pub project_rules: &'a Rules,
    pub settings: &'a CaptureSettings,
    /// Whether an event must not be used: Foreword was switched off at its time, or is now, or its
    /// project is restricted.
    pub is_barred: &'a dyn Fn(&Event) -> bool,
}

/// The part of a session that is known from events already queued or stored.
#[derive(Default)]
struct KnownEvents {
    /// The time of the first event.
    since: Option<Millis>,
    host: Option<String>,
    transcript: Option<String>,
    project_dir: Option<String>,
    turns: HashSet<String>,
}

/// Queues the missing events of a session; returns how many.
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
    // Not before the session's first event: the transcript of a fork begins with a copy of another
    // session's, under the fork's id. Nor before the time for which keys are kept: an older event
    // might be stored a second time.
    let since = first.max(rules.now - PROCESSED_KEPT / 2);
    // Ids of the same millisecond follow the order of the file.
    let ids = uuid::ContextV7::new();
    let mut count = 0;
    let take = |input: ReplayedInput| -> rusqlite::Result<()> {
        if input.at < since
            || !known.turns.contains(&input.prompt_id)
            || is_known(queue, store, session, &input)?
        {
            return Ok(());
        }
        let id = uuid_at(input.at, &ids);
        let event = event(host, &input, id, known.project_dir.as_deref(), rules);
        let Some(event) = event.filter(|it| !(rules.is_barred)(it)) else {
            return Ok(());
        };
        // The event may have a key that `is_known` does not look for; it must not be queued again
        // at each look.
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
    input: &ReplayedInput,
    id: Uuid,
    project_dir: Option<&str>,
    rules: &FillRules<'_>,
) -> Option<Event> {
    let context = CaptureContext {
        host,
        now: input.at,
        event_id: id,
        project_dir: project_dir.map(PathBuf::from),
        rules: rules.project_rules.clone(),
    };
    let captured = capture::capture(input.hook, input.input.as_bytes(), &context, rules.settings);
    let Captured::Event(event) = captured else {
        return None;
    };
    let mut event = *event;
    // `capture` read the state of the repository and the files as they are now, not as they were
    // then.
    let branch = input.branch.as_deref();
    event.branch = branch.map(|it| redact::thorough(it).text.into_owned());
    event.commit = None;
    for file in &mut event.files {
        if file.mtime.is_some_and(|mtime| mtime > input.at) {
            (file.size, file.mtime, file.hash) = (None, None, None);
        }
    }
    Some(event)
}

/// Whether the event is queued or was processed already. The keys of a turn's prompt and stop
/// contain a hash of the text, so any key of the turn with that kind counts.
fn is_known(
    queue: &Queue,
    store: &Store,
    session: &str,
    input: &ReplayedInput,
) -> rusqlite::Result<bool> {
    let turn = |kind| {
        let from = capture::turn_key(kind, session, &input.prompt_id);
        let to = format!("{from}~");
        (from, to)
    };
    let exactly = |key: String| (key.clone(), key);
    let keys = match (input.kind, &input.tool_use_id) {
        (EventKind::Refusal | EventKind::Words, Some(id)) => {
            let key = exactly(capture::replayed_key(input.kind, session, id));
            [key.clone(), key]
        }
        (_, Some(id)) => [
            exactly(capture::tool_key(session, id)),
            exactly(capture::opened_key(session, id)),
        ],
        (EventKind::Prompt, None) => [turn(EventKind::Prompt), turn(EventKind::Notification)],
        (_, None) => [turn(EventKind::Stop), turn(EventKind::StopFailure)],
    };
    for (from, to) in keys {
        for (connection, table) in [
            (&queue.connection, "events"),
            (&store.connection, "processed_events"),
        ] {
            let sql =
                format!("select exists (select 1 from {table} where key between :from and :to)");
            if connection.one(&sql, named_params! {":from": from, ":to": to})? {
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
             select distinct null, null, null, prompt_id, null
             from events
             where session_id in (select id from sessions where host_session_id = :session)
             union all
             select null, null, event ->> '$.project_dir', null, null
             from events
             where row in (
                 select max(row)
                 from events
                 where session_id in (select id from sessions where host_session_id = :session)
             )",
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
