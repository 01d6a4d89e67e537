//! The memory itself: memory.db.
//!
//! The worker writes here. Commands and the MCP server write too: for `redo`, `retry`, `projects`,
//! what a person does by hand, the cost of a call to a model, and before a search the notes that
//! changed (`crate::notes::mirror`). `events` completes a claimed batch with the stored events of
//! its turns; `commit` stores what was derived, in one transaction with the ids and keys of the
//! events it came from; `observations` counts an observation that repeats an older one (`kin` compares
//! them) and marks a superseded one; `closing` stores what a model wrote about a session that is over,
//! `conversations` what it was asked and answered before; `redo` finds the turns that can be derived
//! from again. `remember`, `hands`, `forget` and `export` do what a person asks for.
//! `docs/schema.md` shows the tables.
//!
//! Observations, summaries, prompts and notes are *items*: they share one sequence of numbers.

mod closing;
mod commit;
mod conversations;
mod events;
mod forget;
pub(crate) mod hands;
pub mod kin;
pub(crate) mod observations;
mod prompts;
mod redo;
mod remember;
pub(crate) mod sessions;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Row, named_params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::{ClockSequence, Uuid};

pub(crate) use crate::db::json;
use crate::db::place::Place;
use crate::db::{self, Guest, Migration, OpenError, Rows as _};
use crate::model::{Freshness, Kind, Millis, ObservationType, Origin};
pub use closing::{Closing, ShownObservation, ShownSession, ShownTurn};
pub use commit::{Batch, DerivedTurn, Replaces};
pub use events::{EarlierChange, RecentTurns};
pub(crate) use forget::{recall_forgotten, stay_forgotten, without_titles};
pub(crate) use hands::keep_changes_by_hand;
pub use hands::{Change, Editable, HandsError, Judged, PINS_MAX};
pub use redo::{DerivedItem, WholeTurns};
pub use remember::{Remembered, ToRemember};
pub(crate) use sessions::upsert_project;
pub use sessions::{HostSession, Project};

pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 100,
        sql: include_str!("store/0001_memory.sql"),
    },
    Migration {
        number: 101,
        sql: include_str!("store/0002_digest.sql"),
    },
    Migration {
        number: 102,
        sql: include_str!("store/0003_index.sql"),
    },
    Migration {
        number: 103,
        sql: include_str!("store/0004_conversations.sql"),
    },
    Migration {
        number: 104,
        sql: include_str!("store/0005_ledger_turn.sql"),
    },
    Migration {
        number: 105,
        sql: include_str!("store/0006_hands.sql"),
    },
    Migration {
        number: 106,
        sql: include_str!("store/0007_fact_origins.sql"),
    },
    Migration {
        number: 107,
        sql: include_str!("store/0008_reservations.sql"),
    },
];
const SCHEMA: i64 = 107;

/// A session without an event for this long counts as interrupted.
pub(crate) const SILENCE: Millis = 24 * 3_600_000;

/// How long a processed event is recognised if it comes again. A crash repeats one with the next
/// worker; a host that fires a hook again does so within the session.
pub(crate) const PROCESSED_KEPT: Millis = 30 * 24 * 3_600_000;

/// How long receipts are kept.
const RECEIPTS_KEPT: Millis = 90 * 24 * 3_600_000;

pub struct Store {
    pub(crate) connection: Connection,
    /// The files of a memory that is open for writing.
    place: Option<Place>,
    /// Set once the SQL functions for ranking are registered on this connection.
    pub(crate) ranks: OnceCell<()>,
}

impl Store {
    /// Opens or creates the memory, for the worker and for commands that write.
    pub fn open(path: &Path, backups: &Path) -> Result<Store, OpenError> {
        let before = Place::before(path);
        let connection = db::open_owner(path, MIGRATIONS, backups)?;
        let mut store = Store::on(connection);
        store.place = Some(Place::after(path, before));
        Ok(store)
    }

    /// Whether the file has been neither deleted nor replaced since it was opened for writing.
    pub fn is_in_place(&self) -> bool {
        self.place.as_ref().is_none_or(Place::is_kept)
    }

    /// Closes a memory that is not in its place any more.
    pub fn forsake(self) {
        if let Some(place) = self.place {
            place.forsake(self.connection);
        }
    }

    fn on(connection: Connection) -> Store {
        Store {
            connection,
            place: None,
            ranks: OnceCell::new(),
        }
    }

