//! Groups a section's statements by what they are about, once they are too many for one list.
//!
//! A theme is a folder that the statements' files lie in, else a word that several of them
//! share. What fits nowhere stands first, without a heading.

use std::collections::{BTreeMap, BTreeSet};

use super::Statement;
use super::said::{bare, surface};
use crate::kin::words::{Words, content, is_number};
use crate::text;

const FEW: usize = 6;
const THEMES_MAX: usize = 8;
/// What a statement is about is said in so many words; a word further on is chance.
const SUBJECT: usize = 8;
/// Folders that say nothing.
const PLAIN: &[&str] = &[
    "src", "lib", "app", "crates", "packages", "tests", "test", "docs", "cmd", "internal", "pkg",
    "main", "source",
];

pub fn group(statements: &mut [Statement]) {
    if statements.len() <= FEW {
        return;
    }
    let areas: Vec<Words> = statements.iter().map(areas).collect();
    let words: Vec<Words> = statements
        .iter()
        .map(|it| {
            let words: Vec<&str> = it.text.split_whitespace().take(SUBJECT).collect();
            let words = content(&words.join(" ")).into_iter();
            words.filter(|it| !is_number(it) && it.len() > 2).collect()
        })
        .collect();
    let mut left: BTreeSet<usize> = (0..statements.len()).collect();
    let mut order = 0;
    for names in [&areas, &words] {
        while order < THEMES_MAX && left.len() > 2 {
            let mut count: BTreeMap<&String, usize> = BTreeMap::new();
            for name in left.iter().flat_map(|at| &names[*at]) {
                *count.entry(name).or_default() += 1;
            }
            // A word of nearly all of them tells nothing apart.
            let most = statements.len() * 3 / 5;
            let fits = |name: &&String, times: usize| {
                let named = std::ptr::eq(names, &areas) || !theme(statements, name).is_empty();
                (2..=most.max(2)).contains(&times) && named
            };
            let best = count.iter().filter(|(name, times)| fits(name, **times));
            let Some((name, _)) =
                best.max_by_key(|(name, times)| (**times, std::cmp::Reverse(*name)))
            else {
                break;
            };
            let name = (*name).clone();
            let heading = if std::ptr::eq(names, &areas) {
                name.clone()
            } else {
                theme(statements, &name)
            };
            for at in left.clone() {
                if names[at].contains(&name) {
                    left.remove(&at);
                    statements[at].theme = Some(text::capitalised(&heading));
                }
            }
            order += 1;
        }
    }
    statements.sort_by(|a, b| a.theme.cmp(&b.theme));
}

/// The folders that a statement's own files lie in. Those of its notes would be a guess.
fn areas(statement: &Statement) -> Words {
    let folder = |path: &str| {
        let (folders, _) = path.rsplit_once('/')?;
        let telling = folders
            .split('/')
            .rfind(|it| !PLAIN.contains(it) && !it.contains('.'));
        telling.map(str::to_lowercase)
    };
    let words = statement.text.split_whitespace().map(bare);
    words.filter_map(folder).collect()
}

/// A stem as the statements write it.
fn theme(statements: &[Statement], stem: &str) -> String {
    let stems = Words::from([stem.to_owned()]);
    let written = statements.iter().map(|it| surface(&it.text, &stems));
    let first = |words: String| words.split(' ').next().unwrap_or_default().to_owned();
    written
        .map(first)
        .find(|it| it.len() > 2)
        .unwrap_or_default()
}
