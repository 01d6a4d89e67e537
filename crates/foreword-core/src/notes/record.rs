//! The record of the last synthesis: its sources and results, as plain lines in the file
//! `synthesis` beside the master.
//!
//! It shows which notes are new, and which sections are as Foreword wrote them; all other sections
//! were edited by a person and belong to them. Two branches may both have changed the file, so
//! lines are sorted and unknown lines are ignored. Without the record the next synthesis reads
//! everything again, and treats every section of an existing master as a person's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SynthesisRecord {
    /// `2026-11-16`
    pub date: Option<String>,
    /// The git commit.
    pub head: Option<String>,
    /// Who wrote the master: `model` or `offline`.
    pub by: Option<String>,
    /// The hash of each note, by session.
    pub notes: BTreeMap<String, String>,
    /// The hash of each document, by path.
    pub docs: BTreeMap<String, String>,
    /// Files that statements name and that existed.
    pub files: BTreeSet<String>,
    /// Name and hash of each section that Foreword wrote. While the master is being written, both
    /// the old and the new hash are recorded, so that a crash does not make it look edited.
    pub sections: BTreeSet<(String, String)>,
    /// The hash of the master that a proposal would replace.
    pub master: Option<String>,
}

pub fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

impl SynthesisRecord {
    pub fn read(text: &str) -> SynthesisRecord {
        let mut record = SynthesisRecord::default();
        let mut in_conflict = false;
        for line in text.lines() {
            // An unresolved conflict: its lines are ignored, so those notes are read again.
            in_conflict |= line.starts_with("<<<<<<< ");
            in_conflict &= !line.starts_with(">>>>>>> ");
            if in_conflict && !line.starts_with("section ") {
                continue;
            }
            let (key, rest) = line.trim().split_once(' ').unwrap_or_default();
            let pair = rest
                .rsplit_once(' ')
                .filter(|(_, hash)| hash.len() == 16)
                .map(|(name, hash)| (name.to_owned(), hash.to_owned()));
            match (key, pair) {
                ("date", _) => record.date = record.date.max(Some(rest.to_owned())),
                ("file", _) => drop(record.files.insert(rest.to_owned())),
                ("head", _) => record.head = Some(rest.to_owned()),
                ("by", _) => record.by = Some(rest.to_owned()),
                ("master", _) => record.master = Some(rest.to_owned()),
                ("note", Some(pair)) => record.notes.extend([pair]),
                ("doc", Some(pair)) => record.docs.extend([pair]),
                ("section", Some(pair)) => record.sections.extend([pair]),
                _ => {}
            }
        }
        record
    }

    /// Whether a section is as Foreword last wrote it.
    pub fn is_ours(&self, name: &str, text: &str) -> bool {
        self.sections.contains(&(name.to_owned(), hash(text)))
    }

    pub fn knows_section(&self, name: &str) -> bool {
        self.sections.iter().any(|(it, _)| it == name)
    }

    /// The sessions whose notes are new, or have changed since this record.
    pub fn news(&self, notes: &BTreeMap<String, String>) -> BTreeSet<String> {
        let is_new = |(session, hash): &(&String, &String)| self.notes.get(*session) != Some(hash);
        notes.iter().filter(is_new).map(|it| it.0.clone()).collect()
    }
}

impl fmt::Display for SynthesisRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = [
            ("date", &self.date),
            ("head", &self.head),
            ("by", &self.by),
            ("master", &self.master),
        ];
        for (key, value) in one {
            if let Some(value) = value {
                writeln!(f, "{key} {value}")?;
            }
        }
        for (key, pairs) in [("doc", &self.docs), ("note", &self.notes)] {
            for (name, hash) in pairs {
                writeln!(f, "{key} {name} {hash}")?;
            }
        }
        let mut files = self.files.iter();
        files.try_for_each(|path| writeln!(f, "file {path}"))?;
        let mut sections = self.sections.iter();
        sections.try_for_each(|(name, hash)| writeln!(f, "section {name} {hash}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_a_merge_left_is_passed_over() {
        let (a, b) = (hash("a"), hash("b"));
        let record = SynthesisRecord {
            date: Some("2026-11-16".into()),
            head: Some("0123".into()),
            by: Some("model".into()),
            notes: [("s 1".into(), a.clone())].into(),
            docs: [("docs/a b.md".into(), b.clone())].into(),
            files: ["src/a b.rs".into()].into(),
            sections: [("Key Decisions".into(), a.clone())].into(),
            master: None,
        };
        let text = record.to_string();
        assert_eq!(SynthesisRecord::read(&text), record);
        let merged = format!(
            "{text}<<<<<<< ours\nnote s3 {b}\n=======\nnote s4 {b}\n>>>>>>> x\nnote s2 {b}\nnote\njunk x\n"
        );
        let mut both = record.clone();
        both.notes.insert("s2".into(), b);
        assert_eq!(SynthesisRecord::read(&merged), both);
        assert!(record.is_ours("Key Decisions", "a") && !record.is_ours("Key Decisions", "b"));
        assert_eq!(record.news(&both.notes), ["s2".to_owned()].into());
    }
}
