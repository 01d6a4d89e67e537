//! Finds the known tags of a text and cuts out what stands between them.
//!
//! A tag is structure if it begins a line, or directly follows another tag that is. A bullet
//! or the field's own name may stand before it (`- Title: <title>`). Inside a field only its
//! own end tag counts, and only where another tag or the end of the text follows, so that a
//! narrative can quote tags in its sentences. A whole block that is quoted on lines of its
//! own is passed over. A field without an end tag ends before the next line that begins with
//! a tag.
//!
//! Each tag is looked at a fixed number of times, so time is linear in the length of the text.

use std::collections::HashMap;

use super::list::without_bullet;
use super::{NOTHING, is_block};

/// A tag that is structure.
pub struct Piece<'a> {
    pub name: &'static str,
    pub form: Form,
    /// The tag itself, with its attributes.
    pub tag: &'a str,
    /// The text of the field that the tag opens.
    pub content: &'a str,
    pub end: End,
}

/// How a field ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With its end tag.
    Tag,
    /// It has no end tag; the next field or the end of the block follows.
    Missing,
    /// The whole text ends first, or another block begins.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Open,
    Close,
    /// `<files_read/>`
    Empty,
}

/// The structure of a text, in order. Names that are not in `known` are text.
pub fn pieces<'a>(text: &'a str, known: &[&'static str]) -> Vec<Piece<'a>> {
    let mut scan = Scan {
        text,
        tags: tags(text, known),
        ends: Vec::new(),
    };
    scan.ends = scan.field_ends();
    let mut pieces = Vec::new();
    let mut last = None;
    let mut at = 0;
    while let Some(tag) = scan.tags.get(at) {
        let follows = || last == at.checked_sub(1) && scan.gap(last, tag).trim().is_empty();
        let is_structure = match (is_block(tag.name), tag.form) {
            (true, Form::Open) => scan.opens_block(at),
            (true, Form::Close) | (false, Form::Open | Form::Empty) => true,
            (true, Form::Empty) | (false, Form::Close) => false,
        };
        if !is_structure || !(tag.begins_line || follows()) {
            at += 1;
            continue;
        }
        let is_field = !is_block(tag.name) && tag.form == Form::Open;
        let (content, end, next) = match is_field {
            true => scan.content(at),
            false => ("", End::Tag, at + 1),
        };
        pieces.push(Piece {
            name: tag.name,
            form: tag.form,
            tag: &text[tag.start..tag.end],
            content,
            end,
        });
        last = Some(next - 1);
        at = next;
    }
    pieces
}

struct Tag {
    name: &'static str,
    form: Form,
    start: usize,
    end: usize,
    begins_line: bool,
    /// Where its line begins if the tag does; otherwise where the tag begins.
    lead: usize,
}

fn tags(text: &str, known: &[&'static str]) -> Vec<Tag> {
    // Longer than a bullet and the name of a field; it also bounds the work at each tag.
    const LONGEST_LEAD: usize = 40;
    let mut tags = Vec::new();
    let mut line = 0;
    for (start, mark) in text.match_indices(['<', '\n']) {
        if mark == "\n" {
            line = start + 1;
            continue;
        }
        let Some((name, form, end)) = tag_at(text, start) else {
            continue;
        };
        let Some(name) = known.iter().find(|it| **it == name) else {
            continue;
        };
        let begins_line = start - line <= LONGEST_LEAD && is_lead(&text[line..start], name);
        tags.push(Tag {
            name,
            form,
            start,
            end,
            begins_line,
            lead: if begins_line { line } else { start },
        });
    }
    tags
}

/// The name, in lower case, and where the tag ends. Attributes are skipped.
fn tag_at(text: &str, start: usize) -> Option<(String, Form, usize)> {
    // Longer than any tag with a few attributes; it also bounds the work at each `<`.
    const LONGEST: usize = 200;
    let rest = &text[start + 1..];
    let mut bytes = rest.bytes().take(LONGEST);
    let length = bytes.position(|byte| matches!(byte, b'>' | b'<'))?;
    let inner = rest[..length].trim_start();
    let unclosed = inner.trim_start_matches('/').trim_start();
    let form = match (inner.starts_with('/'), unclosed.ends_with('/')) {
        (true, _) => Form::Close,
        (false, true) => Form::Empty,
        (false, false) => Form::Open,
    };
    let inner = unclosed.trim_end_matches('/');
    let name_end = inner.find(|c: char| !(c.is_ascii_alphabetic() || matches!(c, '_' | '-')));
    let (name, attributes) = inner.split_at(name_end.unwrap_or(inner.len()));
    let attributes_like = attributes.trim().is_empty()
        || (attributes.starts_with(char::is_whitespace) && attributes.contains('='));
    if !rest[length..].starts_with('>') || !attributes_like {
        return None;
    }
    let name = name.to_ascii_lowercase().replace('-', "_");
    Some((name, form, start + length + 2))
}

/// Nothing, a bullet, a number or the tag's own name: `- **Files read:** <files_read>`.
fn is_lead(before: &str, name: &str) -> bool {
    let label = without_bullet(before).trim_matches(['*', '#', ':', ' ']);
    label.is_empty() || label.replace(' ', "_").eq_ignore_ascii_case(name)
}

struct Scan<'a> {
    text: &'a str,
    tags: Vec<Tag>,
    /// For each tag that opens a field, the index of the field's end tag.
    ends: Vec<Option<usize>>,
}

impl<'a> Scan<'a> {
    /// A field ends at the first end tag of its name, unless that ends a field of the same
    /// name in a block that begins after it.
    fn field_ends(&self) -> Vec<Option<usize>> {
        let mut ends = vec![None; self.tags.len()];
        let mut blocks: Vec<usize> = Vec::new();
        let mut fields: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, tag) in self.tags.iter().enumerate() {
            match (is_block(tag.name), tag.form) {
                (true, Form::Open) if tag.begins_line && self.opens_block(at) => {
                    // A block is not part of a field that stands outside of all blocks.
                    if blocks.is_empty() {
                        fields.clear();
                    }
                    blocks.push(at);
                }
                (true, Form::Close) if self.ends_block(at) => {
                    blocks.pop();
                }
                (false, Form::Open) => fields.entry(tag.name).or_default().push(at),
                (false, Form::Close) if self.ends_field(at) => {
                    let open = fields.entry(tag.name).or_default();
                    let Some(last) = open.last() else { continue };
                    // Blocks that begin in the field are quoted: they end with it.
                    blocks.truncate(blocks.partition_point(|block| block < last));
                    let block = blocks.last().copied().unwrap_or(0);
                    while let Some(field) = open.pop_if(|field| *field >= block) {
                        ends[field] = Some(at);
                    }
                }
                _ => {}
            }
        }
        ends
    }

    /// The text of the field that a tag opens, and the index of the tag to go on with.
    fn content(&self, at: usize) -> (&'a str, End, usize) {
        let open = &self.tags[at];
        let until = |end: usize| &self.text[open.end..end];
        if let Some(end) = self.ends[at] {
            return (until(self.tags[end].start), End::Tag, end + 1);
        }
        let begins = |tag: &Tag| tag.begins_line && (tag.form != Form::Close || is_block(tag.name));
        let rest = &self.tags[at + 1..];
        let count = rest.iter().position(begins).unwrap_or(rest.len());
        let next = rest.get(count);
        let is_cut = next.is_none_or(|next| is_block(next.name) && next.form == Form::Open);
        // `</title> Then the narrative:`, `<title>…</subtitle>`
        let end = rest[..count].iter().rev().find(|tag| {
            tag.form == Form::Close && self.ends_line(tag) && (tag.name == open.name || !is_cut)
        });
        let is_ended = end.is_some() || !is_cut;
        let next_start = next.map_or(self.text.len(), |next| next.lead);
        (
            until(end.map_or(next_start, |end| end.start)),
            if is_ended { End::Missing } else { End::Cut },
            at + 1 + count,
        )
    }

    /// A block's opening tag is followed by a field, by its own end, or by nothing.
    fn opens_block(&self, at: usize) -> bool {
        match self.after(at) {
            After::Tag(next) if is_block(next.name) => {
                next.form == Form::Close && next.name == self.tags[at].name
            }
            After::Tag(next) => next.form != Form::Close,
            After::End => true,
            After::Text => false,
        }
    }

    /// A field's end tag is followed by the next field, by the end of the block, or by nothing.
    fn ends_field(&self, at: usize) -> bool {
        match self.after(at) {
            After::Tag(next) if next.form == Form::Close => {
                is_block(next.name) && self.ends_line(next)
            }
            After::Tag(_) | After::End => true,
            After::Text => self.tags[at].name == NOTHING,
        }
    }

    /// A block's end tag follows a field and ends a line.
    fn ends_block(&self, at: usize) -> bool {
        let tag = &self.tags[at];
        let before = at.checked_sub(1).filter(|before| {
            self.tags[*before].form != Form::Open && is_blank(self.gap(Some(*before), tag))
        });
        before.is_some() && self.ends_line(tag)
    }

    fn ends_line(&self, tag: &Tag) -> bool {
        let mut after = self.text[tag.end..].chars();
        after
            .find(|c| !matches!(c, ' ' | '\t' | '\r'))
            .is_none_or(|c| c == '\n')
    }

    /// The text before a tag, from the tag with the index `last`.
    fn gap(&self, last: Option<usize>, tag: &Tag) -> &'a str {
        let start = last.map_or(0, |last| self.tags[last].end);
        &self.text[start..tag.lead.max(start)]
    }

    fn after(&self, at: usize) -> After<'_> {
        match self.tags.get(at + 1) {
            Some(next) if is_blank(self.gap(Some(at), next)) => After::Tag(next),
            None if is_end(&self.text[self.tags[at].end..]) => After::End,
            _ => After::Text,
        }
    }
}

/// What directly follows a tag.
enum After<'t> {
    Tag(&'t Tag),
    End,
    Text,
}

/// Nothing, or only elements that are not known, or a comment.
fn is_blank(gap: &str) -> bool {
    let gap = gap.trim();
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!');
    gap.is_empty() || (gap.strip_prefix('<').is_some_and(begins) && gap.ends_with('>'))
}

/// Nothing more, or a tag that was cut off.
fn is_end(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || (rest.starts_with('<') && !rest.contains([' ', '\n', '>']))
}
