//! How a note is written again without losing what a person did to it.
//!
//! The note itself has the record of what was written: its last line, a comment with the time
//! of the first writing and a short hash of each item, with its own time if it was added
//! later. So whatever is not in the record is a person's and stays where it
//! stands, and whatever is in it but gone from the page was removed by one and does not come
//! back in the same words. A note without a record is a person's as a whole. Nothing here
//! needs the page to be in order: what is not of our form is text, and text stays.

use std::collections::BTreeMap;

use super::note::{
    CONTEXT, Note, NoteLine, POINTS, Point, SECTIONS, item, lines, recorded, section_name,
    summarized,
};

/// A note as it is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedNote {
    /// The text that was there, to the byte, if the draft says nothing new.
    pub text: String,
    /// How many items and sections of a person's stay.
    pub theirs: usize,
    /// Items of the draft that a person had removed.
    pub left_out: Vec<String>,
}

/// Brings a draft into the note that is there. `now` is a time, or a day.
#[must_use]
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
        // Another one of the same name is a person's.
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

/// A note as lines: nothing of it is lost, be it of our form or not.
#[derive(Default)]
struct NotePage {
    /// The title, and whatever stands before the first section.
    top: Vec<String>,
    sections: Vec<NoteSection>,
    first: Option<String>,
    /// What was written, and what will have been.
    record: BTreeMap<String, String>,
    /// The time of what is new, unless all is.
    added: String,
    theirs: usize,
    left_out: Vec<String>,
}

struct NoteSection {
    /// The line as it stands there.
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
                // A merge may have left two of each.
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

    /// What stands under a heading, if that is there.
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
        let hashes = self
            .record
            .iter()
            .map(|(hash, time)| match time.is_empty() {
                true => hash.clone(),
                false => format!("{hash}:{time}").trim_start_matches(':').to_owned(),
            });
        let hashes = hashes.collect::<Vec<_>>().join(" ");
        let dates = summarized(self.first.as_deref().unwrap_or(today), today);
        let body = self.body();
        format!("{body}\n\n{dates}\n\n<!-- foreword 1: {hashes} -->\n")
    }

    /// Whether a title or context is to be written anew: one of a person's stays.
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
        // Where something of ours was that the draft has no more.
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
                // What a person wrote below it stays below it.
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

/// An item goes on with what is indented, or follows at once.
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
        let said = item(&text).unwrap_or(&text);
        // A label in bold is the same label.
        let said = match Point::read(said) {
            (Point { label, text }, true) if name == POINTS => format!("{label}: {text}"),
            _ => said.to_owned(),
        };
        NoteBlock {
            hash: hash(&format!("{name}: {said}")),
            lines,
        }
    };
    blocks.into_iter().map(block).collect()
}

/// What the record calls a point.
pub(super) fn point_hash(Point { label, text }: &Point) -> String {
    hash(&format!("{POINTS}: {label}: {text}"))
}

/// However its words are spread over lines.
fn hash(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    blake3::hash(words.join(" ").as_bytes()).to_hex()[..8].to_owned()
}

fn trim_end(lines: &mut Vec<String>) {
    while lines.last().is_some_and(|it| it.trim().is_empty()) {
        lines.pop();
    }
}
