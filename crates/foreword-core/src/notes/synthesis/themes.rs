//! Groups a section's statements by what they are about, once they are too many for one list.
//!
//! A theme is a folder that the statements' files lie in, else the subject of at least three
//! of them. What fits nowhere stands first, without a heading.

use std::collections::{BTreeMap, BTreeSet};

use super::Statement;
use super::said::{bare, subject};
use crate::store::kin::words::{content, is_number};
use crate::text;
use crate::text::is_in;

const FEW: usize = 6;
const THEMES_MAX: usize = 8;
/// A subject is no longer than this: what goes on has a verb that is not known.
const SUBJECT_MAX: usize = 4;
/// Folders that say nothing.
const PLAIN: &str = "src lib app crates packages tests test docs cmd internal pkg main source";
/// Words before a verb that are no subject.
const FILLERS: &str = "test tests all every each new old next done first last two only always never \
    der die das den dem ein eine jede jeder alle wir und für mit auf von neue";

pub fn group(statements: &mut [Statement]) {
    if statements.len() <= FEW {
        return;
    }
    let folders: Vec<_> = statements.iter().map(|it| folders(&it.text)).collect();
    let subjects: Vec<_> = statements.iter().map(|it| subjects(&it.text)).collect();
    // A theme of nearly all of them tells nothing apart.
    let most = statements.len() * 3 / 5;
    let mut left: BTreeSet<usize> = (0..statements.len()).collect();
    let mut themes = 0;
    for (names, least) in [(&folders, 2), (&subjects, 3)] {
        while themes < THEMES_MAX {
            let mut having: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
            for at in &left {
                for name in names[*at].keys() {
                    having.entry(name).or_default().push(*at);
                }
            }
            let fitting = having.iter();
            let fitting = fitting.filter(|(_, all)| (least..=most).contains(&all.len()));
            let best = fitting.max_by_key(|(name, all)| (all.len(), std::cmp::Reverse(*name)));
            let Some((name, all)) = best else { break };
            let heading = text::capitalised(&names[all[0]][*name]);
            for at in all {
                left.remove(at);
                statements[*at].theme = Some(heading.clone());
            }
            themes += 1;
        }
    }
    statements.sort_by(|a, b| a.theme.cmp(&b.theme));
}

/// The folders that a statement's own files lie in. Those of its notes would be a guess.
fn folders(text: &str) -> BTreeMap<String, String> {
    let folder = |path: &str| {
        let mut folders = path.rsplit_once('/')?.0.split('/');
        let telling = folders.rfind(|it| !is_in(PLAIN, it) && !it.contains('.'))?;
        Some((telling.to_lowercase(), telling.to_owned()))
    };
    let words = text.split_whitespace().map(bare);
    words.filter_map(folder).collect()
}

/// The words of its subject by their stems.
fn subjects(text: &str) -> BTreeMap<String, String> {
    // A label is none: `Next: …`
    let text = text.split_once(": ").map_or(text, |it| it.1);
    let words = subject(text);
    let has_verb = words.len() < text.split_whitespace().count();
    let tells = |it: &&str| it.len() > 2 && !is_number(it) && !is_in(FILLERS, &it.to_lowercase());
    let words = words.into_iter().filter(|it| has_verb && tells(it));
    let stem = |word: &str| Some((content(word).pop_first()?, word.to_owned()));
    let stems: Vec<_> = words.filter_map(stem).collect();
    stems.into_iter().take(SUBJECT_MAX).collect()
}
