//! What a request or a commit message says it is about.

use foreword_core::model::ObservationType;
use foreword_core::text::{capitalised, shorten};

use super::speech;

/// What the first word of a message tells; none if it does not.
pub fn kind_of(message: &str) -> Option<ObservationType> {
    let message = message.to_lowercase();
    let first = message
        .split(|it: char| !it.is_alphanumeric())
        .find(|word| !word.is_empty())?;
    Some(match first {
        "fix" | "fixes" | "fixed" | "bugfix" | "hotfix" | "repair" | "correct" => {
            ObservationType::Bugfix
        }
        "feat" | "feature" | "add" | "adds" | "added" | "implement" | "introduce" | "support"
        | "create" | "build" | "write" => ObservationType::Feature,
        "refactor" | "rename" | "move" | "extract" | "clean" | "cleanup" | "simplify" | "split"
        | "inline" | "style" | "chore" | "perf" => ObservationType::Refactor,
        _ => return None,
    })
}

/// `fix(auth): compare in UTC` without the part that the type already says.
pub fn without_prefix(subject: &str) -> &str {
    match subject.split_once(": ") {
        Some((prefix, rest))
            if kind_of(prefix).is_some() && !prefix.contains(' ') && !rest.is_empty() =>
        {
            rest
        }
        _ => subject,
    }
}

/// The part of a request that asks for work: what for, and of which kind.
#[derive(Debug, PartialEq)]
pub struct Asked {
    pub title: String,
    pub kind: Option<ObservationType>,
}

impl Asked {
    pub fn of(request: &str) -> Option<Asked> {
        let paragraphs = speech::paragraphs(request);
        let mut sentences = paragraphs.iter().flat_map(|it| speech::sentences(it));
        sentences.find_map(|sentence| {
            let (wanted, words) = without_opening(sentence);
            let kind = kind_of(words);
            (wanted || kind.is_some()).then(|| Asked {
                title: capitalised(&shorten(words.trim_end_matches(['.', '!', '?']), 80)),
                kind,
            })
        })
    }
}

/// `Fix the login` as something that was only tried.
pub fn as_attempt(title: &str) -> String {
    match title.split_once(' ') {
        Some((verb @ ("Fix" | "Repair" | "Correct"), rest)) => {
            format!("Tried to {} {rest}", verb.to_lowercase())
        }
        _ => format!("Tried: {title}"),
    }
}

/// Without what only opens or softens it; and whether it said that it is a wish.
fn without_opening(sentence: &str) -> (bool, &str) {
    let openings = [
        "please ",
        "can you ",
        "could you ",
        "now ",
        "ok, ",
        "ok ",
        "okay, ",
        "and ",
        "then ",
        "also ",
        "so ",
        "next, ",
        "let's ",
        "nice. ",
        "we need to ",
        "i need you to ",
        "i want you to ",
    ];
    let wishes = ["i want ", "we want ", "i need ", "we need ", "i'd like "];
    let mut rest = sentence;
    loop {
        let strip = |it: &&&str| {
            rest.get(..it.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(it))
        };
        if let Some(opening) = openings.iter().find(strip) {
            rest = &rest[opening.len()..];
        } else if let Some(wish) = wishes.iter().find(strip) {
            let words = &rest[wish.len()..];
            // `I need to know` asks for no change.
            return (!words.starts_with("to "), words);
        } else {
            return (false, rest);
        }
    }
}

/// Whether something is said to be wrong, so that mending it is a bugfix.
pub fn speaks_of_a_fault(request: &str) -> bool {
    let marks = [
        "fix",
        "bug",
        "fail",
        "broken",
        "wrong",
        "error",
        "crash",
        "pass",
        "does not work",
        "doesn't work",
        "regression",
        "deploy",
        "debug",
    ];
    let lower = request.to_lowercase();
    marks.iter().any(|mark| lower.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_titled_by_what_it_asks_for() {
        for (request, title) in [
            (
                "Nice work! Could you rename `a` to `b`? Thanks.",
                Some("Rename `a` to `b`"),
            ),
            (
                "I want tags on bookmarks. Tests first.",
                Some("Tags on bookmarks"),
            ),
            ("Why does it hang?", None),
            ("Before that I need to know how it works.", None),
        ] {
            let asked = Asked::of(request).map(|it| it.title);
            assert_eq!(asked.as_deref(), title, "{request}");
        }
    }
}
