//! Sentences that decide something, in the user's or the agent's own words.
//!
//! What is quoted, pasted or code are somebody else's words, and decide nothing. A
//! sentence decides only if one of its clauses opens with who decides and the verb;
//! what is in doubt is no decision.

use foreword_core::text::capitalised;

use super::said::is_open;
use super::speech::{after, before_any, body, has, paragraphs, sentences, without_openings};

const USER_DECIDES: &str = "let's use, let's keep, let's go with, let's not use, let's stick, \
    go with, we go with, we'll go with, i'll go with, we're going with, we are going with, \
    i'm going with, we decided, we've decided, we have decided, i decided, i've decided, \
    we agreed, don't use, do not use, never use, always use, we don't use, we do not use, \
    we never use, we always use, stick with, stick to, from now on";

/// These decide only against something.
const USER_WANTS: &str =
    "use, keep, put, store, we use, we keep, prefer, i prefer, we prefer, i want, we want";

const AGENT_DECIDES: &str = "i decided, i've decided, we decided, we've decided, i chose, \
    i've chosen, i opted, i settled on, decided, chose, opted, settled on, decision:";

/// These decide only with a reason: "I went with a short summary" chose nothing.
const AGENT_DID: &str =
    "i went with, went with, i picked, i kept, i used, i left, i made, i put, i stored";

const CONTRASTS: &str = "instead of, rather than";

/// How lines of a log begin.
const LABELS: [&str; 8] = [
    "warn", "error", "info", "debug", "fatal", "note:", "at ", "hint:",
];

/// Sentences of a user's prompt that decide something.
pub fn of_user(prompt: &str) -> Vec<String> {
    deciding(prompt, |sentence, clause| {
        let against = has(sentence, CONTRASTS)
            || sentence.contains(", never ")
            || sentence.contains(", not ");
        starts(clause, USER_DECIDES) || (starts(clause, USER_WANTS) && against)
    })
}

/// Sentences of an agent's reply that say what it chose.
pub fn of_agent(reply: &str) -> Vec<String> {
    deciding(&body(reply), |sentence, clause| {
        let gives_reason = has(sentence, CONTRASTS) || sentence.contains(" because ");
        let did = starts(clause, AGENT_DID) && !starts(clause, "i picked up");
        !sentence.contains("tried") && (starts(clause, AGENT_DECIDES) || (did && gives_reason))
    })
}

fn starts(clause: &str, phrases: &str) -> bool {
    after(clause, phrases).is_some()
}

/// A decision as a title: what was decided, without its reason and its politeness.
pub fn as_title(sentence: &str) -> String {
    let decided = without_openings(sentence.trim_end_matches(['.', '!']));
    let decided = after(decided, "let's, i").unwrap_or(decided);
    capitalised(before_any(decided, " because |, since |, so that |, I "))
}

/// Sentences with a clause that `is_it`; it is asked in lower case, without quotes.
fn deciding(text: &str, is_it: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for paragraph in paragraphs(&own_lines(text)) {
        let masked = masked(&paragraph);
        let mut end = 0;
        for sentence in sentences(&masked) {
            let start = end + masked[end..].find(sentence).unwrap_or_default();
            end = start + sentence.len();
            let lower = sentence.to_lowercase().replace('’', "'");
            let lower = lower.replace("let us ", "let's ");
            if !is_open(&lower) && clauses(&lower).any(|clause| is_it(&lower, clause)) {
                found.push(paragraph[start..end].to_owned());
            }
        }
    }
    found
}

/// The opening of a sentence, and what follows a conjunction.
fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    let after = ["; ", ", but ", ", and ", ", so "]
        .into_iter()
        .flat_map(move |mark| sentence.match_indices(mark))
        .map(move |(at, mark)| &sentence[at + mark.len()..]);
    std::iter::once(sentence)
        .chain(after)
        .map(|clause| without_openings(clause.trim_start_matches(['*', '_'])))
}

