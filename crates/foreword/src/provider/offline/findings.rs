//! What follows from the order of the steps, before it is put into words.

use super::steps::{Command, Edit, Step, What};
use super::words::{Call, GitCommit};

/// Indexes into the steps of a turn.
#[derive(Debug, Default, PartialEq)]
pub struct Findings {
    pub repairs: Vec<Repair>,
    pub commits: Vec<Commit>,
    /// Commands that failed and were not seen to pass afterwards.
    pub failures: Vec<usize>,
    /// Edits that no repair and no commit accounts for.
    pub other_edits: Vec<usize>,
}

/// A command that failed, then passed after files were changed.
#[derive(Debug, PartialEq)]
pub struct Repair {
    /// The first failing run and how many there were.
    pub failed: usize,
    pub runs: usize,
    pub edits: Vec<usize>,
    pub passed: usize,
}

#[derive(Debug, PartialEq)]
pub struct Commit {
    pub step: usize,
    pub id: Option<String>,
    /// Empty if the message is nowhere to be read.
    pub subject: String,
    pub edits: Vec<usize>,
}

impl Findings {
    pub fn of(steps: &[Step]) -> Findings {
        let mut repairs = repairs(steps);
        let commits = commits(steps);
        // A passing run that mends nothing new was proven by an earlier one.
        repairs.dedup_by_key(|repair| repair.passed);
        let accounted = |edit: &usize| {
            repairs.iter().any(|repair| repair.edits.contains(edit))
                || commits.iter().any(|commit| commit.edits.contains(edit))
        };
        let other_edits = edits(steps, 0..steps.len())
            .filter(|edit| !accounted(edit))
            .collect();
        Findings {
            failures: failures(steps),
            repairs,
            commits,
            other_edits,
        }
    }
}

fn calls(steps: &[Step]) -> impl Iterator<Item = (usize, &Command, Call)> {
    steps
        .iter()
        .enumerate()
        .filter_map(|(at, step)| match &step.what {
            What::Command(command) => Some((at, command, Call::of(&command.text)?)),
            _ => None,
        })
}

fn edits(steps: &[Step], range: std::ops::Range<usize>) -> impl Iterator<Item = usize> {
    range.filter(|&at| matches!(steps[at].what, What::Edit(_)))
}

fn repairs(steps: &[Step]) -> Vec<Repair> {
    let mut repairs: Vec<Repair> = Vec::new();
    for (failed, command, call) in calls(steps) {
        if command.passed || !call.matters() {
            continue;
        }
        // A later run of a failure that is being repaired already.
        if let Some(repair) = repairs.iter_mut().find(|it| {
            it.failed < failed && failed < it.passed && same_call(steps, it.failed, &call)
        }) {
            repair.runs += 1;
            continue;
        }
        let passed = calls(steps)
            .find(|(at, command, later)| *at > failed && command.passed && later.covers(&call));
        let Some((passed, ..)) = passed else {
            continue;
        };
        let edits: Vec<usize> = edits(steps, failed..passed).collect();
        // Passing without a change proves nothing about the code.
        if !edits.is_empty() {
            repairs.push(Repair {
                failed,
                runs: 1,
                edits,
                passed,
            });
        }
    }
    repairs
}

fn same_call(steps: &[Step], at: usize, call: &Call) -> bool {
    match &steps[at].what {
        What::Command(command) => Call::of(&command.text).is_some_and(|it| it.name == call.name),
        _ => false,
    }
}

fn failures(steps: &[Step]) -> Vec<usize> {
    let settled = |failed: usize, call: &Call| {
        calls(steps).any(|(at, command, later)| {
            let passed = command.passed && later.covers(call);
            let failed_again = !command.passed && later.name == call.name;
            at > failed && (passed || failed_again)
        })
    };
    calls(steps)
        .filter(|(at, command, call)| !command.passed && call.matters() && !settled(*at, call))
        // A subagent's dead end is its own business, and a command that was never
        // there says nothing about the project.
        .filter(|(at, command, _)| steps[*at].agent_id.is_none() && !command.not_found())
        .map(|(at, ..)| at)
        .collect()
}

fn commits(steps: &[Step]) -> Vec<Commit> {
    let mut commits = Vec::new();
    let mut since = 0;
    for (step, command, _) in calls(steps) {
        let Some(commit) = GitCommit::of(&command.typed).filter(|_| command.passed) else {
            continue;
        };
        let (id, subject) = match committed(&command.output) {
            Some((id, subject)) => (Some(id), Some(subject)),
            None => (None, commit.message),
        };
        commits.push(Commit {
            step,
            id,
            subject: subject.unwrap_or_default(),
            edits: edits(steps, since..step).collect(),
        });
        since = step;
    }
    commits
}

/// `[main 1a2b3c4] Subject`, which git prints.
fn committed(output: &str) -> Option<(String, String)> {
    output.lines().find_map(|line| {
        let (place, subject) = line.trim().strip_prefix('[')?.split_once("] ")?;
        let id = place.split_whitespace().next_back()?;
        let is_id = id.len() >= 7 && id.chars().all(|it| it.is_ascii_hexdigit());
        is_id.then(|| (id.to_owned(), subject.trim().to_owned()))
    })
}

/// The edit at this index; the finding says that it is one.
pub fn edit_at(steps: &[Step], at: usize) -> Option<&Edit> {
    match &steps[at].what {
        What::Edit(edit) => Some(edit),
        _ => None,
    }
}

/// The command at this index; the finding says that it is one.
pub fn command_at(steps: &[Step], at: usize) -> Option<&Command> {
    match &steps[at].what {
        What::Command(command) => Some(command),
        _ => None,
    }
}
