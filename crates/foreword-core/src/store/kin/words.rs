//! The words by which two insights are compared: what a text is about, and what it is against.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::text::is_in;
use crate::text::words::{Word, words};

pub type Words = BTreeSet<String>;

/// What is named after one of these phrases; after `GIVES_UP` also what is said to be gone.
pub fn named_after(text: &str, phrases: &[&str]) -> Words {
    let mut named = Words::new();
    let clauses = text.split([',', ';', ':', '(', ')']);
    for clause in clauses.flat_map(|it| it.split(". ")) {
        let tokens = tokens(clause);
        for at in 0..tokens.len() {
            let here = tokens[at..].join(" ") + " ";
            let starts = |phrase: &&&str| {
                let rest = here.strip_prefix(**phrase);
                rest.is_some_and(|it| it.starts_with(' '))
            };
            if let Some(phrase) = phrases.iter().find(starts) {
                let after = &tokens[at + phrase.split(' ').count()..];
                let until = after.iter().position(|it| is_in(ENDS, it));
                // `from a file` is where, `from a file to a table` is a change.
                if *phrase == "from" && !after.iter().any(|it| it == "to") {
                    continue;
                }
                let thing = &after[..until.unwrap_or(after.len())];
                let words = thing.iter().map(|it| content(it));
                named.extend(words.filter(|it| !it.is_empty()).take(3).flatten());
            }
            let is_gone = phrases == GIVES_UP && GONE.iter().any(|it| starts(&it));
            if is_gone && at > 0 && is_in("is are was were", &tokens[at - 1]) {
                let words = tokens[..at - 1].iter().rev().map(|it| content(it));
                named.extend(words.filter(|it| !it.is_empty()).take(2).flatten());
            }
        }
    }
    named
}

pub fn is_negated(text: &str) -> bool {
    tokens(text).iter().any(|it| is_in(NEGATIONS, it))
}

/// The words of a text in their order, each once, without those that only fill it.
pub fn as_written(text: &str) -> Vec<String> {
    let words = words(text).into_iter().map(|it| it.whole);
    words
        .filter(|it| !is_in(FILLERS, &it.to_lowercase()))
        .collect()
}

pub fn tokens(text: &str) -> Vec<String> {
    let words = as_written(text);
    words.iter().map(|it| it.to_lowercase()).collect()
}

/// Whether it is about something that the code calls so: `MAX_AGE`, `minSdk`.
pub fn has_name(fact: &str) -> bool {
    let of_pieces = |it: &Word| it.whole.is_ascii() && !it.parts.is_empty();
    fact.contains(['_', '`']) || words(fact).iter().any(of_pieces)
}

/// What a text is about: stems, without the words that are in every text.
pub fn content(text: &str) -> Words {
    let words = words(text);
    let words = words.iter().filter(|word| !word.is_stop_word());
    let terms = words.flat_map(Word::terms).map(str::to_lowercase);
    terms.map(|it| stem(&it).to_owned()).collect()
}

/// But for its numbers and their units.
pub fn plain(content: &Words) -> Words {
    let is_plain = |it: &&String| !is_number(it) && !UNITS.contains(*it);
    content.iter().filter(is_plain).cloned().collect()
}

pub fn common(a: &Words, b: &Words) -> usize {
    a.intersection(b).count()
}

/// Whether so much of the words is in a text, in percent.
pub fn covers(text: &Words, words: &Words, percent: usize) -> bool {
    common(text, words) * 100 >= words.len() * percent
}

pub fn is_number(word: &str) -> bool {
    word.starts_with(|it: char| it.is_ascii_digit()) || is_in(NUMBERS, word)
}

/// Rough, but `retry`, `retries` and `retried` are one.
fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.contains(|it: char| it.is_ascii_digit()) {
        return word;
    }
    let one = word
        .strip_suffix('s')
        .filter(|it| it.len() > 2 && !it.ends_with('s'));
    let one = one.unwrap_or(word);
    let mut endings = ENDINGS.iter();
    let stem = endings.find_map(|it| one.strip_suffix(it).filter(|it| it.len() > 2));
    let stem = stem.unwrap_or(one);
    let doubled =
        stem.len() > 3 && stem.as_bytes()[stem.len() - 1] == stem.as_bytes()[stem.len() - 2];
    &stem[..stem.len() - usize::from(doubled)]
}

const ENDINGS: [&str; 14] = [
    "ation", "ating", "ated", "ate", "ing", "ion", "ied", "ie", "ed", "ly", "al", "er", "e", "y",
];
const FILLERS: &str = "the a an now always we let s";
static UNITS: LazyLock<Words> =
    LazyLock::new(|| content("ms second minute hour day week month year bytes kb mb gb percent"));
const NUMBERS: &str = "one two three four five six seven eight nine ten";
const NEGATIONS: &str = "no not never cannot without don doesn isn aren won";
/// What follows is no longer so.
#[rustfmt::skip] // A list is read line by line.
pub const GIVES_UP: &[&str] = &[
    "instead of", "rather than", "in place of", "no longer", "replace", "replaces", "replaced", "replacing", "supersedes",
    "from", "away from", "drop", "drops", "dropped", "remove", "removes", "removed", "retire", "retires", "retired",
    "abandon", "abandons", "abandoned", "stop using", "stops using",
];
/// What follows is not so.
pub const DENIES: &[&str] = &["not", "never", "don t", "do not", "without", "no"];
/// Where that ends.
const ENDS: &str = "for to but and because since as by with";
/// What stands before is not so.
#[rustfmt::skip]
const GONE: &[&str] = &[
    "dropped", "gone", "removed", "replaced", "retired", "abandoned", "switched off", "turned off", "no longer needed",
    "no longer used",
];
