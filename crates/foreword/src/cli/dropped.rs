//! `foreword dropped`: counts what was not kept, and why, without content.

use foreword_core::text;
use serde_json::{Value, json};

use super::JsonArgs;
use crate::local_time;
use crate::not_kept::{NotKept, Row};
use crate::service;
use crate::show;

pub fn run(args: &JsonArgs) -> anyhow::Result<()> {
    let not_kept = NotKept::read(&service::home_to_write()?);
    let since = not_kept.since.map(text::rfc3339);
    let as_json = || {
        let rows = not_kept.rows.iter().map(row_json);
        json!({"since": since, "lost": not_kept.lost(), "dropped": rows.collect::<Value>()})
    };
    let words = || {
        let rows = not_kept.rows.iter();
        let rows: String = rows
            .map(|row| format!("{:>8}  {}\n", row.count, row.reason.words()))
            .collect();
        match not_kept.since {
            None => "nothing was dropped\n".to_owned(),
            Some(since) => format!("not kept since {}:\n{rows}", local_time::minute(since)),
        }
    };
    show::print(args.json(), as_json, words);
    Ok(())
}

fn row_json(row: &Row) -> Value {
    let hooks = row.hooks.iter();
    let hooks: serde_json::Map<_, _> = hooks
        .map(|(hook, count)| (hook.name().to_owned(), json!(count)))
        .collect();
    json!({
        "reason": row.reason.words(),
        "count": row.count,
        "bytes": row.bytes,
        "lost": row.reason.is_loss(),
        "last_at": text::rfc3339(row.last_at),
        "hooks": hooks,
    })
}
