//! What became of edits: kept by commits, or tried and taken back.
//!
//! An edit is undone by its exact reverse, by a file that is again what it was at
//! an earlier moment, by git, or by removing a file that was new. What is undone
//! is no change of the project; it is told as an attempt, or not at all.

use std::path::Path;

use super::git::{Undo, committed};
use super::steps::{Command, Edit, Step, What};

/// Edits that one step took back.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub edits: Vec<usize>,
    /// The first and the last step that took them back; mostly the same.
    pub undone_from: usize,
    pub undone_by: usize,
}

#[derive(Debug, PartialEq)]
pub struct Commit {
    pub step: usize,
    pub id: Option<String>,
    /// Empty if the message is nowhere to be read.
    pub subject: String,
    /// It takes the place of the commit before it.
    amends: bool,
    /// The step of the commit before it.
    since: usize,
    pub edits: Vec<usize>,
}

impl Commit {
    /// Those of the edits that it took in.
    fn holds(&self, edits: &[usize]) -> Vec<usize> {
        let taken_in = |at: &usize| (self.since..self.step).contains(at);
        edits.iter().copied().filter(taken_in).collect()
    }

    /// Whether it is the one that is reverted: the named one, or else the last.
    fn is_named(&self, named: Option<&str>) -> bool {
        match (&self.id, named) {
            (_, None) => true,
            (Some(id), Some(named)) => id.starts_with(named) || named.starts_with(id),
            (None, Some(_)) => false,
        }
    }
}

/// What became of the edits of a session.
#[derive(Debug, Default, PartialEq)]
pub struct Edits {
    /// Those that lasted, in order.
    pub lasting: Vec<usize>,
    pub attempts: Vec<Attempt>,
    /// What is committed is safe from all but a revert or a reset; editing it back is a
    /// change of its own.
    pub commits: Vec<Commit>,
    /// The step of the last commit.
    committed: usize,
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
            if let Some(command) = step.command().filter(|it| it.passed) {
                edits.commit(command, at);
            }
        }
        for commit in &mut edits.commits {
            commit.edits = commit.holds(&edits.lasting);
        }
        edits
    }

    fn commit(&mut self, command: &Command, step: usize) {
        let Some(commit) = &command.commit else {
            return;
        };
        let (id, subject) = match committed(&command.output) {
            Some((id, subject)) => (Some(id), subject),
            None => (None, commit.message.clone().unwrap_or_default()),
        };
        self.commits.push(Commit {
            step,
            id,
            subject,
            amends: commit.amends,
            since: std::mem::replace(&mut self.committed, step),
            edits: Vec::new(),
        });
    }

    /// Lasting edits that are not committed.
    fn loose(&self) -> impl DoubleEndedIterator<Item = usize> {
        let lasting = self.lasting.iter().copied();
        lasting.filter(|&at| at >= self.committed)
    }

    fn undone_by_command(&mut self, steps: &[Step], command: &Command) -> Vec<usize> {
        let below = |at: &usize, place: &str| {
            let edit = steps[*at].edit();
            edit.is_some_and(|it| is_below(&it.file.path, place))
        };
        match &command.undo {
            Some(Undo::Everything | Undo::Stash) => self.loose().collect(),
            Some(Undo::Paths(paths)) => self
                .loose()
                .filter(|at| paths.iter().any(|path| below(at, path)))
                .collect(),
            Some(Undo::Revert(named)) => {
                let is_it = |commit: &Commit| commit.is_named(named.as_deref());
                let reverted = self.commits.iter().rposition(is_it);
                let commit = reverted.map(|at| self.commits.remove(at));
                commit.map_or(Vec::new(), |it| it.holds(&self.lasting))
            }
            Some(Undo::Reset { commits, hard }) => {
                self.drop_commits(*commits);
                // What the dropped commits held is loose again.
                self.loose().filter(|_| *hard).collect()
            }
            Some(Undo::Unstash) => {
                self.unstash(steps);
                Vec::new()
            }
            None => {
                let is_new = |at: &usize| steps[*at].edit().is_some_and(|it| it.created);
                let removed = command.removes.iter().map(|name| -> Vec<usize> {
                    self.loose().filter(|at| below(at, name)).collect()
                });
                let undone = removed.filter(|edits| edits.first().is_some_and(is_new));
                undone.flatten().collect()
            }
        }
    }

    /// A commit and the one that it amends are one to git.
    fn drop_commits(&mut self, mut count: usize) {
        while count > 0
            && let Some(commit) = self.commits.pop()
        {
            count -= usize::from(!commit.amends);
        }
        self.committed = self.commits.last().map_or(0, |commit| commit.step);
    }

    fn undone_by_edit(&self, steps: &[Step], at: usize, edit: &Edit) -> Vec<usize> {
        let path = &edit.file.path;
        let loose = self.loose().filter_map(|at| Some((at, steps[at].edit()?)));
        let of_file: Vec<_> = loose.filter(|(_, it)| it.file.path == *path).collect();
        let is_reverse = |(_, it): &&(usize, &Edit)| {
            !it.created && it.removed == edit.added && it.added == edit.removed
        };
        if let Some((reversed, _)) = of_file.iter().rev().find(is_reverse) {
            return vec![*reversed];
        }
        // The newest earlier moment at which the file was the same.
        let same = steps[..at].iter().rposition(|step| {
            let file = match &step.what {
                What::Edit(edit) => &edit.file,
                What::Read(read) => &read.file,
                What::Command(_) => return false,
            };
            file.path == *path && file.hash.is_some() && file.hash == edit.file.hash
        });
        let since = of_file.iter().map(|(it, _)| *it);
        since
            .filter(|&it| same.is_some_and(|same| it > same))
            .collect()
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
            command.is_some_and(|it| it.undo == Some(Undo::Stash))
        });
        if let Some(stashed) = stashed {
            self.lasting.extend(self.attempts.remove(stashed).edits);
            self.lasting.sort_unstable();
        }
    }
}

fn is_below(path: &str, place: &str) -> bool {
    let place = place.trim_start_matches("./").trim_end_matches('/');
    Path::new(path).starts_with(place)
        || (place.starts_with('/') && Path::new(place).ends_with(path))
}
