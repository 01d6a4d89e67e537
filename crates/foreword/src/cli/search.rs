//! `foreword search [WORDS]`: the hits for words, or without words the newest items.

use foreword_core::model::{Kind, ObservationType, Origin};
use foreword_core::search::{Filter, Sort};

use super::filters::ScopeFlags;
use crate::service::Reader;
use crate::service::search::{Format, LIMIT, SearchRequest, named, search};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Words to search for; without words, the newest of everything that passes the filters
    words: Vec<String>,
    /// decision, bugfix, feature, refactor or discovery
    #[arg(long = "type", value_name = "TYPE", value_parser = named::<ObservationType>)]
    observation_type: Option<ObservationType>,
    /// A concept, as in "concepts" of `foreword show`
    #[arg(long)]
    concept: Option<String>,
    /// A file by its path or the end of it, or a folder
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// observation, summary, prompt or note
    #[arg(long, value_parser = named::<Kind>)]
    kind: Option<Kind>,
    /// The number of a prompt in its session
    #[arg(long, value_name = "NUMBER")]
    prompt: Option<u32>,
    /// Where it comes from: user, agent, read or import
    #[arg(long, value_parser = named::<Origin>)]
    origin: Option<Origin>,
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
    let file = args.file.as_deref();
    let request = SearchRequest {
        words: args.words.join(" "),
        filter: Filter {
            kind: args.kind,
            observation_type: args.observation_type,
            concept: args.concept.clone(),
            file: file.and_then(|file| reader.place.name_of(file)),
            prompt: args.prompt,
            origin: args.origin,
            ..scope
        },
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
