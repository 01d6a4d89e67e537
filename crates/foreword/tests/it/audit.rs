//! Checks that every accepted event is stored exactly once and that the databases are whole, for
//! the crash and concurrency tests.
//!
//! Each input carries a mark; after all is processed, an accepted mark must be in memory.db exactly
//! once. memory.db refuses an event whose id it has already, so a second copy would be left in the
//! queue. (`foreword-bench` has an audit of its own, through the product's code; this one reads the
//! tables.)

use std::collections::BTreeMap;

use rusqlite::Connection;
use serde_json::Value;

use crate::support::{Host, Sandbox};

/// The faults that were found; all lists are empty if there are none.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Audit {
    pub lost: Vec<u32>,
    pub doubled: Vec<String>,
    pub damage: Vec<String>,
}

/// The hook and the input that carry a mark: a prompt, a tool use or a stop, depending on the mark.
pub fn marked(host: &Host, mark: u32) -> (&'static str, Value) {
    match mark % 8 {
        0 => {
            let mut input = host.prompt(&format!("please do mark-{mark}-"));
            input["prompt_id"] = format!("prompt-{mark}").into();
            ("new", input)
        }
        7 => ("summary", host.stop(&format!("did mark-{mark}-"))),
        _ => {
            let command = format!("make part{mark}");
            ("save", host.bash(&command, &format!("mark-{mark}-")))
        }
    }
}

/// Compares the accepted marks with the stored ones. All events must be processed by then.
pub fn audit(sandbox: &Sandbox, accepted: impl IntoIterator<Item = u32>) -> Audit {
    let memory = sandbox.database("memory.db");
    let queue = sandbox.database("queue.db");
    let mut counts = counts_of_marks(&memory);
    let lost = accepted
        .into_iter()
        .filter(|mark| !counts.contains_key(mark))
        .collect();
    for (mark, count) in counts_of_marks(&queue) {
        *counts.entry(mark).or_default() += count;
    }
    Audit {
        lost,
        doubled: doubled(&memory, &counts),
        damage: damage(sandbox, &memory, &queue),
    }
}

/// The number of events with each mark in a database.
pub fn counts_of_marks(database: &Connection) -> BTreeMap<u32, u32> {
    let mut counts = BTreeMap::new();
    for payload in texts(database, "select event -> '$.payload' from events") {
        if let Some((_, rest)) = payload.split_once("mark-")
            && let Some((mark, _)) = rest.split_once('-')
        {
            *counts.entry(mark.parse().unwrap()).or_default() += 1;
        }
    }
    counts
}

fn doubled(memory: &Connection, counts: &BTreeMap<u32, u32>) -> Vec<String> {
    let marks = counts.iter().filter(|(_, count)| **count > 1);
    let mut doubled: Vec<_> = marks.map(|(mark, _)| format!("mark {mark}")).collect();
    for (what, sql) in [
        (
            "key",
            "select key from events group by key having count(*) > 1",
        ),
        (
            "prompt",
            "select text from prompts group by session_id, text having count(*) > 1",
        ),
        (
            "seed",
            "select seed from observations group by session_id, seed having count(*) > 1",
        ),
        (
            "observation",
            "select title from observations group by title, events having count(*) > 1",
        ),
        (
            "summary",
            "select request from summaries group by prompt_id having count(*) > 1",
        ),
    ] {
        doubled.extend(
            texts(memory, sql)
                .into_iter()
                .map(|it| format!("{what} {it}")),
        );
    }
    doubled
}

fn damage(sandbox: &Sandbox, memory: &Connection, queue: &Connection) -> Vec<String> {
    let mut damage = Vec::new();
    let mut see = |what: &str, rows: Vec<String>| {
        damage.extend(rows.into_iter().map(|row| format!("{what}: {row}")));
    };
    for (name, database) in [("memory.db", memory), ("queue.db", queue)] {
        let mut rows = texts(database, "pragma integrity_check");
        rows.retain(|row| row != "ok");
        see(name, rows);
        see(
            name,
            texts(database, "select \"table\" from pragma_foreign_key_check"),
        );
    }
    see(
        "left in the queue",
        texts(queue, "select state || ' ' || key from events"),
    );
    see(
        "stored but not marked as processed",
        texts(
            memory,
            "select id from events except select event_id from processed_events",
        ),
    );
    see(
        "processed but not kept",
        texts(
            memory,
            "select event_id from processed_events except select id from events",
        ),
    );
    const ITEMS: &str =
        "select id from observations union select id from summaries union select id from prompts";
    see(
        "without text",
        texts(
            memory,
            &format!(
                "select id || '' from ({ITEMS} except select rowid from texts)
                 where id not in (select id from prompts where not kept)"
            ),
        ),
    );
    see(
        "text of nothing",
        texts(
            memory,
            &format!(
                "select rowid || '' from (select rowid from texts except select * from ({ITEMS}))"
            ),
        ),
    );
    see(
        "item without a row",
        texts(
            memory,
            &format!("select id || '' from ({ITEMS} except select id from items)"),
        ),
    );
    if let Err(error) = memory.execute("insert into texts (texts) values ('integrity-check')", []) {
        see("full text", vec![error.to_string()]);
    }
    if sandbox.spooled() > 0 {
        see("left in the spool", vec![sandbox.spooled().to_string()]);
    }
    damage
}

fn texts(database: &Connection, sql: &str) -> Vec<String> {
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}
