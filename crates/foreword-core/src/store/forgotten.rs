//! Forgotten items, recorded a second time in a file beside memory.db. If memory.db is damaged
//! beyond reading it is restored from older copies, which still have these items. The file has
//! the ids of sessions, seeds and events, and nothing of their content.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use rusqlite::{Connection, Transaction, named_params};
use serde::{Deserialize, Serialize};

use super::sessions::SessionRow;
use super::{Store, json};
use crate::db;
use crate::model::{Millis, Observation};

#[derive(Serialize, Deserialize)]
struct Forgotten {
    host: String,
    session: String,
    seed: String,
    events: String,
    at: Millis,
}

fn path(memory: &Connection) -> Option<PathBuf> {
    memory
        .path()
        .map(|path| db::beside(path.as_ref(), ".forgotten"))
}

/// Appends the items that were forgotten at this time. They are on disk before the memory changes.
pub(super) fn note(memory: &Connection, at: Millis) -> rusqlite::Result<()> {
    let mut statement = memory.prepare(
        "select s.host, s.host_session_id, f.seed, f.events
         from forgotten f
         join sessions s on s.id = f.session_id
         where f.at = :at",
    )?;
    let rows = statement.query_map(named_params! {":at": at}, |row| {
        Ok(Forgotten {
            host: row.get(0)?,
            session: row.get(1)?,
            seed: row.get(2)?,
            events: row.get(3)?,
            at,
        })
    })?;
    let mut lines = String::new();
    for row in rows {
        lines += &serde_json::to_string(&row?).map_err(failed)?;
        lines.push('\n');
    }
    let Some(path) = path(memory).filter(|_| !lines.is_empty()) else {
        return Ok(());
    };
    let written = OpenOptions::new().create(true).append(true).open(path);
    let written = written.and_then(|mut file| {
        file.write_all(lines.as_bytes())?;
        file.sync_all()
    });
    written.map_err(failed)
}

/// Adds the entries of the file that the memory lacks.
pub(crate) fn recall(memory: &Connection) -> rusqlite::Result<()> {
    let Some(text) = path(memory).and_then(|path| std::fs::read_to_string(path).ok()) else {
        return Ok(());
    };
    let lines = text.lines();
    for it in lines.filter_map(|line| serde_json::from_str::<Forgotten>(line).ok()) {
        // The session's row may be lost, and the session read again from its transcript.
        memory.execute(
            "insert or ignore into sessions (host, host_session_id, state, started_at, last_event_at)
             values (:host, :session, 'interrupted', :at, :at)",
            named_params! {":host": it.host, ":session": it.session, ":at": it.at},
        )?;
        memory.execute(
            "insert or ignore into forgotten (session_id, seed, events, at)
             select id, :seed, :events, :at
             from sessions
             where host = :host and host_session_id = :session",
            named_params! {
                ":host": it.host, ":session": it.session, ":seed": it.seed,
                ":events": it.events, ":at": it.at,
            },
        )?;
    }
    Ok(())
}

impl Store {
    /// The sources of a session's forgotten items: keys of the events that observations were
    /// derived from, and the host's ids of prompts whose summary was forgotten.
    pub fn forgotten(&self, session: &str) -> rusqlite::Result<HashSet<String>> {
        let mut statement = self.connection.prepare(
            "select p.key
             from sessions s
             join forgotten f on f.session_id = s.id
             join json_each(f.events) e
             join processed_events p on p.event_id = e.value
             where s.host_session_id = :session
             union
             select p.host_prompt_id
             from sessions s
             join forgotten f on f.session_id = s.id
             join prompts p on p.session_id = s.id and f.seed = 'summary:' || p.id
             where s.host_session_id = :session and p.host_prompt_id is not null",
        )?;
        let rows = statement.query_map(named_params! {":session": session}, |row| row.get(0))?;
        rows.collect()
    }
}

/// Whether this observation was forgotten before. Another model, or the same one a second time,
/// writes it differently and under another seed; so an observation that was derived only from
/// events of a forgotten one counts as that one.
pub(super) fn is_forgotten(
    tx: &Transaction<'_>,
    session: &SessionRow,
    observation: &Observation,
) -> rusqlite::Result<bool> {
    let mut statement = tx.prepare_cached(
        "select exists (
             select 1
             from forgotten
             where session_id = :session
               and (
                   seed = :seed
                   or json_array_length(:events) > 0
                   and not exists (
                       select 1
                       from json_each(:events) as event
                       where event.value not in (select value from json_each(forgotten.events))
                   )
               )
         )",
    )?;
    statement.query_row(
        named_params! {
            ":session": session.id,
            ":seed": observation.seed,
            ":events": json(&observation.events)?,
        },
        |row| row.get(0),
    )
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
