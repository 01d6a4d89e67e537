//! `foreword undo [N]`: takes back the last commands that changed items by hand.

use serde_json::json;

use crate::service::{Reader, hands};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// How many commands
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    commands: u32,
    /// Show what would be taken back, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let store = reader.memory()?;
    let commands = args.commands as usize;
    // Titles are read before items may go.
    let titles = show::changes(&store, &store.last_changes(commands)?)?;
    drop(store);
    let changes = match args.dry_run {
        true => reader.memory()?.last_changes(commands)?,
        false => hands::undo(&reader, commands)?,
    };
    show::print(
        args.json,
        || json!({"undone": changes, "dry_run": args.dry_run}),
        || show::undone(&titles, args.dry_run),
    );
    if args.dry_run && !args.json {
        eprintln!("Nothing was changed: this was a dry run.");
    }
    Ok(())
}
