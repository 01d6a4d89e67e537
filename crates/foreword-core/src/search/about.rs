//! Finds the observations that a prompt is about, not those that merely share words with it.
//!
//! Nobody searched here, so a reminder beside a prompt must be about the same thing; no reminder
//! is better than a vague one. So words that are common in prompts to a coding agent do not
//! count, words of programming in general count less, and one observation must have enough of
//! the rest. The numbers were fitted to the labelled prompts in `testdata/need`.

use super::candidates::{Length, MatchedRow, WordQuery, has};
use super::{Filter, Hit, list};
use crate::model::{Kind, Origin};
use crate::store::Store;
use crate::text::{self, Word, is_in};

/// An observation that a prompt is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub id: i64,
    /// The words that both have.
    pub words: Vec<String>,
    /// The weight of the common words; a word that nothing else has counts as one.
    pub score: f64,
}

/// The minimum score for a reminder.
const SCORE_MIN: f64 = 1.9;
/// The weight of a word is multiplied by this if it is also in the observation's title.
const IN_TITLE: f64 = 2.0;
/// The weight of the words of a name (`list_entries`, `TaskRow`, `format.ts`) is multiplied by this
/// if an observation has all of them.
const NAMED: f64 = 1.6;
/// The weight of a general programming word is multiplied by this.
const PLAIN: f64 = 0.7;
/// The weight of a word that is in no observation; it lowers the score of every observation.
const UNKNOWN: f64 = 0.64;
/// The least weight of a word in the title of a rule of the user that is enough for a reminder of it:
/// the rule applies whenever its subject comes up. (Held-out sessions: 11 of 21 instead of 7.)
const RULE_WORD: f64 = 0.6;
/// The least score as a share of the best match's. (Held-out prompts: 5 lines beside the right one
/// instead of 7, none lost.)
const OF_BEST: f64 = 0.5;
/// The exponent of the share of the prompt's weight that an observation has.
const SHARE_POWER: f64 = 0.7;

/// Only the first words of a long prompt (a pasted log) are used.
const WORDS_MAX: usize = 40;
/// How many of the best candidates are compared.
const CANDIDATES_MAX: usize = 40;
/// A smaller memory is treated as if it had this many rows: it does not show which words are rare.
const ROWS_MIN: f64 = 500.0;

/// The observations of a project that a prompt is about, the best first.
pub fn about(store: &Store, prompt: &str, project: &str) -> rusqlite::Result<Vec<Match>> {
    let text = searchable_text(prompt);
    let names = names(&text);
    let words = content_words(&text, &names);
    let query = WordQuery::new(store, &words)?;
    let (mut candidates, _) = query.matched(store, query.choosing(), Length::AtLeast)?;
    let filter = Filter {
        projects: Some(vec![project.to_owned()]),
        kind: Some(Kind::Observation),
        ..Filter::default()
    };
    // Many of the candidates may be prompts, or of other projects.
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

    let mut matches: Vec<Match> = candidates
        .iter()
        .filter_map(|it| {
            matched(
                it,
                hits.iter().find(|hit| hit.id == it.id)?,
                &query.weighed,
                &names,
            )
        })
        .filter(|it| it.score >= SCORE_MIN)
        .collect();
    matches.sort_by(|a, b| b.score.total_cmp(&a.score));
    let best = matches.first().map_or(0.0, |it| it.score);
    matches.retain(|it| it.score >= OF_BEST * best);
    Ok(matches)
}

/// A word of the prompt, with its weight.
pub(super) struct WeighedWord<'a> {
    word: &'a Word,
    pub bits: Option<(u64, u64)>,
    /// The bit of each of its parts; 0 for one that is in no row.
    pub part_bits: Vec<u64>,
    is_plain: bool,
    pub weight: f64,
    /// Whether it is common in prompts, whatever the task.
    pub is_common: bool,
}

impl WordQuery<'_> {
    /// The rarer a word, the larger its weight, up to one.
    pub(super) fn weigh<'a>(&self, word: &'a Word) -> WeighedWord<'a> {
        let rows_with = |term: &String| {
            let known = self.terms.iter().find(|(known, _)| known == term);
            known.map(|&(_, rows)| rows)
        };
        let parts = || word.parts.iter().filter_map(rows_with).reduce(f64::min);
        let rows = self.rows.max(ROWS_MIN);
        let rarity = rows_with(&word.whole)
            .or_else(parts)
            .map_or(UNKNOWN, |with| (rows / with).ln() / rows.ln());
        let lower = word.whole.to_lowercase();
        let is_plain = is_in(PLAIN_WORDS, &lower);
        let plain = if is_plain { PLAIN } else { 1.0 };
        WeighedWord {
            word,
            bits: self.bits(word),
            part_bits: word.parts.iter().map(|it| self.bit(it)).collect(),
            is_plain,
            weight: rarity * plain,
            is_common: is_in(COMMON_WORDS, &lower),
        }
    }
}

