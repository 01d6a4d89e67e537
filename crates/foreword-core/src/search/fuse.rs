//! Search by words and by meaning together, in one order.
//!
//! Both find candidates. Each candidate has a score by its words (BM25) and one by its chunks
//! (cosine), and is ranked by their weighted sum. The best hits often contain what the query left
//! out, so items like them move up. A name that is quoted, or written as in code, is meant
//! literally: items that have it come first, however near the others are.

use std::collections::{HashMap, HashSet};

use super::{
    FLOOR, Found, Hit, MatchKind, Matched, Query, Sort, about_words, list, search, search_for,
};
use crate::search::vectors::{DIMENSIONS, Vector, Vectors};
use crate::store::Store;
use crate::text::Word;

/// The vectors of the memory and the vector of the query.
#[derive(Debug, Clone, Copy)]
pub struct Meaning<'a> {
    pub vectors: &'a Vectors,
    pub question: &'a Vector,
}

// These values were chosen on the development half of the benchmark: bench/runs/2026-11-16-meaning.md
// and bench/runs/2026-11-18-search.md.

/// How much words, meaning and likeness to the best hits count in a score.
struct Weights {
    /// The weight of the score by words, as a share of the score for all words of the query. (As a
    /// share of the best hit's score, one common word would look like a full match.) The rest is
    /// the weight of the cosine. (It is not divided by the best one, or a far chunk would look near.)
    words: f64,
    /// The weight of the likeness to the best hits.
    like_best: f64,
}
const WEIGHTS: Weights = Weights {
    words: 0.4,
    like_best: 0.35,
};
/// If `CANDIDATES` items or more have some of the words, many are near by chance, and the best
/// hits are less often right.
const WEIGHTS_IF_MANY: Weights = Weights {
    words: 0.7,
    like_best: 0.1,
};
/// How many of the best hits the others are compared with.
const BEST: usize = 2;
/// The weight of an item's nearest chunk.
const NEAREST: f64 = 0.5;
/// The weight of all its chunks on average: an item that is about the query as a whole is better
/// than one that touches on it.
const AVERAGE: f64 = 0.5;
/// Added to the score of an item that has every name of the query that is quoted or written as in
/// code; more than any other item can reach.
const EXACT: f64 = 2.0;
/// The least cosine of a hit that has none of the words. Two short texts that mean the same may
/// have a cosine of 0.16.
const NEAR: f32 = 0.12;
/// The least cosine of a hit that has none of the words, as a share of the nearest hit's cosine.
const NEAR_PART: f32 = 0.5;
/// The least nearness of the best hits, or nothing is remembered about the query: the greatest
/// cosine and a part of the greatest share of words.
const FLOOR_NEAR: f64 = 0.15;
/// How much the share of words counts for the nearness.
const FLOOR_SHARE: f64 = 0.3;
/// How many candidates by words, and how many by meaning, are ranked at least.
const CANDIDATES: u32 = 200;
/// If fewer of the nearest items pass the filter, all items that pass it are compared instead.
const ENOUGH: usize = 40;

