//! Whether two insights are one, or the newer overtakes the older. `store::kin` asks.
//!
//! Only words are compared, so much is missed; but what is said should be right. To take two
//! insights for one loses the second, and to mark a decision as superseded that still holds
//! is worse: an agent would go against it. *Unrelated* is the answer whenever in doubt.
//! `testdata/kin` has labelled pairs and says how often this is right.

use std::sync::LazyLock;

use super::words::{DENIES, GIVES_UP, has_name, plain};
use super::words::{
    Words, as_written, common, content, covers, is_negated, is_number, named_after, tokens,
};
use crate::model::ObservationType;
use crate::text::is_in;

/// What an insight says, as far as it can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insight<'a> {
    pub kind: ObservationType,
    pub title: &'a str,
    pub subtitle: &'a str,
    pub facts: &'a [String],
    pub narrative: &'a str,
    pub concepts: &'a [String],
    pub files: &'a [String],
}

/// What a newer insight is to an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kinship {
    /// It says the same.
    Duplicate,
    /// It decides the same matter otherwise.
    Supersedes,
    Unrelated,
}

#[must_use]
pub fn kinship(older: &Insight<'_>, newer: &Insight<'_>) -> Kinship {
    // A plan and its execution, a fix beside a decision: both are worth keeping.
    if older.kind != newer.kind || common(&content(older.title), &content(newer.title)) < 2 {
        return Kinship::Unrelated;
    }
    let (older, newer) = (Side::of(older), Side::of(newer));
    if is_duplicate(&older, &newer) {
        Kinship::Duplicate
    } else if supersedes(&older, &newer) {
        Kinship::Supersedes
    } else {
        Kinship::Unrelated
    }
}

/// An insight by its words.
struct Side<'a> {
    insight: &'a Insight<'a>,
    title: Words,
    /// Subtitle and facts.
    details: Words,
    /// All that it says.
    text: Words,
    /// What the title says is so.
    chosen: Words,
    /// What title or subtitle say is not so.
    denied: Words,
    /// What they say is no longer so.
    given_up: Words,
}

impl<'a> Side<'a> {
    fn of(insight: &'a Insight<'a>) -> Side<'a> {
        let title = content(insight.title);
        let details = content(&format!("{} {}", insight.subtitle, insight.facts.join(" ")));
        let concepts = insight.concepts.join(" ");
        let rest = content(&format!("{} {concepts}", insight.narrative));
        let about = format!("{}. {}", insight.title, insight.subtitle);
        let (given_up, denied) = (named_after(&about, GIVES_UP), named_after(&about, DENIES));
        Side {
            insight,
            text: &(&title | &details) | &rest,
            details,
            chosen: &(&title - &given_up) - &denied,
            title,
            given_up,
            denied,
        }
    }

    /// What this has against what the other holds.
    fn against(&self, other: &Side<'_>) -> Words {
        &(&(&self.given_up | &self.denied) & &other.chosen) - &self.chosen
    }
}

fn is_duplicate(older: &Side<'_>, newer: &Side<'_>) -> bool {
    let (a, b) = (older.insight, newer.insight);
    let same_files =
        a.files.iter().any(|it| b.files.contains(it)) || (a.files.is_empty() && b.files.is_empty());
    let number_missing = |one: &Side<'_>, other: &Side<'_>| {
        let mut numbers = one.title.iter().filter(|it| is_number(it));
        numbers.any(|it| !other.text.contains(it))
    };
    let contradict = match a.kind {
        ObservationType::Decision => {
            !older.against(newer).is_empty() || !newer.against(older).is_empty()
        }
        _ => is_negated(a.title) != is_negated(b.title),
    };
    if !same_files
        || contradict
        || in_another_place(older, newer)
        || number_missing(older, newer)
        || number_missing(newer, older)
        || is_renumbered(a, b, false)
    {
        return false;
    }
    let same_fact = a.facts.iter().any(|it| b.facts.contains(it));
    // "`npm test` failed, then passed": a title that a machine made is used for other work too.
    if a.kind.is_work() && a.title == b.title {
        return same_fact;
    }
    let shared = common(&older.title, &newer.title);
    let all = older.title.len() + newer.title.len() - shared;
    let fewer = older.details.len().min(newer.details.len());
    let alike = if fewer == 0 {
        shared * 10 >= all * 8
    } else {
        common(&older.details, &newer.details) * 10 >= fewer * 6
            && (same_fact || shared * 20 >= all * 7)
    };
    // Each title must be found in what the other says; few words say too little.
    alike
        && shared > 2
        && covers(&newer.text, &older.title, 70)
        && covers(&older.text, &newer.title, 70)
}

