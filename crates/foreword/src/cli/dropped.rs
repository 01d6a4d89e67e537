//! `foreword dropped`: counts what was not kept, and why, without content.

use std::collections::BTreeMap;

use foreword_core::text::one_line;
use serde_json::{Value, json};

use super::JsonArgs;
use crate::local_time;
use crate::log::Log;
use crate::service;
use crate::show;

pub fn run(args: &JsonArgs) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let lines = Log::Dropped.all(&home);
    let lines = lines.iter().filter_map(|line| line.split_once(' '));
    let since = lines.clone().next().map(|(at, _)| at);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, reason) in lines {
        *counts.entry(reason).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let as_json = || {
        let rows = counts.iter();
        let rows = rows.map(|(reason, count)| json!({"reason": reason, "count": count}));
        json!({"since": since, "dropped": rows.collect::<Value>()})
    };
    let words = || {
        let rows = counts.iter();
        let rows: String = rows
            .map(|(reason, count)| format!("{count:>8}  {}\n", one_line(reason)))
            .collect();
        match since {
            None => "nothing was dropped\n".to_owned(),
            Some(since) => format!("not kept since {}:\n{rows}", local_time::log_line(since)),
        }
    };
    show::print(args.json(), as_json, words);
    Ok(())
}
