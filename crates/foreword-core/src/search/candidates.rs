//! Chooses the rows that a search ranks, and ranks them.
//!
//! A common word is in half of all rows, and ranking all of them is what makes full-text search
//! slow. So only rows that have one of the rarest words are candidates, and all words rank them.
//! If these are too few, or a row with only the other words could score higher, the search is
//! repeated with more choosing words.
//!
//! A row's score depends on its length too, and looking that up costs as much as all the rest.
//! But the positions of the words in a row show how long it is at least. So the length is looked
//! up only for rows that would be among the best if they were no longer than that.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use rusqlite::{OptionalExtension as _, named_params};

use super::about::WeighedWord;
use super::rank::{self, Bm25};
use super::{Filter, Hit, MatchKind, Matched, Query, Sort, list};
use crate::store::Store;
use crate::text::Word;

/// The first candidates are one in this many of all rows, within the two bounds below. With
/// fewer the first choice is seldom enough, and a second choice starts over.
const CHOSEN_PART: f64 = 35.0;
/// The least number of rows that the first choosing terms may be in together.
const CHOSEN_MIN: f64 = 1_000.0;
/// The largest number of rows that the first choosing terms may be in together.
const CHOSEN_MAX: f64 = 10_000.0;
/// The score that a term is assumed to add to a row that was not looked at, as a multiple of its
/// rarity. Usually it adds about 1.0; at most 2.2 in a short row, in the title, or if repeated.
const USUAL_WORTH: f64 = 1.2;

/// The weight of a word that is common in prompts is multiplied by this in the share of a hit.
const COMMON: f64 = 0.35;

/// The words of a query, and in how many rows each of their terms is.
pub(super) struct WordQuery<'a> {
    words: &'a [Word],
    /// Each term with the number of rows it is in, the rarest first; without terms in no row.
    pub terms: Vec<(&'a str, f64)>,
    /// How many rows there are in all.
    pub rows: f64,
    bm25: Bm25,
    pub weighed: Vec<WeighedWord<'a>>,
    /// Words that are in no row.
    pub unknown: Vec<String>,
}

/// A row that has some of the terms.
struct Candidate {
    id: i64,
    score: f64,
    share: f64,
    has_all: bool,
}

/// Which length of a row its score is computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// The least length that the positions of the terms allow.
    AtLeast,
    LookedUp,
}

