//! A short account of a session so far, for a model that is sent more of its events.

use std::collections::HashSet;

use rusqlite::{OptionalExtension as _, named_params};

use crate::db::Rows as _;
use crate::model::{Event, Millis};
use crate::search;
use crate::store::{ShownObservation, Store};

/// A short account of a session so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digest {
    pub project: Option<String>,
    /// The latest prompt that is more than an answer like "yes".
    pub task: Option<String>,
    /// All prompts before the given time.
    pub prompts: Vec<DigestPrompt>,
    /// The latest observations, oldest first.
    pub observations: Vec<ShownObservation>,
    /// Observations of earlier sessions about the same files or subject, oldest first.
    pub older: Vec<ShownObservation>,
    /// The field `completed` of the latest summary that has one.
    pub completed: Option<String>,
}

impl Digest {
    /// All observations in it.
    pub fn shown(&self) -> impl Iterator<Item = &ShownObservation> {
        self.observations.iter().chain(&self.older)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestPrompt {
    pub host_prompt_id: Option<String>,
    pub number: u32,
    pub text: String,
    /// The agent's last words.
    pub reply: Option<String>,
    /// When a model last summarised it.
    pub summed_up_at: Option<Millis>,
}

/// How many of the latest observations are included.
const OBSERVATIONS: u32 = 12;
/// How many observations of earlier sessions are included.
const OLDER: u32 = 6;
/// The fewest words of a prompt that is a task.
const TASK_WORDS: usize = 6;

/// The turns of a session that something was derived from, by the host's id of their prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownTurns {
    /// Those with observations.
    pub observed: HashSet<Option<String>>,
    /// Those that a model has summed up.
    pub summed_up: HashSet<Option<String>>,
}

impl Store {
    pub fn known_turns(&self, host: &str, host_session_id: &str) -> rusqlite::Result<KnownTurns> {
        let Some(session) = self.session_id(host, host_session_id)? else {
            return Ok(KnownTurns::default());
        };
        let known = |sql| -> rusqlite::Result<HashSet<Option<String>>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows =
                statement.query_map(named_params! {":session": session}, |row| row.get(0))?;
            rows.collect()
        };
        Ok(KnownTurns {
            observed: known(
                "select p.host_prompt_id
                 from observations o
                 join prompts p on p.id = o.prompt_id
                 where o.session_id = :session
                 union
                 select p.host_prompt_id
                 from repeats r
                 join prompts p on p.id = r.prompt_id
                 where r.session_id = :session",
            )?,
            summed_up: known(
                "select p.host_prompt_id
                 from summaries s
                 join prompts p on p.id = s.prompt_id
                 where s.session_id = :session and s.provider <> 'offline'",
            )?,
        })
    }

    /// The session as it was before a time. Empty if nothing of it is stored yet.
    pub fn digest(
        &self,
        host: &str,
        host_session_id: &str,
        before: Millis,
    ) -> rusqlite::Result<Digest> {
        let Some(session) = self.session_id(host, host_session_id)? else {
            return Ok(Digest::default());
        };
        let prompts = self.digest_prompts(session, before)?;
        Ok(Digest {
            project: self.connection.query_row(
                "select (select name from projects where id = s.project_id)
                 from sessions s
                 where s.id = :session",
                named_params! {":session": session},
                |row| row.get(0),
            )?,
            task: {
                let is_task = |it: &&DigestPrompt| it.text.split_whitespace().count() >= TASK_WORDS;
                let task = prompts.iter().rev().find(is_task).or(prompts.first());
                task.map(|prompt| prompt.text.clone())
            },
            older: Vec::new(),
            observations: self.latest_observations(session, before)?,
            completed: self.last_completed(session, before)?,
            prompts,
        })
    }

    fn digest_prompts(&self, session: i64, before: Millis) -> rusqlite::Result<Vec<DigestPrompt>> {
        let mut statement = self.connection.prepare_cached(
            "select p.host_prompt_id, p.number, p.text, p.reply, s.at as summed_up_at
             from prompts p
             left join summaries s on s.prompt_id = p.id and s.provider <> 'offline'
             where p.session_id = :session and p.at < :before
             order by p.number",
        )?;
        let rows = statement.query_map(
            named_params! {":session": session, ":before": before},
            |row| {
                Ok(DigestPrompt {
                    host_prompt_id: row.get("host_prompt_id")?,
                    number: row.get("number")?,
                    text: row.get("text")?,
                    reply: row.get("reply")?,
                    summed_up_at: row.get("summed_up_at")?,
                })
            },
        )?;
        rows.collect()
    }

    fn latest_observations(
        &self,
        session: i64,
        before: Millis,
    ) -> rusqlite::Result<Vec<ShownObservation>> {
        let mut latest: Vec<ShownObservation> = self.connection.all(
            "select id, type as kind, title, facts
             from observations
             where session_id = :session and at < :before
               and superseded_by is null and retracted is null
             order by at desc, id desc
             limit :limit",
            named_params! {":session": session, ":before": before, ":limit": OBSERVATIONS},
        )?;
        latest.reverse();
        Ok(latest)
    }

    /// What this provider wrote in earlier sessions of the project about these files, or about the
    /// subject of these prompts, before a time.
    pub fn older_about(
        &self,
        events: &[Event],
        files: &[String],
        provider: &str,
        before: Millis,
    ) -> rusqlite::Result<Vec<ShownObservation>> {
        let last = events.last();
        let Some((last, project)) = last.and_then(|it| Some((it, it.project.as_deref()?))) else {
            return Ok(Vec::new());
        };
        let mut subject = Vec::new();
        for prompt in events.iter().filter_map(|it| it.payload.prompt.as_deref()) {
            subject.extend(search::about(self, prompt, project)?);
        }
        let subject: Vec<i64> = subject.iter().map(|it| it.id).collect();
        let mut older: Vec<ShownObservation> = self.connection.all(
            "select id, type as kind, title, facts
             from observations
             where project_id = (select project_id from project_keys where key = :project)
               and session_id is not (
                   select id from sessions where host = :host and host_session_id = :session)
               and superseded_by is null and retracted is null
               and provider = :provider and at < :before
               and (id in (select value from json_each(:subject))
                    or id in (
                        select observation_id
                        from observation_files
                        where path in (select value from json_each(:files))))
             order by at desc, id desc
             limit :limit",
            named_params! {
                ":project": project,
                ":host": last.host,
                ":session": last.host_session_id,
                ":provider": provider,
                ":before": before,
                ":subject": serde_json::json!(subject).to_string(),
                ":files": serde_json::json!(files).to_string(),
                ":limit": OLDER,
            },
        )?;
        older.reverse();
        Ok(older)
    }

    fn last_completed(&self, session: i64, before: Millis) -> rusqlite::Result<Option<String>> {
        let mut statement = self.connection.prepare_cached(
            "select completed
             from summaries
             where session_id = :session and at < :before
               and completed <> '' and provider <> 'offline'
             order by at desc
             limit 1",
        )?;
        let parameters = named_params! {":session": session, ":before": before};
        statement.query_row(parameters, |row| row.get(0)).optional()
    }
}
