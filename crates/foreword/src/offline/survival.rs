//! What is left of a turn at the end of its session: which of its edits later turns took back, and
//! which checks stayed red.

use std::collections::HashSet;

use super::lexicon::{self, Stems};
use super::turn::{TurnReading, is_compound};
use crate::evidence::Run;

/// How much of a turn's edits is left at the end of the session.
#[derive(Default)]
pub struct Survival {
    pub overtaken: bool,
    /// Names that the turn added and that are gone.
    pub dead: HashSet<String>,
    /// Lines that the turn removed and a later one put back.
    pub put_back: Vec<String>,
    /// Stems that only lines have which the turn added and a later one removed.
    pub gone: Stems,
}

/// Whether a text has a name in code of which a part is among these identifiers.
pub fn names_any(text: &str, wanted: &HashSet<String>) -> bool {
    let names = lexicon::anchors(text);
    let mut names = names.iter().filter(|it| is_compound(it));
    names.any(|it| identifiers(it).any(|it| wanted.contains(&it)))
}

/// Words of at least five letters, as names in code have.
pub fn identifiers(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|it: char| !(it.is_alphanumeric() || it == '_'));
    let words = words
        .filter(|it| it.chars().count() >= 5 && !it.starts_with(|it: char| it.is_ascii_digit()));
    words.map(str::to_lowercase)
}

/// How much of each turn's edits is left at the end. Only a turn whose file a later turn touches
/// can be overtaken.
pub fn survival(readings: &[&TurnReading<'_>]) -> Vec<Survival> {
    type LineOf<'t> = (&'t str, &'t str);
    let mut at_end: HashSet<LineOf<'_>> = HashSet::new();
    let mut added: Vec<HashSet<LineOf<'_>>> = Vec::new();
    let mut removed: Vec<HashSet<LineOf<'_>>> = Vec::new();
    for reading in readings {
        let mut new: HashSet<LineOf<'_>> = HashSet::new();
        let mut gone: HashSet<LineOf<'_>> = HashSet::new();
        for step in &reading.steps {
            for edit in &step.edits {
                let lines = |text: &'_ str| -> HashSet<String> {
                    text.lines().map(|it| it.trim().to_owned()).collect()
                };
                let (before, after) = (lines(&edit.before), lines(&edit.after));
                if edit.created {
                    at_end.retain(|(path, _)| *path != edit.path);
                }
                at_end.retain(|(path, line)| {
                    *path != edit.path || !before.contains(*line) || after.contains(*line)
                });
                let fresh = edit.after.lines().map(str::trim);
                let fresh = fresh.filter(|it| it.len() > 6 && !before.contains(*it));
                new.extend(fresh.map(|line| (edit.path.as_str(), line)));
                let old = edit.before.lines().map(str::trim);
                let old = old.filter(|it| it.len() > 6 && !after.contains(*it));
                gone.extend(old.map(|line| (edit.path.as_str(), line)));
                at_end.extend(new.iter().filter(|it| it.0 == edit.path));
            }
            for path in &step.removed {
                let name = path.rsplit('/').next().unwrap_or_default();
                at_end.retain(|(it, _)| it.rsplit('/').next() != Some(name));
            }
        }
        added.push(new);
        removed.push(gone);
    }
    let mut survival: Vec<Survival> = Vec::new();
    survival.resize_with(readings.len(), Survival::default);
    for (at, reading) in readings.iter().enumerate() {
        let later = added[at + 1..].iter().flatten();
        let put_back = later.filter(|it| removed[at].contains(*it));
        survival[at].put_back = put_back.map(|it| it.1.to_owned()).collect();
        let files: HashSet<&str> = added[at].iter().map(|it| it.0).collect();
        let touches = |later: &&&TurnReading<'_>| {
            later.edits().any(|it| files.contains(it.path.as_str()))
                || later.steps.iter().any(|it| !it.removed.is_empty())
        };
        let mut later = readings[at + 1..].iter().filter(touches);
        // Work that merely goes on replaces much of itself, too.
        let corrected = later.clone().any(|it| it.correction.is_some());
        let objected = later.clone().any(|it| lexicon::contrasts(&it.typed));
        let touched_later = later.next().is_some();
        if files.is_empty() || !touched_later {
            continue;
        }
        let old: HashSet<String> = reading
            .edits()
            .flat_map(|it| identifiers(&it.before))
            .collect();
        let all: HashSet<String> = added[at].iter().flat_map(|it| identifiers(it.1)).collect();
        let own: HashSet<String> = all.difference(&old).cloned().collect();
        let own = if own.is_empty() { all } else { own };
        let left = at_end.iter().filter(|it| files.contains(it.0));
        let left: HashSet<String> = left.flat_map(|it| identifiers(it.1)).collect();
        let kept = at_end.iter().chain(removed.iter().flatten());
        let kept = kept.filter(|it| {
            files.contains(it.0) && (at_end.contains(*it) || !added[at].contains(*it))
        });
        let kept: Stems = kept.flat_map(|it| lexicon::stems(it.1)).collect();
        let gone = added[at].iter().filter(|it| !at_end.contains(*it));
        let gone = gone.flat_map(|it| lexicon::stems(it.1));
        survival[at].gone = gone.filter(|it| !kept.contains(it)).collect();
        survival[at].dead = own.difference(&left).cloned().collect();
        let alive = own.len() - survival[at].dead.len();
        survival[at].overtaken = !own.is_empty()
            && (corrected && alive * 2 <= own.len() || objected && alive * 3 <= own.len());
    }
    survival
}

/// The checks of each turn with edits that failed last, if no check of the session passed after
/// them: another command often stands for the same check (`lint:fix`, `lint`).
pub fn red_at_end(readings: &[TurnReading<'_>]) -> Vec<Vec<(String, String)>> {
    let of_turn = |(at, reading): (usize, &TurnReading<'_>)| {
        let later = readings[at + 1..].iter().flat_map(TurnReading::runs);
        let last = reading.runs().filter(|it| it.check).last();
        let passed = |it: &Run| it.check && it.passed;
        if !reading.has_edits() || last.is_none_or(passed) || later.into_iter().any(passed) {
            return Vec::new();
        }
        let red = reading.red_checks().into_iter();
        red.filter(|(_, telling)| !telling.is_empty())
            .map(|(command, telling)| (command.to_owned(), telling.to_owned()))
            .collect()
    };
    readings.iter().enumerate().map(of_turn).collect()
}