/// Searches by words and by meaning. A query without words, or sorted by date, goes by words alone.
pub fn search_by_meaning(
    store: &Store,
    query: &Query<'_>,
    meaning: Meaning<'_>,
) -> rusqlite::Result<Found> {
    let wide = Query {
        limit: query.limit.max(CANDIDATES),
        ..query.clone()
    };
    let words = about_words(query.words);
    // An item that shares only a stop word with the query is no hit here.
    if query.sort == Sort::Date || words.iter().all(Word::is_stop_word) {
        return search(store, query);
    }
    let (mut found, all_words) = search_for(store, &wide, &words)?;
    let exact = exact(query.words);
    // If the query is only exact names and no row has them, do not fall back to meaning.
    let is_exact = exact.split_whitespace().count() >= query.words.split_whitespace().count();
    if is_exact && found.hits.is_empty() {
        return search(store, query);
    }
    let weights = if found.hits.len() < CANDIDATES as usize {
        WEIGHTS
    } else {
        WEIGHTS_IF_MANY
    };
    let mut hits: HashMap<i64, Hit> = found.hits.drain(..).map(|hit| (hit.id, hit)).collect();
    let new = nearest(store, &wide, meaning, &hits)?;
    hits.extend(new.into_iter().map(|hit| (hit.id, hit)));
    if hits.is_empty() {
        return search(store, query);
    }

    let exact = if exact.is_empty() {
        HashSet::new()
    } else {
        let query = Query {
            words: &exact,
            ..wide
        };
        let found = search(store, &query)?.hits.into_iter();
        let all = found.filter(|it| it.matched == Some(Matched::AllWords));
        all.map(|it| it.id).collect()
    };
    let vectors = meaning.vectors;
    let near = Near::new(vectors, meaning.question, hits.values());
    if exact.is_empty() && !near.is_near(hits.values()) {
        found.looser = search(store, query)?.looser;
        found.answer = MatchKind::Nothing;
        return Ok(found);
    }
    let factor = super::factor(query.words);
    let score = |hit: &Hit| {
        let words = hit.score.unwrap_or_default() / all_words.max(f64::MIN_POSITIVE);
        let exact = if exact.contains(&hit.id) { EXACT } else { 0.0 };
        // The score by words has been multiplied already.
        weights.words * words + ((1.0 - weights.words) * near.to(hit) + exact) * factor(hit)
    };
    let ranked = hits.into_values().map(|hit| (score(&hit), hit));
    let mut ranked: Vec<(f64, Hit)> = ranked.collect();
    let best_first = |(a, hit_a): &(f64, Hit), (b, hit_b): &(f64, Hit)| {
        b.total_cmp(a).then(hit_b.id.cmp(&hit_a.id))
    };
    ranked.sort_by(best_first);
    let like_best = best(vectors, &ranked);
    let like_best = Near::new(vectors, &like_best, ranked.iter().map(|(_, hit)| hit));
    for (score, hit) in &mut ranked {
        *score += weights.like_best * like_best.to(hit) * factor(hit);
        hit.score = Some(*score);
    }
    ranked.sort_by(best_first);
    found.hits = ranked.into_iter().map(|(_, hit)| hit).collect();
    let any = |how| found.hits.iter().any(|it| it.matched == Some(how));
    found.answer = if any(Matched::AllWords) {
        MatchKind::AllWords
    } else if any(Matched::SomeWords) {
        MatchKind::AnyWord
    } else {
        MatchKind::Meaning
    };
    found.hits.truncate(query.limit as usize);
    Ok(found)
}

/// The nearest items that the search by words did not find.
fn nearest(
    store: &Store,
    query: &Query<'_>,
    meaning: Meaning<'_>,
    known: &HashMap<i64, Hit>,
) -> rusqlite::Result<Vec<Hit>> {
    let Meaning { vectors, question } = meaning;
    let count = query.limit as usize;
    let unknown = |near: &[(i64, f32)]| -> rusqlite::Result<Vec<Hit>> {
        let near = near.iter().filter(|(_, cosine)| *cosine >= NEAR);
        let mut nearest: HashMap<i64, f32> = HashMap::new();
        for (id, cosine) in near {
            let nearest = nearest.entry(*id).or_default();
            *nearest = nearest.max(*cosine);
        }
        let ids = nearest.keys().filter(|id| !known.contains_key(id));
        let mut hits = list::pick(store, &ids.copied().collect::<Vec<_>>(), &query.filter)?;
        // The nearest cosine is taken among the items that pass the filter.
        let allowed = hits.iter().map(|it| it.id).chain(known.keys().copied());
        let best = allowed.filter_map(|id| nearest.get(&id));
        let least = best.fold(0.0, |best: f32, it| best.max(*it)) * NEAR_PART;
        hits.retain(|hit| nearest[&hit.id] >= least);
        Ok(hits)
    };
    let nearest = vectors.nearest(question, count);
    let mut new = unknown(&nearest)?;
    let is_all = nearest.len() < count;
    let known_too = nearest.iter().filter(|(id, _)| known.contains_key(id));
    let enough = new.len() + known_too.count() >= ENOUGH;
    if !enough && !is_all && query.filter != super::Filter::default() {
        let mut nearest = vectors.near(question, list::ids(store, &query.filter)?.into_iter());
        nearest.sort_by(|a, b| b.1.total_cmp(&a.1));
        nearest.truncate(count);
        new = unknown(&nearest)?;
    }
    for hit in &mut new {
        hit.matched = Some(Matched::Meaning);
    }
    Ok(new)
}

