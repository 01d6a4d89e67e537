//! Finds what was remembered, by its words and by its meaning.
//!
//! No query is an error and none is swallowed: whatever was typed becomes words (`text::words`),
//! and a row that has one of them can be found. Rows with every word come first, then
//! those with any, each by BM25 (`rank`).
//!
//! `candidates` chooses the rows that are ranked, `filter` narrows a search, `list` reads what was
//! found. Where a model can say how near two texts are, `fuse` puts both into one order; `chunks`
//! and `embedded` keep the vectors that this needs. `related` finds observations near another one,
//! `receipts` lists what agents were shown.

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
pub use embedded::{Loaded, Unembedded};
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
    /// May be empty: then it is a list of what the filter lets through.
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

/// What a search found and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub hits: Vec<Hit>,
    pub answer: MatchKind,
    /// Words that are in no row at all.
    pub unknown: Vec<String>,
    /// When there are no hits: what a looser query would find.
    pub looser: Vec<Looser>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MatchKind {
    /// There were no words: everything that the filter lets through.
    Listed,
    /// The first hits have every word.
    AllWords,
    /// No hit has every word.
    AnyWord,
    /// No hit has any of the words, but some say the like.
    Meaning,
    #[default]
    Nothing,
}

/// A query that is less strict, and how many hits it has (up to `LOOSER_MAX`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Looser {
    /// Words that begin so.
    Beginnings(usize),
    /// Without what narrows it within its projects.
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
    /// An observation's subtitle, what a summary came to; else empty.
    pub subtitle: String,
    pub project: Option<String>,
    pub session: String,
    pub at: Millis,
    /// The newer decision on the same matter.
    pub superseded_by: Option<i64>,
    /// Whose word an observation rests on.
    pub origin: Option<Origin>,
    /// Higher is better; none in a list.
    pub score: Option<f64>,
    pub matched: Option<Matched>,
    /// How its files are now; none until `freshen` looked, or if nobody can tell.
    pub freshness: Option<Freshness>,
}

/// How a hit was found; none in a list.
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
    // What the words are about, else whatever is there of them.
    let (mut found, _) = search_for(store, query, [about_words(&all), all.clone()])?;
    if found.hits.is_empty() {
        found.looser = looser(store, query, &all)?;
    }
    Ok(found)
}

fn about_words(words: &[Word]) -> Vec<Word> {
    let words = words.iter().filter(|word| !word.is_stop_word());
    words.cloned().collect()
}

/// What has the first words, else the others, or a character of them; and what they are worth.
fn search_for(
    store: &Store,
    query: &Query<'_>,
    [words, others]: [Vec<Word>; 2],
) -> rusqlite::Result<(Found, f64)> {
    let mut found = Found::default();
    let mut worth = 0.0;
    for words in [words, [words::characters(&others), others].concat()] {
        let asked = WordQuery::new(store, &words)?;
        (found.hits, found.answer) = asked.hits(store, query)?;
        worth = asked.worth();
        if found.unknown.is_empty() {
            found.unknown = asked.unknown;
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

/// What could be asked instead, as far as it would find something.
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
