//! Updates a note with a new draft without losing a person's edits.
//!
//! The last line of a note is a comment that records what Foreword wrote: the time of the first
//! writing and a short hash of each item, with its own time if it was added later. So an item
//! that is not recorded is a person's and stays where it is, and a recorded item that is no longer
//! in the note was removed by a person and is not written again in the same words. A note without
//! a record is a person's as a whole. The note need not be well formed: unknown parts are kept as
//! text.

use std::collections::BTreeMap;

use super::note::{
    CONTEXT, Note, NoteLine, POINTS, Point, SECTIONS, item, lines, recorded, section_name,
    summarized,
};

/// A note merged with a draft, to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedNote {
    /// The existing text, unchanged to the byte, if the draft has nothing new.
    pub text: String,
    /// How many items and sections of a person were kept.
    pub theirs: usize,
    /// Items of the draft that were left out, since a person had removed them.
    pub left_out: Vec<String>,
}

/// Merges a draft into the existing note, if there is one. `now` is a time, or a day.
pub fn keep(draft: &Note, there: Option<&str>, now: &str) -> MergedNote {
    let today = now.get(..10).unwrap_or(now);
    let mut page = NotePage::read(there.unwrap_or_default());
    let before = page.body();
    let new = NotePage::read(&draft.to_string());
    if page.first.is_some() || page.record.contains_key("") {
        now.clone_into(&mut page.added);
    }
    let first = page.first.as_deref().unwrap_or(now).to_owned();
    page.record.entry(String::new()).or_insert(first);
    page.put_title(&draft.title);
    let mut at = 0;
    for name in SECTIONS {
        // A second section of the same name is a person's.
        let place = page.sections.iter().position(|it| it.name() == Some(name));
        let (old, draft) = (page.lines(name).to_vec(), new.lines(name));
        let lines = match name {
            CONTEXT if page.replaces(&old.join(" "), &draft.join(" ")) => draft.to_vec(),
            CONTEXT => old.clone(),
            _ => page.items(name, &old, draft),
        };
        let is_empty = lines.iter().all(|it| it.trim().is_empty());
        match place {
            Some(place) if is_empty && !old.is_empty() => {
                page.sections.remove(place);
            }
            Some(place) => {
                page.sections[place].lines = lines;
                at = place + 1;
            }
            None if is_empty => {}
            None => {
                let heading = format!("## {name}");
                page.sections.insert(at, NoteSection { heading, lines });
                at += 1;
            }
        }
    }
    let others = page.sections.iter().filter(|it| it.name().is_none());
    let theirs = page.theirs + others.count();
    let text = match there {
        Some(there) if page.body() == before => there.to_owned(),
        _ => page.written(today),
    };
    MergedNote {
        text,
        theirs,
        left_out: page.left_out,
    }
}

/// A note as lines; no line is lost, even if it does not have the form of a note.
#[derive(Default)]
struct NotePage {
    /// The title, and all lines before the first section.
    top: Vec<String>,
    sections: Vec<NoteSection>,
    /// The date of the first writing.
    first: Option<String>,
    /// The hashes of items that Foreword wrote, each with the time if it was added later.
    record: BTreeMap<String, String>,
    /// The time to record for new items; empty if the whole note is new.
    added: String,
    /// How many items of a person were kept.
    theirs: usize,
    left_out: Vec<String>,
}

struct NoteSection {
    /// The line as it is in the file.
    heading: String,
    lines: Vec<String>,
}

impl NoteSection {
    fn name(&self) -> Option<&'static str> {
        section_name(self.heading.strip_prefix("## ")?.trim())
    }
}

impl NotePage {
    fn read(text: &str) -> NotePage {
        let mut page = NotePage::default();
        for (line, whole) in lines(text).into_iter().zip(text.lines()) {
            match line {
                // After a merge there may be two records or two lines of dates.
                NoteLine::Record(record) => {
                    for (hash, time) in recorded(record) {
                        let known = page.record.entry(hash.to_owned());
                        let known = known.or_insert_with(|| time.to_owned());
                        *known = time.min(known).to_owned();
                    }
                }
                NoteLine::Dates(first, _) => {
                    let earlier = page.first.take().filter(|it| it.as_str() < first);
                    page.first = earlier.or_else(|| Some(first.to_owned()));
                }
                NoteLine::Heading(_) => page.sections.push(NoteSection {
                    heading: whole.to_owned(),
                    lines: Vec::new(),
                }),
                NoteLine::Title(_) | NoteLine::Text(_) => match page.sections.last_mut() {
                    Some(section) => section.lines.push(whole.to_owned()),
                    None => page.top.push(whole.to_owned()),
                },
            }
        }
        trim_end(&mut page.top);
        for section in &mut page.sections {
            trim_end(&mut section.lines);
        }
        page
    }

    /// The lines of a section; empty if it does not exist.
    fn lines(&self, name: &str) -> &[String] {
        let section = self.sections.iter().find(|it| it.name() == Some(name));
        section.map_or(&[], |it| &it.lines)
    }

