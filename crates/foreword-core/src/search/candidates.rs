//! Which rows a search ranks, and their order.
//!
//! A common word is in half of all rows, and ranking them all is what makes full text
//! slow. So the rarest words choose the rows and all words rank them. If that leaves too few,
//! or the others could make a better row by themselves, more words choose.
//!
//! What a row is worth depends on its length too, and to look that up costs as much as all
//! the rest. But a row is at least as long as the places of its words say. So it is looked
//! up only for rows that would be among the best if they were no longer than that.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use rusqlite::{OptionalExtension as _, named_params};

use super::rank::{self, Bm25};
use super::{Filter, Hit, MatchKind, Matched, Query, SUPERSEDED, Sort, list};
use crate::store::Store;
use crate::text::words::Word;

/// At first the rarest terms choose, as many as are in so many rows together: one in so
/// many of all, within bounds. With fewer the first choice is seldom enough, and a second
/// begins anew.
const CHOSEN_PART: f64 = 35.0;
const CHOSEN_MIN: f64 = 1_000.0;
const CHOSEN_MAX: f64 = 10_000.0;
/// A row that has a term gets about its weight once, at most 2.2 times: in a short row, or
/// often, or in the title. What is left out is taken for so much.
const USUAL_WORTH: f64 = 1.2;

/// Words, and in how many rows each of the terms is that they are looked for by.
pub(super) struct WordQuery<'a> {
    words: &'a [Word],
    /// The rarest first, with its rows; those in no row are left out.
    pub terms: Vec<(&'a str, f64)>,
    pub rows: f64,
    bm25: Bm25,
    /// Words that are in no row.
    pub unknown: Vec<String>,
}

/// A row that has some of the terms.
struct Candidate {
    id: i64,
    score: f64,
    has_all: bool,
}

/// How long a row is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    AtLeast,
    LookedUp,
}

/// The same when its length may not be known yet.
pub(super) struct MatchedRow {
    pub id: i64,
    /// Which of the terms it has, one bit each.
    pub terms: u64,
    has_all: bool,
    /// Its score; if its length is not known, as short as it can be.
    most: f64,
    /// Where its weights begin.
    at: usize,
}

