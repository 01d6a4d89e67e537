//! The texts that an item is embedded as.
//!
//! A vector says one thing well and many things badly. So a long item becomes several
//! *records*, each about as long as a turn or a few facts, and each with what it stands
//! beside: the title in front, the end of the record before it.

use crate::notes::Note;
use crate::store::ItemBody;
use crate::text;

/// So much of an item is looked at; what comes later is found by its words.
pub const RECORDS_MAX: usize = 8;

/// Counts up when an item would become other records: then all are embedded anew.
pub const VERSION: u32 = 1;

/// So many words are about one thing: a paragraph, which the model reads whole.
const WORDS: usize = 80;
/// What ends one record begins the next, if it is no longer than this.
const OVERLAP: usize = 30;
/// The head of a reply says what came of it.
const REPLY_MAX: usize = 600;

/// Never empty strings, at most `RECORDS_MAX`, in the order of the text.
#[must_use]
pub fn records(body: &ItemBody) -> Vec<String> {
    match body {
        ItemBody::Observation {
            title,
            subtitle,
            facts,
            narrative,
            ..
        } => {
            let head = sentences([title.as_str(), subtitle]);
            pieces(
                &head,
                facts.iter().map(String::as_str).chain([narrative.as_str()]),
            )
        }
        ItemBody::Summary {
            request,
            learned,
            completed,
            ..
        } => pieces(&text::title(request), [learned.as_str(), completed]),
        ItemBody::Prompt { text, reply } => {
            let reply = text::shorten(reply.as_deref().unwrap_or_default(), REPLY_MAX);
            pieces("", [text.as_str(), &reply])
        }
        ItemBody::Note { title, text, .. } => {
            let (note, _) = Note::read(text);
            let points = note
                .points
                .iter()
                .map(|it| format!("{}: {}", it.label, it.text));
            let points: Vec<String> = points.collect();
            // A page that has not the form of a note is read as it stands.
            let others = if points.is_empty() { text.as_str() } else { "" };
            let points = points.iter().map(String::as_str);
            let parts = [note.context.as_str()].into_iter().chain(points);
            pieces(title, parts.chain([others]))
        }
    }
}

fn sentences<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts = parts.into_iter().map(str::trim).filter(|it| !it.is_empty());
    parts.collect::<Vec<_>>().join(". ")
}

/// Lines and sentences, put together until they are long enough, the head before each.
fn pieces<'a>(head: &str, parts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut records: Vec<String> = Vec::new();
    let mut record: Vec<&str> = Vec::new();
    let worded = |record: &[&str]| {
        let head = Some(head.trim()).filter(|it| !it.is_empty());
        head.into_iter()
            .chain(record.iter().copied())
            .collect::<Vec<_>>()
            .join("\n")
    };
    for unit in parts.into_iter().flat_map(units) {
        if !record.is_empty() && words(&record) + words(&[unit]) > WORDS {
            records.push(worded(&record));
            let last = record.pop().filter(|it| words(&[it]) <= OVERLAP);
            record = last.into_iter().collect();
        }
        record.push(unit);
        if records.len() == RECORDS_MAX {
            return records;
        }
    }
    let last = worded(&record);
    if !record.is_empty() || (records.is_empty() && !last.is_empty()) {
        records.push(last);
    }
    records
}

fn words(units: &[&str]) -> usize {
    units.iter().map(|it| it.split_whitespace().count()).sum()
}

/// The lines of a text; of a line that is too long by itself, pieces of whole words.
fn units(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
    lines.flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (unit, after) = rest.split_at(end(rest));
            rest = after.trim_start();
            Some(unit.trim_end())
        })
    })
}

/// Where the first `WORDS` words of a line end: after a sentence, if there is one in the second half.
fn end(line: &str) -> usize {
    let ends = line
        .char_indices()
        .zip(line.chars().skip(1).map(Some).chain([None]));
    let ends =
        ends.filter(|((_, it), next)| !it.is_whitespace() && next.is_none_or(char::is_whitespace));
    let ends = ends.map(|((at, it), _)| (at + it.len_utf8(), matches!(it, '.' | '!' | '?')));
    let ends: Vec<(usize, bool)> = ends.take(WORDS).collect();
    match ends.last() {
        Some(&(last, _)) if last < line.trim_end().len() => {
            let sentence = ends.iter().skip(WORDS / 2).rfind(|(_, sentence)| *sentence);
            sentence.map_or(last, |(at, _)| *at)
        }
        _ => line.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str) -> Vec<String> {
        records(&ItemBody::Prompt {
            text: text.to_owned(),
            reply: None,
        })
    }

    /// `a0 a1 a2 …`
    fn many(name: &str, count: usize) -> String {
        let words: Vec<_> = (0..count).map(|at| format!("{name}{at}")).collect();
        words.join(" ")
    }

    #[test]
    fn what_is_short_is_one_record_and_what_is_empty_none() {
        assert_eq!(
            prompt("one line\n\n  and another "),
            ["one line\nand another"]
        );
        assert_eq!(prompt(" \n "), [""; 0]);
    }

    #[test]
    fn a_long_text_is_cut_between_lines_and_each_begins_with_the_line_before() {
        let lines = ["a", "b", "c", "d"].map(|name| many(name, 30));
        assert_eq!(
            prompt(&lines.join("\n")),
            [
                lines[..2].join("\n"),
                lines[1..3].join("\n"),
                lines[2..].join("\n"),
            ]
        );
    }

    #[test]
    fn a_long_line_is_cut_after_a_sentence_else_after_a_word() {
        let line = format!("{}. {}", many("a", 50), many("b", 50));
        assert_eq!(
            prompt(&line),
            [format!("{}.", many("a", 50)), many("b", 50)]
        );
        let records = prompt(&many("a", 170));
        let words: Vec<_> = records.iter().map(|it| it.split(' ').count()).collect();
        assert_eq!(words, [80, 80, 10]);
        assert_eq!(prompt(&many("word", 10_000)).len(), RECORDS_MAX);
        // No spaces: one word, however long.
        assert_eq!(prompt(&"全文検索".repeat(500)).len(), 1);
    }

    #[test]
    fn a_note_has_its_title_before_each_record() {
        let point = many("p", 60);
        let text = format!(
            "# Login\n\n## Context\nWhy.\n\n## Tracking Points\n- Decision: {point}\n- Fix: {point}\n"
        );
        let note = ItemBody::Note {
            title: "Login".into(),
            path: String::new(),
            text,
            foreign: false,
        };
        assert_eq!(
            records(&note),
            [
                format!("Login\nWhy.\nDecision: {point}"),
                format!("Login\nFix: {point}"),
            ]
        );
        let page = ItemBody::Note {
            title: "Page".into(),
            path: String::new(),
            text: "Free words.".into(),
            foreign: false,
        };
        assert_eq!(records(&page), ["Page\nFree words."]);
    }
}
