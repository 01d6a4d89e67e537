//! A master's statements, made of all notes without a model: a list, not an interpretation.
//!
//! Each point of a note becomes a statement in the section of its label, newest first. Points
//! that read the same are one statement with all their notes. Nothing is compared by meaning:
//! two notes that contradict each other both stand, the later one first. `fit` keeps the master
//! within its size, and `read_reply` reads what a model wrote instead.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::evidence::unmarked;
use super::master::{DECISIONS, EVOLUTION, LEARNINGS, QUESTIONS, STATUS};
use super::note::{Note, Point, item};
use crate::text::{self, normalised};

/// A note that is taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub session: String,
    /// When it was written, as a time or a day: `2026-11-16T09:30:00Z`.
    pub at: String,
    pub note: Note,
    /// The paths that it names as related.
    pub related: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statement {
    pub text: String,
    /// The notes that it rests on, the oldest first.
    pub sessions: Vec<String>,
    /// A sub-heading that a model or an agent put it under.
    pub theme: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    /// Text before the statements that is not taken from a note.
    pub lead: Option<String>,
    pub statements: Vec<Statement>,
}

impl Section {
    fn called(name: &str) -> Section {
        Section {
            name: name.to_owned(),
            ..Section::default()
        }
    }
}

/// The beginning of a label (`deci` is of `Decision` and `Decided`), the section that each belongs to, and whether the statement repeats its
/// label: `Next: …` does, `Decision: …` does not. Any other label is repeated, under learnings.
/// These are the labels that the forms of notes name; they cover 46 of the 50 points in
/// `testdata/notes`.
#[rustfmt::skip] // A table is read line by line.
const LABELS: [(&str, &str, bool); 10] = [
    ("question", QUESTIONS, false),
    ("open", QUESTIONS, false),
    ("deci", DECISIONS, false),
    ("discovery", LEARNINGS, false),
    ("learn", LEARNINGS, false),
    ("status", STATUS, false),
    ("next", STATUS, true),
    ("todo", STATUS, true),
    ("blocked", STATUS, true),
    ("change", EVOLUTION, false),
];
/// A statement is no longer than this.
const TEXT_MAX: usize = 400;
/// Of more notes that say the same, the first and the latest are cited.
const CITED_MAX: usize = 12;
/// The tokens that the link to a note costs at the end of the file.
const LINK: usize = 18;
/// The tokens of a master's title and last lines.
const FRAME: usize = 60;
/// Stands in a section whose statements are all in the archive.
const ARCHIVED: &str = "What was here is in `archive/`.";

/// A point of one or more notes.
struct MergedPoint {
    section: usize,
    text: String,
    /// When it was last written.
    at: String,
    /// Positions of its notes in order of time.
    notes: BTreeSet<usize>,
}

/// Makes the sections of these names. The notes' order does not matter.
pub fn synthesise(notes: &[Taken], names: &[String]) -> Vec<Section> {
    let mut notes: Vec<&Taken> = notes.iter().collect();
    notes.sort_by_key(|taken| (&taken.at, &taken.session));
    let mut merged: Vec<MergedPoint> = Vec::new();
    let mut known: HashMap<(usize, String), usize> = HashMap::new();
    for (number, taken) in notes.iter().enumerate() {
        for point in points(&taken.note) {
            let Some((section, text)) = statement(&point, names) else {
                continue;
            };
            // A point that an update added is as new as the update.
            let at = taken.note.added(&point).unwrap_or(&taken.at);
            let position = known
                .entry((section, normalised(&text)))
                .or_insert_with(|| {
                    merged.push(MergedPoint {
                        section,
                        text,
                        at: at.clone(),
                        notes: BTreeSet::new(),
                    });
                    merged.len() - 1
                });
            let point = &mut merged[*position];
            point.at = point.at.clone().max(at.clone());
            point.notes.insert(number);
        }
    }
    merged.sort_by(|a, b| (&b.at, b.notes.last()).cmp(&(&a.at, a.notes.last())));
    let mut sections: Vec<_> = names.iter().map(|name| Section::called(name)).collect();
    for point in merged {
        let sessions = point.notes.iter();
        sections[point.section].statements.push(Statement {
            text: point.text,
            sessions: sessions.map(|note| notes[*note].session.clone()).collect(),
            theme: None,
        });
    }
    sections
}

