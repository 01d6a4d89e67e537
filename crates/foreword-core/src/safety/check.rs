//! Checks the content of the two databases, for `foreword check`.
//!
//! SQLite itself checks whether a file is intact and its references are valid. The further
//! conditions are checked here: every item has its full text and no text is left over, every
//! kept event is marked as processed, and no event is claimed by a worker that is gone.

use rusqlite::Connection;

use crate::db::OpenError;
use crate::queue::Queue;
use crate::safety::salvage;
use crate::store::Store;
use crate::text::count;

/// One thing that is wrong: its id, which never changes, and a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    pub id: &'static str,
    pub what: String,
}

impl Store {
    /// Everything that is wrong with the memory; it may take seconds.
    pub fn check(&self) -> rusqlite::Result<Vec<Defect>> {
        let mut wrong = damage(&self.connection, "memory-damaged")?;
        if wrong.is_empty() {
            wrong.extend(foreign_schema(self.check_schema(), "memory-schema"));
        }
        // Further checks would read damaged pages, or use views that are not ours.
        if !wrong.is_empty() {
            return Ok(wrong);
        }
        let mut see = |id, rows: u64, one: &str, many: &str| {
            if rows > 0 {
                let what = format!("memory.db: {}", count(rows, one, many));
                wrong.push(Defect { id, what });
            }
        };
        let rows = |sql| {
            self.connection
                .query_row(sql, [], |row| row.get::<_, u64>(0))
        };
        see(
            "memory-references",
            rows("select count(*) from pragma_foreign_key_check")?,
            "row refers to something that is not there",
            "rows refer to something that is not there",
        );
        see(
            "text-missing",
            rows(
                "select count(*) from (select id from item_texts except select rowid from texts)",
            )?,
            "item cannot be found by its words",
            "items cannot be found by their words",
        );
        see(
            "text-left-over",
            rows(
                "select count(*) from (select rowid from texts except select id from item_texts)",
            )?,
            "full text belongs to no item",
            "full texts belong to no item",
        );
        see(
            "event-unmarked",
            rows(
                "select count(*) from events where id not in (select event_id from processed_events)",
            )?,
            "event was processed and could be processed again",
            "events were processed and could be processed again",
        );
        Ok(wrong)
    }

    /// Marks every kept event as processed, and rebuilds the full text.
    pub fn mend(&mut self) -> rusqlite::Result<()> {
        let tx = self.connection.transaction()?;
        salvage::mark_kept_events(&tx)?;
        tx.execute_batch(
            "insert into texts (texts) values ('delete-all');
             insert into texts (rowid, title, body, tags, parts)
             select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts;",
        )?;
        tx.commit()
    }

    /// Gives back the room that deleted rows left.
    pub fn vacuum(&self) -> rusqlite::Result<()> {
        vacuum(&self.connection)
    }
}

impl Queue {
    /// Everything that is wrong with the queue. While a worker runs, claims are not checked.
    pub fn check(&self, worker_runs: bool) -> rusqlite::Result<Vec<Defect>> {
        let mut wrong = damage(&self.connection, "queue-damaged")?;
        if !wrong.is_empty() {
            return Ok(wrong);
        }
        wrong.extend(foreign_schema(self.check_schema(), "queue-schema"));
        if worker_runs {
            return Ok(wrong);
        }
        let claimed = self.connection.query_row(
            "select count(*) from events where state = 'claimed'",
            [],
            |row| row.get::<_, u64>(0),
        )?;
        if claimed > 0 {
            let events = count(claimed, "event is", "events are");
            wrong.push(Defect {
                id: "claim-left",
                what: format!("queue.db: {events} claimed by a worker that is gone"),
            });
        }
        Ok(wrong)
    }

    /// Gives back the room that deleted rows left.
    pub fn vacuum(&self) -> rusqlite::Result<()> {
        vacuum(&self.connection)
    }
}

fn foreign_schema(checked: Result<(), OpenError>, id: &'static str) -> Option<Defect> {
    let what = checked.err()?;
    let file = id.replace("-schema", ".db");
    Some(Defect {
        id,
        what: format!("{file}: {what}"),
    })
}

fn vacuum(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("vacuum")?;
    // The write-ahead log contains the whole file now.
    connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
}

/// Checks each page, index and full text with SQLite's own check.
fn damage(connection: &Connection, id: &'static str) -> rusqlite::Result<Vec<Defect>> {
    let mut statement = connection.prepare("pragma integrity_check(3)")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let messages: Vec<_> = rows
        .map(|message| message.unwrap_or_else(|error| error.to_string()))
        .filter(|message| message != "ok")
        .collect();
    let file = id.replace("-damaged", ".db");
    let what = format!("{file} is damaged: {}", messages.join("; "));
    Ok((!messages.is_empty())
        .then_some(Defect { id, what })
        .into_iter()
        .collect())
}
