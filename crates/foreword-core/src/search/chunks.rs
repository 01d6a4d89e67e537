//! Splits an item into the texts that are embedded.
//!
//! One vector represents a short text well and a long one badly. So a long item is split into
//! several *chunks*, each about as long as a sentence or a few facts, with the title in front.

use crate::notes::Note;
use crate::store::{ItemBody, NoteItem, PromptItem};
use crate::text;

/// The most chunks of an item; the text after them is found by its words only.
pub const CHUNKS_MAX: usize = 8;

/// To be increased when items are split differently: all of them are then embedded again.
pub const VERSION: u32 = 1;

/// Words in a chunk of an observation, a summary or a note, which is about one thing anyway.
const GROUP: usize = 60;
/// The least words in a chunk of a prompt, about one sentence, since a prompt may be about
/// several things.
const PROMPT_GROUP: usize = 12;
/// A longer line is cut after this many words, about as many as the model reads.
const WORDS_MAX: usize = 120;
/// Characters of a reply that are embedded; its beginning states the outcome.
const REPLY_MAX: usize = 600;

/// The chunks of an item, in the order of its text. None of them is empty.
pub fn split(body: &ItemBody) -> Vec<String> {
    match body {
        ItemBody::Observation(it) => {
            let head = sentences([it.title.as_str(), &it.subtitle]);
            let facts = it.facts.iter().map(String::as_str);
            pieces(&head, facts.chain([it.narrative.as_str()]), GROUP)
        }
        ItemBody::Summary(it) => {
            let title = text::title(&it.request);
            pieces(&title, [it.learned.as_str(), &it.completed], GROUP)
        }
        ItemBody::Prompt(PromptItem { text, reply }) => {
            let reply = text::shorten(reply.as_deref().unwrap_or_default(), REPLY_MAX);
            let words = words(&[text, &reply]) / CHUNKS_MAX;
            let enough = words.clamp(PROMPT_GROUP, WORDS_MAX);
            pieces("", [text.as_str(), &reply], enough)
        }
        ItemBody::Note(NoteItem { title, text, .. }) => {
            let (note, _) = Note::read(text);
            let points = note
                .points
                .iter()
                .map(|it| format!("{}: {}", it.label, it.text));
            let points: Vec<String> = points.collect();
            // A page without the form of a note is split as plain text.
            let others = if points.is_empty() { text.as_str() } else { "" };
            let points = points.iter().map(String::as_str);
            let parts = [note.context.as_str()].into_iter().chain(points);
            pieces(title, parts.chain([others]), GROUP)
        }
    }
}

fn sentences<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts = parts.into_iter().map(str::trim).filter(|it| !it.is_empty());
    parts.collect::<Vec<_>>().join(". ")
}

/// Joins lines until they have `enough` words, and puts the head before each such chunk.
fn pieces<'a>(head: &str, parts: impl IntoIterator<Item = &'a str>, enough: usize) -> Vec<String> {
    let head = head.trim();
    let head: Vec<&str> = Some(head).filter(|it| !it.is_empty()).into_iter().collect();
    let mut chunks: Vec<Vec<&str>> = vec![head.clone()];
    for line in parts.into_iter().flat_map(lines) {
        let count = chunks.len();
        match chunks.last_mut() {
            Some(last) if words(&last[head.len()..]) < enough => last.push(line),
            _ if count == CHUNKS_MAX => break,
            _ => chunks.push([head.as_slice(), &[line]].concat()),
        }
    }
    let chunks = chunks.into_iter().filter(|it| !it.is_empty());
    chunks.map(|chunk| chunk.join("\n")).collect()
}

fn words(units: &[&str]) -> usize {
    units.iter().map(|it| it.split_whitespace().count()).sum()
}

/// The lines of a text. A line that is too long is cut between words.
fn lines(text: &str) -> impl Iterator<Item = &str> {
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

/// Where to cut a line: after `WORDS_MAX` words, or after the last sentence that ends in the
/// second half of them.
fn end(line: &str) -> usize {
    let ends = line
        .char_indices()
        .zip(line.chars().skip(1).map(Some).chain([None]));
    let ends =
        ends.filter(|((_, it), next)| !it.is_whitespace() && next.is_none_or(char::is_whitespace));
    let ends = ends.map(|((at, it), _)| (at + it.len_utf8(), matches!(it, '.' | '!' | '?')));
    let ends: Vec<(usize, bool)> = ends.take(WORDS_MAX).collect();
    match ends.last() {
        Some(&(last, _)) if last < line.trim_end().len() => {
            let sentence = ends
                .iter()
                .skip(WORDS_MAX / 2)
                .rfind(|(_, sentence)| *sentence);
            sentence.map_or(last, |(at, _)| *at)
        }
        _ => line.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str) -> Vec<String> {
        split(&ItemBody::Prompt(PromptItem {
            text: text.to_owned(),
            reply: None,
        }))
    }

    /// `a0 a1 a2 …`
    fn many(name: &str, count: usize) -> String {
        let words: Vec<_> = (0..count).map(|at| format!("{name}{at}")).collect();
        words.join(" ")
    }

    #[test]
    fn each_line_of_a_prompt_is_a_chunk_if_it_is_long_enough() {
        let [a, b] = [many("a", 20), many("b", 12)];
        assert_eq!(
            prompt(&format!("{a}\n\n {b} \nyes\nno")),
            [a, b, "yes\nno".into()]
        );
        assert_eq!(prompt(" \n "), [""; 0]);
    }

    #[test]
    fn a_long_prompt_is_read_evenly_and_as_far_as_there_is_room() {
        let lines = |count: usize| (0..count).map(|at| many(&format!("{at}x"), 20));
        let chunks = prompt(&lines(40).collect::<Vec<_>>().join("\n"));
        assert_eq!(chunks.len(), CHUNKS_MAX);
        assert_eq!(chunks.join(" ").split_whitespace().count(), 800);
        assert_eq!(prompt(&many("word", 10_000)).len(), CHUNKS_MAX);
    }

    #[test]
    fn a_long_line_is_cut_after_a_sentence_else_after_a_word() {
        let line = format!("{}. {}", many("a", 80), many("b", 80));
        assert_eq!(
            prompt(&line),
            [format!("{}.", many("a", 80)), many("b", 80)]
        );
        let chunks = prompt(&many("a", 250));
        let words: Vec<_> = chunks.iter().map(|it| it.split(' ').count()).collect();
        assert_eq!(words, [120, 120, 10]);
        // No spaces: one word, however long.
        assert_eq!(prompt(&"全文検索".repeat(500)).len(), 1);
    }

    #[test]
    fn a_note_has_its_title_before_each_chunk() {
        let point = many("p", 60);
        let text = format!(
            "# Login\n\n## Context\nWhy.\n\n## Tracking Points\n- Decision: {point}\n- Fix: {point}\n"
        );
        let note = |title: &str, text: String| {
            ItemBody::Note(NoteItem {
                title: title.into(),
                path: String::new(),
                text,
                foreign: false,
            })
        };
        assert_eq!(
            split(&note("Login", text)),
            [
                format!("Login\nWhy.\nDecision: {point}"),
                format!("Login\nFix: {point}"),
            ]
        );
        let page = note("Page", "Free words.".into());
        assert_eq!(split(&page), ["Page\nFree words."]);
    }
}
