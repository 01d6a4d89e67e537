//! The file `master.md`: sections of cited statements, and text that people added.
//!
//! A section that is as Foreword last wrote it (see `record`) is replaced by the new one. Every
//! other section is a person's and stays; its new statements are reported instead. Citations are
//! reference links to the notes, which are defined in the last lines of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::evidence::{Evidence, EvidenceFinding, unmarked};
use super::record::{SynthesisRecord, hash};
use super::synthesis::{Section, Statement, Taken};

pub const STATUS: &str = "Current Status";
pub const DECISIONS: &str = "Key Decisions";
pub const LEARNINGS: &str = "Learnings & Discoveries";
pub const EVOLUTION: &str = "Evolution & Changes";
pub const QUESTIONS: &str = "Active Questions";
pub const SECTIONS: [&str; 5] = [STATUS, DECISIONS, LEARNINGS, EVOLUTION, QUESTIONS];

const LAST: &str = "*Last synthesized: ";
const SOURCE: &str = "*Source: ";
const LINK: &str = "]: conversations/";
/// Begins the line about paths that only the related files of notes name.
const BESIDE: &str = "- Named in notes, but gone or moved: ";
/// The most paths in that line.
const BESIDE_MAX: usize = 12;
/// The text of an empty section.
const NOTHING: &str = "Nothing so far.";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Master {
    /// The title and all text before the first section.
    pub head: String,
    /// The heading and text of each section.
    pub parts: Vec<(String, String)>,
    /// Label and session of each link.
    pub links: Vec<(String, String)>,
    /// `2026-11-16`
    pub date: String,
    /// `5 conversations, 2 docs`
    pub source: String,
}

/// The label that each note is cited by: the first eight characters of its session, or the whole id
/// if another session begins with them.
pub fn labels<'a>(sessions: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let mut having: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for session in sessions {
        let short = session.chars().take(8).collect();
        having.entry(short).or_default().push(session);
    }
    let mut labels = BTreeMap::new();
    for (short, sessions) in having {
        for session in &sessions {
            let label = if sessions.len() == 1 {
                &short
            } else {
                *session
            };
            labels.insert((*session).to_owned(), label.to_owned());
        }
    }
    labels
}

impl Master {
    pub fn read(text: &str) -> Master {
        let mut master = Master::default();
        let mut is_code = false;
        for line in text.lines() {
            is_code ^= line.trim_start().starts_with("```");
            let link = || {
                let (label, file) = line.strip_prefix('[')?.split_once(LINK)?;
                Some((label.to_owned(), file.strip_suffix(".md")?.to_owned()))
            };
            let inner = |start: &str| Some(line.strip_prefix(start)?.strip_suffix('*')?.to_owned());
            if is_code {
                master.put(line);
            } else if let Some(name) = line.strip_prefix("## ") {
                master.parts.push((name.trim().to_owned(), String::new()));
            } else if let Some(link) = link() {
                master.links.push(link);
            } else if let Some(date) = inner(LAST) {
                master.date = date;
            } else if let Some(source) = inner(SOURCE) {
                master.source = source;
            } else {
                master.put(line);
            }
        }
        let texts = master.parts.iter_mut().map(|(_, text)| text);
        for text in texts.chain([&mut master.head]) {
            *text = text.trim().to_owned();
        }
        master
    }

    fn put(&mut self, line: &str) {
        let text = self.parts.last_mut().map_or(&mut self.head, |it| &mut it.1);
        text.push_str(line);
        text.push('\n');
    }

    pub fn part(&self, name: &str) -> Option<&str> {
        let part = self.parts.iter().find(|it| it.0 == name)?;
        Some(&part.1)
    }

