//! The items of a list, however the model wrote it down.
//!
//! Asked for is one child per item. As with fields, a child's tag counts where
//! structure has it: after another child's end, or at the list's beginning. Without
//! any children each line is an item, without its bullet; and where items are
//! single words or paths, commas part them too.

use super::tags::{Form, tag_at};

/// What parts items that have no tags of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parted {
    ByLines,
    ByLinesAndCommas,
}

pub fn items<'a>(content: &'a str, child: &str, parted: Parted) -> Vec<&'a str> {
    let tags = children(content, child);
    let items = if tags.is_empty() {
        content
            .lines()
            .flat_map(|line| parts(without_bullet(line), parted))
            .collect()
    } else {
        tagged(content, &tags)
    };
    items
        .into_iter()
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .collect()
}

/// A line without what marks it as an item.
pub fn without_bullet(line: &str) -> &str {
    let line = line.trim();
    for mark in ["- ", "* ", "• ", "+ ", "– "] {
        if let Some(rest) = line.strip_prefix(mark) {
            return rest.trim_start();
        }
    }
    if matches!(line, "-" | "*" | "•") {
        return "";
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    match rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")) {
        Some(rest) if (1..=2).contains(&digits) => rest.trim_start(),
        _ => line,
    }
}

fn parts(line: &str, parted: Parted) -> Vec<&str> {
    match parted {
        Parted::ByLines => vec![line],
        Parted::ByLinesAndCommas => line.split(',').collect(),
    }
}

struct Child {
    form: Form,
    start: usize,
    end: usize,
}

fn children(content: &str, child: &str) -> Vec<Child> {
    content
        .match_indices('<')
        .filter_map(|(start, _)| {
            let (word, form, end) = tag_at(content, start)?;
            (word == child || word == "item").then_some(Child { form, start, end })
        })
        .collect()
}

fn tagged<'a>(content: &'a str, tags: &[Child]) -> Vec<&'a str> {
    let gap_before = |index: usize| {
        let before = index.checked_sub(1).map_or(0, |before| tags[before].end);
        without_bullet(&content[before..tags[index].start]).is_empty()
    };
    let begins = |index: usize| {
        let follows_end = index == 0 || tags[index - 1].form != Form::Open;
        tags[index].form == Form::Open && gap_before(index) && follows_end
    };
    let ends = |index: usize| {
        let next_begins = match tags.get(index + 1) {
            Some(next) => next.form != Form::Close && gap_before(index + 1),
            None => content[tags[index].end..].trim().is_empty(),
        };
        tags[index].form == Form::Close && next_begins
    };
    // If no child stands where it should, any will do.
    let strict = (0..tags.len()).any(begins) && (0..tags.len()).any(ends);
    let begins = |index: usize| match strict {
        true => begins(index),
        false => tags[index].form == Form::Open,
    };
    let ends = |index: usize| match strict {
        true => ends(index),
        false => tags[index].form == Form::Close,
    };

    let mut items = Vec::new();
    let mut open: Option<usize> = None;
    for (index, tag) in tags.iter().enumerate() {
        match open {
            Some(start) if ends(index) => {
                items.push(&content[start..tag.start]);
                open = None;
            }
            None if begins(index) => open = Some(tag.end),
            // The end before it was forgotten; or it is quoted, and the end is still to come.
            Some(start) if !strict && tag.form == Form::Open => {
                items.push(&content[start..tag.start]);
                open = Some(tag.end);
            }
            _ => {}
        }
    }
    if let Some(start) = open {
        items.push(&content[start..]);
    }
    items
}
