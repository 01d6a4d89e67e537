//! Items: observations, summaries, prompts and notes, which share one sequence of numbers.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, named_params};
use serde::{Deserialize, Serialize};
use uuid::{ClockSequence, Uuid};

use super::Store;
use crate::db::Rows as _;
use crate::model::{Freshness, Kind, Millis, ObservationType, Origin};

/// How many rows of each kind there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub observations: u64,
    pub summaries: u64,
    pub prompts: u64,
    pub sessions: u64,
    pub projects: u64,
    pub last_event_at: Option<Millis>,
}

/// An item with all its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    pub id: i64,
    pub uuid: String,
    pub project: Option<String>,
    pub session: String,
    pub session_title: Option<String>,
    pub prompt_number: Option<u32>,
    #[serde(rename = "created_at", serialize_with = "crate::text::serialize_time")]
    pub at: Millis,
    #[serde(flatten)]
    pub body: ItemBody,
    /// Only for an observation, and only if its files were checked.
    #[serde(flatten)]
    pub freshness: Option<ItemFreshness>,
}

/// The state of an observation's files now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ItemFreshness {
    /// The worst state of its files; none if unknown.
    pub stale: Option<Freshness>,
    /// The files that have changed or are gone.
    pub stale_files: BTreeMap<String, Freshness>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ItemBody {
    Observation(ObservationItem),
    Summary(SummaryItem),
    Prompt(PromptItem),
    Note(NoteItem),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservationItem {
    pub r#type: ObservationType,
    pub title: String,
    pub subtitle: String,
    pub facts: Vec<String>,
    pub narrative: String,
    pub concepts: Vec<String>,
    pub files_read: Vec<String>,
    pub files_modified: Vec<String>,
    pub origin: Origin,
    pub agent_id: Option<String>,
    pub branch: Option<String>,
    pub commit: Option<String>,
    pub provider: String,
    pub model: Option<String>,
    pub prompt_version: Option<String>,
    pub events: Vec<String>,
    /// The newer decision on the same matter.
    pub superseded_by: Option<i64>,
    /// Why it no longer holds; none while it does.
    pub retracted: Option<String>,
    pub supersedes: Vec<i64>,
    /// How often it was derived.
    pub times: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryItem {
    pub request: String,
    pub investigated: String,
    pub learned: String,
    pub completed: String,
    pub next_steps: String,
    pub files_read: Vec<String>,
    pub files_edited: Vec<String>,
    pub notes: String,
    pub provider: String,
    pub model: Option<String>,
    pub prompt_version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptItem {
    pub text: String,
    pub reply: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteItem {
    pub title: String,
    pub path: String,
    pub text: String,
    /// Its session is not in this memory: the note came with the project.
    pub foreign: bool,
}

impl ItemBody {
    pub fn kind(&self) -> Kind {
        match self {
            ItemBody::Observation(_) => Kind::Observation,
            ItemBody::Summary(_) => Kind::Summary,
            ItemBody::Prompt(_) => Kind::Prompt,
            ItemBody::Note(_) => Kind::Note,
        }
    }
}

impl Store {
    pub fn totals(&self) -> rusqlite::Result<Totals> {
        self.connection.one(
            "select (select count(*) from observations) as observations,
                    (select count(*) from summaries) as summaries,
                    (select count(*) from prompts) as prompts,
                    (select count(*) from sessions) as sessions,
                    (select count(*) from projects) as projects,
                    (select max(last_event_at) from sessions) as last_event_at",
            [],
        )
    }

    /// The item with this number; none if it never existed or was forgotten.
    pub fn item(&self, id: i64) -> rusqlite::Result<Option<Item>> {
        let mut statement = self.connection.prepare_cached(
            "select i.kind, i.uuid, p.name as project, coalesce(s.host_session_id, n.session, '') as session,
                    s.title as session_title, q.number as prompt_number,
                    coalesce(o.at, m.at, n.at, q.at) as at
             from items i
             left join observations o on o.id = i.id
             left join summaries m on m.id = i.id
             left join notes n on n.id = i.id
             left join prompts q on q.id = coalesce(o.prompt_id, m.prompt_id, i.id)
             left join sessions s on s.id = coalesce(o.session_id, q.session_id)
             left join projects p on p.id = coalesce(o.project_id, m.project_id, n.project_id, s.project_id)
             where i.id = :id",
        )?;
        let item = statement.query_row(named_params! {":id": id}, |row| {
            let body = match row.get("kind")? {
                Kind::Observation => ItemBody::Observation(self.observation(id)?),
                Kind::Summary => ItemBody::Summary(self.summary(id)?),
                Kind::Prompt => ItemBody::Prompt(self.prompt(id)?),
                Kind::Note => ItemBody::Note(self.note(id)?),
            };
            Ok(Item {
                id,
                uuid: row.get("uuid")?,
                project: row.get("project")?,
                session: row.get("session")?,
                session_title: row.get("session_title")?,
                prompt_number: row.get("prompt_number")?,
                at: row.get("at")?,
                body,
                freshness: None,
            })
        });
        item.optional()
    }

    fn note(&self, id: i64) -> rusqlite::Result<NoteItem> {
        self.connection.one(
            r#"select title, path, text,
                      session is not null and not exists (
                          select 1 from sessions where host_session_id = session
                      ) as "foreign"
               from notes
               where id = :id"#,
            named_params! {":id": id},
        )
    }
}

/// Creates an item and returns its number.
pub(crate) fn next_item(connection: &Connection, kind: Kind, at: Millis) -> rusqlite::Result<i64> {
    connection.one(
        "insert into items (uuid, kind) values (:uuid, :kind) returning id",
        named_params! {":uuid": uuid_at(at, uuid::NoContext).to_string(), ":kind": kind},
    )
}

/// A version 7 UUID with this time.
pub(crate) fn uuid_at(at: Millis, order: impl ClockSequence<Output = impl Into<u128>>) -> Uuid {
    let seconds = u64::try_from(at.div_euclid(1000)).unwrap_or_default();
    let nanos = u32::try_from(at.rem_euclid(1000)).unwrap_or_default() * 1_000_000;
    Uuid::new_v7(uuid::Timestamp::from_unix(order, seconds, nanos))
}