/// None if both share fewer than two words, or fewer than three if all of them are general. A name
/// is enough by itself, and so is a word in the title of a rule of the user.
fn matched(
    candidate: &MatchedRow,
    hit: &Hit,
    weighed: &[WeighedWord<'_>],
    names: &[CodeName],
) -> Option<Match> {
    let title = format!("{} {}", hit.title, hit.subtitle).to_lowercase();
    let common = weighed.iter().filter(|it| has(candidate.terms, it.bits));
    let common: Vec<&WeighedWord<'_>> = common.collect();
    let specific = common.iter().any(|it| !it.is_plain);
    let is_common = |word: &String| {
        common
            .iter()
            .any(|it| it.word.whole.to_lowercase() == *word)
    };
    let shared_names = names.iter().filter(|name| name.iter().all(is_common));
    let named: Vec<&String> = shared_names.flatten().collect();
    let in_title = |it: &WeighedWord<'_>| title.contains(&root(&it.word.whole));
    let is_subject = |it: &WeighedWord<'_>| {
        !it.is_plain && !it.is_common && it.weight >= RULE_WORD && in_title(it)
    };
    let is_rule = hit.origin == Some(Origin::User) && common.iter().any(|it| is_subject(it));
    if !is_rule && named.is_empty() && common.len() < if specific { 2 } else { 3 } {
        return None;
    }
    let sum = |words: &mut dyn Iterator<Item = f64>| words.sum::<f64>();
    let share =
        sum(&mut common.iter().map(|it| it.weight)) / sum(&mut weighed.iter().map(|it| it.weight));
    let strength = sum(&mut common.iter().map(|it| {
        let is_named = named.contains(&&it.word.whole.to_lowercase());
        let in_title = if in_title(it) { IN_TITLE } else { 1.0 };
        it.weight * in_title * if is_named { NAMED } else { 1.0 }
    }));
    Some(Match {
        id: candidate.id,
        words: common.iter().map(|it| it.word.whole.clone()).collect(),
        score: strength * share.powf(SHARE_POWER) + if is_rule { SCORE_MIN } else { 0.0 },
    })
}

/// The prompt without the folders of its paths and without the placeholders of secrets.
fn searchable_text(text: &str) -> String {
    let file = |word: &str| match word.rsplit_once('/') {
        Some((_, file)) => format!("{file} "),
        None => format!("{word} "),
    };
    let mut out: String = text.split_whitespace().map(file).collect();
    while let Some(start) = out.find("[redacted:") {
        let length = out[start..]
            .find(']')
            .map_or(out.len() - start, |it| it + 1);
        out.replace_range(start..start + length, " ");
    }
    out
}

/// The words of a name in code, in lower case.
type CodeName = Vec<String>;

/// The names in a text: words joined by a sign (`list_entries`, `format.ts`), or with a capital
/// inside (`TaskRow`).
fn names(text: &str) -> Vec<CodeName> {
    let is_part =
        |part: &str| part.len() > 1 && part.starts_with(|it: char| it.is_ascii_alphabetic());
    let mut names: Vec<CodeName> = Vec::new();
    for token in text.split_whitespace() {
        let token = token.trim_matches(|it: char| !it.is_alphanumeric());
        let joined = token.split(['_', '.', ':']).filter(|it| !it.is_empty());
        let is_joined = joined.clone().count() > 1 && joined.clone().all(is_part);
        let words = text::words(token);
        let has_capital = |word: &Word| !word.parts.is_empty() && is_part(&word.parts[0]);
        if is_joined || words.len() == 1 && words.iter().all(has_capital) {
            let lower = words.iter().filter(|it| !it.is_stop_word());
            names.push(lower.map(|it| it.whole.to_lowercase()).collect());
        }
    }
    // `TypeScript` names nothing in particular.
    names.retain(|name| name.iter().any(|word| !is_in(PLAIN_WORDS, word)));
    names
}

/// The words of a prompt without stop words, small numbers and words that are common outside of
/// names, each root once.
fn content_words(text: &str, names: &[CodeName]) -> Vec<Word> {
    let mut words = text::words(text);
    let mut seen = Vec::new();
    words.retain(|word| {
        let lower = word.whole.to_lowercase();
        let is_small_number = lower.len() < 3 && lower.bytes().all(|it| it.is_ascii_digit());
        let is_common = word.is_stop_word()
            || text::is_function_word(&lower)
            || is_small_number
            || is_in(COMMON_WORDS, &lower) && !names.iter().flatten().any(|it| *it == lower);
        let root = root(&lower);
        let is_content = !is_common && !seen.contains(&root);
        seen.push(root);
        is_content
    });
    words.truncate(WORDS_MAX);
    words
}

/// A word without its ending, in lower case, so that its forms are equal.
fn root(word: &str) -> String {
    const ENDINGS: &[&str] = &[
        "ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "e", "y",
    ];
    let word = word.to_lowercase();
    let shorter = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
    let root = shorter.filter(|root| root.chars().count() >= 3);
    root.map_or_else(|| word.clone(), str::to_owned)
}

/// Words that are common in prompts to a coding agent, whatever the task.
const COMMON_WORDS: &str = include_str!("about/common.txt");
/// General programming words, common in any project.
const PLAIN_WORDS: &str = include_str!("about/plain.txt");