/// How near each hit is to a vector. All its chunks count, not only those among the nearest.
struct Near {
    cosines: HashMap<i64, f64>,
    /// The greatest cosine of a single chunk.
    nearest: f64,
    most: f64,
    most_words: f64,
}

impl Near {
    fn new<'a>(
        vectors: &Vectors,
        vector: &Vector,
        hits: impl Iterator<Item = &'a Hit> + Clone,
    ) -> Near {
        let mut near: HashMap<i64, (f64, f64, f64)> = HashMap::new();
        for (id, cosine) in vectors.near(vector, hits.clone().map(|it| it.id)) {
            let cosine = f64::from(cosine.max(0.0));
            let (nearest, sum, chunks) = near.entry(id).or_default();
            *nearest = nearest.max(cosine);
            (*sum, *chunks) = (*sum + cosine, *chunks + 1.0);
        }
        let greatest = near.values().map(|it| it.0).fold(0.0, f64::max);
        let pooled = near.into_iter();
        let pooled = pooled
            .map(|(id, (nearest, sum, chunks))| (id, NEAREST * nearest + AVERAGE * sum / chunks));
        let cosines: HashMap<i64, f64> = pooled.collect();
        let words = hits.filter_map(|it| it.score);
        Near {
            nearest: greatest,
            most: cosines.values().copied().fold(0.0, f64::max),
            most_words: words.fold(f64::MIN_POSITIVE, f64::max),
            cosines,
        }
    }

    /// Whether the best of these hits are near enough to be shown. Without a vector the words decide.
    fn is_near<'a>(&self, hits: impl Iterator<Item = &'a Hit> + Clone) -> bool {
        let share = hits.clone().map(|hit| hit.share).fold(0.0, f64::max);
        let mut unembedded = hits.filter(|hit| !self.cosines.contains_key(&hit.id));
        self.nearest + FLOOR_SHARE * share >= FLOOR_NEAR || unembedded.any(|hit| hit.share >= FLOOR)
    }

    /// An item that is not embedded yet gets a cosine in proportion to its score by words.
    fn to(&self, hit: &Hit) -> f64 {
        let by_words = self.most * hit.score.unwrap_or_default() / self.most_words;
        self.cosines.get(&hit.id).copied().unwrap_or(by_words)
    }
}

/// The mean of the vectors of the best hits, weighted by their scores.
fn best(vectors: &Vectors, ranked: &[(f64, Hit)]) -> Vector {
    let embedded = ranked.iter();
    let embedded = embedded.filter_map(|(score, it)| Some((*score as f32, vectors.of(it.id)?)));
    let best: Vec<(f32, Vector)> = embedded.take(BEST).collect();
    let all: f32 = best.iter().map(|(score, _)| score).sum();
    let mut sum = [0.0; DIMENSIONS];
    for (score, vector) in &best {
        for (sum, number) in sum.iter_mut().zip(vector) {
            *sum += number * score / all;
        }
    }
    sum
}

/// The words of a query that are meant literally: quoted, or written as in code.
fn exact(query: &str) -> String {
    let quoted = query.split('"').skip(1).step_by(2);
    // A quotation mark without a partner is ignored.
    let quoted = quoted.take(query.matches('"').count() / 2);
    let unquoted = query
        .split_whitespace()
        .map(|it| it.trim_matches(|it: char| !it.is_alphanumeric()));
    let in_code = unquoted.filter(|word| {
        let has = |test: fn(char) -> bool| word.chars().any(test);
        let inside = word.contains(['_', '/', '.', ':', '@']) && !word.contains("//");
        let mixed = has(|it| it.is_ascii_digit()) && has(|it| it.is_ascii_alphabetic());
        let camel = word.chars().skip(1).any(char::is_uppercase) && has(char::is_lowercase);
        inside || mixed || camel
    });
    quoted.chain(in_code).collect::<Vec<_>>().join(" ")
}
