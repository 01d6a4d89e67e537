//! The items of a list, however the model wrote it down.
//!
//! Asked for is one child per item. As with fields, a child's tag counts where
//! structure has it: after another child's end, or at the list's beginning. Without
//! any children each line is an item, without its bullet; and where items are
//! single words or paths, commas part them too.

use super::tags::{Form, tag_at};

/// `separators` part items that have no tags of their own.
pub fn items<'a>(content: &'a str, child: &str, separators: &[char]) -> Vec<&'a str> {
    let tags = children(content, child);
    let items = match tags.is_empty() {
        true => content.split(separators).map(without_bullet).collect(),
        false => tagged(content, &tags),
    };
    let items = items.into_iter().map(str::trim);
    items.filter(|item| !item.is_empty()).collect()
}

/// A line without what marks it as an item.
pub fn without_bullet(line: &str) -> &str {
    let line = line.trim();
    if matches!(line, "-" | "*" | "•") {
        return "";
    }
    let marked = ["- ", "* ", "• ", "+ ", "– "]
        .iter()
        .find_map(|it| line.strip_prefix(it));
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = || {
        let rest = line[digits..].strip_prefix(['.', ')'])?.strip_prefix(' ')?;
        (1..=2).contains(&digits).then_some(rest)
    };
    marked.or_else(numbered).map_or(line, str::trim_start)
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
    let blank_before = |index: usize| {
        let before = index.checked_sub(1).map_or(0, |before| tags[before].end);
        without_bullet(&content[before..tags[index].start]).is_empty()
    };
    let fits = |index: usize| match (tags[index].form, tags.get(index + 1)) {
        (Form::Open, _) => {
            blank_before(index) && (index == 0 || tags[index - 1].form != Form::Open)
        }
        (_, Some(next)) => next.form != Form::Close && blank_before(index + 1),
        (_, None) => content[tags[index].end..].trim().is_empty(),
    };
    // If no child stands where it should, any will do.
    let fitting = |form: Form| (0..tags.len()).any(|at| tags[at].form == form && fits(at));
    let strict = fitting(Form::Open) && fitting(Form::Close);
    let mut items = Vec::new();
    let mut open: Option<usize> = None;
    for (index, tag) in tags.iter().enumerate() {
        match (tag.form, open) {
            (Form::Close, Some(start)) if !strict || fits(index) => {
                items.push(&content[start..tag.start]);
                open = None;
            }
            (Form::Open, None) if !strict || fits(index) => open = Some(tag.end),
            // The end before it was forgotten; or it is quoted, and the end is still to come.
            (Form::Open, Some(start)) if !strict => {
                items.push(&content[start..tag.start]);
                open = Some(tag.end);
            }
            _ => {}
        }
    }
    items.extend(open.map(|start| &content[start..]));
    items
}
