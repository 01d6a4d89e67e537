//! Finds what was remembered, by its words.
//!
//! No query is an error and none is swallowed: whatever was typed becomes words (`words`),
//! and a row that has one of them can be found. Rows with every word come first, then
//! those with any, each by BM25 (`rank`).
//!
//! A common word is in half of all rows, and ranking them all is what makes full text
//! slow. So the rarest words choose the rows and all words rank them. If that leaves too few,
//! or the others could make a better row by themselves, more words choose. `filter` narrows a search, `list` reads what was found.

mod about;
mod filter;
mod fresh;
mod list;
mod rank;
mod sessions;
mod words;

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use rusqlite::named_params;

pub use about::{Match, about};
pub use filter::Filter;
pub use fresh::freshen;
pub use list::timeline;
pub use sessions::{HITS_PER_SESSION, SessionTitle, SummaryLine, sessions, sessions_of};
pub(crate) use words::{Word, register as register_parts, words};

use self::list::Order;
use crate::model::{Freshness, Kind, Millis, ObservationType};
use crate::store::Store;

#[derive(Debug, Clone, PartialEq)]
pub struct Query<'a> {
    /// May be empty: then it is a list of what the filter lets through.
    pub words: &'a str,
    pub filter: Filter,
    pub sort: Sort,
    pub limit: u32,
    pub offset: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Relevance,
    /// The newest first.
    Date,
}

/// What a search found and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    pub answer: Answer,
    /// Words that are in no row at all.
    pub unknown: Vec<String>,
    /// When there are no hits: what a looser query would find.
    pub looser: Vec<Looser>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// There were no words: everything that the filter lets through.
    Listed,
    /// The first hits have every word.
    AllWords,
    /// No hit has every word.
    AnyWord,
    Nothing,
}

/// A query that is less strict, and how many hits it has (up to `LOOSER_MAX`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looser {
    /// Words that begin so.
    Beginnings(usize),
    /// Without what narrows it within its projects.
    NoFilter(usize),
    AllProjects(usize),
}

pub const LOOSER_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq)]
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
    /// Higher is better; none in a list.
    pub score: Option<f64>,
    /// How its files are now; none until `freshen` looked, or if nobody can tell.
    pub freshness: Option<Freshness>,
}

/// At first the rarest terms choose, as many as are in so many rows together.
const CHOSEN_MAX: f64 = 1000.0;
/// A row that has a term gets about its weight once, at most 2.2 times: in a short row, or
/// often, or in the title. What is left out is taken for so much.
const USUAL_WORTH: f64 = 1.2;
/// What a superseded decision's score still counts.
const SUPERSEDED: f64 = 0.6;
/// Rows of a term are counted up to here and estimated beyond.
const COUNTED_MAX: u32 = 1000;

pub fn search(store: &Store, query: &Query<'_>) -> rusqlite::Result<Found> {
    let mut words = words::words(query.words);
    if words.is_empty() {
        return listed(store, query);
    }
    let all = words.clone();
    words.retain(|word| !word.is_stop_word());
    let mut found = Found {
        hits: Vec::new(),
        answer: Answer::Nothing,
        unknown: Vec::new(),
        looser: Vec::new(),
    };
    // What the words are about, else whatever is there of them.
    for words in [words, [all.clone(), words::characters(&all)].concat()] {
        let asked = Asked::new(store, &words)?;
        (found.hits, found.answer) = asked.hits(store, query)?;
        if found.unknown.is_empty() {
            found.unknown = asked.unknown;
        }
        if !found.hits.is_empty() {
            return Ok(found);
        }
    }
    found.looser = looser(store, query, &all)?;
    Ok(found)
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
        answer: Answer::Listed,
        unknown: Vec::new(),
        looser: Vec::new(),
    })
}

/// Words, and in how many rows each of the terms is that they are looked for by.
struct Asked<'a> {
    words: &'a [Word],
    /// The rarest first; those in no row are left out.
    terms: Vec<(&'a str, f64)>,
    /// How many rows there are, and a few that are gone.
    rows: f64,
    /// Words that are in no row.
    unknown: Vec<String>,
}

/// A row that has some of the terms.
struct Candidate {
    id: i64,
    score: f64,
    /// Which of them, one bit each.
    terms: u64,
    has_all: bool,
}

