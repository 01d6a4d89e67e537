//! `foreword sessions`: what each session was about.

use foreword_core::search::sessions;

use super::scope::Scope;
use crate::service;
use crate::{home, show};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scope: Scope,
    /// With what each prompt came to
    #[arg(long)]
    summaries: bool,
    /// How many at most
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let filter = args.scope.filter(home::now());
    let store = service::memory(&home)?;
    args.scope.check(store.as_ref())?;
    let sessions = match (&store, &filter) {
        (Some(store), Some(filter)) => sessions(store, filter, args.limit)?,
        _ => Vec::new(),
    };
    let words = || match &filter {
        Some(filter) => show::sessions(&sessions, args.summaries, filter.spans_projects()),
        None => show::no_project() + "\n",
    };
    show::print(args.json, || show::sessions_json(&sessions), words);
    Ok(())
}
