//! Searches the memory, by words and by meaning.
//!
//! Every query is valid: its text is split into words (`text::words`), and a row that has one of
//! them can be found. Rows with every word come first, then rows with any of them, each group
//! ranked by BM25 (`rank`).
//!
//! `candidates` chooses the rows that are ranked, `filter` narrows a search, `list` reads the rows
//! that were found. If an embedding model is installed, `fuse` merges hits by words and hits by
//! meaning into one order; `chunks` and `embedded` keep the vectors that this needs. `related`
//! finds observations near another one, `receipts` lists what agents were shown.

mod about;
mod candidates;
pub mod chunks;
mod embedded;
mod filter;
mod fresh;
mod fuse;
mod list;
mod rank;
mod receipts;
mod related;
mod sessions;
pub mod vectors;

use rusqlite::named_params;
use serde::{Deserialize, Serialize};

pub use about::{Match, about};
pub use embedded::{LoadedVectors, Unembedded};
pub use filter::Filter;
pub use fresh::{freshen, stale_factor};
pub use fuse::{Meaning, search_by_meaning};
pub use list::timeline;
pub use rank::WEIGHTS;
pub use receipts::ShownItem;
pub use related::Related;
pub use sessions::{HITS_PER_SESSION, SessionTitle, SummaryLine, sessions, sessions_of};

use self::candidates::WordQuery;
use self::list::Order;
use crate::model::{Freshness, Kind, Millis, ObservationType, Origin};
use crate::store::Store;
use crate::text::words::{self, Word};

#[derive(Debug, Clone, PartialEq)]
pub struct Query<'a> {
    /// May be empty; the result is then a list of everything that passes the filter.
    pub words: &'a str,
    pub filter: Filter,
    pub sort: Sort,
    pub limit: u32,
    pub offset: u32,
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
    /// Who or what an observation comes from.
    pub origin: Option<Origin>,
    /// Higher is better. None if the query has no words.
    pub score: Option<f64>,
    pub matched: Option<Matched>,
    /// Whether its files have changed since; none before `freshen` ran, or if unknown.
    pub freshness: Option<Freshness>,
}

/// How a hit matches the words of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Matched {
    AllWords,
    SomeWords,
    /// It has none of the words.
    Meaning,
}

/// The score of a superseded decision is multiplied by this.
pub const SUPERSEDED: f64 = 0.6;

pub fn search(store: &Store, query: &Query<'_>) -> rusqlite::Result<Found> {
    let all = words::words(query.words);
    if all.is_empty() {
        return listed(store, query);
    }
    // First without stop words; with them if that finds nothing.
    let (mut found, _) = search_for(store, query, [about_words(&all), all.clone()])?;
    if found.hits.is_empty() {
        found.looser = looser(store, query, &all)?;
    }
    Ok(found)
}

/// The words without stop words.
fn about_words(words: &[Word]) -> Vec<Word> {
    let words = words.iter().filter(|word| !word.is_stop_word());
    words.cloned().collect()
}

/// Searches for `words`; if nothing has one of them, for `others` and their single characters.
/// Returns the hits and the score of an average row that has every term once.
fn search_for(
    store: &Store,
    query: &Query<'_>,
    [words, others]: [Vec<Word>; 2],
) -> rusqlite::Result<(Found, f64)> {
    let mut found = Found::default();
    let mut worth = 0.0;
    for words in [words, [words::characters(&others), others].concat()] {
        let word_query = WordQuery::new(store, &words)?;
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
    let hits = list::list(
        store,
        clauses,
        Order::NewestFirst,
        query.limit,
        query.offset,
    )?;
    Ok(Found {
        hits,
        answer: MatchKind::Listed,
        ..Found::default()
    })
}

/// The looser queries that find something, with the number of their hits.
fn looser(store: &Store, query: &Query<'_>, words: &[Word]) -> rusqlite::Result<Vec<Looser>> {
    let count = |filter: Filter| -> rusqlite::Result<usize> {
        let query = Query {
            filter,
            limit: LOOSER_MAX as u32,
            offset: 0,
            ..query.clone()
        };
        let (hits, _) = WordQuery::new(store, words)?.hits(store, &query)?;
        Ok(hits.len())
    };
    let mut looser = Vec::new();
    let beginnings: Vec<_> = words
        .iter()
        .map(|word| format!("\"{}\"*", word.whole))
        .collect();
    let mut statement = store.connection.prepare_cached(
        "select rowid from texts where texts match :expression order by rowid desc limit 1000",
    )?;
    let ids = statement.query_map(
        named_params! {":expression": beginnings.join(" OR ")},
        |row| row.get(0),
    )?;
    let ids = ids.collect::<rusqlite::Result<Vec<i64>>>()?;
    looser.push(Looser::Beginnings(
        list::pick(store, &ids, &query.filter)?
            .len()
            .min(LOOSER_MAX),
    ));
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