    /// Opens the memory for reading; none if it does not exist. Fails on another schema.
    pub fn look(path: &Path) -> Result<Option<Store>, OpenError> {
        Store::look_at(path, SCHEMA)
    }

    /// `look` at a newer schema: columns that a newer program added are ignored, and queries on
    /// columns that it changed fail.
    pub fn look_at(path: &Path, schema: i64) -> Result<Option<Store>, OpenError> {
        let opened = db::if_there(db::open_guest(path, Guest::Reads, schema))?;
        Ok(opened.map(Store::on))
    }

    /// Opens the memory for reading without creating files beside it; none if it does not exist.
    pub fn inspect(path: &Path) -> Result<Option<Store>, OpenError> {
        Ok(db::if_there(db::open_inspector(path, SCHEMA))?.map(Store::on))
    }

    /// What is wrong with the file itself or its schema; none if it is undamaged.
    pub fn damage(&self) -> Option<String> {
        let defect = db::defect(&self.connection, MIGRATIONS);
        defect.unwrap_or_else(|error| Some(error.to_string()))
    }

    /// Fails as a damaged file does if the schema is not the one that our migrations make: a trigger
    /// of somebody else could delete what is stored.
    pub fn check_schema(&self) -> Result<(), OpenError> {
        db::check_own_schema(&self.connection, MIGRATIONS)
    }

    /// Marks silent sessions as interrupted, and deletes events, marks, receipts and entries of the
    /// journal that are past their time.
    pub fn keep_house(
        &self,
        now: Millis,
        events_kept: Millis,
        journal_kept: Millis,
    ) -> rusqlite::Result<()> {
        self.connection.execute(
            "update sessions
             set state = 'interrupted'
             where state = 'active' and last_event_at < :before",
            named_params! {":before": now - SILENCE},
        )?;
        // Age is counted from the last event, so that a clock that ran ahead does not make
        // everything old at once, and the events of a batch that a worker left half done long ago
        // are still recognised.
        let last = self.connection.query_row(
            "select min(:now, coalesce(max(at), 0)) from processed_events",
            named_params! {":now": now},
            |row| row.get::<_, Millis>(0),
        )?;
        self.connection.execute(
            "delete from events where at < :before",
            named_params! {":before": last - events_kept},
        )?;
        self.connection.execute(
            "delete from processed_events
             where at < :before and event_id not in (select id from events)",
            named_params! {":before": last - PROCESSED_KEPT},
        )?;
        self.connection.execute(
            "delete from receipts where at < :before",
            named_params! {":before": last - RECEIPTS_KEPT},
        )?;
        self.connection.execute(
            "delete from journal where at < :before",
            named_params! {":before": now - journal_kept},
        )?;
        self.merge_texts()
    }

