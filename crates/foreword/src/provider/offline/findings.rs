//! What follows from the order of the steps, before it is put into words.
//!
//! The steps are those of a whole session: a command that failed for one prompt
//! and passes for the next is one trouble, and an edit that a later prompt took
//! back never was a change. Everything here is indexes into the steps.

use super::call::{Call, changes_files};
use super::git::{GitCommit, Undo, committed, kept};
use super::steps::{Command, Step};
use super::undone::{Attempt, Edits, is_commit};

#[derive(Debug, Default, PartialEq)]
pub struct Findings {
    pub troubles: Vec<Trouble>,
    pub commits: Vec<Commit>,
    pub attempts: Vec<Attempt>,
    /// Edits that were not undone.
    pub lasting: Vec<usize>,
}

/// A command that failed, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// The failing runs, at least one.
    pub runs: Vec<usize>,
    /// What changed between the first of them and the end.
    pub edits: Vec<usize>,
    /// Commands in between that change files, which no edit shows.
    pub commands: Vec<usize>,
    /// The run that passed after those changes.
    pub passed: Option<usize>,
}

impl Trouble {
    pub fn last(&self) -> usize {
        self.passed
            .or(self.runs.last().copied())
            .unwrap_or(self.runs[0])
    }
}

#[derive(Debug, PartialEq)]
pub struct Commit {
    pub step: usize,
    pub id: Option<String>,
    /// Empty if the message is nowhere to be read.
    pub subject: String,
    /// It takes the place of the commit before it.
    pub amends: bool,
    pub edits: Vec<usize>,
}

impl Findings {
    pub fn of(steps: &[Step]) -> Findings {
        let edits = Edits::of(steps);
        Findings {
            troubles: troubles(steps, &edits.lasting),
            commits: commits(steps, &edits.lasting),
            attempts: edits.attempts,
            lasting: edits.lasting,
        }
    }
}

fn calls(steps: &[Step]) -> impl Iterator<Item = (usize, &Command, &Call)> {
    steps.iter().enumerate().filter_map(|(at, step)| {
        let command = step.command()?;
        Some((at, command, command.call.as_ref()?))
    })
}

fn troubles(steps: &[Step], lasting: &[usize]) -> Vec<Trouble> {
    let mut open: Vec<(Trouble, &Call)> = Vec::new();
    let mut troubles: Vec<Trouble> = Vec::new();
    let between = |from: usize, to: usize| -> Vec<usize> {
        let edits = lasting.iter().copied();
        edits.filter(|&at| from < at && at < to).collect()
    };
    for (at, command, call) in calls(steps).filter(|(_, _, call)| call.matters()) {
        if command.passed {
            let (settled, rest) = open
                .into_iter()
                .partition(|(_, failed)| call.covers(failed));
            open = rest;
            let mut mended: Option<Trouble> = None;
            for (mut trouble, _) in settled {
                trouble.edits = between(trouble.runs[0], at);
                trouble.commands = changing(steps, trouble.runs[0], at);
                trouble.passed = Some(at);
                // Passing without a change proves nothing about the code; and one
                // run that passes is one repair, however many runs failed.
                match &mut mended {
                    _ if trouble.edits.is_empty() && trouble.commands.is_empty() => {}
                    Some(mended) => {
                        mended.runs.extend(trouble.runs);
                        mended.runs.sort_unstable();
                    }
                    None => mended = Some(trouble),
                }
            }
            troubles.extend(mended);
            continue;
        }
        // A command that was never there says nothing about the project.
        if command.not_found() {
            continue;
        }
        match open
            .iter_mut()
            .find(|(_, known)| known.covers(call) || call.covers(known))
        {
            Some((trouble, known)) => {
                trouble.runs.push(at);
                // The widest run is the one that has to pass.
                if call.covers(known) {
                    *known = call;
                }
            }
            None => open.push((
                Trouble {
                    runs: vec![at],
                    edits: Vec::new(),
                    commands: Vec::new(),
                    passed: None,
                },
                call,
            )),
        }
    }
    for (mut trouble, _) in open {
        // A subagent's dead end is its own business.
        if trouble.runs.iter().all(|&at| steps[at].agent_id.is_none()) {
            trouble.edits = between(trouble.runs[0], trouble.last());
            troubles.push(trouble);
        }
    }
    troubles.sort_by_key(|trouble| trouble.runs[0]);
    troubles
}

/// Commands that change files, after a failing run and up to the one that passes.
/// What git undid in between is no change, nor is what the failing run did as well.
fn changing(steps: &[Step], failed: usize, passed: usize) -> Vec<usize> {
    let typed = |at: usize| steps[at].command().map(|it| it.typed.as_str());
    let undone = (failed..=passed).rfind(|&at| typed(at).and_then(Undo::of).is_some());
    (undone.unwrap_or(failed) + 1..=passed)
        .filter(|&at| typed(at) != typed(failed))
        .filter(|&at| steps[at].command().is_some_and(|it| it.passed))
        .filter(|&at| typed(at).is_some_and(changes_files))
        .collect()
}

fn commits(steps: &[Step], lasting: &[usize]) -> Vec<Commit> {
    let mut commits: Vec<Commit> = Vec::new();
    let mut since = 0;
    for (step, command, _) in calls(steps).filter(|(_, command, _)| command.passed) {
        match Undo::of(&command.typed) {
            Some(Undo::Revert(id)) => {
                let is_it = |commit: &Commit| is_commit(commit.id.as_deref(), id.as_deref());
                if let Some(at) = commits.iter().rposition(is_it) {
                    commits.remove(at);
                }
            }
            Some(Undo::Reset {
                commits: dropped, ..
            }) => {
                let amends: Vec<bool> = commits.iter().map(|it| it.amends).collect();
                commits.truncate(kept(&amends, dropped));
                since = commits.last().map_or(0, |commit| commit.step);
            }
            _ => {}
        }
        let Some(commit) = GitCommit::of(&command.typed) else {
            continue;
        };
        let (id, subject) = match committed(&command.output) {
            Some((id, subject)) => (Some(id), Some(subject)),
            None => (None, commit.message),
        };
        let edits = lasting.iter().copied();
        commits.push(Commit {
            step,
            id,
            subject: subject.unwrap_or_default(),
            amends: commit.amends,
            edits: edits.filter(|at| (since..step).contains(at)).collect(),
        });
        since = step;
    }
    commits
}
