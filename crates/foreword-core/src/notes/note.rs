//! The form of a note: a title, a context, points with labels, and related files.
//!
//! A draft is checked before it is saved, and problems are reported by line. An existing note may
//! have been edited by anybody, so reading it never fails: unknown sections are kept.

use std::collections::BTreeMap;

use super::keep::point_hash;

/// The content of a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    pub title: String,
    pub context: String,
    pub points: Vec<Point>,
    /// Files and other artifacts, as they were written.
    pub related: Vec<String>,
    /// Sections that do not belong to the form: heading and text.
    pub others: Vec<(String, String)>,
    /// The day when the conversation was first summarised: `2026-11-16`.
    pub first: Option<String>,
    /// The day when it was last summarised.
    pub last: Option<String>,
    /// The time of the first writing, under "", and the times of points that were added later, by
    /// their hash.
    pub times: BTreeMap<String, String>,
}

/// `- Label: text`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    pub label: String,
    /// Further lines of the same point are joined by a space.
    pub text: String,
}

/// Why a draft is not saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct DraftProblem {
    pub line: usize,
    pub what: String,
}

pub const CONTEXT: &str = "Context";
pub const POINTS: &str = "Tracking Points";
pub const RELATED: &str = "Related Files/Artifacts";

/// The sections of a note, in order.
pub const SECTIONS: [&str; 3] = [CONTEXT, POINTS, RELATED];

const CONTEXT_MAX: usize = 800;
const POINTS_MAX: usize = 60;
const LABEL_MAX: usize = 30;

impl Note {
    /// Reads a note, and lists what is wrong with it as a draft.
    pub fn read(text: &str) -> (Note, Vec<DraftProblem>) {
        let mut note = Note::default();
        let mut problems = Vec::new();
        let mut section: Option<String> = None;
        for (at, line) in lines(text).into_iter().enumerate() {
            let mut problem = |what: String| problems.push(DraftProblem { line: at + 1, what });
            match line {
                // The hashes themselves are for `keep`.
                NoteLine::Record(record) => {
                    let times = recorded(record).filter(|it| !it.1.is_empty());
                    let times = times.map(|(hash, time)| (hash.to_owned(), time.to_owned()));
                    note.times.extend(times);
                }
                NoteLine::Dates(first, last) => {
                    note.first = Some(first.to_owned());
                    note.last = Some(last.to_owned());
                }
                NoteLine::Heading(heading) => {
                    let name = section_name(heading);
                    if name.is_none() {
                        let known = SECTIONS.join(", ");
                        problem(format!(
                            "`## {heading}` is not one of the sections ({known})"
                        ));
                        note.others.push((heading.to_owned(), String::new()));
                    }
                    section = Some(name.unwrap_or(heading).to_owned());
                }
                NoteLine::Title(title) if note.title.is_empty() && section.is_none() => {
                    title.clone_into(&mut note.title);
                }
                NoteLine::Title(_) => problem("a second title".to_owned()),
                NoteLine::Text(line) => {
                    if let Some(what) = note.line(section.as_deref(), line) {
                        problem(what);
                    }
                }
            }
        }
        note.context = note.context.trim_matches('\n').to_owned();
        let line = text.lines().count();
        let wrong = note.wrong().into_iter();
        problems.extend(wrong.map(|what| DraftProblem { line, what }));
        (note, problems)
    }

    /// The time when an update added this point; none if the note began with it.
    pub(super) fn added(&self, point: &Point) -> Option<&String> {
        self.times.get(&point_hash(point))
    }

