//! How much a line of the index deserves its place, with the reasons.

use super::line::Line;
use crate::model::{Freshness, ObservationType, Origin};

/// One reason, and how much it counts.
pub type Reason = (&'static str, i64);

/// The reasons for and against a line. Decisions outlive the code around them, recent sessions and
/// the current work matter more, and subagents record too much.
pub(super) fn reasons(line: &Line, sessions_ago: usize) -> Vec<Reason> {
    let by_type = match line.kind {
        ObservationType::Decision => ("a decision", 50),
        ObservationType::Bugfix => ("a bugfix", 40),
        ObservationType::Feature => ("a feature", 36),
        ObservationType::Refactor => ("a refactoring", 30),
        ObservationType::Discovery => ("a discovery", 24),
    };
    let age = i64::try_from(sessions_ago).unwrap_or(i64::MAX / 8) * -4;
    let reasons = [
        (true, by_type),
        (age < 0, ("sessions ago", age)),
        (line.origin == Origin::User, ("the user said so", 10)),
        (line.on_request, ("remembered on request", 10)),
        (line.pinned, ("pinned", 100)),
        (line.about_last_work, ("about files of the last work", 8)),
        (line.on_this_branch, ("on this branch", 6)),
        (line.repeated, ("recorded more than once", 4)),
        (line.by_subagent, ("by a subagent", -30)),
        (
            line.freshness == Some(Freshness::Changed),
            ("its files have changed", -6),
        ),
        (
            line.freshness == Some(Freshness::Gone),
            ("its files are gone", -16),
        ),
    ];
    reasons
        .into_iter()
        .filter_map(|(holds, reason)| holds.then_some(reason))
        .collect()
}

pub(super) fn sum(reasons: &[Reason]) -> i64 {
    reasons.iter().map(|(_, points)| points).sum()
}

/// Why a line is in the index, or why it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Shown,
    /// A line that is shown has the same title.
    Repeated,
    /// Its session has as many lines as one may have.
    SessionFull,
    /// The budget was used by lines that are worth more.
    NoRoom,
}

/// A line that could have been in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    pub id: i64,
    pub kind: ObservationType,
    pub title: String,
    pub reasons: Vec<Reason>,
    pub fate: Fate,
}

impl Weighed {
    /// The reasons in words.
    #[must_use]
    pub fn because(&self) -> String {
        let reasons: Vec<_> = self.reasons.iter().map(|(reason, _)| *reason).collect();
        reasons.join(", ")
    }

    #[must_use]
    pub fn worth(&self) -> i64 {
        sum(&self.reasons)
    }
}
