//! Edits that did not last: tried, then taken back.
//!
//! An edit is undone by its exact reverse, by a file that is again what it was at
//! an earlier moment, by git, or by removing a file that was new. What is undone
//! is no change of the project; it is told as an attempt, or not at all.

use std::ops::Range;

use super::call::chain;
use super::git::{GitCommit, Undo, committed, kept};
use super::steps::{Command, Edit, Step, What};

/// Edits that one step took back.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub edits: Vec<usize>,
    /// The first and the last step that took them back; mostly the same.
    pub undone_from: usize,
    pub undone_by: usize,
}

/// What became of the edits of a session.
#[derive(Debug, Default)]
pub struct Edits {
    /// Those that lasted, in order.
    pub lasting: Vec<usize>,
    pub attempts: Vec<Attempt>,
    /// Commits so far: id, and the steps since the one before. What is committed is
    /// safe from all but a revert; editing it back is a change of its own.
    commits: Vec<(Option<String>, Range<usize>)>,
    /// Which of them amend the one before.
    amends: Vec<bool>,
}

impl Edits {
    pub fn of(steps: &[Step]) -> Edits {
        let mut edits = Edits::default();
        for (at, step) in steps.iter().enumerate() {
            let undone = match &step.what {
                What::Edit(edit) => {
                    let undone = edits.undone_by_edit(steps, at, edit);
                    if undone.is_empty() {
                        edits.lasting.push(at);
                    }
                    undone
                }
                What::Command(command) if command.passed => edits.undone_by_command(steps, command),
                _ => Vec::new(),
            };
            if !undone.is_empty() {
                edits.undo(undone, at);
            }
            if let Some(command) = step.command().filter(|it| it.passed)
                && let Some(commit) = GitCommit::of(&command.typed)
            {
                let id = committed(&command.output).map(|it| it.0);
                edits.commits.push((id, edits.since_commit()..at));
                edits.amends.push(commit.amends);
            }
        }
        edits
    }

    fn since_commit(&self) -> usize {
        self.commits.last().map_or(0, |commit| commit.1.end)
    }

    /// Lasting edits that are not committed.
    fn loose(&self) -> impl DoubleEndedIterator<Item = usize> {
        let since = self.since_commit();
        self.lasting.iter().copied().filter(move |&at| at >= since)
    }

    fn undone_by_command(&mut self, steps: &[Step], command: &Command) -> Vec<usize> {
        let below = |at: &usize, place: &str| {
            let edit = steps[*at].edit();
            edit.is_some_and(|it| is_below(&it.file.path, place))
        };
        match Undo::of(&command.typed) {
            Some(Undo::Everything | Undo::Stash) => self.loose().collect(),
            Some(Undo::Paths(paths)) => self
                .loose()
                .filter(|at| paths.iter().any(|path| below(at, path)))
                .collect(),
            Some(Undo::Revert(id)) => {
                let is_it =
                    |commit: &(Option<String>, _)| is_commit(commit.0.as_deref(), id.as_deref());
                let reverted = self.commits.iter().rposition(is_it);
                let steps = reverted.map(|at| self.commits[at].1.clone());
                let of_commit = |at: &usize| steps.as_ref().is_some_and(|it| it.contains(at));
                self.lasting.iter().copied().filter(of_commit).collect()
            }
            Some(Undo::Reset { commits, hard }) => {
                let kept = kept(&self.amends, commits);
                self.commits.truncate(kept);
                self.amends.truncate(kept);
                // What the dropped commits held is loose again.
                if hard {
                    self.loose().collect()
                } else {
                    Vec::new()
                }
            }
            Some(Undo::Unstash) => {
                self.unstash(steps);
                Vec::new()
            }
            None => {
                let is_new = |at: &usize| steps[*at].edit().is_some_and(|it| it.created);
                let mut undone = Vec::new();
                for name in removed(&command.typed) {
                    let edits: Vec<usize> = self.loose().filter(|at| below(at, &name)).collect();
                    if edits.first().is_some_and(is_new) {
                        undone.extend(edits);
                    }
                }
                undone
            }
        }
    }

    fn undone_by_edit(&self, steps: &[Step], at: usize, edit: &Edit) -> Vec<usize> {
        let of_file = |at: &usize| {
            let other = steps[*at].edit();
            other.is_some_and(|it| it.file.path == edit.file.path)
        };
        let is_reverse = |at: &usize| {
            steps[*at].edit().is_some_and(|it| {
                !it.created && it.removed == edit.added && it.added == edit.removed
            })
        };
        if let Some(reversed) = self.loose().rev().filter(of_file).find(is_reverse) {
            return vec![reversed];
        }
        let Some(hash) = &edit.file.hash else {
            return Vec::new();
        };
        // The newest earlier moment at which the file was the same.
        let same = steps[..at].iter().rposition(|step| {
            let file = match &step.what {
                What::Edit(edit) => &edit.file,
                What::Read(read) => &read.file,
                What::Command(_) => return false,
            };
            file.path == edit.file.path && file.hash.as_ref() == Some(hash)
        });
        let since = self
            .loose()
            .filter(|&it| same.is_some_and(|same| it > same));
        since.filter(of_file).collect()
    }

    /// Undoing edit by edit is one attempt, if nothing else was done in between.
    fn undo(&mut self, edits: Vec<usize>, at: usize) {
        self.lasting.retain(|it| !edits.contains(it));
        match self.attempts.last_mut() {
            Some(attempt) if attempt.undone_by + 1 == at => {
                attempt.edits.extend(edits);
                attempt.edits.sort_unstable();
                attempt.undone_by = at;
            }
            _ => self.attempts.push(Attempt {
                edits,
                undone_from: at,
                undone_by: at,
            }),
        }
    }

    fn unstash(&mut self, steps: &[Step]) {
        let stashed = self.attempts.iter().rposition(|attempt| {
            let command = steps[attempt.undone_by].command();
            command.is_some_and(|it| Undo::of(&it.typed) == Some(Undo::Stash))
        });
        if let Some(stashed) = stashed {
            self.lasting.extend(self.attempts.remove(stashed).edits);
            self.lasting.sort_unstable();
        }
    }
}

/// What `rm` takes away.
fn removed(typed: &str) -> Vec<String> {
    let chain = chain(typed);
    let names = chain.iter().filter_map(|simple| {
        let (program, rest) = simple.command().split_first()?;
        (program == "rm").then_some(rest)
    });
    let names = names.flatten().filter(|word| !word.starts_with('-'));
    names.cloned().collect()
}

/// Whether a commit is the one that is reverted: the named one, or else the last.
pub fn is_commit(id: Option<&str>, named: Option<&str>) -> bool {
    match (id, named) {
        (_, None) => true,
        (Some(id), Some(named)) => id.starts_with(named) || named.starts_with(id),
        (None, Some(_)) => false,
    }
}

fn is_below(path: &str, place: &str) -> bool {
    let place = place.trim_start_matches("./").trim_end_matches('/');
    std::path::Path::new(path).starts_with(place)
        || (place.starts_with('/') && std::path::Path::new(place).ends_with(path))
}
