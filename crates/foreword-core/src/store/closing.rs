//! The end of a session: what a model is shown of the whole session, and what it answered.
//!
//! A model is asked once when a session has ended or fallen silent, and again only if the session
//! was resumed and has new observations. The answer becomes the session's digest and the summary of
//! its last turn; it can also retract, merge and supersede observations, but only those that the
//! model was shown, and never against the user's own words.

use rusqlite::{Transaction, named_params};
use serde::Deserialize;

use super::observations::TOUCHED;
use super::prompts::upsert_summary;
use super::sessions::{HostSession, SessionRow, set_digest};
use super::{SILENCE, Store, json};
use crate::db::Rows as _;
use crate::model::{Millis, ObservationType, Origin, Provenance, SessionDigest, Summary};
use crate::text::normalised;

/// The newest observations of the session that a model is shown.
const OBSERVATIONS_MAX: usize = 60;
/// The newest turns that a model is shown.
const TURNS_MAX: usize = 40;
/// The newest observations of other sessions, about files that this session changed.
const OLDER_MAX: usize = 12;
/// A merged observation has at most this many facts.
const FACTS_MAX: usize = 7;

/// What a model is shown of a session: of one that is over, or at the beginning of a new conversation
/// about one that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSession {
    pub session: HostSession,
    pub project: Option<String>,
    pub last_event_at: Millis,
    /// What is unfinished so far.
    pub open: Vec<String>,
    /// The turns of which something was kept, in order.
    pub turns: Vec<ShownTurn>,
    /// Of this session, oldest first.
    pub observations: Vec<ShownObservation>,
    /// Of earlier sessions, oldest first.
    pub older: Vec<ShownObservation>,
    /// The ids of its rows in `sessions` and `projects`.
    pub session_id: i64,
    pub project_id: Option<i64>,
    pub newest_observation: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ShownTurn {
    pub number: u32,
    pub request: String,
    /// The agent's last words.
    pub reply: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ShownObservation {
    pub id: i64,
    pub kind: ObservationType,
    pub title: String,
    pub facts: Vec<String>,
}

/// What a model answered about a session as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closing {
    pub digest: SessionDigest,
    pub summary: Option<Summary>,
    /// Observations that do not hold, each with the reason.
    pub retracted: Vec<(i64, String)>,
    /// Each observation with the one that replaces it.
    pub superseded: Vec<(i64, i64)>,
    /// Each observation with the one that says the same and takes over its facts.
    pub merged: Vec<(i64, i64)>,
}

/// The row of a session with its project, as `shown_session` reads it.
#[derive(Deserialize)]
struct KnownSession {
    row: SessionRow,
    last_event_at: Millis,
    open: Vec<String>,
    project: Option<String>,
    newest: i64,
}

impl Store {
    /// The session that has waited longest for the last question to this provider: it ended or fell
    /// silent within the last two days, and the provider derived observations from it that it has
    /// not been asked about as a whole.
    pub fn session_to_close(
        &self,
        provider: &str,
        now: Millis,
    ) -> rusqlite::Result<Option<HostSession>> {
        self.connection.first(
            "select s.host, s.host_session_id as id
             from sessions s
             where s.last_event_at >= :now - 2 * :silence
               and (s.state in ('completed', 'interrupted')
                    or s.state = 'failed' and s.last_event_at < :now - :silence)
               and exists (
                   select 1
                   from observations o
                   where o.session_id = s.id and o.provider = :provider
                     and o.id > coalesce(s.closed_at_item, 0)
               )
             order by s.last_event_at
             limit 1",
            named_params! {":now": now, ":silence": SILENCE, ":provider": provider},
        )
    }

    /// What this provider is shown of a session; none if the session is not known. Of earlier sessions
    /// it is shown only observations that it wrote itself.
    pub fn shown_session(
        &self,
        session: &HostSession,
        provider: &str,
    ) -> rusqlite::Result<Option<ShownSession>> {
        let known: Option<KnownSession> = self.connection.first(
            "select json_object('id', s.id, 'project_id', s.project_id) as row, s.last_event_at, s.open,
                    (select name from projects where id = s.project_id) as project,
                    (select coalesce(max(id), 0) from observations where session_id = s.id) as newest
             from sessions s
             where s.host = :host and s.host_session_id = :session",
            named_params! {":host": session.host, ":session": session.id},
        )?;
        let Some(known) = known else {
            return Ok(None);
        };
        let row = known.row;
        let of_files = "session_id <> :session
            and id in (
                select other.observation_id
                from observations o
                join observation_files f on f.observation_id = o.id and f.role = 'modified'
                join observation_files other on other.path = f.path
                where o.session_id = :session
            )";
        let of_session = "session_id = :session";
        Ok(Some(ShownSession {
            session: session.clone(),
            project: known.project,
            last_event_at: known.last_event_at,
            open: known.open,
            turns: self.shown_turns(row.id)?,
            observations: self.shown_observations(of_session, &row, None, OBSERVATIONS_MAX)?,
            older: self.shown_observations(of_files, &row, Some(provider), OLDER_MAX)?,
            session_id: row.id,
            project_id: row.project_id,
            newest_observation: known.newest,
        }))
    }

    fn shown_turns(&self, session: i64) -> rusqlite::Result<Vec<ShownTurn>> {
        self.connection.all(
            "select number, request, reply
             from (
                 select number, text as request, reply
                 from prompts
                 where session_id = :session and kept
                 order by number desc
                 limit :max
             )
             order by number",
            named_params! {":session": session, ":max": TURNS_MAX},
        )
    }

