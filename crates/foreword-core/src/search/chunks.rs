//! The texts that an item is embedded as.
//!
//! A vector says one thing well and many things badly. So a long item becomes several
//! *chunks*, each about as long as a turn or a few facts, with the title in front.

use crate::notes::Note;
use crate::store::ItemBody;
use crate::text;

/// So much of an item is looked at; what comes later is found by its words.
pub const CHUNKS_MAX: usize = 8;

/// Counts up when an item would become other chunks: then all are embedded anew.
pub const VERSION: u32 = 1;

/// So many words of an observation or a note make a chunk: it is about one thing anyway.
const GROUP: usize = 60;
/// A prompt is about several: each line of about a sentence is one, unless there are so many that
/// they have to be put together.
const TURN: usize = 12;
/// More words than this the model does not read.
const WORDS_MAX: usize = 120;
/// The head of a reply says what came of it.
const REPLY_MAX: usize = 600;

/// Never empty strings, at most `CHUNKS_MAX`, in the order of the text.
#[must_use]
pub fn chunks(body: &ItemBody) -> Vec<String> {
    match body {
        ItemBody::Observation {
            title,
            subtitle,
            facts,
            narrative,
            ..
        } => {
            let head = sentences([title.as_str(), subtitle]);
            let facts = facts.iter().map(String::as_str);
            pieces(&head, facts.chain([narrative.as_str()]), GROUP)
        }
        ItemBody::Summary {
            request,
            learned,
            completed,
            ..
        } => pieces(&text::title(request), [learned.as_str(), completed], GROUP),
        ItemBody::Prompt { text, reply } => {
            let reply = text::shorten(reply.as_deref().unwrap_or_default(), REPLY_MAX);
            let words = words(&[text, &reply]) / CHUNKS_MAX;
            pieces("", [text.as_str(), &reply], words.clamp(TURN, WORDS_MAX))
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
            pieces(title, parts.chain([others]), GROUP)
        }
    }
}

fn sentences<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts = parts.into_iter().map(str::trim).filter(|it| !it.is_empty());
    parts.collect::<Vec<_>>().join(". ")
}

/// Lines, put together until they have so many words, the head before each.
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

/// The lines of a text; of a line that is too long by itself, pieces of whole words.
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

/// Where the first `WORDS_MAX` words of a line end: after a sentence, if there is one in the second half.
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
        chunks(&ItemBody::Prompt {
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
        let note = ItemBody::Note {
            title: "Login".into(),
            path: String::new(),
            text,
            foreign: false,
        };
        assert_eq!(
            chunks(&note),
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
        assert_eq!(chunks(&page), ["Page\nFree words."]);
    }
}
