//! Whether two observations say the same, and which older ones a text says it replaces.
//!
//! Nothing here reads the meaning of words: rules on English words found 4 of 13 superseded
//! decisions on pairs that they were not made from, and four fixed phrases ("instead of X")
//! found none (`testdata/kin`). A wrong repeat loses an insight, so titles and facts must be
//! equal but for case, markup and punctuation.

use std::collections::BTreeSet;

use crate::model::ObservationType;
use crate::text::normalised;

/// The parts of an observation that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insight<'a> {
    pub kind: ObservationType,
    pub title: &'a str,
    pub facts: &'a [String],
    pub files: &'a [String],
}

/// Facts with fewer words than this, such as "a fact", do not make two observations one.
const FACT_WORDS_MIN: usize = 5;

/// Whether two observations are of one type, name the same files (or one of them some of the
/// other's), and say the same: by title for a decision, by title or facts for a discovery.
///
/// Work needs the same facts: "`npm test` failed, then passed" is the title of many fixes.
/// A decision needs the same title: "kept for 30 days" and "kept for 90 days" share facts.
pub fn is_repeat(a: &Insight<'_>, b: &Insight<'_>) -> bool {
    if a.kind != b.kind || !within(&set(a.files), &set(b.files)) {
        return false;
    }
    let [facts, others] = [a, b].map(|insight| {
        let facts = insight.facts.iter().map(|fact| normalised(fact));
        facts.collect::<BTreeSet<_>>()
    });
    let words = facts.intersection(&others).map(|it| it.split(' ').count());
    let same_facts = within(&facts, &others);
    let same_telling_facts = same_facts && words.sum::<usize>() >= FACT_WORDS_MIN;
    let same_title = normalised(a.title) == normalised(b.title);
    match a.kind {
        ObservationType::Decision => same_title,
        ObservationType::Discovery => same_title || same_telling_facts,
        _ => same_title && same_facts || same_telling_facts,
    }
}

/// The numbers in `supersedes #12` and `supersedes #12, #14`.
pub fn superseded_ids(text: &str) -> Vec<i64> {
    let mut ids = Vec::new();
    let mut after_verb = false;
    for word in text.split_whitespace() {
        let word = word.trim_matches(|it: char| !it.is_alphanumeric() && it != '#');
        let id = word.strip_prefix('#').and_then(|it| it.parse::<i64>().ok());
        ids.extend(id.filter(|_| after_verb));
        after_verb = word.eq_ignore_ascii_case("supersedes") || after_verb && id.is_some();
    }
    ids
}

fn set(files: &[String]) -> BTreeSet<String> {
    files.iter().cloned().collect()
}

/// Whether one set is part of the other; an empty one is part of an empty one only.
fn within(a: &BTreeSet<String>, b: &BTreeSet<String>) -> bool {
    a.is_empty() == b.is_empty() && (a.is_subset(b) || b.is_subset(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_what_it_supersedes_by_number() {
        for (text, ids) in [
            ("Use zstd for old segments (supersedes #12).", vec![12]),
            ("Supersedes #12, #14: use zstd", vec![12, 14]),
            ("See #12; it supersedes the other", vec![]),
            ("Fixes #12", vec![]),
            ("supersedes #x", vec![]),
        ] {
            assert_eq!(superseded_ids(text), ids, "{text}");
        }
    }

    #[test]
    fn case_markup_and_punctuation_make_no_difference_and_anything_else_does() {
        let repeats = |kind, [a, b]: [&str; 2], [facts, others]: [&[&str]; 2]| {
            let owned = |facts: &[&str]| facts.iter().map(|it| (*it).to_owned()).collect();
            let [facts, others]: [Vec<String>; 2] = [owned(facts), owned(others)];
            let insight = |title, facts| Insight {
                kind,
                title,
                facts,
                files: &[],
            };
            is_repeat(&insight(a, &facts), &insight(b, &others))
        };
        use ObservationType::{Bugfix, Decision, Discovery};
        let same = [
            "Use `zstd` for **old** segments.",
            "use zstd for old segments",
        ];
        let other = ["Kept for 30 days", "Kept for 90 days"];
        assert!(repeats(Decision, same, [&["a"], &["b"]]));
        assert!(!repeats(Decision, other, [&["a"], &["a"]]));
        let [long, more] = ["The feed has 1.8 GB", "peak memory is at 6 GB"];
        assert!(repeats(
            Discovery,
            other,
            [&[long], &["the *feed* has 1.8 GB.", more]]
        ));
        assert!(!repeats(Discovery, other, [&[long, more], &[long, "a"]]));
        assert!(!repeats(Discovery, other, [&["a"], &["a"]]));
        assert!(!repeats(Discovery, ["x != 1", "x == 1"], [&[], &[]]));
        assert!(!repeats(Bugfix, same, [&["a"], &["b"]]));
        assert!(repeats(Bugfix, same, [&["a"], &["a"]]));
    }
}
