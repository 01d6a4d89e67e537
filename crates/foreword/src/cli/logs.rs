//! `foreword logs`: what happened, line by line, without the content of anything.

use serde_json::json;

use crate::log::Log;
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// How many of the last lines
    #[arg(long, default_value_t = 50)]
    lines: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = super::home_to_look_at()?;
    let of = |log: Log| {
        log.all(&home)
            .into_iter()
            .map(move |line| (log.name(), line))
    };
    let mut lines: Vec<_> = Log::ALL.into_iter().flat_map(of).collect();
    // Each line begins with its time, to the second.
    lines.sort_by(|(_, a), (_, b)| a.split(' ').next().cmp(&b.split(' ').next()));
    let last = &lines[lines.len().saturating_sub(args.lines)..];
    let parted = |line: &str| {
        let (at, what) = line.split_once(' ').unwrap_or(("", line));
        (at.to_owned(), foreword_core::text::one_line(what))
    };
    if args.json {
        let row = |(log, line): &(&str, String)| {
            let (at, what) = parted(line);
            json!({"at": at, "log": log, "what": what})
        };
        let rows: Vec<_> = last.iter().map(row).collect();
        println!("{}", show::json(&json!(rows)));
        return Ok(());
    }
    if lines.is_empty() {
        println!("nothing happened yet");
    }
    for (log, line) in last {
        let (at, what) = parted(line);
        println!("{at} {log:<7} {what}");
    }
    Ok(())
}
