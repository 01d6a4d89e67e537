//! Finds the known blocks in a model's answer.
//!
//! A model was asked for `<observation>`s, a `<summary>` or `<nothing>`, and answers with
//! code in them, prose around them, our tags quoted and its own tags forgotten. This is not
//! XML and no XML library would read it. `scan` decides which tags are structure, here
//! their contents are read, and `repair` makes observations and summaries of them.
//!
//! Nothing panics and time is linear. A block on lines of its own is found among any text,
//! and a tag in a sentence stays text. A narrative is kept byte for byte but for the
//! whitespace around it. In the short fields the five XML entities are decoded, since a model
//! that writes `Vec&lt;T&gt;` in a title means `Vec<T>`; a narrative may well be about
//! `&amp;` and is left alone.
//!
//! Tags that are quoted exactly as they stand in a block (`</narrative>` on the line before
//! `<facts>`) cannot be told from real ones: the field ends there.

mod json;
mod scan;
#[cfg(test)]
mod tests;

const NOTHING: &str = "nothing";
/// The fields that hold sentences, except those that are lists.
const SENTENCES: [&str; 10] = [
    "title",
    "subtitle",
    "narrative",
    "text",
    "request",
    "investigated",
    "learned",
    "completed",
    "next_steps",
    "notes",
];
const MARKS: [&str; 3] = ["retract", "supersede", "merge"];

/// The blocks of a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub observations: Vec<ReplyBlock>,
    /// The last one, if a model corrected itself.
    pub summary: Option<ReplyBlock>,
    /// The reason that was given why there is nothing worth keeping.
    pub nothing: Option<String>,
    /// Statements about observations by number, inside of the summary or beside it: the tag and its
    /// content.
    pub marks: Vec<(&'static str, String)>,
    /// A block was begun and not ended: the reply was cut off, or its end forgotten. It is
    /// kept if no other tag is missing and its main fields are there: a title and a
    /// narrative, or a text; of a summary, the request and what was completed. A field that
    /// was cut off is left out.
    pub open_end: bool,
}

/// An `<observation>` or `<summary>` as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyBlock {
    name: &'static str,
    /// In the order of the reply.
    fields: Vec<Field>,
    /// Whether the block has its end tag.
    closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: &'static str,
    content: String,
    end: TagEnd,
}

/// How a field ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagEnd {
    /// With its end tag.
    Tag,
    /// It has no end tag; the next field or the end of the block follows.
    Missing,
    /// The reply ends first, or another block begins.
    Cut,
}

/// Reads a reply that may have these tags, which are separated by spaces, or JSON with fields of the
/// same names.
pub fn read(reply: &str, tags: &'static str) -> Reply {
    let known: Vec<&'static str> = tags.split(' ').collect();
    if let Some(reply) = json::read(reply, &known) {
        return reply;
    }
    let mut read = Reply::default();
    for block in scan::blocks(reply, &known) {
        let any = |end: TagEnd| block.fields.iter().any(|field| field.end == end);
        let has = |name| !block.verbatim(&[name]).is_empty();
        let has_main = (has("title") && has("narrative"))
            || has("text")
            || (has("request") && has("completed"));
        let is_kept = block.closed || (has_main && !any(TagEnd::Missing));
        read.open_end |= !block.closed && (!block.name.is_empty() || any(TagEnd::Cut));
        // A cut reply might have gone on, so its "nothing" does not count.
        let why = block.contents(&[NOTHING]).next().map(short);
        read.nothing = read.nothing.or(why);
        let marks = block.fields.iter().filter(|it| MARKS.contains(&it.name));
        let marks = marks.filter(|it| it.end != TagEnd::Cut);
        read.marks
            .extend(marks.map(|it| (it.name, short(&it.content))));
        match block.name {
            "observation" if is_kept => read.observations.push(block),
            "summary" if is_kept => read.summary = Some(block),
            _ => {}
        }
    }
    read
}

/// Fields are looked up by several names, the preferred one first.
impl ReplyBlock {
    /// The first field that is not empty, byte for byte.
    pub fn verbatim(&self, names: &[&str]) -> String {
        let mut contents = self.contents(names).map(verbatim);
        let content = contents.find(|content| !content.is_empty());
        content.unwrap_or_default().to_owned()
    }

    /// The same with its entities decoded.
    pub fn short(&self, names: &[&str]) -> String {
        short(&self.verbatim(names))
    }

    /// The items of all lists of these names, however the model wrote them down: as child
    /// elements, or else as lines; words and paths also with commas between them.
    pub fn list(&self, names: &[&str], child: &'static str) -> Vec<String> {
        let separators = if child == "fact" { "\n" } else { "\n," };
        let mut items = Vec::new();
        for content in self.contents(names) {
            let blocks = scan::blocks(content, &[child, "item"]);
            let children: Vec<&Field> = blocks.iter().flat_map(|block| &block.fields).collect();
            if children.is_empty() {
                let lines = content.split(|c| separators.contains(c));
                items.extend(lines.map(|line| short(without_bullet(line))));
            }
            items.extend(children.iter().map(|child| short(&child.content)));
        }
        items.retain(|item| !item.is_empty());
        items
    }

    /// The sentences of the block: its fields without types, names and numbers.
    pub fn texts(&self) -> Vec<String> {
        let fields = SENTENCES.iter().map(|name| self.verbatim(&[name]));
        let lists = self.list(&["facts", "given_up"], "fact");
        let texts = fields.chain(lists);
        texts.filter(|text| !text.is_empty()).collect()
    }

    fn contents(&self, names: &[&str]) -> impl Iterator<Item = &str> {
        names.iter().flat_map(|name| {
            let named = self.fields.iter().filter(move |field| field.name == *name);
            named
                .filter(|field| field.end != TagEnd::Cut)
                .map(|field| field.content.as_str())
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

/// A field with the five entities of XML decoded; others are left as they are.
fn short(content: &str) -> String {
    // The ampersand last, so that `&amp;lt;` becomes `&lt;` and no more.
    let text = verbatim(content);
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// `1, 3`, `#1 and #3`, `<event>1</event>`; also `2-4`.
pub fn numbers(content: &str) -> Vec<u32> {
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

/// A line without the bullet or number of a list item.
pub fn without_bullet(line: &str) -> &str {
    let line = line.trim();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => line.strip_prefix(['-', '*', '•', '+', '–']),
        1 | 2 => line[digits..].strip_prefix(['.', ')']),
        _ => None,
    };
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(' '));
    rest.map_or(line, str::trim_start)
}
