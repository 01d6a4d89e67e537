//! What follows from the order of the steps, before it is put into words.
//!
//! The steps are those of a whole session: a command that failed for one prompt
//! and passes for the next is one trouble, and an edit that a later prompt took
//! back never was a change. Everything here is indexes into the steps.

use super::call::Call;
use super::steps::Step;
use super::undone::Edits;

#[derive(Debug, Default, PartialEq)]
pub struct Findings {
    pub troubles: Vec<Trouble>,
    pub edits: Edits,
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
        self.passed.unwrap_or(self.runs[self.runs.len() - 1])
    }
}

impl Findings {
    pub fn of(steps: &[Step]) -> Findings {
        let edits = Edits::of(steps);
        Findings {
            troubles: troubles(steps, &edits.lasting),
            edits,
        }
    }
}

fn troubles(steps: &[Step], lasting: &[usize]) -> Vec<Trouble> {
    // Failing runs, with the one that has to pass.
    let mut open: Vec<(Vec<usize>, &Call)> = Vec::new();
    let mut troubles: Vec<Trouble> = Vec::new();
    let between = |from: usize, to: usize| -> Vec<usize> {
        let edits = lasting.iter().copied();
        edits.filter(|&at| from < at && at < to).collect()
    };
    let commands = steps.iter().enumerate().filter_map(|(at, step)| {
        let command = step.command()?;
        Some((at, command, command.call.as_ref()?))
    });
    for (at, command, call) in commands.filter(|(_, _, call)| call.matters()) {
        let is_same = |known: &Call| known.covers(call) || call.covers(known);
        if command.passed {
            // One run that passes is one repair, however many runs failed.
            let settled = open.extract_if(.., |(_, failed)| call.covers(failed));
            let mut runs: Vec<usize> = settled.flat_map(|(runs, _)| runs).collect();
            runs.sort_unstable();
            let first = runs.first().copied().unwrap_or(at);
            let (edits, commands) = (between(first, at), changing(steps, first, at));
            // Passing without a change proves nothing about the code.
            if !edits.is_empty() || !commands.is_empty() {
                troubles.push(Trouble {
                    runs,
                    edits,
                    commands,
                    passed: Some(at),
                });
            }
        } else if command.not_found() {
            // A command that was never there says nothing about the project.
        } else if let Some((runs, known)) = open.iter_mut().find(|(_, known)| is_same(known)) {
            runs.push(at);
            // The widest run is the one that has to pass.
            if call.covers(known) {
                *known = call;
            }
        } else {
            open.push((vec![at], call));
        }
    }
    // A subagent's dead end is its own business.
    let is_own = |run: &usize| steps[*run].agent_id.is_none();
    for (runs, _) in open.into_iter().filter(|(runs, _)| runs.iter().all(is_own)) {
        troubles.push(Trouble {
            edits: between(runs[0], runs[runs.len() - 1]),
            runs,
            commands: Vec::new(),
            passed: None,
        });
    }
    troubles.sort_by_key(|trouble| trouble.runs[0]);
    troubles
}

/// Commands that change files, after a failing run and up to the one that passes.
/// What git undid in between is no change, nor is what the failing run did as well.
fn changing(steps: &[Step], failed: usize, passed: usize) -> Vec<usize> {
    let command = |at: usize| steps[at].command();
    let text = |at: usize| command(at).map(|it| &it.text);
    let undoes = |at: &usize| command(*at).is_some_and(|it| it.undo.is_some());
    let undone = (failed..=passed).rfind(undoes);
    (undone.unwrap_or(failed) + 1..=passed)
        .filter(|&at| command(at).is_some_and(|it| it.passed && it.changes_files))
        .filter(|&at| text(at) != text(failed))
        .collect()
}
