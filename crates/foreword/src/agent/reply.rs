//! Finds the known tags in whatever a model answered.
//!
//! A model was asked for `<observation>`s, a `<summary>` or `<nothing>`, and answers
//! with code in them, prose around them, tags of ours quoted and tags of its own
//! forgotten. This is no XML and no XML library would read it. `tags` finds what looks
//! like a tag, `reading` decides which of those are meant, `list` takes lists apart,
//! and here their contents become fields, as they stand; `repair` makes them fit.
//!
//! What holds: nothing panics; time is linear; a well-formed block is found among any
//! text; a tag of ours in running text stays text; a narrative (and the old `<text>`) is kept
//! byte for byte but for the whitespace around it. In the short fields the five XML
//! entities are decoded, since a model that writes `Vec&lt;T&gt;` in a title means
//! `Vec<T>`; a narrative may well be about `&amp;` and is left alone.
//!
//! What does not: tags that are quoted *as they stand in a block*, one right after the
//! other (`</narrative></observation>`), are told from the real ones by what is around
//! them. One such passage, or a whole block, in a narrative is seen for what it is; if
//! there are more tags beside it they may seem to end a block and begin another. And a
//! title or subtitle has one line: a tag that begins another is not part of it.

mod list;
mod reading;
mod tags;
#[cfg(test)]
mod tests;

/// A `<summary>` as it was written has the fields of the one that becomes of it.
pub use foreword_core::model::Summary;
pub use list::without_bullet;

use list::items;
use reading::Found;
use tags::Block;

/// What a reply says, field by field, as it stands there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub observations: Vec<Observation>,
    /// The last one, if a model corrected itself.
    pub summary: Option<Summary>,
    /// The reason that was given why there is nothing worth keeping.
    pub nothing: Option<String>,
    /// A block was begun and not ended: the reply was cut off, or its end forgotten.
    /// It is kept if what it is about was told to the end: a title and a narrative, or
    /// a text; of a summary, the request and what was completed. A field that has no
    /// end itself is left out.
    pub open_end: bool,
}

/// An `<observation>` as it was written. Missing fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    pub kind: String,
    pub title: String,
    pub subtitle: String,
    pub facts: Vec<String>,
    pub narrative: String,
    pub concepts: Vec<String>,
    pub files_read: Vec<String>,
    pub files_modified: Vec<String>,
    /// From a plain `<files>`, which does not say how they were touched.
    pub files: Vec<String>,
    /// The numbers of the events that it came from.
    pub events: Vec<u32>,
    /// The old one-sentence form: `<type>` and `<text>`.
    pub text: String,
}

pub fn read(reply: &str) -> Reply {
    let mut tags = tags::find(reply);
    let read = understood(reading::cheapest(reply, &tags));
    if read.tells_something() {
        return read;
    }
    // "- Title: <title>…</title>": no tag stands where it should, yet all are meant.
    for tag in &mut tags {
        tag.fits = true;
    }
    let loosely = understood(reading::cheapest(reply, &tags));
    Some(loosely).filter(Reply::tells_something).unwrap_or(read)
}

impl Reply {
    fn tells_something(&self) -> bool {
        let told = |it: &Observation| !it.title.is_empty() || it.is_told();
        self.observations.iter().any(told) || self.summary.is_some() || self.nothing.is_some()
    }
}

fn understood(blocks: Vec<Found>) -> Reply {
    let mut reply = Reply::default();
    for found in blocks {
        reply.open_end |= !found.closed;
        match found.block {
            Block::Observation => {
                let observation = observation(&found);
                if found.closed || observation.is_told() {
                    reply.observations.push(observation);
                }
            }
            Block::Summary => {
                let summary = summary(&found);
                let is_told = !summary.request.is_empty() && !summary.completed.is_empty();
                if found.closed || is_told {
                    reply.summary = Some(summary);
                }
            }
            // A cut reply might have gone on: its "nothing" is not believed.
            Block::Nothing if found.closed => {
                let why = found.fields.first().map_or("", |(_, why)| why);
                reply.nothing = Some(short(why));
            }
            Block::Nothing => {}
        }
    }
    reply
}

impl Observation {
    fn is_told(&self) -> bool {
        !(self.title.is_empty() || self.narrative.is_empty()) || !self.text.is_empty()
    }
}

fn observation(found: &Found) -> Observation {
    Observation {
        kind: match found.short("type") {
            said if !said.is_empty() => said,
            _ => attribute(found.tag, "type").map(short).unwrap_or_default(),
        },
        title: found.short("title"),
        subtitle: found.short("subtitle"),
        facts: found.list(&["facts"], "fact", &['\n']),
        narrative: found.verbatim("narrative"),
        concepts: found.list(&["concepts"], "concept", &['\n', ',']),
        files_read: found.files(&["files_read"]),
        files_modified: found.files(&["files_modified", "files_edited"]),
        files: found.files(&["files"]),
        events: found.contents(&["events"]).flat_map(numbers).collect(),
        text: found.verbatim("text"),
    }
}

fn summary(found: &Found) -> Summary {
    Summary {
        request: found.short("request"),
        investigated: found.short("investigated"),
        learned: found.short("learned"),
        completed: found.short("completed"),
        next_steps: found.short("next_steps"),
        files_read: found.files(&["files_read"]),
        files_edited: found.files(&["files_edited", "files_modified"]),
        notes: found.short("notes"),
    }
}

impl<'a> Found<'a> {
    fn contents(&self, names: &[&str]) -> impl Iterator<Item = &'a str> {
        let named = self.fields.iter().filter(|(name, _)| names.contains(name));
        named.map(|(_, content)| *content)
    }

    /// A field that is given twice counts the first time that it says something.
    fn verbatim(&self, name: &str) -> String {
        let names = [name];
        let mut contents = self.contents(&names).map(verbatim);
        contents.find(|it| !it.is_empty()).unwrap_or_default()
    }

    fn short(&self, name: &str) -> String {
        decoded(&self.verbatim(name))
    }

    fn list(&self, names: &[&str], child: &str, separators: &[char]) -> Vec<String> {
        let lists = self.contents(names);
        let items = lists.flat_map(|content| items(content, child, separators));
        items.map(short).collect()
    }

    fn files(&self, names: &[&str]) -> Vec<String> {
        self.list(names, "file", &['\n', ','])
    }
}

fn verbatim(content: &str) -> String {
    let content = content.trim();
    let unwrapped = content
        .strip_prefix("<![CDATA[")
        .and_then(|rest| rest.strip_suffix("]]>"));
    unwrapped.map_or(content, str::trim).to_owned()
}

fn short(content: &str) -> String {
    decoded(&verbatim(content))
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
