//! Finds changes of earlier sessions that a session takes back.
//!
//! A change is taken back if git reverts its commit, or if later edits delete a name that its own
//! edits had added and that its title has: then the title is no longer true. The session must speak
//! of that name too, since a name may also go along with other lines. Precision comes before recall:
//! a name that is still in use, moved to another file or was renamed is not taken back. Of the six
//! cases in `testdata/reversal` that no rule was made from, the three reversals are found, and none
//! of the three others.

use std::collections::HashSet;

use foreword_core::model::{Derived, Mark, ObservationType, Turn};
use foreword_core::store::EarlierChange;

use super::survival::{identifiers, survival};
use super::title;
use super::turn::TurnReading;
use crate::evidence::Edit;

/// The turns of a session, to be compared with changes of earlier sessions.
pub struct LaterTurns<'a> {
    readings: Vec<TurnReading<'a>>,
}

impl<'a> LaterTurns<'a> {
    pub fn read(turns: &'a [Turn]) -> LaterTurns<'a> {
        let readings = turns.iter().map(|it| TurnReading::of(it, false, &[]));
        LaterTurns {
            readings: readings.collect(),
        }
    }

    fn edits(&self) -> impl Iterator<Item = &Edit> {
        self.readings.iter().flat_map(TurnReading::edits)
    }

    pub fn changed_files(&self) -> Vec<String> {
        self.edits().map(|it| it.path.clone()).collect()
    }

    /// The titles of the commits that were reverted.
    pub fn reverted_titles(&self) -> Vec<String> {
        let commits = self.readings.iter().flat_map(|it| &it.commits);
        commits.filter_map(|it| reverted(&it.subject)).collect()
    }

    /// Marks an earlier change that these turns take back as superseded by the observation of the turn
    /// that does so.
    pub fn mark(&self, earlier: &EarlierChange, derived: &mut [Derived]) {
        let Some(at) = self.reverts(earlier).or_else(|| self.deletes(earlier)) else {
            return;
        };
        let later = derived.iter_mut().skip(at);
        let mut later = later.filter_map(|it| {
            let mut changes = it.observations.iter();
            let change = changes.find(|it| it.kind != ObservationType::Discovery)?;
            Some((change.seed.clone(), &mut it.marks))
        });
        if let Some((seed, marks)) = later.next() {
            marks.push(Mark::SupersededBy(earlier.id, seed));
        }
    }

    /// The turn that reverts the commit of an earlier change.
    fn reverts(&self, earlier: &EarlierChange) -> Option<usize> {
        let is_revert = |subject: &str| reverted(subject).as_ref() == Some(&earlier.title);
        let mut readings = self.readings.iter();
        readings.position(|it| it.commits.iter().any(|it| is_revert(&it.subject)))
    }

    /// The turn that deletes what an earlier change had added and is named after.
    fn deletes(&self, earlier: &EarlierChange) -> Option<usize> {
        let first = TurnReading::of(&earlier.turn, false, &[]);
        let readings: Vec<_> = std::iter::once(&first).chain(&self.readings).collect();
        let dead = survival(&readings).swap_remove(0).dead;
        let names = |edits: &mut dyn Iterator<Item = &Edit>, text: fn(&Edit) -> &str| {
            let names = edits.flat_map(|it| identifiers(text(it)).collect::<Vec<_>>());
            names.collect::<HashSet<String>>()
        };
        let before = names(&mut first.edits(), |it| &it.before);
        let mut own = names(&mut first.edits(), |it| &it.after);
        let title: HashSet<String> = identifiers(&earlier.title).collect();
        own.retain(|it| title.contains(it) && !before.contains(it));
        let in_use = names(&mut self.edits(), |it| &it.after);
        let (gone, kept): (Vec<String>, Vec<String>) = own
            .into_iter()
            .partition(|it| dead.contains(it) && !in_use.contains(it));
        if gone.len() < kept.len() {
            return None;
        }
        let is_taken_back = |name: &&String| self.speaks_of(name) && !self.renames(name);
        let name = gone.iter().find(is_taken_back)?;
        let deletes = |it: &Edit| identifiers(&it.before).any(|it| it == *name);
        let mut readings = self.readings.iter();
        readings.position(|it| it.edits().any(deletes))
    }

    /// Whether the user, the agent's last words or a commit has a name.
    fn speaks_of(&self, name: &str) -> bool {
        self.readings.iter().any(|it| {
            let commits = it.commits.iter().flat_map(|it| [&it.subject, &it.body]);
            let mut said = commits.chain([&it.typed]).chain(&it.closing);
            said.any(|it| identifiers(it).any(|it| it == name))
        })
    }

    /// Whether each line with this name came back with another one in its place. If the name is quoted
    /// in one of them, it is somebody else's (`import moment from 'moment'`), and was exchanged.
    fn renames(&self, name: &str) -> bool {
        let has_name = |line: &str| identifiers(line).any(|it| it == name);
        let mut deleted = self.edits().flat_map(|edit| {
            let lines = edit.before.lines().filter(|it| has_name(it));
            lines.map(move |it| (it, &edit.after))
        });
        deleted.all(|(line, after)| {
            let is_quoted = line
                .split(['"', '\'', '`'])
                .skip(1)
                .step_by(2)
                .any(has_name);
            !is_quoted && after.lines().any(|it| differs_by_name(line, it, name))
        })
    }
}

/// Whether two lines are the same but for the words that contain a name.
fn differs_by_name(line: &str, other: &str, name: &str) -> bool {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let parts = |line: &str| -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        let mut in_word = false;
        for character in line.chars() {
            match parts.last_mut().filter(|_| is_word(character) && in_word) {
                Some(word) => word.push(character),
                None => parts.push(character.to_string()),
            }
            in_word = is_word(character);
        }
        parts
    };
    let (line, other) = (parts(line), parts(other));
    let same = |(a, b): (&String, &String)| a == b || a.to_lowercase().contains(name);
    line.len() == other.len() && line.iter().zip(&other).all(same)
}

/// The title of the commit that a commit reverts: `Revert "Compress uploads"`.
fn reverted(subject: &str) -> Option<String> {
    let subject = subject.strip_prefix("Revert \"")?.strip_suffix('"')?;
    Some(title::conventional(subject).1)
}
