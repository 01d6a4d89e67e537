//! The known tags in a text, wherever they stand, and whether each stands where
//! structure has it.
//!
//! Nothing is decided here. A `<title>` in the middle of a sentence is a tag like any
//! other, but it does not *fit*: before an opening tag of a field there is the block's
//! opening tag or another field's end, and nothing between them. `reading` weighs that.

/// A tag's name, as far as blocks and their fields go. Items of lists are `list`'s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Block(Block),
    Field(Field),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Block {
    Observation,
    Summary,
    Nothing,
}

/// A field of a block, by its place in `FIELDS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Field(usize);

const BOTH: &[Block] = &[Block::Observation, Block::Summary];

/// Each with the blocks that have it.
const FIELDS: [(&str, &[Block]); 19] = [
    // What stands in a `<nothing>`, which has no fields.
    ("", &[Block::Nothing]),
    ("type", &[Block::Observation]),
    ("title", &[Block::Observation]),
    ("subtitle", &[Block::Observation]),
    ("facts", &[Block::Observation]),
    ("narrative", &[Block::Observation]),
    ("concepts", &[Block::Observation]),
    ("files_read", BOTH),
    ("files_modified", BOTH),
    ("files_edited", BOTH),
    ("files", &[Block::Observation]),
    ("events", &[Block::Observation]),
    ("text", &[Block::Observation]),
    ("request", &[Block::Summary]),
    ("investigated", &[Block::Summary]),
    ("learned", &[Block::Summary]),
    ("completed", &[Block::Summary]),
    ("next_steps", &[Block::Summary]),
    ("notes", &[Block::Summary]),
];

impl Field {
    pub const WHY: Field = Field(0);

    pub fn name(self) -> &'static str {
        FIELDS[self.0].0
    }

    pub fn of(self, block: Block) -> bool {
        FIELDS[self.0].1.contains(&block)
    }

    pub fn is_one_line(self) -> bool {
        matches!(self.name(), "type" | "title" | "subtitle")
    }

    /// Lists may be given in several parts; of everything else there is one.
    pub fn repeats(self) -> bool {
        matches!(self.name(), "facts" | "concepts") || self.name().starts_with("files")
    }

    /// Its place in a set of fields.
    pub fn bit(self) -> u32 {
        1 << self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Open,
    Close,
    /// `<files_read/>`
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    pub name: Name,
    pub form: Form,
    pub start: usize,
    pub end: usize,
    /// Stands where structure has it.
    pub fits: bool,
    /// Nothing but spaces before it on its line.
    pub begins_line: bool,
}

impl Tag {
    pub fn is_of_block(&self) -> bool {
        matches!(self.name, Name::Block(_))
    }
}

pub fn find(text: &str) -> Vec<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    for (start, _) in text.match_indices('<') {
        let Some((word, form, end)) = tag_at(text, start) else {
            continue;
        };
        let Some(name) = name(&word) else { continue };
        let before = tags.last().map_or(0, |tag| tag.end);
        let gap = &text[before..start];
        tags.push(Tag {
            name,
            form,
            start,
            end,
            fits: false,
            begins_line: match gap.rfind('\n') {
                Some(at) => gap[at..].trim().is_empty(),
                None => before == 0 && gap.trim().is_empty(),
            },
        });
    }
    for index in 0..tags.len() {
        tags[index].fits = fits(text, &tags, index);
    }
    tags
}

