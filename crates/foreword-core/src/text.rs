//! Text functions that several modules share, so that they agree on titles, cuts and dates.

pub(crate) mod words;

use std::borrow::Cow;
use std::path::Path;

use crate::model::Millis;
pub use words::{is_function_word, is_stop_word};

/// An estimate of how many tokens a text has: a quarter of its characters.
#[must_use]
pub fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

/// A title for a text: the first sentence that has a letter or digit, shortened to 80 characters.
#[must_use]
pub fn title(text: &str) -> String {
    let line = text
        .lines()
        .map(|line| line.trim().trim_start_matches(['#', '>', '*', '-']).trim())
        .find(|line| line.chars().any(char::is_alphanumeric))
        .unwrap_or_default();
    let line = one_line(line);
    shorten(first_sentence(&line), 80).into_owned()
}

/// The text up to the first full stop that comes after at least 15 characters ("Hi. Could you …"
/// goes on after "Hi").
#[must_use]
pub fn first_sentence(line: &str) -> &str {
    let ends = line.match_indices(['.', '!', '?']).map(|(at, _)| at);
    let end = ends
        .filter(|&at| line[at + 1..].starts_with(' '))
        .find(|&at| line[..at].chars().count() >= 15);
    end.map_or(line, |at| &line[..at])
}

/// The text with its first letter in upper case.
#[must_use]
pub fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// At most `max` characters of a text, cut at the end of a word and marked with an ellipsis.
#[must_use]
pub fn shorten(text: &str, max: usize) -> Cow<'_, str> {
    if text.chars().count() <= max {
        return Cow::Borrowed(text);
    }
    let end = text
        .char_indices()
        .nth(max - 1)
        .map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    // Cut at a word boundary, unless that would remove half of the text (long paths, CJK).
    let word_end = head
        .rfind(char::is_whitespace)
        .filter(|&at| at > end / 2)
        .unwrap_or(end);
    Cow::Owned(format!(
        "{}…",
        head[..word_end].trim_end_matches([' ', ',', ';', ':', '.'])
    ))
}

/// `1 line`, `2 lines`.
#[must_use]
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `12 KB`, `3.4 MB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A path quoted, where necessary, so that a shell reads it as one word.
#[must_use]
pub fn shell_word(path: &Path) -> String {
    let word = path.to_string_lossy();
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "/._-+@:,".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The text on one line, without control characters: safe in a list and on a terminal.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut gap = false;
    for character in text.chars() {
        if character.is_whitespace() || is_unsafe(character) {
            gap = !line.is_empty();
            continue;
        }
        if gap {
            line.push(' ');
            gap = false;
        }
        line.push(character);
    }
    line
}

/// A text for comparison: lower case, without markup, and without the punctuation and quotes
/// around its words. Signs that stand alone stay, so that `a != b` is not `a == b`.
#[must_use]
pub fn normalised(text: &str) -> String {
    let bare = |word: &'_ str| {
        let word = word.trim_start_matches(|it: char| "`*_~\"'“‘([".contains(it));
        let end = |it: char| "`*_~\"'”’)].,;:!?".contains(it);
        word.trim_end_matches(end).to_lowercase()
    };
    let words = text.split_whitespace().map(bare);
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Replaces the `<` of each tag, so that recalled text can neither close the tag that it is
/// wrapped in nor open or close one of the host's. `a < b` stays as it is.
#[must_use]
pub fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let opens_a_tag = character == '<'
            && characters
                .peek()
                .is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'));
        out.push(if opens_a_tag { '‹' } else { character });
    }
    out
}

/// Whether a character can move the cursor, colour a terminal or reverse the direction of text.
#[must_use]
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// `2026-11-14`, in UTC.
#[must_use]
pub fn date(at: Millis) -> String {
    timestamp(at).strftime("%Y-%m-%d").to_string()
}

/// `2026-11-14T09:30:00Z`.
#[must_use]
pub fn rfc3339(at: Millis) -> String {
    timestamp(at).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn timestamp(at: Millis) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

/// Whether a word is in a list that is written as one text, separated by spaces.
pub(crate) fn is_in(list: &str, word: &str) -> bool {
    // Most words are not in the list, and `contains` finds that out quickly.
    list.contains(word) && list.split_ascii_whitespace().any(|it| it == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_sentence_with_a_letter_or_digit() {
        assert_eq!(title("\n---\n## Fix the  login\nmore"), "Fix the login");
        assert_eq!(
            title("Hi. Could you mend src/a.rs today? It broke."),
            "Hi. Could you mend src/a.rs today"
        );
        assert_eq!(title(""), "");
    }

    #[test]
    fn a_long_text_ends_at_a_word() {
        assert_eq!(shorten("one two three four", 12), "one two…");
        assert_eq!(shorten("one two", 7), "one two");
        assert_eq!(shorten("一二三四五六", 4), "一二三…");
    }

    #[test]
    fn one_line_drops_what_could_steer_a_terminal() {
        assert_eq!(one_line("a\u{1b}[31m\tb\n\u{202e}c"), "a [31m b c");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(rfc3339(1_763_000_000_000), "2025-11-13T02:13:20Z");
    }
}
