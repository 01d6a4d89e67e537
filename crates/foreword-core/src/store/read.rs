//! Questions to the memory that have one answer.

use rusqlite::{Row, named_params};
use serde::Serialize;

use super::{Beside, Store};
use crate::model::{Kind, Millis, ObservationType, Origin};

/// How much there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub observations: u64,
    pub summaries: u64,
    pub prompts: u64,
    pub sessions: u64,
    pub projects: u64,
    pub last_event_at: Option<Millis>,
}

/// Something with a number, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    pub id: i64,
    pub uuid: String,
    pub project: Option<String>,
    pub session: String,
    pub session_title: Option<String>,
    pub prompt_number: Option<u32>,
    #[serde(skip)]
    pub at: Millis,
    #[serde(flatten)]
    pub body: ItemBody,
    /// Only of an observation, and only where somebody looked.
    #[serde(flatten)]
    pub beside: Option<Beside>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ItemBody {
    Observation {
        r#type: ObservationType,
        title: String,
        subtitle: String,
        facts: Vec<String>,
        narrative: String,
        concepts: Vec<String>,
        files_read: Vec<String>,
        files_modified: Vec<String>,
        origin: Origin,
        agent_id: Option<String>,
        branch: Option<String>,
        commit: Option<String>,
        provider: String,
        model: Option<String>,
        prompt_version: Option<String>,
        events: Vec<String>,
        /// The newer decision on the same matter.
        superseded_by: Option<i64>,
        supersedes: Vec<i64>,
        /// How often it was told.
        times: u32,
    },
    Summary {
        request: String,
        investigated: String,
        learned: String,
        completed: String,
        next_steps: String,
        files_read: Vec<String>,
        files_edited: Vec<String>,
        notes: String,
        provider: String,
        model: Option<String>,
        prompt_version: Option<String>,
    },
    Prompt {
        text: String,
        reply: Option<String>,
    },
    Note {
        title: String,
        path: String,
        text: String,
        /// Of no session that is known here: it came with the project.
        foreign: bool,
    },
}

impl ItemBody {
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            ItemBody::Observation { .. } => Kind::Observation,
            ItemBody::Summary { .. } => Kind::Summary,
            ItemBody::Prompt { .. } => Kind::Prompt,
            ItemBody::Note { .. } => Kind::Note,
        }
    }
}

impl Store {
    pub fn totals(&self) -> rusqlite::Result<Totals> {
        self.connection.query_row(
            "select (select count(*) from observations) as observations,
                    (select count(*) from summaries) as summaries,
                    (select count(*) from prompts) as prompts,
                    (select count(*) from sessions) as sessions,
                    (select count(*) from projects) as projects,
                    (select max(last_event_at) from sessions) as last_event_at",
            [],
            |row| {
                Ok(Totals {
                    observations: row.get("observations")?,
                    summaries: row.get("summaries")?,
                    prompts: row.get("prompts")?,
                    sessions: row.get("sessions")?,
                    projects: row.get("projects")?,
                    last_event_at: row.get("last_event_at")?,
                })
            },
        )
    }

    /// Fields of the host's that we do not know, and in how many kept events each was.
    pub fn unknown_fields(&self) -> rusqlite::Result<Vec<(String, u64)>> {
        let mut statement = self.connection.prepare_cached(
            "select field.value, count(*) as events
             from events, json_each(events.event, '$.payload.unknown') as field
             group by field.value
             order by events desc, field.value
             limit 8",
        )?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }

    /// The thing with this number.
    pub fn item(&self, id: i64) -> rusqlite::Result<Option<Item>> {
        let mut statement = self
            .connection
            .prepare_cached("select kind from items where id = :id")?;
        let mut rows = statement.query(named_params! {":id": id})?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let found = match row.get::<_, Kind>(0)? {
            Kind::Observation => self.observation(id),
            Kind::Summary => self.one(
                "select i.uuid, p.name as project, s.host_session_id as session, s.title as session_title,
                        q.number as prompt_number, m.*
                 from summaries m
                 join items i on i.id = m.id
                 join sessions s on s.id = m.session_id
                 join prompts q on q.id = m.prompt_id
                 left join projects p on p.id = m.project_id
                 where m.id = :id",
                id,
                summary_body,
            ),
            Kind::Prompt => self.one(
                "select i.uuid, p.name as project, s.host_session_id as session, s.title as session_title,
                        m.number as prompt_number, m.*
                 from prompts m
                 join items i on i.id = m.id
                 join sessions s on s.id = m.session_id
                 left join projects p on p.id = s.project_id
                 where m.id = :id",
                id,
                prompt_body,
            ),
            Kind::Note => self.one(
                "select i.uuid, p.name as project, coalesce(m.session, '') as session, null as session_title,
                        null as prompt_number, m.*,
                        m.session is not null and s.id is null as foreign_note
                 from notes m
                 join items i on i.id = m.id
                 left join projects p on p.id = m.project_id
                 left join sessions s on s.host_session_id = m.session
                 where m.id = :id",
                id,
                note_body,
            ),
        };
        match found {
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            other => other.map(Some),
        }
    }

