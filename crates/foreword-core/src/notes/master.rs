//! The master as a file: sections of cited statements, and what people wrote between them.
//!
//! A section that is as it was last written (the record knows) is replaced by the fresh one;
//! every other is a person's and stays, and what would have been new there is said instead.
//! Citations are reference links to the notes, resolved in the last lines of the file.

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
/// Begins the line about what only related files name; it names so many.
const BESIDE: &str = "- Named by notes, but not there as they say: ";
const BESIDE_MAX: usize = 12;
/// What an empty section says.
const NOTHING: &str = "Nothing so far.";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Master {
    /// The title and what stands before the first section.
    pub head: String,
    /// Heading, and what stands under it.
    pub parts: Vec<(String, String)>,
    /// Label and session of the links that are there.
    pub links: Vec<(String, String)>,
    /// `2026-11-16`, `5 conversations, 2 docs`
    pub date: String,
    pub source: String,
}

/// How each note is cited: by the first eight characters of its session, if no other has them.
#[must_use]
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
    #[must_use]
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

    #[must_use]
    pub fn part(&self, name: &str) -> Option<&str> {
        let part = self.parts.iter().find(|it| it.0 == name)?;
        Some(&part.1)
    }

    /// The sections that are ours by name, in the master's order; the usual ones if there are none.
    #[must_use]
    pub fn names(&self, record: &SynthesisRecord) -> Vec<String> {
        let ours = self.parts.iter().filter(|it| record.knows_section(&it.0));
        let mut names: Vec<_> = ours.map(|it| it.0.clone()).collect();
        // Else somebody asked for sections of their own.
        let known = SECTIONS.iter().filter(|it| record.knows_section(it));
        let is_usual = names.is_empty() || known.count() >= 3;
        // Those that a person removed, too: `renew` knows that they are not to come back.
        for name in SECTIONS.map(str::to_owned) {
            if is_usual && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Puts fresh sections, as texts, in the place of ours, and fills in which sections are ours
    /// now. Gives lines about those that a person edited or removed: what would have been new there.
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

    /// `labels` by session.
    #[must_use]
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
#[must_use]
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
#[must_use]
pub fn line(statement: &Statement, labels: &BTreeMap<String, String>) -> String {
    let cited = statement.sessions.iter().filter_map(|it| labels.get(it));
    let cited: String = cited.map(|it| format!(" [{it}]")).collect();
    format!("- {}{cited}", statement.text)
}

/// Sets marks beside what is no longer there, and takes away those that are no longer so. What
/// only related files name is said in a line of the section `first`. Gives what was found.
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

/// Whether a statement stands there, however it is cited or marked.
fn has_statement(text: &str, line: &str) -> bool {
    let bare = |line: &str| {
        let line = unmarked(line);
        let end = line.find(" [").unwrap_or(line.len());
        line[..end].to_owned()
    };
    let line = bare(line);
    text.lines().any(|it| bare(it) == line)
}