    fn body(&self) -> String {
        let mut body = self.top.join("\n");
        for NoteSection { heading, lines } in &self.sections {
            body.push_str(&format!("\n\n{heading}\n{}", lines.join("\n")));
        }
        body
    }

    fn written(&self, today: &str) -> String {
        let hashes = self.record.iter().map(|(hash, time)| {
            if time.is_empty() {
                hash.clone()
            } else {
                format!("{hash}:{time}").trim_start_matches(':').to_owned()
            }
        });
        let hashes = hashes.collect::<Vec<_>>().join(" ");
        let dates = summarized(self.first.as_deref().unwrap_or(today), today);
        let body = self.body();
        format!("{body}\n\n{dates}\n\n<!-- foreword 1: {hashes} -->\n")
    }

    /// Whether a title or context is replaced by the new one; a person's is not.
    fn replaces(&mut self, old: &str, new: &str) -> bool {
        let (was, is) = (hash(old), hash(new));
        let is_there = !old.trim().is_empty();
        if is_there && self.record.remove(&was).is_none() {
            self.theirs += usize::from(was != is);
            return false;
        }
        let is_other = !is_there || was != is;
        self.record.insert(is, String::new());
        is_other
    }

    fn put_title(&mut self, title: &str) {
        let ours = format!("# {title}");
        let place = self.top.iter().position(|it| it.starts_with("# "));
        let there = place.map(|at| self.top[at].clone());
        if self.replaces(&there.unwrap_or_default(), &ours) {
            match place {
                Some(at) => self.top[at] = ours,
                None if self.top.is_empty() => self.top.push(ours),
                None => drop(self.top.splice(0..0, [ours, String::new()])),
            }
        }
    }

    fn items(&mut self, name: &str, old: &[String], draft: &[String]) -> Vec<String> {
        let draft = blocks(name, draft);
        let mut kept: Vec<(NoteBlock, bool)> = Vec::new();
        // The place of the first recorded item that the draft no longer has.
        let mut gap = None;
        for block in blocks(name, old) {
            let ours = self.record.contains_key(&block.hash);
            if ours && !draft.iter().any(|it| it.hash == block.hash) {
                self.record.remove(&block.hash);
                gap = gap.or(Some(kept.len()));
                continue;
            }
            kept.push((block, ours));
        }
        let any_of_ours = kept.iter().any(|(_, ours)| *ours);
        self.theirs += kept.iter().filter(|(_, ours)| !ours).count();
        let start = gap.unwrap_or(if any_of_ours { 0 } else { kept.len() });
        let mut next = start;
        for block in draft {
            if let Some(at) = kept.iter().position(|(it, _)| it.hash == block.hash) {
                // A person's lines below it stay below it.
                let below = kept[at + 1..].iter().take_while(|(_, ours)| !ours);
                next = at + 1 + below.count();
            } else if self.record.contains_key(&block.hash) {
                self.left_out.push(block.lines.join(" "));
            } else {
                let added = self.added.clone();
                self.record.insert(block.hash.clone(), added);
                kept.insert(next, (block, true));
                next += 1;
            }
        }
        let before = old.iter().take_while(|it| it.trim().is_empty());
        let mut lines: Vec<_> = before.cloned().collect();
        if old.is_empty() {
            lines.push(String::new());
        }
        lines.extend(kept.into_iter().flat_map(|(block, _)| block.lines));
        trim_end(&mut lines);
        lines
    }
}

/// An item of a list with the lines that belong to it, or other text between items.
struct NoteBlock {
    hash: String,
    lines: Vec<String>,
}

/// Splits a section into items. An item continues with indented lines, or lines that follow
/// without a blank one.
fn blocks(name: &str, lines: &[String]) -> Vec<NoteBlock> {
    let mut blocks: Vec<Vec<String>> = Vec::new();
    let mut gap = true;
    for line in lines {
        let is_blank = line.trim().is_empty();
        let goes_on = is_blank || line.starts_with([' ', '\t']) || (!gap && item(line).is_none());
        match blocks.last_mut() {
            Some(block) if goes_on => block.push(line.clone()),
            None if is_blank => {}
            _ => blocks.push(vec![line.clone()]),
        }
        gap = is_blank;
    }
    let block = |lines: Vec<String>| {
        let text = lines.join(" ");
        let content = item(&text).unwrap_or(&text);
        // A label in bold is the same label.
        let content = match Point::read(content) {
            (Point { label, text }, true) if name == POINTS => format!("{label}: {text}"),
            _ => content.to_owned(),
        };
        NoteBlock {
            hash: hash(&format!("{name}: {content}")),
            lines,
        }
    };
    blocks.into_iter().map(block).collect()
}

/// The hash of a point in the record.
pub(super) fn point_hash(Point { label, text }: &Point) -> String {
    hash(&format!("{POINTS}: {label}: {text}"))
}

/// The hash of a text, regardless of its line breaks and spaces.
fn hash(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    blake3::hash(words.join(" ").as_bytes()).to_hex()[..8].to_owned()
}

fn trim_end(lines: &mut Vec<String>) {
    while lines.last().is_some_and(|it| it.trim().is_empty()) {
        lines.pop();
    }
}
