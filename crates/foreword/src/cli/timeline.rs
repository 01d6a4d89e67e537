//! `foreword timeline ID|WORDS`: shows what came before and after an item, or all of a session.

use anyhow::Context as _;
use foreword_core::store::{HostSession, Store};

use super::JsonArgs;
use super::filters::ScopeFlags;
use crate::service::search::{SearchRequest, search};
use crate::service::{Reader, named};
use crate::show::{self, ALL_PROJECTS};

#[derive(clap::Args)]
pub struct Args {
    /// A number as in #12; a session's id or its first eight characters; or words: then the best hit
    /// is the middle
    #[arg(required = true, value_name = "ID|WORDS")]
    middle: Vec<String>,
    #[command(flatten)]
    scope: ScopeFlags,
    /// How many before, and how many after
    #[arg(long, default_value_t = 5)]
    around: u32,
    #[command(flatten)]
    json: JsonArgs,
}

/// The number of characters of a session's id that lists print. A shorter beginning is a word.
const PRINTED: usize = 8;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let words = args.middle.join(" ");
    let store = reader.memory()?;
    let (hits, middle) = match words.strip_prefix('#').unwrap_or(&words).parse() {
        Ok(id) => (reader.timeline(&store, id, args.around)?, Some(id)),
        Err(_) => match session(&store, &words)? {
            Some(session) => (reader.items_of(&store, &session)?, None),
            None => {
                let id = best_hit(&reader, args, &words)?;
                (reader.timeline(&store, id, args.around)?, Some(id))
            }
        },
    };
    show::print_recalled(
        args.json.json(),
        || show::hits_json(&hits),
        || show::timeline(&hits, middle),
    );
    Ok(())
}

fn session(store: &Store, words: &str) -> anyhow::Result<Option<HostSession>> {
    let session = named::session_or_none(store, words);
    if words.len() >= PRINTED {
        return session;
    }
    // A short word is a session only if it is the whole id.
    Ok(session.ok().flatten().filter(|it| it.id == words))
}

fn best_hit(reader: &Reader, args: &Args, words: &str) -> anyhow::Result<i64> {
    let request = SearchRequest::new(words, args.scope.filter(reader)?);
    let answer = search(reader, &request)?;
    eprint!("{}", show::ranking(&answer));
    let best = answer.found.hits.first().map(|hit| hit.id);
    best.with_context(|| show::no_hits(&request, &answer, ALL_PROJECTS))
}
