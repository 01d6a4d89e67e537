//! Sessions of the host: their project, state and title.

use rusqlite::{OptionalExtension as _, Row, Transaction, named_params};

use super::commit::{Batch, Replaces};
use super::projects::upsert_project;
use super::{SILENCE, Store, json};
use crate::model::{Event, EventKind, Millis, SessionDigest, SessionState};
use crate::text;

/// A session, identified by its host and the host's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSession {
    pub host: String,
    pub id: String,
}

pub(super) fn host_session(row: &Row<'_>) -> rusqlite::Result<HostSession> {
    Ok(HostSession {
        host: row.get("host")?,
        id: row.get("host_session_id")?,
    })
}

/// The ids of a session's row that other rows refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionRow {
    pub id: i64,
    pub project_id: Option<i64>,
}

impl Store {
    pub(crate) fn session_id(
        &self,
        host: &str,
        host_session_id: &str,
    ) -> rusqlite::Result<Option<i64>> {
        let mut statement = self.connection.prepare_cached(
            "select id from sessions where host = :host and host_session_id = :session",
        )?;
        let parameters = named_params! {":host": host, ":session": host_session_id};
        statement.query_row(parameters, |row| row.get(0)).optional()
    }

    /// The sessions whose id begins with `prefix`, the latest first; only one if `prefix` is its
    /// whole id.
    pub fn sessions_named(&self, prefix: &str) -> rusqlite::Result<Vec<HostSession>> {
        let mut statement = self.connection.prepare_cached(
            "select host, host_session_id
             from sessions
             where substr(host_session_id, 1, length(:prefix)) = :prefix
             order by last_event_at desc
             limit 20",
        )?;
        let rows = statement.query_map(named_params! {":prefix": prefix}, host_session)?;
        let mut sessions = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        if sessions.iter().any(|session| session.id == prefix) {
            sessions.retain(|session| session.id == prefix);
        }
        Ok(sessions)
    }

    /// The session that an item belongs to.
    pub fn session_of(&self, item: i64) -> rusqlite::Result<Option<HostSession>> {
        let mut statement = self.connection.prepare_cached(
            "select s.host, s.host_session_id
             from sessions s
             where s.id = coalesce(
                 (select session_id from observations where id = :item),
                 (select session_id from summaries where id = :item),
                 (select session_id from prompts where id = :item))",
        )?;
        statement
            .query_row(named_params! {":item": item}, host_session)
            .optional()
    }

    /// The sessions that the next `keep_house` will mark as interrupted.
    pub fn silent_sessions(&self, now: Millis) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare_cached(
            "select host_session_id
             from sessions
             where state = 'active' and last_event_at < :before",
        )?;
        let rows =
            statement.query_map(named_params! {":before": now - SILENCE}, |row| row.get(0))?;
        rows.collect()
    }
}

pub(super) fn upsert_session(
    tx: &Transaction<'_>,
    batch: &Batch<'_>,
    first: &Event,
) -> rusqlite::Result<SessionRow> {
    let project_key = batch
        .events
        .iter()
        .find_map(|event| event.project.as_deref());
    let project_id = project_key
        .map(|key| upsert_project(tx, key, batch.now))
        .transpose()?;
    let last = |field: fn(&Event) -> Option<&str>| batch.events.iter().rev().find_map(field);
    // None for a new session, or if the clock ran ahead at the session's last event.
    let last_event_at: Option<Millis> = tx.query_row(
        "select max(last_event_at)
         from sessions
         where host = :host and host_session_id = :session and last_event_at <= :now",
        named_params! {":host": first.host, ":session": first.host_session_id, ":now": batch.now},
        |row| row.get(0),
    )?;
    tx.execute(
        "insert into sessions
             (host, host_session_id, project_id, state, branch, root, transcript_path, started_at, last_event_at)
         values
             (:host, :session, :project, 'active', :branch, :root, :transcript, :first_at, :last_at)
         on conflict do update
         set project_id = coalesce(project_id, excluded.project_id),
             branch = coalesce(excluded.branch, branch),
             root = coalesce(excluded.root, root),
             transcript_path = coalesce(excluded.transcript_path, transcript_path),
             started_at = min(started_at, excluded.started_at),
             last_event_at = max(last_event_at, excluded.last_event_at)",
        named_params! {
            ":host": first.host,
            ":session": first.host_session_id,
            ":project": project_id,
            ":branch": last(|event| event.branch.as_deref()),
            ":root": last(|event| event.root.as_deref()),
            ":transcript": last(|event| event.transcript_path.as_deref()),
            ":first_at": first.at,
            ":last_at": batch.events.iter().map(|event| event.at).max(),
        },
    )?;
    let (id, project_id, mut state) = tx.query_row(
        "select id, project_id, state
         from sessions
         where host = :host and host_session_id = :session",
        named_params! {":host": first.host, ":session": first.host_session_id},
        |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, SessionState>(2)?)),
    )?;
    // Deriving from old events again does not change the state of a session.
    if batch.replaces != Replaces::Events {
        // Nor do events that came late.
        let late = |event: &&Event| last_event_at.is_some_and(|it| event.at < it);
        for event in batch.events.iter().filter(|event| !late(event)) {
            state = next_state(state, event, batch.now);
        }
    }
    tx.execute(
        "update sessions set state = :state where id = :id",
        named_params! {":state": state, ":id": id},
    )?;
    Ok(SessionRow { id, project_id })
}

fn next_state(state: SessionState, event: &Event, now: Millis) -> SessionState {
    match event.kind {
        EventKind::StopFailure => SessionState::Failed,
        EventKind::SessionEnd if state == SessionState::Failed => SessionState::Failed,
        EventKind::SessionEnd => SessionState::Completed,
        EventKind::Receipt => state,
        _ if event.at < now - SILENCE => SessionState::Interrupted,
        _ => SessionState::Active,
    }
}

/// Writes what a session came to. An empty title leaves the present one, and the offline provider
/// leaves what a model wrote.
pub(super) fn set_digest(
    tx: &Transaction<'_>,
    session: i64,
    digest: &SessionDigest,
    provider: &str,
) -> rusqlite::Result<()> {
    tx.execute(
        "update sessions
         set title = coalesce(nullif(:title, ''), title), subtitle = nullif(:subtitle, ''),
             open = :open, given_up = :given_up, digest_by = :provider
         where id = :session and (:provider <> 'offline' or coalesce(digest_by, 'offline') = 'offline')",
        named_params! {
            ":title": digest.title,
            ":subtitle": digest.subtitle,
            ":open": json(&digest.open)?,
            ":given_up": json(&digest.given_up)?,
            ":provider": provider,
            ":session": session,
        },
    )?;
    Ok(())
}

/// Sets the title of a session that has none yet: its first prompt.
pub(super) fn name_session(tx: &Transaction<'_>, session: i64) -> rusqlite::Result<()> {
    let prompt: Option<String> = tx
        .prepare_cached(
            "select p.text
             from sessions s
             join prompts p on p.session_id = s.id
             where s.id = :session and s.title is null
             order by p.at
             limit 1",
        )?
        .query_row(named_params! {":session": session}, |row| row.get(0))
        .optional()?;
    if let Some(prompt) = prompt {
        tx.execute(
            "update sessions set title = :title where id = :session",
            named_params! {":title": text::title(&prompt), ":session": session},
        )?;
    }
    Ok(())
}
