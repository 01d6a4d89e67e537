//! What a request or a commit message says it is about.

use foreword_core::model::ObservationType;
use foreword_core::text::{capitalised, shorten};

use super::speech;

/// `I need to know` asks for no change.
const WISHES: &str = "i want, we want, i need, we need, i'd like";

const FAULTS: &str = "fix, bug, fail, broken, wrong, error, crash, pass, does not work, \
    doesn't work, regression, deploy";

/// What the first word of a message tells; none if it does not.
pub fn kind_of(message: &str) -> Option<ObservationType> {
    let message = message.to_lowercase();
    let mut words = message.split(|it: char| !it.is_alphanumeric());
    Some(match words.find(|word| !word.is_empty())? {
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
        Some((prefix, rest)) if kind_of(prefix).is_some() && !prefix.contains(' ') => rest,
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
        speech::all_sentences(request).iter().find_map(|sentence| {
            let words = speech::without_openings(sentence);
            let words = speech::after(words, "let's").unwrap_or(words);
            let wish = speech::after(words, WISHES).filter(|it| !it.starts_with("to "));
            let words = wish.unwrap_or(words);
            let kind = kind_of(words);
            (wish.is_some() || kind.is_some()).then(|| Asked {
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

/// Whether something is said to be wrong, so that mending it is a bugfix.
pub fn speaks_of_a_fault(request: &str) -> bool {
    speech::has(&request.to_lowercase(), FAULTS)
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
