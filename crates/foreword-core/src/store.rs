//! The memory itself: memory.db, one file for each noun that has a table.
//!
//! The worker writes here. Commands and the MCP server do too: what a person asks for by name
//! (`redo`, `retry`, `projects`, `remember`, `forget`), what a call to a model cost, and before a
//! search the notes that changed (`crate::notes::mirror`). `turns` puts a claimed batch together
//! with what is already known of its turns; `commit` stores what was derived, in one transaction
//! with the ids and keys of the events it came from (`events`); `kin` recognises an insight that
//! is derived once more, and marks a decision that was overtaken; `redo` knows what can be derived
//! again; `items` reads everything that has a number. `docs/schema.md` shows the tables.

mod commit;
mod digest;
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
pub use commit::{Batch, DerivedTurn, Replaces};
pub use digest::{Digest, DigestPrompt};
pub use items::{Item, ItemBody, ItemFreshness, Totals};
pub(crate) use items::{next_item, uuid_at};
pub use projects::Project;
pub(crate) use projects::upsert_project;
pub use redo::{DerivedItem, WholeTurns};
pub use remember::ToRemember;
pub use sessions::HostSession;

pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    number: 100,
    sql: include_str!("store/0001_memory.sql"),
}];
const SCHEMA: i64 = 100;

/// A session without an event for this long was interrupted.
pub(crate) const SILENCE: Millis = 24 * 3_600_000;

/// The mark of an event that was taken in is kept this long. A crash brings the event back with
/// the next worker, a host that fires a hook again within the session.
pub(crate) const PROCESSED_KEPT: Millis = 30 * 24 * 3_600_000;

/// Receipts are kept this long.
const RECEIPTS_KEPT: Millis = 90 * 24 * 3_600_000;

pub struct Store {
    pub(crate) connection: Connection,
    /// Whether this connection can rank what a search finds.
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

    /// Opens the memory for reading, if it is there and has the schema that we know.
    pub fn look(path: &Path) -> Result<Option<Store>, OpenError> {
        Store::look_at(path, SCHEMA)
    }

    /// The same with a schema that we do not know: what a newer program added is not seen,
    /// and what it changed fails.
    pub fn look_at(path: &Path, schema: i64) -> Result<Option<Store>, OpenError> {
        match db::open_guest(path, Guest::Reads, schema) {
            Ok(connection) => Ok(Some(Store::on(connection))),
            Err(OpenError::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks at the memory without leaving a trace beside it; none if it is not there.
    pub fn inspect(path: &Path) -> Result<Option<Store>, OpenError> {
        match db::open_inspector(path, SCHEMA) {
            Ok(connection) => Ok(Some(Store::on(connection))),
            Err(OpenError::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The damage that SQLite finds in the file; none if it is sound.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        db::damage(&self.connection)
    }

    /// Marks silent sessions as interrupted, and removes rows that are past their keeping.
    pub fn keep_house(&self, now: Millis, events_kept: Millis) -> rusqlite::Result<()> {
        self.connection.execute(
            "update sessions
             set state = 'interrupted'
             where state = 'active' and last_event_at < :before",
            named_params! {":before": now - SILENCE},
        )?;
        // A clock that ran ahead must not make everything old at once: age is counted from
        // the last event. So what a worker left half done long ago is still known, too.
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

    /// FTS5 writes new rows beside the old ones, and every term of a search is looked up in each
    /// of those parts. By itself it puts four of a size together; here two are enough. A
    /// little at a time, so that nobody waits to write.
    pub fn merge_texts(&self) -> rusqlite::Result<()> {
        // Only if it is not so already: a memory that nobody writes to needs no new backup.
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
            // As FTS5 says that nothing is left to be merged.
            if self.connection.total_changes() - before < 2 {
                return Ok(());
            }
        }
    }
}

/// A list as JSON; the table's CHECK keeps it so.
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
    use crate::model::ObservationType;

    /// As a later program might have it.
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