    /// The sections that Foreword writes, in the master's order; the usual ones if there are none.
    pub fn names(&self, record: &SynthesisRecord) -> Vec<String> {
        let ours = self.parts.iter().filter(|it| record.knows_section(&it.0));
        let mut names: Vec<_> = ours.map(|it| it.0.clone()).collect();
        // Otherwise the user asked for other sections.
        let known = SECTIONS.iter().filter(|it| record.knows_section(it));
        let is_usual = names.is_empty() || known.count() >= 3;
        // Includes sections that a person removed; `renew` does not write those again.
        for name in SECTIONS.map(str::to_owned) {
            if is_usual && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Replaces the sections that Foreword wrote by fresh ones, and adds them to the record `now`.
    /// Returns lines about sections that a person edited or removed, with their new statements.
    pub fn renew(
        &mut self,
        fresh: &[(String, String)],
        record: &SynthesisRecord,
        now: &mut SynthesisRecord,
    ) -> Vec<String> {
        let is_fresh = |name: &str| fresh.iter().any(|it| it.0 == name);
        self.parts
            .retain(|(name, text)| is_fresh(name) || !record.is_ours(name, text));
        let mut kept = Vec::new();
        let mut after = 0;
        for (name, text) in fresh {
            let at = self.parts.iter().position(|it| it.0 == *name);
            let (there, why) = match at {
                Some(at) => (self.parts[at].1.as_str(), "kept your"),
                None => ("", "left out, as you removed it:"),
            };
            let is_theirs = match at {
                Some(_) => !record.is_ours(name, there),
                None => record.knows_section(name),
            };
            if is_theirs {
                let lines = text.lines().filter(|it| it.starts_with("- "));
                let new = lines.filter(|it| !has_statement(there, it));
                let new: Vec<_> = new.map(|it| format!("  {it}")).collect();
                if !new.is_empty() {
                    kept.push(format!("{why} `## {name}`; new there:"));
                    kept.extend(new);
                }
                let known = record.sections.iter().filter(|it| it.0 == *name);
                now.sections.extend(known.cloned());
                after = at.map_or(after, |at| at + 1);
                continue;
            }
            now.sections.insert((name.clone(), hash(text)));
            let part = (name.clone(), text.clone());
            match at {
                Some(at) => self.parts[at] = part,
                None => self.parts.insert(after, part),
            }
            after = at.unwrap_or(after) + 1;
        }
        kept
    }

    /// The text of the file. `labels` are by session.
    pub fn write(&self, labels: &BTreeMap<String, String>) -> String {
        let mut out = format!("{}\n", self.head);
        for (name, text) in &self.parts {
            let _ = write!(out, "\n## {name}\n\n{text}\n");
        }
        let _ = write!(out, "\n{LAST}{}*\n{SOURCE}{}*\n", self.date, self.source);
        let mut links: BTreeMap<_, _> = labels.iter().map(|(it, label)| (label, it)).collect();
        let known = self.links.iter().filter(|it| labels.contains_key(&it.1));
        links.extend(known.map(|(label, session)| (label, session)));
        links.retain(|label, _| out.contains(&format!("[{label}]")));
        for (number, (label, session)) in links.iter().enumerate() {
            let gap = if number == 0 { "\n" } else { "" };
            out += &format!("{gap}[{label}{LINK}{session}.md\n");
        }
        out
    }
}

/// A section as text: themes as sub-headings, citations after each statement.
pub fn worded(section: &Section, labels: &BTreeMap<String, String>) -> String {
    let mut out = section.lead.clone().unwrap_or_default();
    let mut theme = None;
    for statement in &section.statements {
        if theme != Some(&statement.theme) {
            if !out.is_empty() {
                out.push_str(if out.ends_with('\n') { "\n" } else { "\n\n" });
            }
            if let Some(theme) = &statement.theme {
                let _ = write!(out, "### {theme}\n\n");
            }
            theme = Some(&statement.theme);
        }
        let _ = writeln!(out, "{}", line(statement, labels));
    }
    if out.trim().is_empty() {
        out.push_str(NOTHING);
    }
    out.trim().to_owned()
}

/// A statement with its citations.
pub fn line(statement: &Statement, labels: &BTreeMap<String, String>) -> String {
    let cited = statement.sessions.iter().filter_map(|it| labels.get(it));
    let cited: String = cited.map(|it| format!(" [{it}]")).collect();
    format!("- {}{cited}", statement.text)
}

/// Marks paths and names that are gone or moved, and removes marks that no longer apply. Paths that
/// only the related files of notes name are listed in a line of the section `first`. Returns all
/// that were found.
pub fn mark(
    parts: &mut [(String, String)],
    first: &str,
    evidence: &Evidence<'_>,
    notes: &[Taken],
    labels: &BTreeMap<String, String>,
) -> BTreeSet<EvidenceFinding> {
    let mut found = BTreeSet::new();
    for (_, text) in &mut *parts {
        let lines = text.lines().filter(|it| !it.starts_with(BESIDE));
        let lines = lines.map(|line| {
            if !line.starts_with("- ") {
                return line.to_owned();
            }
            let cites = |it: &&Taken| line.contains(&format!("[{}]", labels[&it.session]));
            let cited = notes.iter().filter(cites);
            let related: Vec<_> = cited.flat_map(|it| it.related.iter().cloned()).collect();
            let (line, findings) = evidence.mark(line, &related);
            found.extend(findings);
            line
        });
        *text = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
    }
    let mut beside: BTreeMap<EvidenceFinding, BTreeSet<&str>> = BTreeMap::new();
    for taken in notes {
        let related = taken.related.iter();
        let findings = related.filter_map(|it| evidence.path(it, true));
        for finding in findings.filter(|it| !found.contains(it)) {
            let label = &labels[&taken.session];
            beside.entry(finding).or_default().insert(label);
        }
    }
    let part = parts.iter_mut().find(|it| it.0 == first);
    if let Some((_, text)) = part.filter(|_| !beside.is_empty()) {
        let names = beside.keys().take(BESIDE_MAX);
        let names = names.map(|it| format!("`{}` ({})", it.what, it.says));
        let labels: BTreeSet<_> = beside.values().flatten().take(BESIDE_MAX).collect();
        let labels: String = labels.iter().map(|it| format!(" [{it}]")).collect();
        let line = format!("{BESIDE}{}{labels}", names.collect::<Vec<_>>().join(", "));
        let is_list = |it: &&str| it.starts_with("- ") || it.starts_with("### ");
        let mut lines: Vec<&str> = text.lines().filter(|it| *it != NOTHING).collect();
        let at = lines.iter().position(is_list).unwrap_or(lines.len());
        let gap = lines.get(at).is_some_and(|it| it.starts_with('#'));
        lines.splice(at..at, [&*line, ""].into_iter().take(1 + usize::from(gap)));
        *text = lines.join("\n");
    }
    found.extend(beside.into_keys());
    found
}

/// Whether a text has a statement, regardless of citations and marks.
fn has_statement(text: &str, line: &str) -> bool {
    let bare = |line: &str| {
        let line = unmarked(line);
        let end = line.find(" [").unwrap_or(line.len());
        line[..end].to_owned()
    };
    let line = bare(line);
    text.lines().any(|it| bare(it) == line)
}
