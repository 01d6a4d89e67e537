//! `foreword-bench mine`: does search find, in your own memory, what you came back to?
//!
//! Each prompt whose turn touched files that earlier sessions had touched is asked as a question, as
//! if nothing had been remembered since its session began. Those earlier sessions should be
//! found. That is a stand-in for what would have helped, not a judgement of it: so the figures are
//! recall of those sessions, and compare search by words with search by meaning too.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use foreword_core::search::LoadedVectors;
use foreword_core::search::{Filter, Meaning, Query, Sort, search, search_by_meaning};
use foreword_core::store::Store;
use foreword_embed::Model;

use super::database::{self, Return};
use super::retrieval::{self, Asked};
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

/// With fewer a figure is chance.
const LEAST: usize = 20;
/// A session can be hit in many of its items: enough for ten different ones.
const HITS: u32 = 100;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let store = service::memory(&home)?.context("nothing is remembered yet")?;
    let mut returns = database::returns(&database::look(&home.memory())?, args.prompts)?;
    returns.retain(|it| it.prompt.split_whitespace().nth(2).is_some());
    ensure!(
        returns.len() >= LEAST,
        "too little to measure: {} of your prompts came back to files of an earlier session, and {LEAST} are needed",
        returns.len()
    );
    let by_words = all(&returns, |it| Ok(search(&store, &query(it))?))?;
    let mut report = match embed_client::is_installed(&home) {
        false => retrieval::report(&by_words),
        true => {
            let model = Model::open(&home.model()).context("the sentence model cannot be used")?;
            let fused = by_meaning(&store, &model, &returns)?;
            let mut report = retrieval::compared(&fused, &by_words);
            report.insert("embedded".into(), embed_client::share(&home, &store).into());
            report.insert("model".into(), sentence_model::NAME.into());
            report
        }
    };
    report.remove("by_type");
    retrieval::print(&report, args.json);
    Ok(())
}

fn by_meaning<'a>(
    store: &Store,
    model: &Model,
    returns: &'a [Return],
) -> anyhow::Result<Vec<Asked<'a>>> {
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
) -> anyhow::Result<Vec<Asked<'a>>> {
    let asked = returns.iter().map(|it| {
        let gold: BTreeSet<String> = it.sessions.iter().cloned().collect();
        Asked::of("mine", &gold, || ask(it))
    });
    asked.collect()
}

/// As if its own session had not begun.
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