/// Without lines that look like a log or a terminal.
fn own_lines(text: &str) -> String {
    let is_own = |line: &&str| {
        let indented = line.starts_with("    ") || line.starts_with('\t');
        let lower = line.trim().to_lowercase();
        let first = lower.split(' ').next().unwrap_or_default();
        let marked = first.starts_with(['[', '<', '$', '|', '+', '%']);
        // `2026-01-02 …` and `12:30:01 …`, but not the item `2. …`.
        let dated = first.starts_with(|it: char| it.is_ascii_digit()) && first.contains(['-', ':']);
        let labelled = LABELS.iter().any(|label| lower.starts_with(label));
        !(indented || marked || dated || labelled)
    };
    let lines = text
        .lines()
        .map(|line| Some(line).filter(is_own).unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// What stands in quotes or in code becomes underscores, byte by byte; a quote that
/// never ends goes on to the end.
fn masked(paragraph: &str) -> String {
    let mut masked = String::with_capacity(paragraph.len());
    let mut closing: Option<char> = None;
    let mut before = ' ';
    let mut rest = paragraph.chars();
    while let Some(character) = rest.next() {
        let in_word = rest.as_str().starts_with(char::is_alphanumeric);
        let closes = closing == Some(character) && (character != '\'' || !in_word);
        if closing.is_some() && !closes {
            masked.extend(std::iter::repeat_n('_', character.len_utf8()));
        } else {
            masked.push(character);
            closing = match character {
                _ if closes => None,
                '"' | '`' => Some(character),
                '“' | '„' => Some('”'),
                '«' => Some('»'),
                // Elsewhere it is an apostrophe.
                '\'' if before == ' ' && rest.as_str().contains('\'') => Some('\''),
                _ => None,
            };
        }
        before = character;
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_decide_are_a_decision() {
        for (prompt, title) in [
            (
                "Let's use SQLite instead of a JSON file.",
                "Use SQLite instead of a JSON file",
            ),
            (
                "Agreed, don't use inheritance here.",
                "Don't use inheritance here",
            ),
            (
                "OK. We go with a lease rather than a lock.",
                "We go with a lease rather than a lock",
            ),
            (
                "We use pnpm here, never npm. What about yarn?",
                "We use pnpm here, never npm",
            ),
            ("Don’t use `any`.", "Don’t use `any`"),
        ] {
            let said = of_user(prompt);
            assert_eq!(
                said.iter().map(|it| as_title(it)).collect::<Vec<_>>(),
                [title]
            );
        }
        let reply = "I chose a list, because tags may have commas. Next steps:\n- decide on case";
        assert_eq!(as_title(&of_agent(reply)[0]), "Chose a list");
        assert_eq!(
            of_agent("Committed. We decided to use tabs."),
            ["We decided to use tabs."]
        );
    }

    #[test]
    fn questions_quotes_and_pasted_lines_decide_nothing() {
        for prompt in [
            "Should we use SQLite instead of JSON?",
            "Maybe go with SQLite.",
            "It returns None instead of an empty list.",
            "Don't commit yet.",
            "Why?\n\nWarning: do not use `foo`, it is deprecated\n  at lib.rs:3",
            "Why?\n[ERROR] boom. Never use root here.\n2026-01-02 10:00 Always use sudo.",
            "Dependency conflict: never use openssl 1.0 here.",
            "```\nAlways use sudo\n```",
            "Let us not decide to go with bun",
            "Let's not decide to go with bun",
            "Write a blog post: \"We decided to go with Rust because it is fast\"",
            "Write: \"It is fast. We decided to go with Rust. Never use C.\"",
        ] {
            assert_eq!(of_user(prompt), [""; 0], "{prompt}");
        }
        for reply in [
            "It printed 1 instead of 2.",
            "I first tried a list rather than a set.",
            "The README says:\n\n> Decided to drop Windows.\n> I chose MIT.",
            "The author writes \"I chose MIT\".",
            "Picked up where we left off. I picked up where we left off.",
            "Went with a short summary. I went with a short summary.",
            "It says: we decided to go with Rust because it is fast.",
            "You should decide whether to go with pnpm.",
        ] {
            assert_eq!(of_agent(reply), [""; 0], "{reply}");
        }
    }
}
