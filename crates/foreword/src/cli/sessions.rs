//! `foreword sessions [ID]`: lists sessions and what each was about.

use foreword_core::search::{Filter, sessions};
use serde_json::json;

use super::JsonArgs;
use super::filters::ScopeFlags;
use crate::service::{self, Reader, named};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Only this session, of any project, with the outcome of each prompt: its id or the beginning
    /// of it
    #[arg(value_name = "ID", conflicts_with_all = ["session", "project"])]
    id: Option<String>,
    #[command(flatten)]
    scope: ScopeFlags,
    /// With the outcome of each prompt
    #[arg(long)]
    summaries: bool,
    /// How many at most
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    json: JsonArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let store = service::memory(&reader.home)?;
    let filter = match (&args.id, &store) {
        (Some(id), Some(store)) => Filter {
            session: Some(named::session(store, id)?.id),
            ..Filter::default()
        },
        _ => args.scope.filter(&reader)?,
    };
    let mut found = Vec::new();
    if let Some(store) = store {
        reader.check_projects(&store, &filter)?;
        found = sessions(&store, &filter, args.limit)?;
    }
    let with_summaries = args.summaries || args.id.is_some();
    show::print_recalled(
        args.json.json(),
        || json!(found),
        || show::sessions(&found, with_summaries, filter.spans_projects()),
    );
    Ok(())
}
