//! Finds the known blocks in whatever a model answered.
//!
//! A model was asked for `<observation>`s, a `<summary>` or `<nothing>`, and answers with
//! code in them, prose around them, our tags quoted and its own tags forgotten. This is not
//! XML and no XML library would read it. `scan` decides which tags are structure, `list`
//! takes lists apart, and `repair` makes observations and summaries of the fields.
//!
//! Nothing panics and time is linear. A block on lines of its own is found among any text,
//! and a tag in a sentence stays text. A narrative is kept byte for byte but for the
//! whitespace around it. In the short fields the five XML entities are decoded, since a model
//! that writes `Vec&lt;T&gt;` in a title means `Vec<T>`; a narrative may well be about
//! `&amp;` and is left alone.
//!
//! Tags that are quoted exactly as they stand in a block (`</narrative>` on the line before
//! `<facts>`) cannot be told from real ones: the field ends there.

mod list;
mod scan;
#[cfg(test)]
mod tests;

pub use list::without_bullet;

use super::repair::BLOCKS;
use list::items;
use scan::{End, Form};

const NOTHING: &str = "nothing";

fn is_block(name: &str) -> bool {
    BLOCKS.iter().any(|(block, _)| *block == name)
}

/// The blocks of a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub observations: Vec<Block>,
    /// The last one, if a model corrected itself.
    pub summary: Option<Block>,
    /// The reason that was given why there is nothing worth keeping.
    pub nothing: Option<String>,
    /// A block was begun and not ended: the reply was cut off, or its end forgotten. It is
    /// kept if no other tag is missing and its main fields are there: a title and a
    /// narrative, or a text; of a summary, the request and what was completed. A field that
    /// was cut off is left out.
    pub open_end: bool,
}

/// An `<observation>` or `<summary>` as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    name: &'static str,
    /// Name and content, in the order of the reply. `@type` is the attribute of that name.
    fields: Vec<(&'static str, String)>,
    /// It has its end tag.
    closed: bool,
    /// It lacks its opening tag, or one of its fields has no end tag.
    ragged: bool,
}

pub fn read(reply: &str) -> Reply {
    let mut read = Reply::default();
    for block in blocks(reply) {
        read.open_end |= !block.closed;
        let has = |name| !block.verbatim(&[name]).is_empty();
        let has_main = (has("title") && has("narrative"))
            || has("text")
            || (has("request") && has("completed"));
        match block.name {
            _ if !block.closed && (block.ragged || !has_main) => {}
            "observation" => read.observations.push(block),
            "summary" => read.summary = Some(block),
            _ => read.nothing = Some(block.short(&[NOTHING])),
        }
    }
    read
}

fn blocks(reply: &str) -> Vec<Block> {
    let known = BLOCKS
        .iter()
        .flat_map(|(block, fields)| [&[*block], *fields].concat());
    let known: Vec<&'static str> = known.chain([NOTHING]).collect();
    let mut blocks: Vec<Block> = Vec::new();
    // Whether the last block still has to end.
    let mut is_open = false;
    for piece in scan::pieces(reply, &known) {
        let block = |name| Block {
            name,
            ..Block::default()
        };
        match (piece.name, piece.form) {
            // A cut reply might have gone on, so its "nothing" is not closed.
            (NOTHING, _) => {
                blocks.push(Block {
                    fields: vec![(NOTHING, piece.content.to_owned())],
                    closed: piece.end != End::Cut,
                    ..block(NOTHING)
                });
                is_open = false;
            }
            (name, Form::Open) if is_block(name) => {
                let kind = attribute(piece.tag, "type");
                blocks.push(Block {
                    fields: kind
                        .map(|it| ("@type", it.to_owned()))
                        .into_iter()
                        .collect(),
                    ..block(name)
                });
                is_open = true;
            }
            (name, Form::Open) => {
                // Outside of all blocks, a whole field begins a block without opening tag.
                let of = BLOCKS.iter().find(|(_, fields)| fields.contains(&name));
                if let Some((of, _)) = of.filter(|_| !is_open && piece.end == End::Tag) {
                    blocks.push(Block {
                        ragged: true,
                        ..block(of)
                    });
                    is_open = true;
                }
                let open = blocks.last_mut().filter(|_| is_open);
                if let Some(block) = open.filter(|_| piece.end != End::Cut) {
                    block.fields.push((name, piece.content.to_owned()));
                    block.ragged |= piece.end == End::Missing;
                }
            }
            (_, Form::Close) => {
                if let Some(block) = blocks.last_mut().filter(|_| is_open) {
                    block.closed = true;
                }
                is_open = false;
            }
            (_, Form::Empty) => {}
        }
    }
    blocks
}

/// Fields are asked for by their names, the preferred one first.
impl Block {
    /// The first field that is not empty, byte for byte.
    pub fn verbatim(&self, names: &[&str]) -> String {
        let mut contents = self.contents(names).map(verbatim);
        let content = contents.find(|content| !content.is_empty());
        content.unwrap_or_default().to_owned()
    }

    /// The same with its entities decoded.
    pub fn short(&self, names: &[&str]) -> String {
        decoded(&self.verbatim(names))
    }

    /// The items of all lists of these names.
    pub fn list(&self, names: &[&str], child: &'static str, separators: &[char]) -> Vec<String> {
        let lists = self.contents(names);
        let items = lists.flat_map(|content| items(content, child, separators));
        items.map(|item| decoded(verbatim(item))).collect()
    }

    pub fn files(&self, names: &[&str]) -> Vec<String> {
        self.list(names, "file", &['\n', ','])
    }

    pub fn numbers(&self, names: &[&str]) -> Vec<u32> {
        self.contents(names).flat_map(numbers).collect()
    }

    fn contents(&self, names: &[&str]) -> impl Iterator<Item = &str> {
        names.iter().flat_map(|name| {
            let named = self.fields.iter().filter(move |(field, _)| field == name);
            named.map(|(_, content)| content.as_str())
        })
    }
}

fn verbatim(content: &str) -> &str {
    let content = content.trim();
    let unwrapped = content
        .strip_prefix("<![CDATA[")
        .and_then(|rest| rest.strip_suffix("]]>"));
    unwrapped.map_or(content, str::trim)
}

/// With the five entities of XML as what they stand for; all others are left.
fn decoded(text: &str) -> String {
    const ENTITIES: [(&str, char); 6] = [
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&quot;", '"'),
        ("&apos;", '\''),
        ("&#39;", '\''),
        ("&amp;", '&'),
    ];
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = ENTITIES.iter().find(|(name, _)| rest.starts_with(name));
        let (name, character) = entity.copied().unwrap_or(("&", '&'));
        plain.push(character);
        rest = &rest[name.len()..];
    }
    plain + rest
}

/// `1, 3`, `#1 and #3`, `<event>1</event>`; also `2-4`.
fn numbers(content: &str) -> Vec<u32> {
    // More than a batch has; it keeps `1-4000000000` harmless.
    const LONGEST_RANGE: u32 = 200;
    let mut numbers = Vec::new();
    for word in content.split(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '–'))) {
        let ends: Vec<u32> = word.split(['-', '–']).flat_map(str::parse).collect();
        match ends[..] {
            [from, to] if from < to && to - from <= LONGEST_RANGE => numbers.extend(from..=to),
            _ => numbers.extend(ends),
        }
    }
    numbers
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}="))?;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    rest[1..].split(quote).next()
}
