//! `foreword dropped`: what was not kept and why, counted, without content.

use std::collections::BTreeMap;

use crate::log::Log;

use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = super::home()?;
    let lines = Log::Dropped.all(&home);
    let since = lines
        .first()
        .and_then(|line| line.split(' ').next())
        .map(str::to_owned);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for reason in lines
        .iter()
        .filter_map(|line| line.split_once(' '))
        .map(|(_, reason)| reason)
    {
        *counts.entry(reason.to_owned()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if args.json {
        let rows: Vec<_> = counts
            .iter()
            .map(|(reason, count)| serde_json::json!({"reason": reason, "count": count}))
            .collect();
        println!(
            "{}",
            show::json(&serde_json::json!({"since": since, "dropped": rows}))
        );
        return Ok(());
    }
    match since {
        None => println!("nothing was dropped"),
        Some(since) => {
            println!("not kept since {since}:");
            for (reason, count) in counts {
                println!("{count:>8}  {}", foreword_core::text::one_line(&reason));
            }
        }
    }
    Ok(())
}