/// The name, lower-cased, and where the tag ends. Attributes are skipped.
pub fn tag_at(text: &str, start: usize) -> Option<(String, Form, usize)> {
    // Longer than any tag with a few attributes; it also bounds the work at each `<`.
    const LONGEST: usize = 200;
    let rest = &text[start + 1..];
    let mut bytes = rest.bytes().take(LONGEST);
    let length = bytes.position(|byte| matches!(byte, b'>' | b'<'))?;
    let inner = rest[..length].trim_start();
    let unclosed = inner.trim_start_matches('/').trim_start();
    let closes = inner.starts_with('/');
    let empty = unclosed.ends_with('/');
    let inner = unclosed.trim_end_matches('/');
    let word_end = inner.find(|c: char| !(c.is_ascii_alphabetic() || matches!(c, '_' | '-')));
    let (word, attributes) = inner.split_at(word_end.unwrap_or(inner.len()));
    let attributes_like = attributes.trim().is_empty()
        || (attributes.starts_with(char::is_whitespace) && attributes.contains('='));
    if !rest[length..].starts_with('>') || word.is_empty() || !attributes_like {
        return None;
    }
    let form = match (closes, empty) {
        (true, _) => Form::Close,
        (false, true) => Form::Empty,
        (false, false) => Form::Open,
    };
    let word = word.to_ascii_lowercase().replace('-', "_");
    Some((word, form, start + length + 2))
}

fn name(word: &str) -> Option<Name> {
    let field = || FIELDS.iter().position(|(name, ..)| *name == word);
    Some(match word {
        "observation" => Name::Block(Block::Observation),
        "summary" => Name::Block(Block::Summary),
        "nothing" => Name::Block(Block::Nothing),
        _ => Name::Field(Field(field()?)),
    })
}

fn fits(text: &str, tags: &[Tag], index: usize) -> bool {
    let tag = &tags[index];
    let any_before = index.checked_sub(1).map(|before| &tags[before]);
    let any_after = tags.get(index + 1);
    let before = any_before.filter(|before| is_blank(&text[before.end..tag.start]));
    let after = any_after.filter(|after| is_blank(&text[tag.end..after.start]));
    let is_last = any_after.is_none() && is_end(&text[tag.end..]);

    // `</title><title>` is the middle of a quotation: there is one title.
    let twice = |other: &Tag| match other.name {
        Name::Field(field) => other.name == tag.name && !field.repeats(),
        Name::Block(_) => false,
    };
    let ends_field =
        |other: &Tag| !other.is_of_block() && other.form != Form::Open && !twice(other);
    let begins_field =
        |other: &Tag| !other.is_of_block() && other.form != Form::Close && !twice(other);

    match (tag.name, tag.form) {
        (Name::Block(Block::Nothing), Form::Empty) => {
            let block_end = |tag: &Tag| tag.is_of_block() && tag.form != Form::Open;
            before.map_or(any_before.is_none(), block_end)
        }
        (Name::Block(Block::Nothing), Form::Open) => {
            let closed = |after: &Tag| after.name == tag.name && after.form == Form::Close;
            any_after.map_or(tag.begins_line, closed)
        }
        (Name::Block(Block::Nothing), Form::Close) => {
            any_before.is_some_and(|before| before.name == tag.name && before.form == Form::Open)
        }
        (Name::Block(_), Form::Open) => is_last || after.is_some_and(begins_field),
        (Name::Block(_), Form::Close) => before.is_some_and(|before| {
            ends_field(before) || (before.name == tag.name && before.form == Form::Open)
        }),
        (Name::Block(_), Form::Empty) => false,
        (Name::Field(_), Form::Close) => {
            let block_end = |after: &Tag| after.is_of_block() && after.form == Form::Close;
            is_last || after.is_some_and(|after| begins_field(after) || block_end(after))
        }
        (Name::Field(_), Form::Open | Form::Empty) => {
            let block_start = |before: &Tag| before.is_of_block() && before.form == Form::Open;
            before.is_some_and(|before| ends_field(before) || block_start(before))
        }
    }
}

/// Nothing more, or a tag that was cut off.
fn is_end(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || (rest.starts_with('<') && !rest.contains([' ', '\n', '>']))
}

/// Nothing between two tags, or only an element that we do not know, or a comment.
fn is_blank(gap: &str) -> bool {
    let gap = gap.trim();
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!');
    gap.is_empty() || (gap.strip_prefix('<').is_some_and(begins) && gap.ends_with('>'))
}
