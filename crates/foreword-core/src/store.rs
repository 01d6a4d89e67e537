//! The memory itself: memory.db, with one file for each table.
//!
//! The worker writes here. Commands and the MCP server write too: for `redo`, `retry`, `projects`,
//! `remember` and `forget`, the cost of a call to a model, and before a search the notes that
//! changed (`crate::notes::mirror`). `turns` completes a claimed batch with the stored events of
//! its turns; `commit` stores what was derived, in one transaction with the ids and keys of the
//! events it came from (`events`); `kin` recognises an observation that is derived once more, and
//! marks a superseded decision; `closing` stores what a model says about a session that is over,
//! `conversations` what it was asked before; `redo` finds the turns that can be derived from again;
//! `items` reads everything that has a number. `docs/schema.md` shows the tables.

mod closing;
mod commit;
mod conversations;
mod events;
pub(crate) mod forgotten;
mod items;
pub mod kin;
pub mod ledger;
mod observations;
mod projects;
mod prompts;
mod receipts;
mod redo;
mod remember;
mod sessions;
mod summaries;
mod turns;

use std::cell::OnceCell;
use std::path::Path;

use rusqlite::{Connection, Row, named_params};
use serde::de::DeserializeOwned;

use crate::db::{self, Guest, Migration, OpenError};
use crate::model::Millis;
pub use closing::{Closing, EndedSession, EndedTurn, ShownObservation};
pub use commit::{Batch, DerivedTurn, Replaces};
pub use items::{Item, ItemBody, ItemFreshness, Totals};
pub(crate) use items::{next_item, uuid_at};
pub use projects::Project;
pub(crate) use projects::upsert_project;
pub use redo::{DerivedItem, WholeTurns};
pub use remember::ToRemember;
pub use sessions::HostSession;
pub use turns::RecentTurns;

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
];
const SCHEMA: i64 = 103;

/// A session without an event for this long counts as interrupted.
pub(crate) const SILENCE: Millis = 24 * 3_600_000;

/// How long a processed event is recognised if it comes again. A crash repeats one with the next
/// worker; a host that fires a hook again does so within the session.
pub(crate) const PROCESSED_KEPT: Millis = 30 * 24 * 3_600_000;

/// How long receipts are kept.
const RECEIPTS_KEPT: Millis = 90 * 24 * 3_600_000;

pub struct Store {
    pub(crate) connection: Connection,
    /// Set once the SQL functions for ranking are registered on this connection.
    pub(crate) ranks: OnceCell<()>,
}

impl Store {
    /// Opens or creates the memory, for the worker and for commands that write.
    pub fn open(path: &Path, backups: &Path) -> Result<Store, OpenError> {
        let connection = db::open_owner(path, MIGRATIONS, backups)?;
        Ok(Store::on(connection))
    }

    fn on(connection: Connection) -> Store {
        Store {
            connection,
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
        match db::open_guest(path, Guest::Reads, schema) {
            Ok(connection) => Ok(Some(Store::on(connection))),
            Err(OpenError::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the memory for reading without creating files beside it; none if it does not exist.
    pub fn inspect(path: &Path) -> Result<Option<Store>, OpenError> {
        match db::open_inspector(path, SCHEMA) {
            Ok(connection) => Ok(Some(Store::on(connection))),
            Err(OpenError::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What is wrong with the file itself; none if it is undamaged.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        db::damage(&self.connection)
    }

    /// Marks silent sessions as interrupted, and deletes events, marks and receipts that are past
    /// their time.
    pub fn keep_house(&self, now: Millis, events_kept: Millis) -> rusqlite::Result<()> {
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
}

/// Reads a column that is a JSON list; a CHECK of the table ensures that.
pub(crate) fn list<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Vec<T>> {
    let json: String = row.get(column)?;
    Ok(serde_json::from_str(&json).unwrap_or_default())
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
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
        let request = ToRemember {
            text: "The limit of kumquats is seven",
            kind: ObservationType::Decision,
            project: "github.com/acme/pay",
            session: &session,
            seed: "limit".to_owned(),
            now: 1,
        };
        let mut store = Store::open(&path, &backups).unwrap();
        let id = store.remember(&request).unwrap();
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
