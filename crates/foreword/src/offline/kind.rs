//! The type of a turn's observation.

use std::collections::HashSet;

use foreword_core::model::ObservationType;

use super::lexicon;
use super::title;
use super::turn::{TurnReading, is_compound, is_prose_file, is_test_file, telling_commit};
use crate::evidence::Edit;

/// The type that follows from what is proven.
pub fn of(reading: &TurnReading<'_>) -> ObservationType {
    use ObservationType::{Bugfix, Decision, Discovery, Feature, Refactor};
    let commit = telling_commit(&reading.commits);
    let (prefix, subject) = match commit {
        Some(commit) => title::conventional(&commit.subject),
        None => (None, String::new()),
    };
    let by_prefix = match prefix {
        Some("fix") => Some(Bugfix),
        Some("feat") => Some(Feature),
        Some("refactor" | "style" | "perf") => Some(Refactor),
        _ => None,
    };
    let plan_fixes = reading
        .plan
        .as_deref()
        .is_some_and(lexicon::speaks_of_fault);
    if !reading.has_edits() && reading.commits.is_empty() {
        return match (&reading.plan, &reading.chosen) {
            (Some(_), _) if reading.closing.is_some() && plan_fixes => Bugfix,
            (Some(_), _) if reading.closing.is_some() => Feature,
            (_, Some(_)) => Decision,
            _ => Discovery,
        };
    }
    if reading.has_edits()
        && reading.edits().all(|it| is_prose_file(&it.path))
        && by_prefix.is_none()
    {
        return if reading.by_user.is_empty() && reading.laid_down.is_empty() {
            Discovery
        } else {
            Decision
        };
    }
    if let Some(kind) = by_prefix {
        return kind;
    }
    if plan_fixes || lexicon::speaks_of_fault(&subject) || reading.red_first {
        return Bugfix;
    }
    let headline = reading.plan.as_deref().unwrap_or(&subject);
    if lexicon::begins_with_reshaping(headline) {
        return Refactor;
    }
    let only_tests = reading.has_edits() && reading.edits().all(|it| is_test_file(&it.path));
    let asked: String = reading.typed.chars().take(600).collect();
    if reading.plan.is_none() && !only_tests && lexicon::speaks_of_fault(&asked) {
        return Bugfix;
    }
    let created = reading.edits().any(|it| it.created);
    let lines = |text: &str| {
        if text.is_empty() {
            0
        } else {
            text.lines().count()
        }
    };
    let added: usize = reading.edits().map(|it| lines(&it.after)).sum();
    let removed: usize = reading.edits().map(|it| lines(&it.before)).sum();
    if reading.plan.is_some() && (created || added * 5 >= removed * 4) {
        return Feature;
    }
    if only_tests {
        return if removed * 10 >= added * 6 {
            Refactor
        } else {
            Feature
        };
    }
    let code = || reading.edits().filter(|it| !is_test_file(&it.path));
    let names = |text: fn(&Edit) -> &str| -> HashSet<&str> {
        let words = code()
            .flat_map(move |it| text(it).split(|it: char| !(it.is_alphanumeric() || it == '_')));
        words.filter(|it| is_compound(it)).collect()
    };
    let (before, after) = (names(|it| &it.before), names(|it| &it.after));
    let (new, gone) = (
        after.difference(&before).count(),
        before.difference(&after).count(),
    );
    let files: HashSet<&str> = reading.edits().map(|it| it.path.as_str()).collect();
    let balanced = added * 100 < removed * 135;
    let rewrites = files.len() >= 4 && !created && balanced;
    let renames = new <= gone && gone > 0 && balanced && reading.correction.is_none();
    if removed >= 2 * added && removed > 0 || renames || rewrites {
        Refactor
    } else {
        Feature
    }
}