/// A row that has some of the terms, before its length is known.
pub(super) struct MatchedRow {
    pub id: i64,
    /// The terms that the row has, one bit each.
    pub terms: u64,
    has_all: bool,
    /// Its score; with `Length::AtLeast` an upper bound of it.
    most: f64,
    /// Where its weights begin in the list of all weights.
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
        let mut counts = MemoryCounts::default();
        for terms in terms.chunks(rank::TERMS_MAX) {
            counts.add(store, terms)?;
        }
        let MemoryCounts {
            rows,
            average_size,
            mut terms,
        } = counts;
        let known: BTreeSet<&str> = terms.iter().map(|&(term, _)| term).collect();
        let unknown = words
            .iter()
            .filter(|word| !word.terms().any(|term| known.contains(term)));
        let unknown = unknown.map(|word| word.whole.clone()).collect();
        terms.sort_by(|a, b| a.1.total_cmp(&b.1));
        terms.truncate(rank::TERMS_MAX);
        let rarities = terms.iter().map(|&(_, with)| rank::rarity(with, rows));
        let mut query = WordQuery {
            words,
            rows,
            bm25: Bm25 {
                rarities: rarities.collect(),
                average_size,
            },
            weighed: Vec::new(),
            terms,
            unknown,
        };
        query.weighed = words.iter().map(|word| query.weigh(word)).collect();
        Ok(query)
    }

    /// The share of the words that a row with these terms has, by weight. A sentence in a language
    /// without spaces is one word, so its parts count too.
    fn share(&self, terms: u64) -> f64 {
        let weight = |it: &WeighedWord<'_>| it.weight * if it.is_common { COMMON } else { 1.0 };
        let all: f64 = self.weighed.iter().map(weight).sum();
        let had = self.weighed.iter().map(|it| {
            let parts = it.part_bits.iter().filter(|bit| terms & **bit != 0);
            let part = match it.part_bits.len() {
                _ if has(terms, it.bits) => 1.0,
                0 => 0.0,
                all => parts.count() as f64 / all as f64,
            };
            part * weight(it)
        });
        had.sum::<f64>() / all.max(f64::MIN_POSITIVE)
    }

    /// The score of an average row that has each term once.
    pub fn worth(&self) -> f64 {
        self.bm25.rarities.iter().sum()
    }

    /// The best hits. The rarest terms choose the rows; all terms do if that finds too few.
    pub fn hits(
        &self,
        store: &Store,
        query: &Query<'_>,
    ) -> rusqlite::Result<(Vec<Hit>, MatchKind)> {
        let wanted = query.limit as usize;
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
                return Ok((hits, answer));
            }
            choosing = choosing_more;
        }
    }

    /// How many of the rarest terms must choose, so that no row with only the other terms can be
    /// among the best.
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

    /// How many of the rarest terms choose the rows at first.
    pub fn choosing(&self) -> usize {
        let most = (self.rows / CHOSEN_PART).clamp(CHOSEN_MIN, CHOSEN_MAX);
        let mut rows = 0.0;
        let few = self.terms.iter().take_while(|(_, with)| {
            rows += with;
            rows <= most
        });
        few.count().max(1).min(self.terms.len())
    }

    /// The best of the rows that have one of the `choosing` rarest terms.
    fn chosen(
        &self,
        store: &Store,
        query: &Query<'_>,
        choosing: usize,
    ) -> rusqlite::Result<(Vec<Hit>, MatchKind)> {
        // A filter may pass only one row in a hundred, and by date any row may come first: then
        // all rows are ranked, and FTS5 looks up all their lengths fastest.
        let few = query.filter == Filter::default() && query.sort == Sort::Relevance;
        let wanted = query.limit as usize;
        if few {
            let (matched, weights) = self.matched(store, choosing, Length::AtLeast)?;
            let candidates = self.measured(store, &matched, &weights, wanted.max(1))?;
            let (hits, answer) = best(store, &candidates, query, wanted)?;
            if hits.len() >= wanted || candidates.len() == matched.len() {
                return Ok((hits, answer));
            }
            // Too few: some rows were forgotten since they were matched.
        }
        let (matched, _) = self.matched(store, choosing, Length::LookedUp)?;
        let candidates = matched.into_iter().map(|row| Candidate {
            id: row.id,
            score: row.most,
            share: self.share(row.terms),
            has_all: row.has_all,
        });
        best(store, &candidates.collect::<Vec<_>>(), query, wanted)
    }

    /// The rows that have one of the `choosing` rarest terms, ordered by their largest possible
    /// score, and the weights of all terms in all these rows.
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
        matched.sort_unstable_by(best_first(|it: &MatchedRow| (it.has_all, it.most, it.id)));
        Ok((matched, weights))
    }

    /// Looks up the lengths of the likeliest rows until the best `wanted` are certain. Returns at
    /// least that many, or all rows, the best first.
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
                // None if the row was forgotten since; `best` does not find it then.
                let size = statement
                    .query_row([row.id], |noted| {
                        Ok(rank::size(noted.get_ref(0)?.as_blob()?))
                    })
                    .optional()?;
                candidates.push(Candidate {
                    id: row.id,
                    score: self.bm25.score(weights, size.unwrap_or_default()),
                    share: self.share(row.terms),
                    has_all: row.has_all,
                });
            }
            candidates.sort_unstable_by(best_first(|it: &Candidate| (it.has_all, it.score, it.id)));
            let Some(next) = rest.first() else {
                return Ok(candidates);
            };
            // Candidates above this point are better than any row that was not looked at.
            let known =
                candidates.partition_point(|it| (it.has_all, it.score) > (next.has_all, next.most));
            if known >= wanted {
                candidates.truncate(known);
                return Ok(candidates);
            }
        }
    }

    /// The bit of a word and the bits of all its parts; none if it is in no row.
    pub fn bits(&self, word: &Word) -> Option<(u64, u64)> {
        let whole = self.bit(&word.whole);
        let parts = word.parts.iter().map(|part| self.bit(part));
        let parts = parts.reduce(|all, bit| if all == 0 || bit == 0 { 0 } else { all | bit });
        let parts = parts.unwrap_or_default();
        (whole != 0 || parts != 0).then_some((whole, parts))
    }

    /// The bit of a term; 0 if it is in no row.
    pub fn bit(&self, term: &str) -> u64 {
        let at = self.terms.iter().position(|(known, _)| *known == term);
        at.map_or(0, |at| 1 << at)
    }
}

