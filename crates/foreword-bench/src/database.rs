//! Reads rows of memory.db and queue.db that only benches and crash tests need.
//!
//! Benches that kill processes give each event a mark, `mark-12-`, somewhere in its payload. An
//! event that was processed twice shows in what was derived from it: the same prompt,
//! observation or summary is there a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use foreword_core::model::Millis;
use foreword_core::search::WEIGHTS;
use rusqlite::{Connection, OpenFlags, named_params};

/// How often each mark was found.
pub type Marks = BTreeMap<u32, u32>;

/// Opens one of Foreword's databases for reading.
pub fn look(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens one of Foreword's databases; with other flags also to change it.
#[expect(
    clippy::disallowed_methods,
    reason = "benches read rows that the store has no function for"
)]
pub fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// Makes all conversations with a model older by so many minutes.
pub fn age_conversations(memory: &Path, minutes: u64) -> rusqlite::Result<()> {
    let memory = open(memory, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    memory.execute(
        "update conversations set used_at = used_at - :minutes * 60000",
        named_params! {":minutes": minutes},
    )?;
    Ok(())
}

/// The marks of the events in a database: the queue or the memory.
pub fn marks(connection: &Connection) -> rusqlite::Result<Marks> {
    let mut marks = Marks::new();
    // A receipt quotes what was shown to an agent, and that may hold the mark of another event.
    let mut statement = connection.prepare("select * from events where kind <> 'receipt'")?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            let value = row.get_ref(column)?;
            if let Some(mark) = value.as_str().ok().and_then(mark) {
                *marks.entry(mark).or_default() += 1;
                break;
            }
        }
    }
    Ok(marks)
}

fn mark(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("mark-")?;
    rest.split_once('-')?.0.parse().ok()
}

/// The number of prompts, observations and summaries that are in the memory a second time.
pub fn derived_twice(memory: &Connection) -> rusqlite::Result<u64> {
    memory.query_row(
        "select (select count(*) - count(distinct session_id || ' ' || text) from prompts)
              + (select count(*) - count(distinct title || ' ' || events) from observations)
              + (select count(*) - count(distinct prompt_id) from summaries)",
        [],
        |row| row.get(0),
    )
}

/// How many events were processed, and how many of them are stored. The three numbers are the same
/// unless an event was lost or doubled, or is past its retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processed {
    pub processed: u64,
    pub events: u64,
    pub keys: u64,
}

pub fn processed(memory: &Connection) -> rusqlite::Result<Processed> {
    memory.query_row(
        "select (select count(*) from processed_events) as processed,
                (select count(*) from events) as events,
                (select count(distinct key) from events) as keys",
        [],
        |row| {
            Ok(Processed {
                processed: row.get("processed")?,
                events: row.get("events")?,
                keys: row.get("keys")?,
            })
        },
    )
}

/// The best rows as FTS5 ranks them by itself, with their scores: any word, all rows ranked.
pub fn rank_as_fts5_does(
    memory: &Connection,
    words: &str,
    limit: u32,
) -> rusqlite::Result<Vec<(i64, f64)>> {
    // Each word once, as `search` asks for it: FTS5 would count a repeated word twice.
    let words: BTreeSet<&str> = words.split(' ').collect();
    let terms: Vec<_> = words.iter().map(|it| format!("\"{it}\"")).collect();
    let [title, body, tags, parts] = WEIGHTS;
    // bm25() is negative, and the best match is the least.
    let mut statement = memory.prepare_cached(
        "select rowid, -bm25(texts, :title, :body, :tags, :parts) as score
         from texts
         where texts match :expression
         order by score desc
         limit :limit",
    )?;
    let rows = statement.query_map(
        named_params! {
            ":expression": terms.join(" OR "),
            ":title": title, ":body": body, ":tags": tags, ":parts": parts,
            ":limit": limit,
        },
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    rows.collect()
}

/// A prompt whose turn touched files that earlier sessions of the project had touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Return {
    pub prompt: String,
    pub project: String,
    /// When its own session began.
    pub before: Millis,
    /// The earlier sessions, by the host's id.
    pub sessions: Vec<String>,
}

/// The latest prompts whose turns touched files of an earlier session, the newest first.
pub fn returns(memory: &Connection, limit: u32) -> anyhow::Result<Vec<Return>> {
    let mut statement = memory.prepare(
        "select q.text, p.name as project, s.started_at,
                json_group_array(distinct e.host_session_id) as sessions
         from prompts q
         join sessions s on s.id = q.session_id
         join projects p on p.id = s.project_id
         join observations o on o.prompt_id = q.id
         join observation_files ours on ours.observation_id = o.id
         join observation_files theirs on theirs.path = ours.path
         join observations earlier on earlier.id = theirs.observation_id
         join sessions e on e.id = earlier.session_id
         where earlier.project_id = s.project_id
           and earlier.session_id <> s.id
           and earlier.at < s.started_at
         group by q.id
         order by q.at desc
         limit :limit",
    )?;
    let mut rows = statement.query(named_params! {":limit": limit})?;
    let mut returns = Vec::new();
    while let Some(row) = rows.next()? {
        returns.push(Return {
            prompt: row.get("text")?,
            project: row.get("project")?,
            before: row.get("started_at")?,
            sessions: serde_json::from_str(row.get_ref("sessions")?.as_str()?)?,
        });
    }
    Ok(returns)
}