    /// The newest observations of the project that hold and meet a condition, oldest first.
    fn shown_observations(
        &self,
        condition: &str,
        session: &SessionRow,
        provider: Option<&str>,
        max: usize,
    ) -> rusqlite::Result<Vec<ShownObservation>> {
        let sql = format!(
            "select id, type as kind, title, facts
             from observations
             where project_id is :project and superseded_by is null and retracted is null
               and (:provider is null or provider = :provider)
               and {condition}
             order by at desc, id desc
             limit :max"
        );
        let parameters = named_params! {
            ":session": session.id, ":project": session.project_id,
            ":provider": provider, ":max": max,
        };
        let mut shown: Vec<ShownObservation> = self.connection.all(&sql, parameters)?;
        shown.reverse();
        Ok(shown)
    }

    /// Stores a model's answer about a session, or that there was none worth storing: then the
    /// offline digest stays. Either way the model is not asked about these observations again.
    pub fn close_session(
        &mut self,
        ended: &ShownSession,
        answer: Option<(&Closing, &Provenance)>,
    ) -> rusqlite::Result<()> {
        let tx = self.connection.transaction()?;
        tx.execute(
            "update sessions set closed_at_item = :newest where id = :session",
            named_params! {":newest": ended.newest_observation, ":session": ended.session_id},
        )?;
        if let Some((closing, provenance)) = answer {
            set_digest(&tx, ended.session_id, &closing.digest, &provenance.provider)?;
            store_summary(&tx, ended, closing, provenance)?;
            mark(&tx, ended, closing)?;
        }
        tx.commit()
    }
}

/// The summary of the last turn becomes that of the whole session, so that a search finds it.
fn store_summary(
    tx: &Transaction<'_>,
    ended: &ShownSession,
    closing: &Closing,
    provenance: &Provenance,
) -> rusqlite::Result<()> {
    let last = tx.first(
        "select id
         from prompts
         where session_id = :session and kept
         order by number desc
         limit 1",
        named_params! {":session": ended.session_id},
    )?;
    match (last, &closing.summary) {
        (Some(prompt), Some(summary)) => {
            let row = SessionRow {
                id: ended.session_id,
                project_id: ended.project_id,
            };
            let at = ended.last_event_at;
            upsert_summary(tx, &row, prompt, summary, provenance, at)
        }
        _ => Ok(()),
    }
}

/// Retracts, supersedes and merges those observations that the model was shown.
fn mark(tx: &Transaction<'_>, ended: &ShownSession, closing: &Closing) -> rusqlite::Result<()> {
    let all = || ended.observations.iter().chain(&ended.older);
    let was_shown = |id: &i64| all().any(|it| it.id == *id);
    for (id, reason) in closing.retracted.iter().filter(|(id, _)| was_shown(id)) {
        retract(tx, *id, reason)?;
    }
    let both_shown = |(old, new): &&(i64, i64)| old != new && was_shown(old) && was_shown(new);
    for (old, new) in closing.superseded.iter().filter(both_shown) {
        supersede(tx, *old, *new)?;
    }
    for (old, new) in closing.merged.iter().filter(both_shown) {
        if supersede(tx, *old, *new)? {
            let mut merged = facts(tx, *new)?;
            for (fact, origin) in facts(tx, *old)? {
                let is_known = |(it, _): &(String, Origin)| normalised(it) == normalised(&fact);
                if !merged.iter().any(is_known) && merged.len() < FACTS_MAX {
                    merged.push((fact, origin));
                }
            }
            let (facts, origins): (Vec<String>, Vec<Origin>) = merged.into_iter().unzip();
            let sql = format!(
                "update observations set facts = :facts, fact_origins = :origins where id = :id and not {TOUCHED}"
            );
            let values =
                named_params! {":facts": json(&facts)?, ":origins": json(&origins)?, ":id": new};
            tx.execute(&sql, values)?;
        }
    }
    Ok(())
}

/// The facts of an observation, each with whose words it is.
fn facts(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<Vec<(String, Origin)>> {
    let (facts, mut origins, origin): (Vec<String>, Vec<Origin>, Origin) = tx.one(
        "select facts, fact_origins, origin from observations where id = :id",
        named_params! {":id": id},
    )?;
    origins.resize(facts.len(), origin);
    Ok(facts.into_iter().zip(origins).collect())
}

/// Marks an observation as wrong, unless it has the user's words or a person changed it.
pub(super) fn retract(tx: &Transaction<'_>, id: i64, reason: &str) -> rusqlite::Result<()> {
    let sql = format!(
        "update observations
         set retracted = :reason
         where id = :id and origin <> 'user' and not {TOUCHED}"
    );
    tx.execute(&sql, named_params! {":id": id, ":reason": reason})?;
    Ok(())
}

/// Marks an observation as superseded, unless one of the two already is, the older one has the user's
/// words and the newer one has not, or a person changed or judged one of them. True if it was marked.
pub(super) fn supersede(tx: &Transaction<'_>, old: i64, new: i64) -> rusqlite::Result<bool> {
    let sql = format!(
        "update observations
         set superseded_by = :new
         where id = :old
           and not {TOUCHED}
           and superseded_by is null
           and exists (
               select 1
               from observations newer
               where newer.id = :new
                 and newer.superseded_by is null
                 and (observations.origin <> 'user' or newer.origin = 'user')
           )"
    );
    let marked = tx.execute(&sql, named_params! {":old": old, ":new": new})?;
    Ok(marked > 0)
}