impl<'a> Asked<'a> {
    fn new(store: &Store, words: &'a [Word]) -> rusqlite::Result<Asked<'a>> {
        let rows =
            store
                .connection
                .query_row("select coalesce(max(id), 0) from items", [], |row| {
                    row.get(0)
                })?;
        let terms: BTreeSet<&str> = words.iter().flat_map(Word::terms).collect();
        let mut terms = terms
            .into_iter()
            .map(|term| Ok((term, rows_with(store, term, rows)?)))
            .collect::<rusqlite::Result<Vec<_>>>()?;
        terms.retain(|&(_, rows)| rows > 0.0);
        let known: BTreeSet<&str> = terms.iter().map(|&(term, _)| term).collect();
        let unknown = words
            .iter()
            .filter(|word| !word.terms().any(|it| known.contains(it)));
        let unknown = unknown.map(|word| word.whole.clone()).collect();
        terms.sort_by(|a, b| a.1.total_cmp(&b.1));
        terms.truncate(rank::TERMS_MAX);
        Ok(Asked {
            words,
            terms,
            rows,
            unknown,
        })
    }

    /// The best hits: chosen by the rarest terms, and by all if those are too few.
    fn hits(&self, store: &Store, query: &Query<'_>) -> rusqlite::Result<(Vec<Hit>, Answer)> {
        let wanted = query.offset as usize + query.limit as usize;
        let mut choosing = self.choosing();
        loop {
            let candidates = self.candidates(store, choosing)?;
            let complete = choosing == self.terms.len();
            let (mut hits, answer) = best(store, &candidates, query, wanted)?;
            let enough = match query.sort {
                Sort::Relevance => hits.len() >= wanted,
                Sort::Date => answer == Answer::AllWords,
            };
            let choosing_more = if enough {
                choosing.max(self.needed(query.sort, &hits))
            } else {
                self.terms.len()
            };
            if complete || choosing_more == choosing {
                hits.truncate(wanted);
                hits.drain(..hits.len().min(query.offset as usize));
                return Ok((hits, answer));
            }
            choosing = choosing_more;
        }
    }

    /// How many of the rarest terms must choose, so that a row which has only the others is
    /// none of the best.
    fn needed(&self, sort: Sort, hits: &[Hit]) -> usize {
        let scores = hits.iter().filter_map(|hit| hit.score);
        let least = scores.fold(f64::INFINITY, f64::min);
        let mut left_out = 0.0;
        let others = self.terms.iter().rev().take_while(|&&(_, with)| {
            left_out += USUAL_WORTH * rank::weight(with, self.rows);
            sort == Sort::Date || left_out < least
        });
        self.terms.len() - others.count()
    }

    /// How many of the rarest terms choose the rows.
    fn choosing(&self) -> usize {
        let mut rows = 0.0;
        let few = self.terms.iter().take_while(|(_, with)| {
            rows += with;
            rows <= CHOSEN_MAX
        });
        few.count().max(1).min(self.terms.len())
    }

    /// The rows that have one of the first terms, the best first.
    fn candidates(&self, store: &Store, choosing: usize) -> rusqlite::Result<Vec<Candidate>> {
        if self.terms.is_empty() {
            return Ok(Vec::new());
        }
        if store.ranks.get().is_none() {
            rank::register(&store.connection)?;
            let _ = store.ranks.set(());
        }
        let complete = choosing == self.terms.len();
        let any = any_of(&self.terms);
        let expression = if complete {
            any
        } else {
            format!("({}) AND ({any})", any_of(&self.terms[..choosing]))
        };
        let choosing = if complete { 0 } else { choosing };
        let argument = rank::argument(choosing, self.terms.iter().map(|&(_, rows)| rows));
        let words: Vec<_> = self.words.iter().map(|word| self.bits(word)).collect();
        let has_all = |terms: u64| words.iter().all(|word| has(terms, *word));

        let mut statement = store.connection.prepare_cached(
            "select rowid, rank_of(texts, :argument) from texts where texts match :expression",
        )?;
        let mut rows =
            statement.query(named_params! {":argument": argument, ":expression": expression})?;
        let mut candidates = Vec::new();
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(1)?.as_blob()?;
            let rank = rank::Rank::from_bytes(bytes).expect("`rank_of` answers with a rank");
            candidates.push(Candidate {
                id: row.get(0)?,
                score: rank.score,
                terms: rank.terms,
                has_all: has_all(rank.terms),
            });
        }
        candidates.sort_unstable_by(|a, b| {
            let order = |it: &Candidate| (it.has_all, it.score, it.id);
            order(b).partial_cmp(&order(a)).unwrap_or(Ordering::Equal)
        });
        Ok(candidates)
    }

