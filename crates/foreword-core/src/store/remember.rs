//! Remembers a text, and forgets items, on a person's request.
//!
//! Both are done at once, not queued, so that the reply can name the number or confirm the
//! deletion. A remembered text is an observation like others, but with the user as its origin and
//! derived from no event. A forgotten item leaves a row in `forgotten`, which `commit` checks.

use rusqlite::named_params;

use super::Store;
use super::commit::DerivedTurn;
use super::forgotten;
use super::kin::keep_observation;
use super::projects::upsert_project;
use super::sessions::{HostSession, SessionRow};
use crate::model::{Derived, Millis, Observation, ObservationType, Origin, Provenance, Turn};
use crate::text;

/// A text to be remembered unchanged; it is redacted already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToRemember<'a> {
    pub text: &'a str,
    pub kind: ObservationType,
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
        let tx = self
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let project = upsert_project(&tx, request.project, request.now)?;
        // The worker may not have stored anything of this session yet.
        let session = tx.query_row(
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
            |row| {
                Ok(SessionRow {
                    id: row.get(0)?,
                    project_id: row.get(1)?,
                })
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
                provider: Origin::User.to_string(),
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
        let tx = self
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
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
        forgotten::note(&tx, now)?;
        tx.commit()?;
        Ok(gone)
    }
}

fn observation(request: &ToRemember<'_>) -> Observation {
    Observation {
        title: text::title(request.text),
        narrative: request.text.to_owned(),
        at: request.now,
        ..Observation::blank(request.seed.clone(), request.kind, Origin::User)
    }
}
