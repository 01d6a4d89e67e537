//! Sessions of the host: their project, state and title; and the projects: list, rename, merge and
//! move them.
//!
//! A project is identified by its keys, which `crate::project` derives; its name is for people.
//! Merging moves everything over and leaves the old keys pointing at the new project, so that the
//! next session there is shown the merged memory.

use std::path::PathBuf;

use rusqlite::{Connection, Transaction, named_params};
use serde::{Deserialize, Serialize};

use super::commit::{Batch, Replaces};
use super::{SILENCE, Store, json};
use crate::db::Rows as _;
use crate::model::{Event, EventKind, Millis, SessionDigest, SessionState};
use crate::{project, text};

/// A session, identified by its host and the host's id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HostSession {
    pub host: String,
    pub id: String,
}

/// The ids of a session's row that other rows refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct SessionRow {
    pub id: i64,
    pub project_id: Option<i64>,
}

impl Store {
    pub(crate) fn session_id(
        &self,
        host: &str,
        host_session_id: &str,
    ) -> rusqlite::Result<Option<i64>> {
        self.connection.first(
            "select id from sessions where host = :host and host_session_id = :session",
            named_params! {":host": host, ":session": host_session_id},
        )
    }

    /// The sessions whose id begins with `prefix`, the latest first; only one if `prefix` is its
    /// whole id.
    pub fn sessions_named(&self, prefix: &str) -> rusqlite::Result<Vec<HostSession>> {
        let mut sessions: Vec<HostSession> = self.connection.all(
            "select host, host_session_id as id
             from sessions
             where substr(host_session_id, 1, length(:prefix)) = :prefix
             order by last_event_at desc
             limit 20",
            named_params! {":prefix": prefix},
        )?;
        if sessions.iter().any(|session| session.id == prefix) {
            sessions.retain(|session| session.id == prefix);
        }
        Ok(sessions)
    }

    /// The top of the working tree that a session ran in.
    pub fn session_root(&self, session: &HostSession) -> rusqlite::Result<Option<PathBuf>> {
        let root: Option<Option<PathBuf>> = self.connection.first(
            "select root from sessions where host = :host and host_session_id = :session",
            named_params! {":host": session.host, ":session": session.id},
        )?;
        Ok(root.flatten())
    }

    /// The session that an item belongs to.
    pub fn session_of(&self, item: i64) -> rusqlite::Result<Option<HostSession>> {
        self.connection.first(
            "select s.host, s.host_session_id as id
             from sessions s
             where s.id = coalesce(
                 (select session_id from observations where id = :item),
                 (select session_id from summaries where id = :item),
                 (select session_id from prompts where id = :item))",
            named_params! {":item": item},
        )
    }

    /// The sessions that the next `keep_house` will mark as interrupted.
    pub fn silent_sessions(&self, now: Millis) -> rusqlite::Result<Vec<String>> {
        self.connection.all(
            "select host_session_id
             from sessions
             where state = 'active' and last_event_at < :before",
            named_params! {":before": now - SILENCE},
        )
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
    let last_event_at: Option<Millis> = tx.one(
        "select max(last_event_at)
         from sessions
         where host = :host and host_session_id = :session and last_event_at <= :now",
        named_params! {":host": first.host, ":session": first.host_session_id, ":now": batch.now},
    )?;
    let (id, project_id, mut state) = tx.one(
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
             last_event_at = max(last_event_at, excluded.last_event_at)
         returning id, project_id, state",
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
pub(super) fn name_session(tx: &Connection, session: i64) -> rusqlite::Result<()> {
    let prompt: Option<String> = tx.first(
        "select p.text
         from sessions s
         join prompts p on p.session_id = s.id
         where s.id = :session and s.title is null
         order by p.at
         limit 1",
        named_params! {":session": session},
    )?;
    if let Some(prompt) = prompt {
        tx.execute(
            "update sessions set title = :title where id = :session",
            named_params! {":title": text::title(&prompt), ":session": session},
        )?;
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    #[serde(skip_serializing)]
    pub id: i64,
    pub name: String,
    pub keys: Vec<String>,
    pub sessions: u64,
    pub observations: u64,
    #[serde(serialize_with = "text::serialize_time")]
    pub last_event_at: Option<Millis>,
}

impl Store {
    /// All projects, the one used last first.
    pub fn projects(&self) -> rusqlite::Result<Vec<Project>> {
        self.connection.all(
            "select p.id, p.name,
                    (select json_group_array(key order by key) from project_keys k where k.project_id = p.id) as keys,
                    (select count(*) from sessions s where s.project_id = p.id) as sessions,
                    (select count(*) from observations o where o.project_id = p.id) as observations,
                    (select max(last_event_at) from sessions s where s.project_id = p.id) as last_event_at
             from projects p
             order by last_event_at desc, p.id",
            [],
        )
    }

    /// The working trees of sessions, the latest first.
    pub fn roots(&self) -> rusqlite::Result<Vec<PathBuf>> {
        self.connection.all(
            "select root
             from sessions
             where root is not null
             group by root
             order by max(id) desc
             limit 50",
            [],
        )
    }

    /// The first of these names or keys that no project has.
    pub fn unknown_project(&self, projects: &[String]) -> rusqlite::Result<Option<String>> {
        self.connection.first(
            "select value
             from json_each(:projects)
             where value not in (select name from projects)
               and value not in (select key from project_keys)",
            named_params! {":projects": json(&projects)?},
        )
    }

    pub fn rename_project(&self, id: i64, name: &str) -> rusqlite::Result<()> {
        self.connection.execute(
            "update projects set name = :name where id = :id",
            named_params! {":name": name, ":id": id},
        )?;
        Ok(())
    }

    /// Moves everything of project `from`, and its keys, to project `into`, and deletes `from`.
    pub fn merge_projects(&mut self, from: i64, into: i64) -> rusqlite::Result<()> {
        let tx = self.connection.transaction()?;
        for table in ["project_keys", "sessions", "observations", "summaries"] {
            tx.execute(
                &format!("update {table} set project_id = :into where project_id = :from"),
                named_params! {":into": into, ":from": from},
            )?;
        }
        tx.execute(
            "delete from projects where id = :from",
            named_params! {":from": from},
        )?;
        tx.commit()
    }

    /// Adds a key to a project, for a repository that was moved or got a remote.
    pub fn add_project_key(&self, id: i64, key: &str) -> rusqlite::Result<()> {
        self.connection.execute(
            "insert into project_keys (key, project_id) values (:key, :id)",
            named_params! {":key": key, ":id": id},
        )?;
        Ok(())
    }
}

/// The id of the project with this key; creates the project if there is none.
pub(crate) fn upsert_project(
    tx: &Transaction<'_>,
    key: &str,
    now: Millis,
) -> rusqlite::Result<i64> {
    let known = "select project_id from project_keys where key = :key";
    if let Some(known) = tx.first(known, named_params! {":key": key})? {
        return Ok(known);
    }
    let id = tx.one(
        "insert into projects (name, created_at) values (:name, :now) returning id",
        named_params! {":name": project::name(key), ":now": now},
    )?;
    tx.execute(
        "insert into project_keys (key, project_id) values (:key, :id)",
        named_params! {":key": key, ":id": id},
    )?;
    Ok(id)
}