    /// Adds a line to its section. Returns what is wrong with it.
    fn line(&mut self, section: Option<&str>, line: &str) -> Option<String> {
        let is_blank = line.trim().is_empty();
        let is_text = |what: &str| (!is_blank).then(|| what.to_owned());
        match (section, item(line)) {
            (None, _) => return is_text("text before the first section"),
            (Some(CONTEXT), _) => {
                self.context.push_str(line.trim_end());
                self.context.push('\n');
            }
            (Some(POINTS), Some(text)) => {
                let (point, labelled) = Point::read(text);
                self.points.push(point);
                if !labelled {
                    return Some(format!("a point is `- Label: text`, this is `{line}`"));
                }
            }
            (Some(POINTS), None) => match self.points.last_mut() {
                Some(point) if line.starts_with([' ', '\t']) && !is_blank => {
                    point.text.push(' ');
                    point.text.push_str(line.trim());
                }
                _ => return is_text("a point begins with `- Label: `"),
            },
            (Some(RELATED), Some(text)) => self.related.push(text.to_owned()),
            (Some(RELATED), None) => return is_text("each related file is a line `- path`"),
            (Some(_), _) => {
                if let Some((_, text)) = self.others.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        None
    }

    /// What is wrong with a draft as a whole: missing parts, and parts that are too long.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut refuse = |is_so: bool, what: String| wrong.extend(is_so.then_some(what));
        let length = |text: &str| text.chars().count();
        refuse(self.title.is_empty(), "there is no `# title`".to_owned());
        let long = "the title is longer than 120 characters";
        refuse(length(&self.title) > 120, long.to_owned());
        let missing = format!("`## {CONTEXT}` is missing or empty: one or two sentences");
        refuse(self.context.is_empty(), missing);
        let long = format!("`## {CONTEXT}` is longer than {CONTEXT_MAX} characters");
        let long = format!("{long}: one or two sentences");
        refuse(length(&self.context) > CONTEXT_MAX, long);
        let missing = format!("`## {POINTS}` is missing or empty: lines `- Label: text`");
        refuse(self.points.is_empty(), missing);
        let many = format!("more than {POINTS_MAX} points");
        refuse(self.points.len() > POINTS_MAX, many);
        wrong
    }
}

impl Point {
    /// Reads a point, and whether it has a label; without one it gets the label `Status`.
    pub fn read(text: &str) -> (Point, bool) {
        let is_plain = |it: char| it.is_alphabetic() || " -/".contains(it);
        let labelled = text.split_once(':').map(|(label, text)| {
            let label = label.trim().trim_matches('*').trim();
            (label, text.trim_start_matches("**").trim())
        });
        let labelled = labelled.filter(|(label, text)| {
            let length = label.chars().count();
            (1..=LABEL_MAX).contains(&length) && label.chars().all(is_plain) && !text.is_empty()
        });
        let (label, content) = labelled.unwrap_or(("Status", text));
        let point = Point {
            label: label.to_owned(),
            text: content.to_owned(),
        };
        (point, labelled.is_some())
    }
}

/// The form that `read` reads.
impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "# {}\n\n## {CONTEXT}\n\n{}\n\n## {POINTS}\n\n",
            self.title, self.context
        )?;
        for Point { label, text } in &self.points {
            writeln!(f, "- {label}: {text}")?;
        }
        if !self.related.is_empty() {
            write!(f, "\n## {RELATED}\n\n")?;
        }
        for it in &self.related {
            writeln!(f, "- {it}")?;
        }
        for (heading, text) in &self.others {
            write!(f, "\n## {heading}\n{text}")?;
        }
        match (&self.first, &self.last) {
            (Some(first), Some(last)) => writeln!(f, "\n{}", summarized(first, last)),
            _ => Ok(()),
        }
    }
}

/// A line of a note, by its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoteLine<'a> {
    /// `# …`
    Title(&'a str),
    /// `## …`
    Heading(&'a str),
    /// The days of the first and the last summary.
    Dates(&'a str, &'a str),
    /// The record of what Foreword wrote: `<!-- foreword 1: … -->`
    Record(&'a str),
    Text(&'a str),
}

/// Classifies each line. Lines in a code fence are text; a fence that is never closed is ignored.
pub(super) fn lines(text: &str) -> Vec<NoteLine<'_>> {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let mut closing = text.lines().filter(is_fence).count();
    let mut in_code = false;
    let of = |line| {
        if is_fence(&line) {
            closing -= 1;
            in_code = !in_code && closing > 0;
        } else if !in_code {
            return NoteLine::of(line);
        }
        NoteLine::Text(line)
    };
    text.lines().map(of).collect()
}

impl<'a> NoteLine<'a> {
    fn of(line: &'a str) -> NoteLine<'a> {
        if let Some(title) = line.strip_prefix("# ") {
            return NoteLine::Title(title.trim());
        }
        if let Some(heading) = line.strip_prefix("## ") {
            return NoteLine::Heading(heading.trim());
        }
        let record = line.trim_end().strip_prefix("<!-- foreword ");
        if let Some(record) = record.and_then(|it| it.strip_suffix("-->")) {
            return NoteLine::Record(record);
        }
        dates(line).map_or(NoteLine::Text(line), |(first, last)| {
            NoteLine::Dates(first, last)
        })
    }
}

/// The hashes of a record with their times, either of which may be empty: `1: 2026-11-16T09:30:00Z 330dc633 4282f238:2026-11-18T…`
pub(super) fn recorded(record: &str) -> impl Iterator<Item = (&str, &str)> {
    let items = record.strip_prefix("1:").unwrap_or_default();
    items.split_whitespace().map(|it| match it.split_once(':') {
        _ if it.get(4..5) == Some("-") => ("", it),
        Some(parts) => parts,
        None => (it, ""),
    })
}

/// The section of the form that a heading names, in any case of letters.
pub(super) fn section_name(heading: &str) -> Option<&'static str> {
    let mut sections = SECTIONS.into_iter();
    sections.find(|it| it.eq_ignore_ascii_case(heading))
}

/// The text of a list item.
pub(super) fn item(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    rest.map(str::trim)
}

/// `*Summarized: 2026-11-16*`, `*Summarized: 2026-11-16, updated: 2026-11-18*`
pub(super) fn summarized(first: &str, last: &str) -> String {
    if first == last {
        format!("*Summarized: {first}*")
    } else {
        format!("*Summarized: {first}, updated: {last}*")
    }
}

/// Reads the line that `summarized` writes.
fn dates(line: &str) -> Option<(&str, &str)> {
    let dates = line.trim().strip_prefix("*Summarized: ")?;
    let dates = dates.strip_suffix('*')?;
    let (first, last) = dates.split_once(", updated: ").unwrap_or((dates, dates));
    let is_plain = |it: u8| it.is_ascii_digit() || it == b'-';
    let is_date = |it: &str| it.len() == 10 && it.bytes().all(is_plain);
    (is_date(first) && is_date(last)).then_some((first, last))
}
