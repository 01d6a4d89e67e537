//! Searches the memory, by words and by meaning.
//!
//! Every query is valid: its text is split into words (`text::words`), and a row that has one of
//! them can be found. Rows with every word come first, then rows with any of them, each group
//! ranked by BM25 (`rank`).
//!
//! `candidates` chooses the rows that are ranked, `filter` narrows a search, `list` reads the rows
//! that were found. If an embedding model is installed, `fuse` merges hits by words and hits by
//! meaning into one order; `chunks` and `embedded` keep the vectors that this needs. `related`
//! finds observations near another one, `sessions` lists sessions and what their agents were shown.

mod about;
mod candidates;
pub mod chunks;
mod embedded;
mod filter;
mod fuse;
mod group;
mod list;
mod rank;
mod related;
mod sessions;
pub mod vectors;

use rusqlite::named_params;
use serde::{Deserialize, Serialize};

pub use about::{Match, about};
pub use embedded::{LoadedVectors, Unembedded};
pub use filter::Filter;
pub use fuse::{Meaning, search_by_meaning};
pub use group::{Group, complete, grouped};
pub use list::{freshen, ids, same_turn, stale_factor, timeline};
pub use rank::WEIGHTS;
pub use related::Related;
pub use sessions::{SessionTitle, ShownItem, SummaryLine, sessions, sessions_of};

use self::candidates::WordQuery;
use self::list::Order;
use crate::db::Rows as _;
use crate::model::{Freshness, Kind, Millis, ObservationType, Origin};
use crate::store::Store;
use crate::text::{self, Word};

#[derive(Debug, Clone, PartialEq)]
pub struct Query<'a> {
    /// May be empty; the result is then a list of everything that passes the filter.
    pub words: &'a str,
    pub filter: Filter,
    pub sort: Sort,
    pub limit: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    #[default]
    Relevance,
    /// The newest first.
    Date,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub hits: Vec<Hit>,
    pub answer: MatchKind,
    /// Words that are in no row at all.
    pub unknown: Vec<String>,
    /// Looser queries that would find something; only filled if there are no hits.
    pub looser: Vec<Looser>,
}

/// How the best hit of a search matches the query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MatchKind {
    /// The query has no words: the hits are everything that passes the filter.
    Listed,
    /// The first hits have every word.
    AllWords,
    /// No hit has every word.
    AnyWord,
    /// No hit has any of the words, but some are close in meaning.
    Meaning,
    #[default]
    Nothing,
}

/// A query that is less strict, and how many hits it has (up to `LOOSER_MAX`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Looser {
    /// The words of the query match the beginnings of longer words.
    Beginnings(usize),
    /// No filter but the projects.
    NoFilter(usize),
    AllProjects(usize),
}

pub const LOOSER_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    pub id: i64,
    /// The ids of all items that it stands for, its own among them (`group`).
    pub items: Vec<i64>,
    /// The prompt whose turn it is of; none for a note, or if no prompt led to it.
    pub turn: Option<i64>,
    /// How many turns it stands for.
    pub turns: u32,
    pub kind: Kind,
    pub observation_type: Option<ObservationType>,
    pub title: String,
    /// The subtitle of an observation, the outcome of a summary; else empty.
    pub subtitle: String,
    pub project: Option<String>,
    pub session: String,
    pub at: Millis,
    /// The newer decision on the same matter.
    pub superseded_by: Option<i64>,
    /// Why it no longer holds; none while it does.
    pub retracted: Option<String>,
    /// Who or what an observation comes from.
    pub origin: Option<Origin>,
    pub pinned: bool,
    pub hidden: bool,
    /// The last moment at which it holds; none if it has no time limit.
    pub until: Option<Millis>,
    /// Higher is better. None if the query has no words.
    pub score: Option<f64>,
    pub matched: Option<Matched>,
    /// The share of the query's words that it has, from 0 to 1; rare words count more.
    pub share: f64,
    /// Whether its files have changed since; none before `freshen` ran, or if unknown.
    pub freshness: Option<Freshness>,
}

impl Hit {
    /// Whether something newer replaced it, or it no longer holds.
    pub fn is_overtaken(&self) -> bool {
        self.superseded_by.is_some() || self.retracted.is_some()
    }
}

/// How a hit matches the words of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Matched {
    AllWords,
    SomeWords,
    /// It has none of the words.
    Meaning,
}

/// The score of a hit that is superseded or retracted is multiplied by this.
pub const OVERTAKEN: f64 = 0.6;
/// The least share of the query's words that the best hit must have, or nothing is remembered about
/// it. See bench/runs/2026-11-18-search.md for how this was chosen.
const FLOOR: f64 = 0.07;
/// The score of a decision is multiplied by this if the query asks what was decided, or when.
const DECISION: f64 = 2.0;

