//! Edits that did not last: tried, then taken back.
//!
//! An edit is undone by its exact reverse, by a file that is again what it was at
//! an earlier moment, by git, or by removing a file that was new. What is undone
//! is no change of the project; it is told as an attempt, or not at all.

use super::call::chain;
use super::git::{GitCommit, Undo, committed};
use super::steps::{Edit, Step, What};

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
}

impl Edits {
    pub fn of(steps: &[Step]) -> Edits {
        let mut edits = Edits::default();
        // Edits of each commit; a commit keeps its edits from all but a revert.
        let mut commits: Vec<(Option<String>, Vec<usize>)> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            match &step.what {
                What::Edit(edit) => {
                    let undone = edits.undone_by_edit(steps, at, edit);
                    if undone.is_empty() {
                        edits.lasting.push(at);
                    } else {
                        edits.undo(undone, at);
                    }
                }
                What::Command(command) if command.passed => {
                    let kept: Vec<usize> = commits.iter().flat_map(|it| it.1.clone()).collect();
                    let open = |at: &usize| !kept.contains(at);
                    let loose: Vec<usize> = edits.lasting.iter().copied().filter(open).collect();
                    let path = |at: usize| steps[at].edit().map_or("", |it| it.file.path.as_str());
                    let undone = match Undo::of(&command.typed) {
                        Some(Undo::Everything | Undo::Stash) => loose.clone(),
                        Some(Undo::Paths(paths)) => {
                            let below = |at: usize| paths.iter().any(|it| is_below(path(at), it));
                            loose.iter().copied().filter(|&at| below(at)).collect()
                        }
                        Some(Undo::Revert(id)) => commits
                            .iter()
                            .rposition(|commit| is_commit(commit.0.as_deref(), id.as_deref()))
                            .map(|at| commits.remove(at).1)
                            .unwrap_or_default(),
                        Some(Undo::Unstash) => {
                            edits.unstash(steps);
                            Vec::new()
                        }
                        None => removed(&command.typed, |name| {
                            let new = |&at: &usize| steps[at].edit().is_some_and(|it| it.created);
                            let of_file = |at: &usize| is_below(path(*at), name);
                            let edits = loose.iter().copied().filter(of_file);
                            let edits: Vec<usize> = edits.collect();
                            if edits.first().is_some_and(new) {
                                edits
                            } else {
                                Vec::new()
                            }
                        }),
                    };
                    if !undone.is_empty() {
                        edits.undo(undone, at);
                    }
                    if GitCommit::of(&command.typed).is_some() {
                        let lasting = edits.lasting.iter().copied();
                        let id = committed(&command.output).map(|it| it.0);
                        commits.push((id, lasting.filter(|at| !kept.contains(at)).collect()));
                    }
                }
                _ => {}
            }
        }
        edits
    }

    fn undone_by_edit(&self, steps: &[Step], at: usize, edit: &Edit) -> Vec<usize> {
        let of_file = |at: &usize| {
            steps[*at]
                .edit()
                .is_some_and(|it| it.file.path == edit.file.path)
        };
        let reversed = self
            .lasting
            .iter()
            .rev()
            .copied()
            .filter(of_file)
            .find(|&at| {
                steps[at].edit().is_some_and(|it| {
                    !it.created && it.removed == edit.added && it.added == edit.removed
                })
            });
        if let Some(reversed) = reversed {
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
        let Some(same) = same else {
            return Vec::new();
        };
        let since = self.lasting.iter().copied().filter(|&it| it > same);
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

/// What `rm` takes away, by the names that it is given.
fn removed(typed: &str, edits_of: impl Fn(&str) -> Vec<usize>) -> Vec<usize> {
    let chain = chain(typed);
    let names = chain.iter().filter_map(|simple| {
        let (program, rest) = simple.command().split_first()?;
        (program == "rm").then_some(rest)
    });
    let mut removed: Vec<usize> = names
        .flatten()
        .filter(|word| !word.starts_with('-'))
        .flat_map(|name| edits_of(name))
        .collect();
    removed.sort_unstable();
    removed
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