    /// Which bits stand for a word and for all its parts; none if it is in no row.
    fn bits(&self, word: &Word) -> Option<(u64, u64)> {
        let bit = |term: &str| {
            let at = self.terms.iter().position(|(known, _)| *known == term);
            at.map(|at| 1 << at)
        };
        let whole = bit(&word.whole);
        let parts = word
            .parts
            .iter()
            .try_fold(0, |all, part| Some(all | bit(part)?));
        let parts = parts.unwrap_or_default();
        (whole.is_some() || parts != 0).then(|| (whole.unwrap_or_default(), parts))
    }
}

/// Whether a row with these terms has a word, whole or by all its parts.
fn has(terms: u64, word: Option<(u64, u64)>) -> bool {
    word.is_some_and(|(whole, parts)| terms & whole != 0 || (parts != 0 && terms & parts == parts))
}

fn any_of(terms: &[(&str, f64)]) -> String {
    let quoted: Vec<_> = terms
        .iter()
        .map(|(term, _)| format!("\"{term}\""))
        .collect();
    quoted.join(" OR ")
}

/// In how many rows a term is. Of a common one the first rows are counted; how far they
/// reach says how many there are.
fn rows_with(store: &Store, term: &str, rows: f64) -> rusqlite::Result<f64> {
    let mut statement = store.connection.prepare_cached(
        "select count(*), max(rowid)
         from (select rowid from texts where texts match :term limit :max)",
    )?;
    statement.query_row(
        named_params! {":term": format!("\"{term}\""), ":max": COUNTED_MAX},
        |row| {
            let counted: f64 = row.get(0)?;
            if counted < f64::from(COUNTED_MAX) {
                return Ok(counted);
            }
            let reached: f64 = row.get(1)?;
            Ok(counted * rows / reached)
        },
    )
}

/// As many of the best candidates as are wanted, if the filter lets so many through.
fn best(
    store: &Store,
    candidates: &[Candidate],
    query: &Query<'_>,
    wanted: usize,
) -> rusqlite::Result<(Vec<Hit>, Answer)> {
    let mut hits: Vec<Hit> = Vec::new();
    let mut answer = Answer::Nothing;
    let mut with_all = 0;
    let mut rest = candidates;
    let mut next = wanted.max(8) * 2;
    while !rest.is_empty() {
        // By date every row that counts must be seen, and those with all words count alone.
        let some = match query.sort {
            Sort::Relevance => rest.len().min(next),
            Sort::Date => rest
                .iter()
                .take_while(|it| it.has_all == rest[0].has_all)
                .count(),
        };
        let (chunk, after) = rest.split_at(some);
        let ids: Vec<i64> = chunk.iter().map(|it| it.id).collect();
        let mut picked: HashMap<i64, Hit> = list::pick(store, &ids, &query.filter)?
            .into_iter()
            .map(|hit| (hit.id, hit))
            .collect();
        for candidate in chunk {
            if let Some(mut hit) = picked.remove(&candidate.id) {
                if answer == Answer::Nothing {
                    answer = if candidate.has_all {
                        Answer::AllWords
                    } else {
                        Answer::AnyWord
                    };
                }
                let counts = hit.superseded_by.map_or(1.0, |_| SUPERSEDED);
                hit.score = Some(candidate.score * counts);
                with_all += usize::from(candidate.has_all);
                hits.push(hit);
            }
        }
        if hits.len() >= wanted || (query.sort == Sort::Date && !hits.is_empty()) {
            break;
        }
        rest = after;
        next *= 4;
    }
    match query.sort {
        Sort::Date => hits.sort_by_key(|hit| std::cmp::Reverse((hit.at, hit.id))),
        // What is superseded goes down among its like: those with all words, or the others.
        Sort::Relevance => {
            let (all, any) = hits.split_at_mut(with_all);
            for hits in [all, any] {
                hits.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
            }
        }
    }
    Ok((hits, answer))
}

/// The best rows as FTS5 finds them by itself: any word, all rows ranked. What a benchmark
/// holds `search` against.
pub fn rank_as_fts5_does(store: &Store, words: &str, limit: u32) -> rusqlite::Result<Vec<i64>> {
    let words = words::words(words);
    let terms: Vec<_> = words
        .iter()
        .map(|word| (word.whole.as_str(), 0.0))
        .collect();
    let [title, body, tags, parts] = rank::WEIGHTS;
    let mut statement = store.connection.prepare_cached(
        "select rowid
         from texts
         where texts match :expression
         order by bm25(texts, :title, :body, :tags, :parts)
         limit :limit",
    )?;
    let rows = statement.query_map(
        named_params! {
            ":expression": any_of(&terms),
            ":title": title, ":body": body, ":tags": tags, ":parts": parts,
            ":limit": limit,
        },
        |row| row.get(0),
    )?;
    rows.collect()
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
        let (hits, _) = Asked::new(store, words)?.hits(store, &query)?;
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
