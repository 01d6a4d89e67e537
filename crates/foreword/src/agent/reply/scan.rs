//! Finds the known tags of a text and cuts out the fields between them.
//!
//! A tag is structure if it begins a line, or directly follows another tag that is. Before a
//! field there may be a bullet or the field's own name (`- Title: <title>`). Inside a field
//! only its own end tag counts, and only where another tag or the end of the text follows, so
//! that a narrative can quote tags in its sentences. A whole block that is quoted on lines of
//! its own is passed over. A field without an end tag ends before the next line that begins
//! with a tag.
//!
//! Each tag is examined a fixed number of times, so time is linear in the length of the text.

use std::collections::HashMap;
use std::mem;

use super::{Field, NOTHING, ReplyBlock, TagEnd, without_bullet};

/// The blocks of a text, in order, and between them blocks without a name: the fields that
/// stand outside of all blocks. Names that are not in `known` are text.
pub fn blocks(text: &str, known: &[&'static str]) -> Vec<ReplyBlock> {
    let tags = tags(text, known);
    let scan = Scan { text, tags };
    let ends = scan.field_ends();
    let mut blocks = Vec::new();
    let mut block = ReplyBlock::default();
    let mut at = 0;
    let mut after_structure = 0;
    while let Some(tag) = scan.tags.get(at) {
        let here = at;
        at += 1;
        let follows_structure = here == after_structure && scan.follows_tag(here);
        if !tag.begins_line && !follows_structure {
            continue;
        }
        match (tag.is_block, tag.closes) {
            (true, false) if scan.fits(here) => {
                blocks.push(mem::take(&mut block));
                block.name = tag.name;
            }
            (true, true) if !block.name.is_empty() => {
                if follows_structure || scan.ends_line(tag) {
                    block.closed = true;
                    blocks.push(mem::take(&mut block));
                }
            }
            // The fields before it lack their block's opening tag.
            (true, true) if !block.fields.is_empty() && scan.fits(here) => {
                (block.name, block.closed) = (tag.name, true);
                blocks.push(mem::take(&mut block));
            }
            (false, false) => {
                let (field, next) = scan.field(here, ends[here]);
                block.fields.push(field);
                at = next;
            }
            _ => continue,
        }
        after_structure = at;
    }
    blocks.push(block);
    blocks
}

struct Tag {
    name: &'static str,
    is_block: bool,
    closes: bool,
    start: usize,
    end: usize,
    begins_line: bool,
    /// The start of the line if the tag begins it; otherwise the start of the tag.
    lead: usize,
}

fn tags(text: &str, known: &[&'static str]) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut line = 0;
    for (start, mark) in text.match_indices(['<', '\n']) {
        match mark {
            "\n" => line = start + 1,
            _ => tags.extend(tag_at(text, start, line, known)),
        }
    }
    tags
}

/// The tag that begins at `start`, in the line that begins at `line`.
fn tag_at(text: &str, start: usize, line: usize, known: &[&'static str]) -> Option<Tag> {
    // Longer than a tag with a few attributes, and than what can stand before one on its line.
    // It bounds the work at each `<`.
    const LONGEST: usize = 200;
    let rest = &text[start + 1..];
    let mut bytes = rest.bytes().take(LONGEST);
    let length = bytes.position(|byte| matches!(byte, b'>' | b'<'))?;
    let inner = rest[..length].trim();
    let words = inner.trim_matches('/').trim();
    let (name, attributes) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let name = name.to_ascii_lowercase().replace('-', "_");
    let name = *known.iter().find(|known| **known == name)?;
    let is_tag = attributes.is_empty() || attributes.contains('=');
    let is_block = matches!(name, "observation" | "summary");
    let before = &text[line..start];
    let begins_line = before.len() <= LONGEST
        && (before.trim().is_empty() || (!is_block && is_label(before, name)));
    (is_tag && rest[length..].starts_with('>')).then_some(Tag {
        name,
        is_block,
        closes: inner.starts_with('/'),
        start,
        end: start + length + 2,
        begins_line,
        lead: if begins_line { line } else { start },
    })
}

/// A bullet or the field's own name: `- **Files read:** <files_read>`.
fn is_label(before: &str, name: &str) -> bool {
    let label = without_bullet(before).trim_matches(['*', '#', ':', ' ']);
    label.is_empty() || label.replace(' ', "_").eq_ignore_ascii_case(name)
}

struct Scan<'a> {
    text: &'a str,
    tags: Vec<Tag>,
}

impl<'a> Scan<'a> {
    /// For each tag that opens a field, the index of the field's end tag. That is the first
    /// of its name, unless it ends a field of the same name in a block that begins after it.
    fn field_ends(&self) -> Vec<Option<usize>> {
        let mut ends = vec![None; self.tags.len()];
        let mut blocks: Vec<usize> = Vec::new();
        let mut fields: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, tag) in self.tags.iter().enumerate() {
            let open = fields.entry(tag.name).or_default();
            match (tag.is_block, tag.closes) {
                _ if !self.fits(at) => {}
                (true, false) if tag.begins_line => {
                    // A block is not part of a field that stands outside of all blocks.
                    if blocks.is_empty() {
                        fields.clear();
                    }
                    blocks.push(at);
                }
                (true, true) => drop(blocks.pop()),
                (false, false) => open.push(at),
                (false, true) if !open.is_empty() => {
                    // Blocks that begin in the field are quoted: they end with it.
                    blocks.truncate(blocks.partition_point(|block| open.last() > Some(block)));
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

    /// The field that a tag opens, and the index of the tag to go on with.
    fn field(&self, at: usize, end: Option<usize>) -> (Field, usize) {
        let open = &self.tags[at];
        let field = |until: usize, end: TagEnd| Field {
            name: open.name,
            content: self.text[open.end..until].to_owned(),
            end,
        };
        if self.text[..open.end].ends_with("/>") {
            return (field(open.end, TagEnd::Tag), at + 1);
        }
        if let Some(end) = end {
            return (field(self.tags[end].start, TagEnd::Tag), end + 1);
        }
        let begins = |tag: &Tag| tag.begins_line && (tag.is_block || !tag.closes);
        let rest = &self.tags[at + 1..];
        let count = rest.iter().position(begins).unwrap_or(rest.len());
        // `</title>` and a remark after it, `<title>…</subtitle>`
        let is_end = |tag: &&Tag| tag.closes && self.ends_line(tag);
        let end = rest[..count].iter().rev().find(is_end);
        let field = match (end, rest.get(count)) {
            (Some(end), _) if end.name == open.name => field(end.start, TagEnd::Tag),
            (_, None) => field(self.text.len(), TagEnd::Cut),
            (_, Some(next)) if next.is_block && !next.closes => field(next.lead, TagEnd::Cut),
            (Some(end), _) => field(end.start, TagEnd::Missing),
            (None, Some(next)) => field(next.lead, TagEnd::Missing),
        };
        (field, at + 1 + count)
    }

    /// Whether a tag stands among other tags as in a block, and not in a sentence.
    fn fits(&self, at: usize) -> bool {
        let tag = &self.tags[at];
        let next = self.tags.get(at + 1);
        let is_last = next.is_none() && self.text[tag.end..].trim().is_empty();
        let next = next.filter(|_| self.follows_tag(at + 1));
        match (tag.is_block, tag.closes) {
            // A field or the end of the block follows.
            (true, false) => is_last || next.is_some_and(|next| next.is_block == next.closes),
            (true, true) => self.ends_line(tag) && self.follows_tag(at) && self.tags[at - 1].closes,
            (false, false) => true,
            // Another field or the end of the block follows.
            (false, true) => {
                let goes_on = |next: &Tag| !next.closes || (next.is_block && self.ends_line(next));
                is_last || tag.name == NOTHING || next.is_some_and(goes_on)
            }
        }
    }

    /// Whether only unknown elements or a comment are between a tag and the one before it.
    fn follows_tag(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        let gap = self.text[self.tags[before].end..self.tags[at].lead].trim();
        let begins = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!');
        gap.is_empty() || (gap.strip_prefix('<').is_some_and(begins) && gap.ends_with('>'))
    }

    fn ends_line(&self, tag: &Tag) -> bool {
        let after = self.text[tag.end..].trim_start_matches([' ', '\t', '\r']);
        after.is_empty() || after.starts_with('\n')
    }
}
