//! `foreword sessions`: lists sessions and what each was about.

use foreword_core::search::sessions;
use serde_json::json;

use super::filters::ScopeFlags;
use crate::service::{self, Reader};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scope: ScopeFlags,
    /// With the outcome of each prompt
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
    let reader = Reader::here()?;
    let filter = args.scope.filter(&reader)?;
    let mut found = Vec::new();
    if let Some(store) = service::memory(&reader.home)? {
        reader.check_projects(&store, &filter)?;
        found = sessions(&store, &filter, args.limit)?;
    }
    show::print_recalled(
        args.json,
        || json!(found),
        || show::sessions(&found, args.summaries, filter.spans_projects()),
    );
    Ok(())
}
