//! `foreword why ID [WORDS]`: why something is shown, ranked or marked as it is.

use anyhow::Context as _;
use foreword_core::recall::freshness;
use foreword_core::recall::index::{self, Request, Source};
use foreword_core::search::{Filter, Query, Sort, search};

use crate::service::why::Why;
use crate::{hook, service, show};

#[derive(clap::Args)]
pub struct Args {
    /// Its number, as in #12
    #[arg(value_parser = super::show::number)]
    id: i64,
    /// And why a search for these words ranks it where it does
    words: Vec<String>,
}

/// So far down somebody would still find it.
const RANKS: u32 = 100;
const RECEIPTS: u32 = 10;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let store = service::memory(&home)?.context("nothing is remembered yet")?;
    let place = service::current_place().unwrap_or_default();
    let item = super::show::find(&store, args.id, &place)?;
    let title = show::facts(&item);
    let title = title.lines().next().unwrap_or_default().to_owned();
    let root = place.root.as_deref();
    let program = hook::program();
    let request = Request {
        program: &program,
        project: place.project.as_deref(),
        host_session_id: "",
        source: Source::Startup,
        branch: place.head.branch.as_deref(),
        root,
    };
    let weighed = index::index(Some(&store), &request)?
        .unwrap_or_default()
        .weighed;
    let files = store.touched(args.id)?;
    let files = files
        .into_iter()
        .map(|file| (freshness::look(root, &file), file.path))
        .collect();
    let words = args.words.join(" ");
    let ranked = if words.is_empty() {
        None
    } else {
        let query = Query {
            words: &words,
            filter: Filter {
                projects: place.project.clone().map(|it| vec![it]),
                ..Filter::default()
            },
            sort: Sort::Relevance,
            limit: RANKS,
            offset: 0,
        };
        Some((words.as_str(), search(&store, &query)?))
    };
    let why = Why {
        weighed: weighed.into_iter().find(|it| it.id == args.id),
        receipts: store.receipts(&Filter::default(), Some(args.id), RECEIPTS)?,
        files,
        ranked,
        id: args.id,
        title,
    };
    print!(
        "{}{}",
        show::why(&why),
        show::waiting(service::waiting(&home))
    );
    Ok(())
}