/// Whether a word asks for decisions: `decide`, `decided`, `decision`, `decidimos`, `décidé`.
fn asks_for_decisions(word: &Word) -> bool {
    let lower = word.whole.to_lowercase().replace('é', "e");
    lower.starts_with("decid") || lower.starts_with("decis")
}

/// What the score of a hit is multiplied by, for what it is and not for how it matches.
fn factor(words: &str) -> impl Fn(&Hit) -> f64 {
    let prefers_decisions = text::words(words).iter().any(asks_for_decisions);
    move |hit| {
        let is_decision = hit.observation_type == Some(ObservationType::Decision);
        let decision = if prefers_decisions && is_decision {
            DECISION
        } else {
            1.0
        };
        let overtaken = if hit.is_overtaken() { OVERTAKEN } else { 1.0 };
        decision * overtaken
    }
}

pub fn search(store: &Store, query: &Query<'_>) -> rusqlite::Result<Found> {
    let words = about_words(query.words);
    if words.is_empty() {
        return listed(store, query);
    }
    let (mut found, _) = search_for(store, query, &words)?;
    found.clear_unless(|hit| hit.share >= FLOOR);
    if found.hits.is_empty() {
        found.looser = looser(store, query, &words, found.unknown.len())?;
    }
    Ok(found)
}

impl Found {
    /// Removes all hits if none of them is near enough: then they only share words with the query.
    fn clear_unless(&mut self, is_near: impl FnMut(&Hit) -> bool) {
        if !self.hits.iter().any(is_near) {
            self.hits.clear();
            self.answer = MatchKind::Nothing;
        }
    }
}

/// The words of a query that its hits should have: without stop words, and without words that only
/// ask for decisions; all words if there are no others.
fn about_words(query: &str) -> Vec<Word> {
    let all = text::words(query);
    let mut words = all.clone();
    words.retain(|word| !word.is_stop_word() && !asks_for_decisions(word));
    if words.is_empty() { all } else { words }
}

/// Searches for words; if nothing has one of them, for their single characters. Returns the hits
/// and the score of an average row that has every term once.
fn search_for(store: &Store, query: &Query<'_>, words: &[Word]) -> rusqlite::Result<(Found, f64)> {
    let mut found = Found::default();
    let mut worth = 0.0;
    for words in [words, &text::characters(words)] {
        let word_query = WordQuery::new(store, words)?;
        (found.hits, found.answer) = word_query.hits(store, query)?;
        worth = word_query.worth();
        if found.unknown.is_empty() {
            found.unknown = word_query.unknown;
        }
        if !found.hits.is_empty() {
            break;
        }
    }
    Ok((found, worth))
}

fn listed(store: &Store, query: &Query<'_>) -> rusqlite::Result<Found> {
    let clauses = query.filter.clauses();
    let hits = list::list(store, clauses, Order::NewestFirst, query.limit)?;
    Ok(Found {
        hits,
        answer: MatchKind::Listed,
        ..Found::default()
    })
}

/// The looser queries that find something, with the number of their hits. `unknown` is how many of
/// the words are in no row.
fn looser(
    store: &Store,
    query: &Query<'_>,
    words: &[Word],
    unknown: usize,
) -> rusqlite::Result<Vec<Looser>> {
    let count = |filter: Filter| -> rusqlite::Result<usize> {
        let query = Query {
            filter,
            limit: LOOSER_MAX as u32,
            ..query.clone()
        };
        let (mut found, _) = search_for(store, &query, words)?;
        found.clear_unless(|hit| hit.share >= FLOOR);
        Ok(found.hits.len())
    };
    let mut looser = Vec::new();
    if unknown == words.len() {
        looser.push(Looser::Beginnings(beginnings(store, query, words)?));
    }
    if !query.filter.is_only_projects() {
        looser.push(Looser::NoFilter(count(query.filter.only_projects())?));
    }
    if query.filter.projects.is_some() {
        let filter = Filter {
            projects: None,
            ..query.filter.clone()
        };
        looser.push(Looser::AllProjects(count(filter)?));
    }
    looser.retain(|it| {
        let (Looser::Beginnings(hits) | Looser::NoFilter(hits) | Looser::AllProjects(hits)) = it;
        *hits > 0
    });
    Ok(looser)
}

/// How many items have a word that begins with one of these.
fn beginnings(store: &Store, query: &Query<'_>, words: &[Word]) -> rusqlite::Result<usize> {
    let words = words.iter().map(|word| format!("\"{}\"*", word.whole));
    let expression = words.collect::<Vec<_>>().join(" OR ");
    let ids: Vec<i64> = store.connection.all(
        "select rowid from texts where texts match :expression order by rowid desc limit 1000",
        named_params! {":expression": expression},
    )?;
    Ok(list::pick(store, &ids, &query.filter)?
        .len()
        .min(LOOSER_MAX))
}
