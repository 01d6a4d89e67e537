//! Is everything there, and once? For the benches that kill processes.
//!
//! Each event that they send carries a mark, `mark-12-`, somewhere in its payload. An event that
//! was taken in and came back is refused by the memory, which knows its id: then its mark is in
//! both databases.

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::queue::Queue;
use crate::store::Store;

/// How often each mark was found.
pub type Marks = BTreeMap<u32, u32>;

impl Store {
    /// The marks among the events that were taken in.
    pub fn marks(&self) -> rusqlite::Result<Marks> {
        // What we showed an agent may quote a mark.
        marks(
            &self.connection,
            "select event from events where kind <> 'receipt'",
        )
    }

    /// How many prompts, observations and summaries are there a second time.
    pub fn told_twice(&self) -> rusqlite::Result<u64> {
        self.connection.query_row(
            "select (select count(*) - count(distinct session_id || ' ' || text) from prompts)
                  + (select count(*) - count(distinct title || ' ' || events) from observations)
                  + (select count(*) - count(distinct prompt_id) from summaries)",
            [],
            |row| row.get(0),
        )
    }
}

impl Queue {
    /// The marks among the events that wait, and those that are not tried any more.
    pub fn marks(&self) -> rusqlite::Result<Marks> {
        marks(
            &self.connection,
            "select event from events where kind <> 'receipt'",
        )
    }
}

fn marks(connection: &Connection, payloads: &str) -> rusqlite::Result<Marks> {
    let mut marks = Marks::new();
    let mut statement = connection.prepare(payloads)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(mark) = mark(row.get_ref(0)?.as_str()?) {
            *marks.entry(mark).or_default() += 1;
        }
    }
    Ok(marks)
}

fn mark(payload: &str) -> Option<u32> {
    let (_, rest) = payload.split_once("mark-")?;
    rest.split_once('-')?.0.parse().ok()
}