    /// Merges the segments of the full-text index. FTS5 writes new rows into segments of their own,
    /// and a search looks up every term in each of them. By itself it merges four of a size; here
    /// two are enough. Done in small steps, so that other writers do not wait.
    pub fn merge_texts(&self) -> rusqlite::Result<()> {
        // Only if it is not set already: any write would make a new backup due.
        self.connection.execute(
            "insert into texts (texts, rank)
             select 'usermerge', 2
             where not exists (select 1 from texts_config where k = 'usermerge' and v = 2)",
            [],
        )?;
        let mut merge = self
            .connection
            .prepare_cached("insert into texts (texts, rank) values ('merge', 200)")?;
        loop {
            let before = self.connection.total_changes();
            merge.execute([])?;
            // FTS5's documented sign that nothing is left to merge.
            if self.connection.total_changes() - before < 2 {
                return Ok(());
            }
        }
    }

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
#[expect(clippy::large_enum_variant, reason = "few items are read at a time")]
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
    /// Whose words each fact is.
    pub fact_origins: Vec<Origin>,
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
    #[serde(serialize_with = "crate::text::serialize_time")]
    pub pinned_at: Option<Millis>,
    #[serde(serialize_with = "crate::text::serialize_time")]
    pub hidden_at: Option<Millis>,
    /// Since then its words are the user's.
    #[serde(serialize_with = "crate::text::serialize_time")]
    pub edited_at: Option<Millis>,
    /// The last moment at which it holds.
    #[serde(serialize_with = "crate::text::serialize_time")]
    pub until: Option<Millis>,
    /// Where it was imported from; none if it was made here.
    pub imported_from: Option<String>,
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

/// Reads a column that is a JSON list; a CHECK of the table ensures that.
pub(crate) fn list<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Vec<T>> {
    let json: String = row.get(column)?;
    Ok(serde_json::from_str(&json).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Derived, Event, EventKind, Observation, ObservationType, Origin, Payload, Summary, Turn,
    };

    /// A migration of a later program.
    const NEXT: Migration = Migration {
        number: SCHEMA + 1,
        sql: "alter table observations add column colour text not null default 'white';
              create table colours (name text primary key) strict, without rowid;",
    };

    #[test]
    fn a_later_program_brings_a_memory_up_to_date_and_an_older_one_only_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let (path, backups) = (dir.path().join("memory.db"), dir.path().join("backups"));
        let session = HostSession {
            host: "claude-code".to_owned(),
            id: "s".to_owned(),
        };
        let text = "The limit of kumquats is seven";
        let project = "github.com/acme/pay";
        let request = ToRemember::of(text, project, &session, "limit".to_owned(), 1);
        let mut store = Store::open(&path, &backups).unwrap();
        let id = store.remember(&request).unwrap().id;
        let item = store.item(id).unwrap();
        drop(store);

        let later = [MIGRATIONS, &[NEXT]].concat();
        let migrated = Store::on(db::open_owner(&path, &later, &backups).unwrap());
        assert_eq!(migrated.item(id).unwrap(), item);
        assert_eq!(migrated.check_rows(), ("white".to_owned(), 1));
        drop(migrated);
        let copy = backups.join(format!("memory.before-{}.db", NEXT.number));
        let copy = Store::look(&copy).unwrap().unwrap();
        assert_eq!(copy.item(id).unwrap(), item);

        for refused in [Store::open(&path, &backups).err(), Store::look(&path).err()] {
            let Some(OpenError::OtherSchema { found, known, .. }) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!((found, known), (NEXT.number, SCHEMA));
        }
        let read = Store::look_at(&path, NEXT.number).unwrap().unwrap();
        assert_eq!(read.item(id).unwrap(), item);
    }

    /// The rows that storing one more event of a turn changes, with this observation of the turn.
    fn changes(store: &mut Store, at: Millis, narrative: &str) -> u64 {
        let event = Event {
            id: uuid::Uuid::from_u128(at.unsigned_abs().into()),
            key: at.to_string(),
            kind: if at == 1 {
                EventKind::Prompt
            } else {
                EventKind::ToolUse
            },
            host: "claude-code".to_owned(),
            host_session_id: "s".to_owned(),
            prompt_id: Some("p".to_owned()),
            agent_id: None,
            tool_name: None,
            tool_use_id: None,
            cwd: None,
            project_dir: None,
            project: None,
            root: None,
            transcript_path: None,
            branch: None,
            commit: None,
            files: Vec::new(),
            payload: Payload::default(),
            at,
        };
        let observation = Observation {
            title: "The limit is seven".to_owned(),
            narrative: narrative.to_owned(),
            ..Observation::blank("seed".to_owned(), ObservationType::Bugfix, Origin::Agent)
        };
        let derived = Derived {
            observations: vec![observation],
            summary: Some(Summary::default()),
            ..Derived::default()
        };
        let turn = Turn {
            prompt_id: Some("p".to_owned()),
            events: Vec::new(),
        };
        let before = store.connection.total_changes();
        let batch = Batch {
            events: &[event],
            turns: &[DerivedTurn::offline(turn, derived)],
            replaces: Replaces::Turns,
            digest: None,
            provider: "offline",
            now: 9,
        };
        store.commit(&batch).unwrap();
        store.connection.total_changes() - before
    }

    #[test]
    fn what_is_derived_again_unchanged_is_not_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("memory.db"), dir.path()).unwrap();
        changes(&mut store, 1, "as it was");
        let unchanged = changes(&mut store, 2, "as it was");
        // The session twice, the event, and its mark.
        assert_eq!(unchanged, 4);
        assert!(changes(&mut store, 3, "another") > unchanged);
    }

    impl Store {
        /// The new column of the only observation, and how many texts there are.
        fn check_rows(&self) -> (String, u32) {
            let sql = "select colour, (select count(*) from texts) from observations";
            let row = self
                .connection
                .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
            row.unwrap()
        }
    }
}
