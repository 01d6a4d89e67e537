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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    Observation,
    Summary,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Type,
    Title,
    Subtitle,
    Facts,
    Narrative,
    Concepts,
    FilesRead,
    FilesModified,
    FilesEdited,
    Files,
    Events,
    Text,
    Request,
    Investigated,
    Learned,
    Completed,
    NextSteps,
    Notes,
    /// What stands in a `<nothing>`, which has no fields.
    Why,
}

impl Field {
    pub const COUNT: usize = Field::Why as usize + 1;

    pub fn of(self, block: Block) -> bool {
        use Field as F;
        match self {
            F::Type | F::Title | F::Subtitle | F::Facts | F::Narrative => {
                block == Block::Observation
            }
            F::Concepts | F::Files | F::Events | F::Text => block == Block::Observation,
            F::FilesRead | F::FilesModified | F::FilesEdited => block != Block::Nothing,
            F::Request | F::Investigated | F::Learned => block == Block::Summary,
            F::Completed | F::NextSteps | F::Notes => block == Block::Summary,
            F::Why => block == Block::Nothing,
        }
    }

    pub fn is_one_line(self) -> bool {
        matches!(self, Field::Type | Field::Title | Field::Subtitle)
    }

    /// Lists may be given in several parts; of everything else there is one.
    pub fn repeats(self) -> bool {
        use Field as F;
        matches!(
            self,
            F::Facts | F::Concepts | F::FilesRead | F::FilesModified | F::FilesEdited | F::Files
        )
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
    let bytes = &text.as_bytes()[start + 1..];
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let length = bytes.iter().position(|&byte| matches!(byte, b'>' | b'<'))?;
    if bytes[length] != b'>' {
        return None;
    }
    let inner = text.get(start + 1..start + 1 + length)?.trim_start();
    let (inner, closes) = match inner.strip_prefix('/') {
        Some(rest) => (rest.trim_start(), true),
        None => (inner, false),
    };
    let (inner, empty) = match inner.strip_suffix('/') {
        Some(rest) => (rest, true),
        None => (inner, false),
    };
    let word_end = inner
        .find(|c: char| !(c.is_ascii_alphabetic() || matches!(c, '_' | '-')))
        .unwrap_or(inner.len());
    let (word, attributes) = inner.split_at(word_end);
    let attributes_like = attributes.trim().is_empty()
        || (attributes.starts_with(char::is_whitespace) && attributes.contains('='));
    if word.is_empty() || !attributes_like {
        return None;
    }
    let form = match (closes, empty) {
        (true, _) => Form::Close,
        (false, true) => Form::Empty,
        (false, false) => Form::Open,
    };
    let word = word.to_ascii_lowercase().replace('-', "_");
    Some((word, form, start + 1 + length + 1))
}

fn name(word: &str) -> Option<Name> {
    Some(match word {
        "observation" => Name::Block(Block::Observation),
        "summary" => Name::Block(Block::Summary),
        "nothing" => Name::Block(Block::Nothing),
        _ => Name::Field(match word {
            "type" => Field::Type,
            "title" => Field::Title,
            "subtitle" => Field::Subtitle,
            "facts" => Field::Facts,
            "narrative" => Field::Narrative,
            "concepts" => Field::Concepts,
            "files_read" => Field::FilesRead,
            "files_modified" => Field::FilesModified,
            "files_edited" => Field::FilesEdited,
            "files" => Field::Files,
            "events" => Field::Events,
            "text" => Field::Text,
            "request" => Field::Request,
            "investigated" => Field::Investigated,
            "learned" => Field::Learned,
            "completed" => Field::Completed,
            "next_steps" => Field::NextSteps,
            "notes" => Field::Notes,
            _ => return None,
        }),
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
    let ends_field = |other: &Tag| is_field(other) && other.form != Form::Open && !twice(other);
    let begins_field = |other: &Tag| is_field(other) && other.form != Form::Close && !twice(other);

    match (tag.name, tag.form) {
        (Name::Block(Block::Nothing), Form::Empty) => {
            let block_end = |tag: &Tag| !is_field(tag) && tag.form != Form::Open;
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
            let block_end = |after: &Tag| !is_field(after) && after.form == Form::Close;
            is_last || after.is_some_and(|after| begins_field(after) || block_end(after))
        }
        (Name::Field(_), Form::Open | Form::Empty) => {
            let block_start = |before: &Tag| !is_field(before) && before.form == Form::Open;
            before.is_some_and(|before| ends_field(before) || block_start(before))
        }
    }
}

fn is_field(tag: &Tag) -> bool {
    matches!(tag.name, Name::Field(_))
}

/// Nothing more, or a tag that was cut off.
fn is_end(rest: &str) -> bool {
    let rest = rest.trim();
    let cut = |rest: &str| rest.starts_with('<') && !rest.contains([' ', '\n', '>']);
    rest.is_empty() || cut(rest)
}

/// Nothing between two tags, or only an element that we do not know, or a comment.
fn is_blank(gap: &str) -> bool {
    let gap = gap.trim();
    let mut start = gap.chars();
    gap.is_empty()
        || (start.next() == Some('<')
            && start
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || c == '!')
            && gap.ends_with('>'))
}
