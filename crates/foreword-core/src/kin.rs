//! Whether two insights are one, or the newer overtakes the older. `store::kin` asks.
//!
//! Only words are compared, so much is missed; what is said must be right. Taking two
//! insights for one loses the second, and marking a decision as superseded that still holds
//! is worse: an agent would go against it. *Unrelated* is the answer whenever in doubt.
//! `testdata/kin` has labelled pairs and says how often this is right.

use std::collections::BTreeSet;

use crate::model::ObservationType;
use crate::search::words;

/// What an insight says, as far as it can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insight<'a> {
    pub kind: ObservationType,
    pub title: &'a str,
    pub facts: &'a [String],
    pub concepts: &'a [String],
    pub files: &'a [String],
}

/// What a newer insight is to an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kinship {
    /// It says the same.
    Duplicate,
    /// It decides the same matter otherwise.
    Supersedes,
    Unrelated,
}

#[must_use]
pub fn kinship(older: &Insight<'_>, newer: &Insight<'_>) -> Kinship {
    let (before, after) = (Title::new(older), Title::new(newer));
    if is_duplicate(older, &before, newer, &after) {
        Kinship::Duplicate
    } else {
        Kinship::Unrelated
    }
}

struct Title {
    words: BTreeSet<String>,
}

impl Title {
    fn new(insight: &Insight<'_>) -> Title {
        let words = words(insight.title);
        let words = words.iter().filter(|word| !word.is_stop_word());
        Title {
            words: words
                .map(|it| stem(&it.whole.to_lowercase()).to_owned())
                .collect(),
        }
    }
}

fn is_duplicate(older: &Insight<'_>, before: &Title, newer: &Insight<'_>, after: &Title) -> bool {
    let shared = before.words.intersection(&after.words).count();
    let share_files = older.files.iter().any(|it| newer.files.contains(it));
    shared >= 3
        && shared * 5 >= before.words.len().max(after.words.len()) * 4
        && (share_files || older.files.is_empty() && newer.files.is_empty())
}

fn stem(word: &str) -> &str {
    word.strip_suffix("s").unwrap_or(word)
}