/// The points of a note, and the lists under headings of its own, labelled by the heading.
fn points(note: &Note) -> Vec<Point> {
    let mut points = note.points.clone();
    for (heading, text) in &note.others {
        for item in text.lines().map(str::trim_start).filter_map(item) {
            let (point, has_label) = Point::read(item);
            let label = if has_label { &point.label } else { heading };
            points.push(Point {
                label: label.clone(),
                text: point.text,
            });
        }
    }
    points
}

/// The section of a point and how it reads there; none if it has no word.
fn statement(point: &Point, names: &[String]) -> Option<(usize, String)> {
    let label = point.label.to_lowercase();
    let line = text::flat(&point.text);
    let mut said = line.trim_start_matches(['#', '>', '-', '*', ' ']);
    // `Decision: Decision: …`
    while let Some((first, rest)) = said.split_once(": ")
        && first.to_lowercase() == label
    {
        said = rest.trim_start();
    }
    if !said.contains(char::is_alphanumeric) {
        return None;
    }
    let known = LABELS.iter().find(|(begins, ..)| {
        let mut words = label.split([' ', '-', '/']);
        words.any(|word| word.starts_with(begins))
    });
    let (usual, with_label) = match known {
        Some((_, usual, with_label)) => (*usual, *with_label),
        None if said.ends_with('?') => (QUESTIONS, true),
        None => (LEARNINGS, true),
    };
    let whole = match with_label {
        true => format!("{}: {said}", text::capitalised(&point.label)),
        false => said.to_owned(),
    };
    let text = text::shorten(&whole, TEXT_MAX).into_owned();
    Some((place(&label, usual, names), text))
}

/// The section of the usual name, else one that has a word of the label or of the usual name,
/// else the first.
fn place(label: &str, usual: &str, names: &[String]) -> usize {
    let with_word_of = |words: &str| {
        let words = normalised(words);
        let is_one = |word: &str| {
            words
                .split(' ')
                .any(|it| it.len() > 3 && word.starts_with(it))
        };
        let has_one = |name: &String| normalised(name).split(' ').any(is_one);
        names.iter().position(has_one)
    };
    let exactly = names.iter().position(|name| name == usual);
    exactly
        .or_else(|| with_word_of(label))
        .or_else(|| with_word_of(usual))
        .unwrap_or(0)
}

/// Leaves the statements that fit and returns the others: those that are old and rest on few
/// notes go first, and every section keeps a share. `when` has the time of each note.
pub fn fit(
    sections: &mut [Section],
    when: &BTreeMap<&str, &String>,
    max_tokens: usize,
) -> Vec<Statement> {
    let mut used = FRAME;
    let mut order = Vec::new();
    for (number, section) in sections.iter_mut().enumerate() {
        used += text::tokens(&section.name) + text::tokens(section.lead.as_deref().unwrap_or(""));
        let weight = match section.name.as_str() {
            EVOLUTION => 0,
            DECISIONS | QUESTIONS => 2,
            _ => 1,
        };
        for (at, statement) in section.statements.iter_mut().enumerate() {
            let more = statement.sessions.len().saturating_sub(CITED_MAX);
            statement.sessions.drain(1..=more);
            let sessions = statement.sessions.iter();
            let newest = sessions.filter_map(|it| when.get(it.as_str())).max();
            let worth = weight + statement.sessions.len().min(4);
            order.push((Reverse((worth, newest)), number, at));
        }
    }
    order.sort();
    // A quarter of the tokens is shared out evenly, the rest goes to the statements worth most.
    let share = max_tokens / 4 / sections.len().max(1);
    let (mut stays, mut linked) = (BTreeSet::new(), BTreeSet::new());
    for max in [share, max_tokens] {
        let mut of_section = vec![0; sections.len()];
        for (_, number, at) in &order {
            let statement = &sections[*number].statements[*at];
            of_section[*number] += cost(statement);
            let links = statement.sessions.iter().filter(|it| !linked.contains(*it));
            let cost = cost(statement) + links.count() * LINK;
            if of_section[*number] > max || stays.contains(&(*number, *at)) {
                continue;
            }
            if used + cost > max_tokens {
                break;
            }
            used += cost;
            linked.extend(statement.sessions.iter().cloned());
            stays.insert((*number, *at));
        }
    }
    let mut left_out = Vec::new();
    for (number, section) in sections.iter_mut().enumerate() {
        let all = std::mem::take(&mut section.statements);
        let had_some = !all.is_empty();
        for (at, statement) in all.into_iter().enumerate() {
            match stays.contains(&(number, at)) {
                true => section.statements.push(statement),
                false => left_out.push(statement),
            }
        }
        if had_some && section.statements.is_empty() {
            let lead = section.lead.take().map(|it| it + "\n\n");
            section.lead = Some(lead.unwrap_or_default() + ARCHIVED);
        }
    }
    left_out
}

