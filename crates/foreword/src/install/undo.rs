//! Takes back an install from a file that the user edited since.
//!
//! The file as it was, the file as install wrote it and the file of today are a
//! three-way merge: our change is taken back, theirs stays, down to the white
//! space. The merge is believed only if it says what removing our entries from
//! today's syntax tree says; else (say, they moved our entries) the tree decides.

use crate::host::Client;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Today's settings without our hooks, as far as possible in the words of `before`.
pub fn undo(client: &Client, before: &str, written: &str, today: &str) -> anyhow::Result<String> {
    let disconnected = (client.remove_hooks)(today)?;
    let meaning = client.meaning;
    let expected = meaning(&disconnected);
    Ok(merge(written, before, today)
        .filter(|merged| {
            let strict = |text| serde_json::from_str::<serde_json::Value>(text).is_ok();
            expected.is_some() && meaning(merged) == expected && (strict(merged) || !strict(today))
        })
        .unwrap_or(disconnected))
}

/// Both changes of `base`, if they do not meet.
fn merge(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let [base, ours, theirs] = [base, ours, theirs].map(tokens);
    let mut changes = changes_of(&base, &ours);
    changes.extend(changes_of(&base, &theirs));
    changes.sort_by_key(|change| (change.start, change.end));
    let mut text = String::new();
    let mut at = 0;
    for change in changes {
        if change.start < at {
            return None;
        }
        text.extend(base[at..change.start].iter().copied());
        text.extend(change.tokens.iter().copied());
        at = change.end;
    }
    text.extend(base[at..].iter().copied());
    Some(text)
}

/// Tokens `start..end` become these.
struct Change<'a> {
    start: usize,
    end: usize,
    tokens: Vec<&'a str>,
}

fn changes_of<'a>(base: &[&str], other: &[&'a str]) -> Vec<Change<'a>> {
    let ops = capture_diff_slices(Algorithm::Myers, base, other);
    let changed = ops
        .into_iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }));
    changed
        .map(|op| Change {
            start: op.old_range().start,
            end: op.old_range().end,
            tokens: other[op.new_range()].to_vec(),
        })
        .collect()
}

/// Strings, words, marks and runs of white space.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            _ if first.is_whitespace() => run_length(rest, char::is_whitespace),
            _ if is_word(first) => run_length(rest, is_word),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after;
    }
    tokens
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || "+-._".contains(character)
}

fn run_length(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|it| !wanted(it)).unwrap_or(text.len())
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
