//! `foreword logs`: prints the logs of hooks and worker, which hold no content.

use foreword_core::text::one_line;
use serde_json::json;

use super::JsonArgs;
use crate::local_time;
use crate::log::Log;
use crate::service;
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// The number of lines, from the end
    #[arg(long, default_value_t = 50)]
    lines: usize,
    #[command(flatten)]
    json: JsonArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let mut lines = Vec::new();
    for log in Log::ALL {
        for line in log.all(&home) {
            let (at, what) = line.split_once(' ').unwrap_or(("", &line));
            lines.push((at.to_owned(), log.name(), one_line(what)));
        }
    }
    // Compare to the second with a stable sort, so that lines of one log stay in order.
    lines.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let last = lines[lines.len().saturating_sub(args.lines)..].iter();
    let as_json = || {
        let rows = last.clone();
        rows.map(|(at, log, what)| json!({"at": at, "log": log, "what": what}))
            .collect()
    };
    let words = || {
        if lines.is_empty() {
            "nothing happened yet\n".to_owned()
        } else {
            last.clone()
                .map(|(at, log, what)| {
                    local_time::log_line(&format!("{at} {log:<7} {what}")) + "\n"
                })
                .collect()
        }
    };
    show::print(args.json.json(), as_json, words);
    Ok(())
}