fn cost(statement: &Statement) -> usize {
    text::tokens(&statement.text) + 3 * statement.sessions.len() + 2
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterReply {
    pub sections: Vec<Section>,
    /// Statements that cited no note.
    pub dropped: usize,
}

/// A statement of a model or an agent is no longer than this.
const REPLY_TEXT_MAX: usize = 600;

/// Reads the master that a model, or an agent, wrote: untrusted text. All sections must be there, and a
/// statement counts only with notes that exist: it is dropped if it cites none, and an unknown citation
/// is removed. Marks are ours to set. `labels` are by session; the error says what is missing.
pub fn read_reply(
    answer: &str,
    names: &[String],
    labels: &BTreeMap<String, String>,
) -> Result<MasterReply, String> {
    let mut sections: Vec<_> = names.iter().map(|it| Section::called(it)).collect();
    let mut missing: Vec<_> = names.iter().collect();
    let (mut at, mut theme, mut dropped) = (None, None, 0);
    for line in answer.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            let is_it = |it: &String| it.eq_ignore_ascii_case(name.trim());
            at = names.iter().position(is_it);
            missing.retain(|it| !is_it(it));
            theme = None;
        } else if let Some(name) = line.strip_prefix("### ") {
            theme = Some(text::shorten(&text::flat(name), 60).into_owned());
        } else if let (Some(at), Some(item)) = (at, item(line)) {
            match cited_statement(item, labels, &theme) {
                Some(statement) => sections[at].statements.push(statement),
                None => dropped += 1,
            }
        }
    }
    if !missing.is_empty() {
        let missing: Vec<_> = missing.iter().map(|it| format!("`## {it}`")).collect();
        return Err(format!("{} missing", missing.join(", ")));
    }
    if sections.iter().all(|it| it.statements.is_empty()) {
        return Err(format!("no statement cites a note ({dropped} cite none)"));
    }
    for section in &mut sections {
        // Statements without a theme come before those with one.
        section.statements.sort_by_key(|it| it.theme.is_some());
    }
    Ok(MasterReply { sections, dropped })
}

fn cited_statement(
    item: &str,
    labels: &BTreeMap<String, String>,
    theme: &Option<String>,
) -> Option<Statement> {
    let item = unmarked(&text::flat(item));
    let (mut said, mut sessions) = (String::new(), BTreeSet::new());
    let mut rest = item.as_str();
    while let Some((before, (inside, after))) = rest
        .split_once('[')
        .and_then(|(before, it)| Some((before, it.split_once(']')?)))
    {
        said.push_str(before);
        let cited = inside.split([',', ' ']).filter(|it| !it.is_empty());
        let known: Vec<_> = cited.clone().filter_map(|it| session(it, labels)).collect();
        let is_id = |it: &str| {
            let plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
            it.chars().all(plain) && it.contains(|it: char| it.is_ascii_digit())
        };
        // `[text](target)` and `[x]` are part of the sentence, not citations.
        if known.is_empty() && (after.starts_with('(') || !cited.clone().all(is_id)) {
            said.push_str(&format!("[{inside}]"));
        } else {
            said.truncate(said.trim_end().len());
            sessions.extend(known);
        }
        rest = after;
    }
    said.push_str(rest);
    let said = text::flat(&said);
    let says = said.contains(char::is_alphanumeric) && !sessions.is_empty();
    says.then(|| Statement {
        text: text::shorten(&said, REPLY_TEXT_MAX).into_owned(),
        sessions: sessions.into_iter().collect(),
        theme: theme.clone(),
    })
}

/// The session that is cited, by its label or how it begins.
fn session(cited: &str, labels: &BTreeMap<String, String>) -> Option<String> {
    let by_label = labels.iter().find(|it| it.1 == cited).map(|it| it.0);
    let begins = |it: &&String| cited.len() >= 8 && it.starts_with(cited);
    by_label.or_else(|| labels.keys().find(begins)).cloned()
}

#[cfg(test)]
mod tests;