fn supersedes(older: &Side<'_>, newer: &Side<'_>) -> bool {
    let (a, b) = (older.insight, newer.insight);
    let same_file = a.files.iter().any(|it| b.files.contains(it));
    // What was said outright names neither.
    let bare = |it: &Insight<'_>| it.files.is_empty() && it.concepts.is_empty();
    let same_concept = a.concepts.iter().any(|it| b.concepts.contains(it)) || bare(a) && bare(b);
    if a.kind != ObservationType::Decision
        || !(same_file || same_concept)
        || is_elsewhere(older, newer)
    {
        return false;
    }
    let against = newer.against(older);
    let rest = &older.chosen - &against;
    if !against.is_subset(&newer.given_up) {
        // "not" is no change: it must be the same matter word for word.
        return older.chosen.is_subset(&newer.title);
    }
    let same_subject = rest.is_empty() || common(&rest, &newer.chosen) > 0;
    if !against.is_empty() && same_subject && covers(&newer.text, &rest, 50) {
        return true;
    }
    let same_matter = plain(&older.title).is_subset(&newer.text);
    same_file && (same_matter && is_renumbered(a, b, true) || has_another_value(older, newer))
}

/// Whether the newer one adds to the older, or is about another place.
fn is_elsewhere(older: &Side<'_>, newer: &Side<'_>) -> bool {
    // `step 1`, `phase 2`: a number that is a name.
    let [was, is] = [older, newer].map(|it| {
        let title = tokens(it.insight.title);
        let names = title.windows(2).filter(|it| is_in(LABELS, &it[0]));
        names.map(|it| it[1].clone()).collect::<Words>()
    });
    let title = tokens(newer.insight.title);
    let adds = title.iter().any(|it| is_in(ADDS, it));
    let [for_old, for_new] = [older, newer].map(|it| {
        let what = it.insight.title.rsplit_once(" for ")?.1;
        Some(&plain(&content(what)) - &it.given_up)
    });
    let for_another = for_old
        .zip(for_new)
        .is_some_and(|(old, new)| !old.is_subset(&newer.text) || !new.is_subset(&older.text));
    adds || in_another_place(older, newer) || was != is || for_another
}

/// `in staging`, `in production`.
fn in_another_place(older: &Side<'_>, newer: &Side<'_>) -> bool {
    let [there, here] = [older, newer].map(|it| &*PLACES & &it.title);
    there != here
}

/// Both titles begin alike up to a value, which is another: `… is kept for 30 days`.
fn has_another_value(older: &Side<'_>, newer: &Side<'_>) -> bool {
    let [old, new] = [older, newer].map(|it| {
        let clause = it.insight.title.split([',', ';', ':', '(']).next();
        as_written(clause.unwrap_or_default())
    });
    let is_same = |(a, b): &(&String, &String)| a.eq_ignore_ascii_case(b);
    let same = old.iter().zip(&new).take_while(is_same).count();
    let (Some(was), Some(is)) = (old.get(same), new.get(same)) else {
        return false;
    };
    // `with BC7 on desktop`: another value elsewhere.
    let under = |title: &[String]| {
        let scope = title[same..].iter().skip_while(|it| !is_in(SCOPES, it));
        let scope: Vec<&str> = scope.map(String::as_str).collect();
        plain(&content(&scope.join(" ")))
    };
    // What stands before the value and after it says whose value it is.
    let ends = old.iter().rev().zip(new.iter().rev());
    let alike = ends.take_while(|(a, b)| a == b).count();
    let alike = alike.min(old.len() - same);
    let frame = [&old[..same], &old[old.len() - alike..]].concat();
    if same == 0
        || content(&frame.join(" ")).len() < 2
        || !under(&old).is_subset(&newer.text)
        || !under(&new).is_subset(&older.text)
    {
        return false;
    }
    if is_number(was) && is_number(is) {
        return plain(&content(&old[same..].join(" "))).is_subset(&newer.title);
    }
    // Another concept may only be the value itself.
    let same_concepts = |one: &Side<'_>, other: &Side<'_>| {
        let mut concepts = one.insight.concepts.iter();
        concepts.all(|it| other.insight.concepts.contains(it) || content(it).is_subset(&one.title))
    };
    let before = old[same - 1].to_lowercase();
    let is_name = |word: &str| word.contains(|it: char| it.is_uppercase() || it.is_ascii_digit());
    same_concepts(older, newer)
        && same_concepts(newer, older)
        && match before.as_str() {
            // `is signed` and `is short` can both be true.
            "is" | "are" => !was.ends_with("ed") && !is.ends_with("ed"),
            "with" | "by" | "from" | "uses" | "use" => true,
            // `in parallel` and `in containers` too.
            "in" | "on" | "at" | "to" | "as" => is_name(was) && is_name(is),
            _ => false,
        }
}

