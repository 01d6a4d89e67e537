//! `foreword receipts`: lists what agents were shown of the memory, and whether they opened it.

use serde_json::json;

use super::JsonArgs;
use super::filters::ScopeFlags;
use crate::service::{self, Reader};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scope: ScopeFlags,
    /// How many at most
    #[arg(long, default_value_t = 30)]
    limit: u32,
    #[command(flatten)]
    json: JsonArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let filter = args.scope.filter(&reader)?;
    let receipts = match service::memory(&reader.home)? {
        Some(store) => store.receipts(&filter, None, args.limit)?,
        None => Vec::new(),
    };
    let waiting = service::waiting(&reader.home);
    show::print_recalled(
        args.json.json(),
        || json!(receipts),
        || show::receipts(&receipts) + &show::waiting(waiting),
    );
    Ok(())
}
