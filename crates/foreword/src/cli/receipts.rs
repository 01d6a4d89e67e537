//! `foreword receipts`: what agents were shown of the memory, and whether they opened it.

use super::scope::Scope;
use crate::service;
use crate::{home, show};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scope: Scope,
    /// How many at most
    #[arg(long, default_value_t = 30)]
    limit: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let filter = args.scope.filter(home::now());
    let store = service::memory(&home)?;
    let receipts = match (&store, &filter) {
        (Some(store), Some(filter)) => store.receipts(filter, None, args.limit)?,
        _ => Vec::new(),
    };
    let words = || match filter {
        Some(_) => show::receipts(&receipts) + &show::waiting(service::waiting(&home)),
        None => show::no_project() + "\n",
    };
    show::print(args.json, || show::receipts_json(&receipts), words);
    Ok(())
}
