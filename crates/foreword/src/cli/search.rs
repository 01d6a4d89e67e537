//! `foreword search [WORDS]`: the hits for words, or without words the newest items.

use foreword_core::search::Sort;

use super::filters::{ItemFlags, ScopeFlags};
use crate::service::Reader;
use crate::service::search::{Format, LIMIT, SearchRequest, named, search};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Words to search for; without words, the newest of everything that passes the filters
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
    /// How much of each hit to show
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let format = if args.json { Format::Json } else { args.format };
    let scope = match args.scope.filter(&reader) {
        // A tool that reads JSON gets an empty list; the reason goes to a person.
        Err(error) if format == Format::Json => {
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
        format,
        limit: args.limit,
        offset: args.offset,
    };
    let answer = search(&reader, &request)?;
    show::print_recalled(
        request.format == Format::Json,
        || show::hits_json(&answer.found.hits),
        || show::found(&request, &answer),
    );
    Ok(())
}