/// Whether a row with these terms has a word, either whole or all of its parts.
pub(super) fn has(terms: u64, word: Option<(u64, u64)>) -> bool {
    word.is_some_and(|(whole, parts)| terms & whole != 0 || (parts != 0 && terms & parts == parts))
}

/// Counts over all rows of the full-text table, from FTS5.
#[derive(Default)]
struct MemoryCounts<'a> {
    rows: f64,
    average_size: f64,
    /// Each term that is in some row, and in how many.
    terms: Vec<(&'a str, f64)>,
}

impl<'a> MemoryCounts<'a> {
    /// Adds the row counts of some terms. Of a common term only the first rows are counted, and
    /// the count is extrapolated from the id of the last one.
    fn add(&mut self, store: &Store, terms: &[&'a str]) -> rusqlite::Result<()> {
        let mut statement = store.connection.prepare_cached(
            "select term_rows(texts), (select max(id) from items)
             from texts
             where texts match :expression
             limit 1",
        )?;
        let expression = any_of(terms.iter().copied());
        let counts = statement
            .query_row(named_params! {":expression": expression}, |row| {
                let numbers: Vec<f64> = rank::numbers(row.get_ref(0)?.as_blob()?).collect();
                Ok((numbers, row.get::<_, f64>(1)?))
            })
            .optional()?;
        let Some((numbers, last_id)) = counts else {
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

/// Compares by a rank, the higher first.
fn best_first<T, R: PartialOrd>(rank: impl Fn(&T) -> R) -> impl Fn(&T, &T) -> Ordering {
    move |a, b| rank(b).partial_cmp(&rank(a)).unwrap_or(Ordering::Equal)
}

/// The FTS5 expression for rows that have one of the terms.
pub(super) fn any_of<'a>(terms: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = terms.map(|term| format!("\"{term}\"")).collect();
    quoted.join(" OR ")
}

/// The best `wanted` candidates that pass the filter.
fn best(
    store: &Store,
    candidates: &[Candidate],
    query: &Query<'_>,
    wanted: usize,
) -> rusqlite::Result<(Vec<Hit>, MatchKind)> {
    let mut hits: Vec<Hit> = Vec::new();
    let factor = super::factor(query.words);
    let mut answer = MatchKind::Nothing;
    let mut with_all = 0;
    let mut rest = candidates;
    let mut next = wanted.max(8) * 2;
    while !rest.is_empty() {
        // By date all rows with every word are read; if there are none, all the others.
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
                hit.score = Some(candidate.score * factor(&hit));
                hit.share = candidate.share;
                hit.matched = Some(if candidate.has_all {
                    Matched::AllWords
                } else {
                    Matched::SomeWords
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
        // Scores have changed: hits move within their group: rows with all words, or the others.
        Sort::Relevance => {
            let (all, any) = hits.split_at_mut(with_all);
            for hits in [all, any] {
                hits.sort_by(best_first(|it: &Hit| it.score));
            }
        }
    }
    Ok((hits, answer))
}