impl<'a> WordQuery<'a> {
    pub fn new(store: &Store, words: &'a [Word]) -> rusqlite::Result<WordQuery<'a>> {
        if store.ranks.get().is_none() {
            rank::register(&store.connection)?;
            let _ = store.ranks.set(());
        }
        let terms: BTreeSet<&str> = words.iter().flat_map(Word::terms).collect();
        let terms: Vec<&str> = terms.into_iter().collect();
        let mut counted = MemoryCounts::default();
        for terms in terms.chunks(rank::TERMS_MAX) {
            counted.add(store, terms)?;
        }
        let MemoryCounts {
            rows,
            average_size,
            mut terms,
        } = counted;
        let known: BTreeSet<&str> = terms.iter().map(|&(term, _)| term).collect();
        let unknown = words
            .iter()
            .filter(|word| !word.terms().any(|it| known.contains(it)));
        let unknown = unknown.map(|word| word.whole.clone()).collect();
        terms.sort_by(|a, b| a.1.total_cmp(&b.1));
        terms.truncate(rank::TERMS_MAX);
        let rarities = terms.iter().map(|&(_, with)| rank::rarity(with, rows));
        Ok(WordQuery {
            words,
            rows,
            bm25: Bm25 {
                rarities: rarities.collect(),
                average_size,
            },
            terms,
            unknown,
        })
    }

    /// The score of an average row that has each term once.
    pub fn worth(&self) -> f64 {
        self.bm25.rarities.iter().sum()
    }

    /// The best hits: chosen by the rarest terms, and by all if those are too few.
    pub fn hits(
        &self,
        store: &Store,
        query: &Query<'_>,
    ) -> rusqlite::Result<(Vec<Hit>, MatchKind)> {
        let wanted = query.offset as usize + query.limit as usize;
        let mut choosing = self.choosing();
        loop {
            let (mut hits, answer) = self.chosen(store, query, choosing)?;
            let complete = choosing == self.terms.len();
            let enough = match query.sort {
                Sort::Relevance => hits.len() >= wanted,
                Sort::Date => answer == MatchKind::AllWords,
            };
            let choosing_more = if enough {
                choosing.max(self.needed(query.sort, &hits, wanted))
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
    fn needed(&self, sort: Sort, hits: &[Hit], wanted: usize) -> usize {
        let scores = hits.iter().take(wanted).filter_map(|hit| hit.score);
        let least = scores.fold(f64::INFINITY, f64::min);
        let mut left_out = 0.0;
        let others = self.bm25.rarities.iter().rev().take_while(|&&rarity| {
            left_out += USUAL_WORTH * rarity;
            sort == Sort::Date || left_out < least
        });
        self.terms.len() - others.count()
    }

    /// How many of the rarest terms choose the rows.
    pub fn choosing(&self) -> usize {
        let most = (self.rows / CHOSEN_PART).clamp(CHOSEN_MIN, CHOSEN_MAX);
        let mut rows = 0.0;
        let few = self.terms.iter().take_while(|(_, with)| {
            rows += with;
            rows <= most
        });
        few.count().max(1).min(self.terms.len())
    }

    /// The best of the rows that have one of the first terms.
    fn chosen(
        &self,
        store: &Store,
        query: &Query<'_>,
        choosing: usize,
    ) -> rusqlite::Result<(Vec<Hit>, MatchKind)> {
        // A filter may let one row in a hundred through, and by date a row may stand anywhere:
        // then all must be in order, and FTS5 looks the lengths up soonest.
        let few = query.filter == Filter::default() && query.sort == Sort::Relevance;
        let wanted = query.offset as usize + query.limit as usize;
        if few {
            let (matched, weights) = self.matched(store, choosing, Length::AtLeast)?;
            let candidates = self.measured(store, &matched, &weights, wanted.max(1))?;
            let (hits, answer) = best(store, &candidates, query, wanted)?;
            if hits.len() >= wanted || candidates.len() == matched.len() {
                return Ok((hits, answer));
            }
            // Some were forgotten just now.
        }
        let (matched, _) = self.matched(store, choosing, Length::LookedUp)?;
        let candidates = matched.into_iter().map(|row| Candidate {
            id: row.id,
            score: row.most,
            has_all: row.has_all,
        });
        best(store, &candidates.collect::<Vec<_>>(), query, wanted)
    }

    /// The rows that have one of the first terms, those first that could be the best, and
    /// their weights.
    pub fn matched(
        &self,
        store: &Store,
        choosing: usize,
        length: Length,
    ) -> rusqlite::Result<(Vec<MatchedRow>, Vec<f64>)> {
        let (mut matched, mut weights) = (Vec::new(), Vec::new());
        if self.terms.is_empty() {
            return Ok((matched, weights));
        }
        let terms = || self.terms.iter().map(|&(term, _)| term);
        let (first, expression) = if choosing == self.terms.len() {
            (0, any_of(terms()))
        } else {
            let (some, any) = (any_of(terms().take(choosing)), any_of(terms()));
            (choosing, format!("({some}) AND ({any})"))
        };
        let words: Vec<_> = self.words.iter().map(|word| self.bits(word)).collect();
        let has_all = |terms: u64| words.iter().all(|word| has(terms, *word));

        let mut statement = store.connection.prepare_cached(
            "select rowid, term_weights(texts, :first, :measured)
             from texts
             where texts match :expression",
        )?;
        let mut rows = statement.query(named_params! {
            ":first": first,
            ":measured": length == Length::LookedUp,
            ":expression": expression,
        })?;
        while let Some(row) = rows.next()? {
            let at = weights.len();
            let mut numbers = rank::numbers(row.get_ref(1)?.as_blob()?);
            let size = numbers.next().unwrap_or_default();
            weights.extend(numbers);
            let of_row = &weights[at..];
            let terms = (0..).zip(of_row).filter(|(_, weight)| **weight > 0.0);
            let terms = terms.fold(0, |all, (number, _)| all | 1 << number);
            matched.push(MatchedRow {
                id: row.get(0)?,
                terms,
                has_all: has_all(terms),
                most: self.bm25.score(of_row, size),
                at,
            });
        }
        matched.sort_unstable_by(|a, b| {
            let order = |it: &MatchedRow| (it.has_all, it.most, it.id);
            order(b)
                .partial_cmp(&order(a))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        Ok((matched, weights))
    }

    /// At least so many of the best rows, or all that there are, the best first. Looks their
    /// lengths up.
    fn measured(
        &self,
        store: &Store,
        matched: &[MatchedRow],
        weights: &[f64],
        wanted: usize,
    ) -> rusqlite::Result<Vec<Candidate>> {
        let mut statement = store
            .connection
            .prepare_cached("select sz from texts_docsize where id = :id")?;
        let mut candidates = Vec::new();
        let mut rest = matched;
        loop {
            let some;
            (some, rest) = rest.split_at(rest.len().min(wanted.max(candidates.len())));
            for row in some {
                let weights = &weights[row.at..row.at + self.terms.len()];
                // None if the row was forgotten just now: then it is not read either.
                let size = statement
                    .query_row([row.id], |noted| {
                        Ok(rank::size(noted.get_ref(0)?.as_blob()?))
                    })
                    .optional()?;
                candidates.push(Candidate {
                    id: row.id,
                    score: self.bm25.score(weights, size.unwrap_or_default()),
                    has_all: row.has_all,
                });
            }
            candidates.sort_unstable_by(|a, b| {
                let order = |it: &Candidate| (it.has_all, it.score, it.id);
                order(b)
                    .partial_cmp(&order(a))
                    .unwrap_or(std::cmp::Ordering::Equal)
            });
            let Some(next) = rest.first() else {
                return Ok(candidates);
            };
            // From here on a row that was not looked at might be as good.
            let known =
                candidates.partition_point(|it| (it.has_all, it.score) > (next.has_all, next.most));
            if known >= wanted {
                candidates.truncate(known);
                return Ok(candidates);
            }
        }
    }

    /// Which bits stand for a word and for all its parts; none if it is in no row.
    pub fn bits(&self, word: &Word) -> Option<(u64, u64)> {
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
pub(super) fn has(terms: u64, word: Option<(u64, u64)>) -> bool {
    word.is_some_and(|(whole, parts)| terms & whole != 0 || (parts != 0 && terms & parts == parts))
}

/// What FTS5 says of the whole memory.
#[derive(Default)]
struct MemoryCounts<'a> {
    rows: f64,
    average_size: f64,
    /// Those that are in some row, and in how many.
    terms: Vec<(&'a str, f64)>,
}

impl<'a> MemoryCounts<'a> {
    /// Counts the rows of some terms. Of a common one the first rows are counted; how far
    /// they reach says how many there are.
    fn add(&mut self, store: &Store, terms: &[&'a str]) -> rusqlite::Result<()> {
        let mut statement = store.connection.prepare_cached(
            "select term_rows(texts), (select max(id) from items)
             from texts
             where texts match :expression
             limit 1",
        )?;
        let expression = any_of(terms.iter().copied());
        let counted = statement
            .query_row(named_params! {":expression": expression}, |row| {
                let numbers: Vec<f64> = rank::numbers(row.get_ref(0)?.as_blob()?).collect();
                Ok((numbers, row.get::<_, f64>(1)?))
            })
            .optional()?;
        let Some((numbers, last_id)) = counted else {
            return Ok(());
        };
        let [rows, size, each @ ..] = numbers.as_slice() else {
            return Ok(());
        };
        self.rows = rows.max(1.0);
        self.average_size = (size / self.rows).max(1.0);
        for (term, &[with, reached]) in terms.iter().zip(each.as_chunks().0) {
            if reached > 0.0 {
                self.terms.push((term, with * last_id / reached));
            } else if with > 0.0 {
                self.terms.push((term, with));
            }
        }
        Ok(())
    }
}

/// The expression for rows that have one of the terms.
pub(super) fn any_of<'a>(terms: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = terms.map(|term| format!("\"{term}\"")).collect();
    quoted.join(" OR ")
}

/// As many of the best candidates as are wanted, if the filter lets so many through.
fn best(
    store: &Store,
    candidates: &[Candidate],
    query: &Query<'_>,
    wanted: usize,
) -> rusqlite::Result<(Vec<Hit>, MatchKind)> {
    let mut hits: Vec<Hit> = Vec::new();
    let mut answer = MatchKind::Nothing;
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
                if answer == MatchKind::Nothing {
                    answer = if candidate.has_all {
                        MatchKind::AllWords
                    } else {
                        MatchKind::AnyWord
                    };
                }
                let counts = hit.superseded_by.map_or(1.0, |_| SUPERSEDED);
                hit.score = Some(candidate.score * counts);
                hit.matched = Some(match candidate.has_all {
                    true => Matched::AllWords,
                    false => Matched::SomeWords,
                });
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
