//! Which observations a text is about, rather than merely shares words with.
//!
//! A search answers whatever it is asked. A prompt did not ask: what is put beside it must
//! be about the same thing, and nothing is better than filler. So words that are in every
//! prompt to a coding agent do not count, words of programming count less, and of what is
//! left enough has to be found in one observation. The numbers were fitted to the labelled
//! prompts in `testdata/need`.

use super::candidates::{Length, MatchedRow, WordQuery, has};
use super::{Filter, Hit, list};
use crate::model::Kind;
use crate::store::Store;
use crate::text::is_in;
use crate::text::words::{self, Word};

/// An observation that a text is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub id: i64,
    /// The words that they have in common.
    pub words: Vec<String>,
    /// How much they have in common, in words that nothing else has.
    pub score: f64,
}

/// From here on it is no accident.
const ENOUGH: f64 = 2.1;
/// How much a word counts that is in the title too,
const IN_TITLE: f64 = 2.0;
/// one of programming at large,
const PLAIN: f64 = 0.7;
/// and one that is in no observation: against all of them.
const UNKNOWN: f64 = 0.64;
/// A text of which this observation has only a part is less about it.
const SHARE_POWER: f64 = 0.7;

/// Of a longer text (a pasted log) so many words are looked at.
const WORDS_MAX: usize = 40;
/// So many of the best candidates are looked at.
const CANDIDATES_MAX: usize = 40;
/// A small memory cannot tell which words are rare.
const ROWS_MIN: f64 = 500.0;

/// The best first.
pub fn about(store: &Store, text: &str, project: &str) -> rusqlite::Result<Vec<Match>> {
    let text = telling_part(text);
    let words = telling(&text);
    let asked = WordQuery::new(store, &words)?;
    let (mut candidates, _) = asked.matched(store, asked.choosing(), Length::AtLeast)?;
    let filter = Filter {
        projects: Some(vec![project.to_owned()]),
        kind: Some(Kind::Observation),
        ..Filter::default()
    };
    // Prompts and other projects may be as good, and many.
    let mut hits: Vec<Hit> = Vec::new();
    let mut looked_at = 0;
    for some in candidates.chunks(CANDIDATES_MAX * 4) {
        let ids: Vec<i64> = some.iter().map(|it| it.id).collect();
        hits.extend(list::pick(store, &ids, &filter)?);
        looked_at += some.len();
        if hits.len() >= CANDIDATES_MAX {
            break;
        }
    }
    candidates.truncate(looked_at);

    let weighed: Vec<WeighedWord<'_>> = words.iter().map(|word| asked.weigh(word)).collect();
    let mut matches: Vec<Match> = candidates
        .iter()
        .filter_map(|it| matched(it, hits.iter().find(|hit| hit.id == it.id)?, &weighed))
        .filter(|it| it.score >= ENOUGH)
        .collect();
    matches.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(matches)
}

/// A word of the text, with what it counts.
struct WeighedWord<'a> {
    word: &'a Word,
    bits: Option<(u64, u64)>,
    is_plain: bool,
    weight: f64,
}

impl WordQuery<'_> {
    /// The rarer a word, the more it counts, up to one.
    fn weigh<'a>(&self, word: &'a Word) -> WeighedWord<'a> {
        let rows_with = |term: &String| {
            let known = self.terms.iter().find(|(known, _)| known == term);
            known.map(|&(_, rows)| rows)
        };
        let parts = || word.parts.iter().filter_map(rows_with).reduce(f64::min);
        let rows = self.rows.max(ROWS_MIN);
        let rarity = rows_with(&word.whole)
            .or_else(parts)
            .map_or(UNKNOWN, |with| (rows / with).ln() / rows.ln());
        let is_plain = is_in(PLAIN_WORDS, &word.whole.to_lowercase());
        let plain = if is_plain { PLAIN } else { 1.0 };
        WeighedWord {
            word,
            bits: self.bits(word),
            is_plain,
            weight: rarity * plain,
        }
    }
}

/// None if they have no more in common than chance would give.
fn matched(candidate: &MatchedRow, hit: &Hit, weighed: &[WeighedWord<'_>]) -> Option<Match> {
    let title = format!("{} {}", hit.title, hit.subtitle).to_lowercase();
    let common = weighed.iter().filter(|it| has(candidate.terms, it.bits));
    let common: Vec<&WeighedWord<'_>> = common.collect();
    let specific = common.iter().any(|it| !it.is_plain);
    if common.len() < if specific { 2 } else { 3 } {
        return None;
    }
    let sum = |words: &mut dyn Iterator<Item = f64>| words.sum::<f64>();
    let share =
        sum(&mut common.iter().map(|it| it.weight)) / sum(&mut weighed.iter().map(|it| it.weight));
    let strength = sum(&mut common.iter().map(|it| {
        let in_title = title.contains(&root(&it.word.whole));
        it.weight * if in_title { IN_TITLE } else { 1.0 }
    }));
    Some(Match {
        id: candidate.id,
        words: common.iter().map(|it| it.word.whole.clone()).collect(),
        score: strength * share.powf(SHARE_POWER),
    })
}

/// Of a path only the file says something.
fn telling_part(text: &str) -> String {
    let file = |word: &str| match word.rsplit_once('/') {
        Some((_, file)) => format!("{file} "),
        None => format!("{word} "),
    };
    let mut out: String = text.split_whitespace().map(file).collect();
    // What stands in for a secret says nothing.
    while let Some(start) = out.find("[redacted:") {
        let length = out[start..]
            .find(']')
            .map_or(out.len() - start, |it| it + 1);
        out.replace_range(start..start + length, " ");
    }
    out
}

/// The words that say what a text is about, each root once.
fn telling(text: &str) -> Vec<Word> {
    let mut words = words::words(text);
    let mut seen = Vec::new();
    words.retain(|word| {
        let lower = word.whole.to_lowercase();
        let is_small_number = lower.len() < 3 && lower.bytes().all(|it| it.is_ascii_digit());
        let says_nothing = word.is_stop_word() || is_small_number || is_in(COMMON_WORDS, &lower);
        let root = root(&lower);
        let telling = !says_nothing && !seen.contains(&root);
        seen.push(root);
        telling
    });
    words.truncate(WORDS_MAX);
    words
}

/// What a word and its forms begin with.
fn root(word: &str) -> String {
    const ENDINGS: &[&str] = &[
        "ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "e", "y",
    ];
    let word = word.to_lowercase();
    let shorter = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
    let root = shorter.filter(|root| root.chars().count() >= 3);
    root.map_or_else(|| word.clone(), str::to_owned)
}

/// Words of work with an agent on code, whatever it is about.
const COMMON_WORDS: &str = include_str!("about/common.txt");
/// Words of programming, whatever the program.
const PLAIN_WORDS: &str = include_str!("about/plain.txt");