    fn observation(&self, id: i64) -> rusqlite::Result<Item> {
        let mut item = self.one(
            "select i.uuid, p.name as project, s.host_session_id as session, s.title as session_title,
                    q.number as prompt_number, m.*,
                    1 + (select count(*) from repeats r where r.observation_id = m.id) as times
             from observations m
             join items i on i.id = m.id
             join sessions s on s.id = m.session_id
             left join prompts q on q.id = m.prompt_id
             left join projects p on p.id = m.project_id
             where m.id = :id",
            id,
            observation_body,
        )?;
        if let ItemBody::Observation {
            files_read,
            files_modified,
            supersedes,
            ..
        } = &mut item.body
        {
            *files_read = self.files(id, "read")?;
            *files_modified = self.files(id, "modified")?;
            *supersedes = self.superseded_by(id)?;
        }
        Ok(item)
    }

    fn files(&self, id: i64, role: &str) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare_cached(
            "select path
             from observation_files
             where observation_id = :id and role = :role
             order by path",
        )?;
        let rows =
            statement.query_map(named_params! {":id": id, ":role": role}, |row| row.get(0))?;
        rows.collect()
    }

    fn superseded_by(&self, id: i64) -> rusqlite::Result<Vec<i64>> {
        let mut statement = self
            .connection
            .prepare_cached("select id from observations where superseded_by = :id order by id")?;
        let rows = statement.query_map(named_params! {":id": id}, |row| row.get(0))?;
        rows.collect()
    }

    fn one(
        &self,
        sql: &str,
        id: i64,
        body: fn(&Row<'_>) -> rusqlite::Result<ItemBody>,
    ) -> rusqlite::Result<Item> {
        self.connection
            .prepare_cached(sql)?
            .query_row(named_params! {":id": id}, |row| {
                Ok(Item {
                    id,
                    uuid: row.get("uuid")?,
                    project: row.get("project")?,
                    session: row.get("session")?,
                    session_title: row.get("session_title")?,
                    prompt_number: row.get("prompt_number")?,
                    at: row.get("at")?,
                    body: body(row)?,
                    beside: None,
                })
            })
    }
}

fn observation_body(row: &Row<'_>) -> rusqlite::Result<ItemBody> {
    Ok(ItemBody::Observation {
        r#type: row.get("type")?,
        title: row.get("title")?,
        subtitle: row.get("subtitle")?,
        facts: list(row, "facts")?,
        narrative: row.get("narrative")?,
        concepts: list(row, "concepts")?,
        files_read: Vec::new(),
        files_modified: Vec::new(),
        origin: row.get("origin")?,
        agent_id: row.get("agent_id")?,
        branch: row.get("branch")?,
        commit: row.get("commit")?,
        provider: row.get("provider")?,
        model: row.get("model")?,
        prompt_version: row.get("prompt_version")?,
        events: list(row, "events")?,
        superseded_by: row.get("superseded_by")?,
        supersedes: Vec::new(),
        times: row.get("times")?,
    })
}

fn summary_body(row: &Row<'_>) -> rusqlite::Result<ItemBody> {
    Ok(ItemBody::Summary {
        request: row.get("request")?,
        investigated: row.get("investigated")?,
        learned: row.get("learned")?,
        completed: row.get("completed")?,
        next_steps: row.get("next_steps")?,
        files_read: list(row, "files_read")?,
        files_edited: list(row, "files_edited")?,
        notes: row.get("notes")?,
        provider: row.get("provider")?,
        model: row.get("model")?,
        prompt_version: row.get("prompt_version")?,
    })
}

fn prompt_body(row: &Row<'_>) -> rusqlite::Result<ItemBody> {
    Ok(ItemBody::Prompt {
        text: row.get("text")?,
        reply: row.get("reply")?,
    })
}

fn note_body(row: &Row<'_>) -> rusqlite::Result<ItemBody> {
    Ok(ItemBody::Note {
        title: row.get("title")?,
        path: row.get("path")?,
        text: row.get("text")?,
        foreign: row.get("foreign_note")?,
    })
}

/// A list of words; the table's CHECK says that it is JSON.
pub(super) fn list(row: &Row<'_>, column: &str) -> rusqlite::Result<Vec<String>> {
    let json: String = row.get(column)?;
    Ok(serde_json::from_str(&json).unwrap_or_default())
}