/// A fact is told again with another number; `named`: a fact about something with a name.
fn is_renumbered(older: &Insight<'_>, newer: &Insight<'_>, named: bool) -> bool {
    let split = |fact: &str| -> (Vec<String>, Vec<String>) {
        tokens(fact).into_iter().partition(|it| is_number(it))
    };
    let with_name = |fact: &&String| !named || has_name(fact);
    older.facts.iter().filter(with_name).any(|fact| {
        let (numbers, rest) = split(fact);
        newer.facts.iter().any(|other| {
            let (others, same) = split(other);
            let both = !numbers.is_empty() && !others.is_empty();
            both && numbers != others && !rest.is_empty() && rest == same
        })
    })
}

const ADDS: &str = "also too additionally";
static PLACES: LazyLock<Words> = LazyLock::new(|| {
    content("test production prod staging development dev ci local preview debug")
});
const LABELS: &str = "step phase stage part milestone sprint level tier option rule";
/// Where or when something holds.
const SCOPES: &str = "for on in at when during under if while within";

#[cfg(test)]
mod tests {
    use super::*;

    /// Two decisions about one file and one concept, by their titles.
    fn judged(older: &str, newer: &str) -> Kinship {
        let (concepts, files) = (["queue".to_owned()], ["src/queue.rs".to_owned()]);
        let [older, newer] = [older, newer].map(|title| Insight {
            kind: ObservationType::Decision,
            title,
            subtitle: "",
            facts: &[],
            narrative: "",
            concepts: &concepts,
            files: &files,
        });
        kinship(&older, &newer)
    }

    #[test]
    fn another_value_or_a_change_that_is_said_supersedes() {
        for (older, newer) in [
            (
                "The lease of a claim is 30 seconds",
                "The lease of a claim is 90 seconds",
            ),
            (
                "The job queue lives in Redis",
                "The job queue lives in PostgreSQL",
            ),
            (
                "The job queue lives in Redis",
                "Job queue moved from Redis to a table",
            ),
            ("Squash merges are allowed", "Squash merges are not allowed"),
            (
                "Use gzip for old segments",
                "We now use zstd for old segments",
            ),
            (
                "Claims are kept for 30 minutes",
                "Claims are kept for 2 hours",
            ),
            (
                "Claims of a worker are renewed",
                "Claims of a worker are no longer renewed",
            ),
        ] {
            assert_eq!(
                judged(older, newer),
                Kinship::Supersedes,
                "{older} | {newer}"
            );
        }
    }

    #[test]
    fn what_can_both_be_true_stands() {
        for (older, newer) in [
            (
                "Use Jest for the tests of the front end",
                "Use Vitest instead of Jest for the tests of the back end",
            ),
            (
                "Textures are compressed with BC7 on desktop",
                "Textures are compressed with ASTC on mobile",
            ),
            (
                "The queue tests run in parallel",
                "The queue tests run in containers",
            ),
            (
                "The uploader retries 3 times",
                "The downloader retries 5 times",
            ),
            (
                "The video player supports HLS",
                "The video player supports DASH",
            ),
            (
                "Uploads are scanned on disk",
                "Uploads go to S3, not to disk",
            ),
            (
                "The job queue keeps 3 retries",
                "The job queue keeps 10 workers",
            ),
            (
                "The shop's sessions are kept by Redis",
                "The shop's job queue uses PostgreSQL instead of Redis",
            ),
            (
                "The job queue is signed with RS256",
                "The job queue is stored in PostgreSQL",
            ),
            (
                "The claim limit is 10",
                "The claim limit is 50 for partners",
            ),
            (
                "Staging keeps backups for 3 days",
                "Production keeps backups for 35 days",
            ),
        ] {
            assert_eq!(
                judged(older, newer),
                Kinship::Unrelated,
                "{older} | {newer}"
            );
        }
    }

    #[test]
    fn a_number_or_a_no_is_another_insight() {
        let duplicate = judged(
            "Claims of dead workers are freed at once",
            "Claims of a dead worker are freed at once",
        );
        assert_eq!(duplicate, Kinship::Duplicate);
        for (older, newer) in [
            (
                "The cache of claims is enabled for staging",
                "The cache of claims is enabled for production",
            ),
            ("Token and auth", "Token, auth and a word of its own"),
            (
                "First thing that was learned",
                "Second thing that was learned",
            ),
        ] {
            assert_eq!(
                judged(older, newer),
                Kinship::Unrelated,
                "{older} | {newer}"
            );
        }
        for (older, newer) in [
            (
                "Claims are freed after 3 crashes in a row",
                "Claims are freed after 5 crashes in a row",
            ),
            (
                "Claims of dead workers are freed at once",
                "Claims of dead workers are never freed at once",
            ),
        ] {
            assert_eq!(
                judged(older, newer),
                Kinship::Supersedes,
                "{older} | {newer}"
            );
        }
    }
}
