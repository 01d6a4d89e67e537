//! Remembers a text, and forgets items, on a person's request.
//!
//! Both are done at once, not queued, so that the reply can name the number or confirm the
//! deletion. A remembered text is an observation like others, but with the user as its origin and
//! derived from no event. A forgotten item leaves a row in `forgotten`, which `commit` checks.
//!
//! Forgotten items are recorded a second time, in a file beside memory.db: if memory.db is damaged
//! beyond reading it is restored from older copies, which still have these items. The file has
//! the ids of sessions, seeds and events, and nothing of their content.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, named_params};
use serde::{Deserialize, Serialize};

use super::commit::DerivedTurn;
use super::observations::keep_observation;
use super::sessions::{HostSession, SessionRow, upsert_project};
use super::{Store, json};
use crate::db::{self, Rows as _};
use crate::files;
use crate::model::{Derived, Millis, Observation, ObservationType, Origin, Provenance, Turn};
use crate::text;

/// A text to be remembered unchanged; it is redacted already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToRemember<'a> {
    pub text: &'a str,
    pub kind: ObservationType,
    /// Whose words it is: the user's, or the agent's, if the agent writes the memory.
    pub origin: Origin,
    /// The project's key.
    pub project: &'a str,
    pub session: &'a HostSession,
    /// Identifies the request, so that the same request twice is one observation.
    pub seed: String,
    pub now: Millis,
}

impl Store {
    /// Remembers a text and returns its number; that of an older observation with the same text if
    /// there is one.
    pub fn remember(&mut self, request: &ToRemember<'_>) -> rusqlite::Result<i64> {
        let tx = self.connection.transaction()?;
        let project = upsert_project(&tx, request.project, request.now)?;
        // The worker may not have stored anything of this session yet.
        let session: SessionRow = tx.one(
            "insert into sessions (host, host_session_id, project_id, state, started_at, last_event_at)
             values (:host, :session, :project, 'active', :now, :now)
             on conflict do update
             set project_id = coalesce(project_id, excluded.project_id)
             returning id, project_id",
            named_params! {
                ":host": request.session.host,
                ":session": request.session.id,
                ":project": project,
                ":now": request.now,
            },
        )?;
        // A request for a forgotten text brings it back.
        tx.execute(
            "delete from forgotten where session_id = :session and seed = :seed",
            named_params! {":session": session.id, ":seed": request.seed},
        )?;
        let derived = DerivedTurn {
            turn: Turn {
                prompt_id: None,
                events: Vec::new(),
            },
            derived: Derived::default(),
            provenance: Provenance {
                provider: request.origin.to_string(),
                model: None,
                prompt_version: None,
            },
        };
        let observation = observation(request);
        let id = keep_observation(&tx, &session, None, &observation, &derived)?;
        tx.commit()?;
        Ok(id)
    }

    /// Deletes these observations and summaries for good. Returns the numbers of those that existed.
    pub fn forget(&mut self, ids: &[i64], now: Millis) -> rusqlite::Result<Vec<i64>> {
        let tx = self.connection.transaction()?;
        let mut gone = Vec::new();
        for &id in ids {
            let marked = tx.execute(
                "insert into forgotten (session_id, seed, events, at)
                 select session_id, seed, events, :now
                 from observations
                 where id = :id
                 union all
                 select session_id, 'summary:' || prompt_id, '[]', :now
                 from summaries
                 where id = :id
                 union all
                 select session_id, seed, events, :now
                 from repeats
                 where observation_id = :id",
                named_params! {":id": id, ":now": now},
            )?;
            if marked > 0 {
                for delete in [
                    "delete from observations where id = :id",
                    "delete from summaries where id = :id",
                ] {
                    tx.execute(delete, named_params! {":id": id})?;
                }
                gone.push(id);
            }
        }
        // A conversation may repeat what was forgotten.
        tx.execute("delete from conversations", [])?;
        note_forgotten(&tx, now)?;
        tx.commit()?;
        Ok(gone)
    }

    /// The sources of a session's forgotten items: keys of the events that observations were
    /// derived from, and the host's ids of prompts whose summary was forgotten.
    pub fn forgotten(&self, session: &str) -> rusqlite::Result<HashSet<String>> {
        let sources = self.connection.all(
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
            named_params! {":session": session},
        )?;
        Ok(sources.into_iter().collect())
    }
}

fn observation(request: &ToRemember<'_>) -> Observation {
    Observation {
        title: text::title(request.text),
        narrative: request.text.to_owned(),
        at: request.now,
        ..Observation::blank(request.seed.clone(), request.kind, request.origin)
    }
}

#[derive(Serialize, Deserialize)]
struct Forgotten {
    host: String,
    session: String,
    seed: String,
    events: String,
    at: Millis,
}

fn forgotten_file(memory: &Connection) -> Option<PathBuf> {
    memory
        .path()
        .map(|path| db::beside(path.as_ref(), ".forgotten"))
}

/// Appends the items that were forgotten at this time. They are on disk before the memory changes.
fn note_forgotten(memory: &Connection, at: Millis) -> rusqlite::Result<()> {
    let rows: Vec<Forgotten> = memory.all(
        "select s.host, s.host_session_id as session, f.seed, f.events, f.at
         from forgotten f
         join sessions s on s.id = f.session_id
         where f.at = :at",
        named_params! {":at": at},
    )?;
    let mut lines = String::new();
    for row in rows {
        lines += &(json(&row)? + "\n");
    }
    let Some(path) = forgotten_file(memory).filter(|_| !lines.is_empty()) else {
        return Ok(());
    };
    let written = OpenOptions::new().create(true).append(true).open(path);
    let written = written.and_then(|mut file| {
        file.write_all(lines.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// The most that is read of the file of forgotten sessions; an entry has about 100 bytes.
const FORGOTTEN_MAX: u64 = 256 << 20;

/// Adds the entries of the file beside the memory at `path` that the memory lacks.
pub(crate) fn recall_forgotten(memory: &Connection, path: &Path) -> rusqlite::Result<()> {
    let Ok(text) = files::read_text(&db::beside(path, ".forgotten"), FORGOTTEN_MAX) else {
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

/// Whether this observation was forgotten before. Another model, or the same one a second time,
/// writes it differently and under another seed; so an observation that was derived only from
/// events of a forgotten one counts as that one.
pub(super) fn is_forgotten(
    tx: &Transaction<'_>,
    session: &SessionRow,
    observation: &Observation,
) -> rusqlite::Result<bool> {
    tx.one(
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
        named_params! {
            ":session": session.id,
            ":seed": observation.seed,
            ":events": json(&observation.events)?,
        },
    )
}
