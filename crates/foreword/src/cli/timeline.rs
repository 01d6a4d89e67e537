//! `foreword timeline ID|WORDS`: shows what came before and after an item.

use anyhow::Context as _;

use super::filters::ScopeFlags;
use crate::service::Reader;
use crate::service::search::{SearchRequest, search};
use crate::show::{self, ALL_PROJECTS};

#[derive(clap::Args)]
pub struct Args {
    /// A number as in #12, or words: then the best hit is the middle
    #[arg(required = true, value_name = "ID|WORDS")]
    middle: Vec<String>,
    #[command(flatten)]
    scope: ScopeFlags,
    /// How many before, and how many after
    #[arg(long, default_value_t = 5)]
    around: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let words = args.middle.join(" ");
    let id = match words.strip_prefix('#').unwrap_or(&words).parse() {
        Ok(id) => id,
        Err(_) => {
            let request = SearchRequest::new(&words, args.scope.filter(&reader)?);
            let answer = search(&reader, &request)?;
            eprint!("{}", show::ranking(&answer));
            let best = answer.found.hits.first().map(|hit| hit.id);
            best.with_context(|| show::no_hits(&request, &answer, ALL_PROJECTS))?
        }
    };
    let hits = reader.timeline(&reader.memory()?, id, args.around)?;
    show::print_recalled(
        args.json,
        || show::hits_json(&hits),
        || show::timeline(&hits, id),
    );
    Ok(())
}
