//! `foreword timeline ID|WORDS`: what came before and after.

use anyhow::Context as _;
use foreword_core::search::{Query, Sort, freshen, timeline};
use foreword_core::store::Store;

use super::scope::Scope;
use crate::home::Home;
use crate::service;
use crate::service::embed_client;
use crate::{home, show};

#[derive(clap::Args)]
pub struct Args {
    /// A number as in #12, or words: then the best hit is the middle
    #[arg(required = true, value_name = "ID|WORDS")]
    middle: Vec<String>,
    #[command(flatten)]
    scope: Scope,
    /// How many before, and how many after
    #[arg(long, default_value_t = 5)]
    around: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let store = service::memory(&home)?.context("nothing is remembered yet")?;
    args.scope.check(Some(&store))?;
    let words = args.middle.join(" ");
    let id = match words.strip_prefix('#').unwrap_or(&words).parse() {
        Ok(id) => id,
        Err(_) => best_hit(&home, &store, args, &words)?,
    };
    let mut hits = timeline(&store, id, args.around)?;
    let here = service::current_place().unwrap_or_default();
    freshen(&store, &here, Sort::Date, &mut hits)?;
    anyhow::ensure!(
        !hits.is_empty(),
        "there is no #{id}; find numbers with `foreword search WORDS`"
    );
    show::print(
        args.json,
        || show::hits_json(&hits),
        || show::timeline(&hits, id),
    );
    Ok(())
}

fn best_hit(home: &Home, store: &Store, args: &Args, words: &str) -> anyhow::Result<i64> {
    let filter = args.scope.filter(home::now());
    let query = Query {
        words,
        filter: filter.with_context(show::no_project)?,
        sort: Sort::Relevance,
        limit: 1,
        offset: 0,
    };
    let (found, note) = embed_client::search(home, store, &query)?;
    eprint!("{note}");
    let best = found.hits.first().map(|hit| hit.id);
    best.with_context(|| show::no_hits(words, &found, args.scope.is_current_project()))
}
