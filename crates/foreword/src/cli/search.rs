//! `foreword search [WORDS]`

use foreword_core::search::Sort;

use super::filters::{ItemFlags, ScopeFlags};
use crate::service::Reader;
use crate::service::search::{Format, LIMIT, SearchRequest, named, search};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Words to search for; without words, everything that passes the filters
    #[arg(required_unless_present_any = FILTERS)]
    words: Vec<String>,
    #[command(flatten)]
    items: ItemFlags,
    #[command(flatten)]
    scope: ScopeFlags,
    /// The most hits to show
    #[arg(long, default_value_t = LIMIT, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// The number of best hits to leave out
    #[arg(long, default_value_t = 0)]
    offset: u32,
    /// relevance, or date: the newest first
    #[arg(long, default_value = "relevance", value_parser = named::<Sort>)]
    sort: Sort,
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

const FILTERS: [&str; 13] = [
    "observation_type",
    "concept",
    "file",
    "kind",
    "prompt",
    "origin",
    "session",
    "branch",
    "since",
    "until",
    "project",
    "all_projects",
    "sort",
];

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let scope = match args.scope.filter(&reader) {
        // A tool that reads JSON gets an empty list; the reason goes to a person.
        Err(error) if args.format == Format::Json => {
            eprintln!("foreword: {error:#}");
            println!("[]");
            return Ok(());
        }
        scope => scope?,
    };
    let request = SearchRequest {
        words: args.words.join(" "),
        filter: args.items.filter(&reader, scope),
        sort: args.sort,
        format: args.format,
        limit: args.limit,
        offset: args.offset,
    };
    let answer = search(&reader, &request)?;
    print!("{}", show::found(&request, &answer));
    Ok(())
}
