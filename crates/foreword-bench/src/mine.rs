//! `foreword-bench mine`: does search find, in your own memory, the sessions that a prompt went back to?
//!
//! Each prompt whose turn touched files that earlier sessions had touched is used as a query, limited
//! to memories from before its own session. Those earlier sessions should be
//! found. Touching the same files stands in for being helpful, which nobody has judged. The figures
//! are the recall of those sessions, by words and, with the model, by words and meaning.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use foreword_core::search::LoadedVectors;
use foreword_core::search::{Filter, Meaning, Query, Sort, search, search_by_meaning};
use foreword_core::store::Store;
use foreword_embed::SentenceModel;

use super::database::{self, Return};
use super::retrieval::{self, RankedQuestion};
use foreword::service;
use foreword::service::{embed_client, sentence_model};

#[derive(clap::Args)]
pub struct Args {
    /// How many prompts at most, the newest first
    #[arg(long, default_value_t = 200)]
    prompts: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The least number of prompts; figures of fewer would be chance.
const PROMPTS_MIN: usize = 20;
/// Hits for each query; several may be of one session, and ten sessions are wanted.
const HITS: u32 = 100;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let store = service::memory(&home)?.context("nothing is remembered yet")?;
    let mut returns = database::returns(&database::look(&home.memory())?, args.prompts)?;
    returns.retain(|it| it.prompt.split_whitespace().nth(2).is_some());
    ensure!(
        returns.len() >= PROMPTS_MIN,
        "too little to measure: {} of your prompts came back to files of an earlier session, and {PROMPTS_MIN} are needed",
        returns.len()
    );
    let by_words = all(&returns, |it| Ok(search(&store, &query(it))?))?;
    let mut report = if embed_client::is_installed(&home) {
        let model =
            SentenceModel::open(&home.model()).context("the sentence model cannot be used")?;
        let fused = by_meaning(&store, &model, &returns)?;
        let mut report = retrieval::compared(&fused, &by_words);
        report.insert("embedded".into(), embed_client::share(&home, &store).into());
        report.insert("model".into(), sentence_model::NAME.into());
        report
    } else {
        retrieval::report(&by_words)
    };
    report.remove("by_type");
    retrieval::print(&report, args.json);
    Ok(())
}

fn by_meaning<'a>(
    store: &Store,
    model: &SentenceModel,
    returns: &'a [Return],
) -> anyhow::Result<Vec<RankedQuestion<'a>>> {
    let mut loaded = LoadedVectors::default();
    store.load_vectors(sentence_model::NAME, &mut loaded)?;
    all(returns, |it| {
        let meaning = Meaning {
            vectors: &loaded.vectors,
            question: &model.embed(&it.prompt),
        };
        Ok(search_by_meaning(store, &query(it), meaning)?)
    })
}

fn all<'a>(
    returns: &'a [Return],
    ask: impl Fn(&Return) -> anyhow::Result<foreword_core::search::Found>,
) -> anyhow::Result<Vec<RankedQuestion<'a>>> {
    let asked = returns.iter().map(|it| {
        let gold: BTreeSet<String> = it.sessions.iter().cloned().collect();
        RankedQuestion::of("mine", &gold, || ask(it))
    });
    asked.collect()
}

/// The prompt as a query for memories from before its own session.
fn query(it: &Return) -> Query<'_> {
    Query {
        words: &it.prompt,
        filter: Filter {
            projects: Some(vec![it.project.clone()]),
            until: Some(it.before - 1),
            ..Filter::default()
        },
        sort: Sort::Relevance,
        limit: HITS,
        offset: 0,
    }
}
