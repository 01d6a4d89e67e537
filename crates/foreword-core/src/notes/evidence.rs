//! Compares notes with the project as it is, and marks paths that are gone or moved.
//!
//! A false alarm is worse than none, since it stands in a file that people trust. So a path
//! counts only if it looks like one of this project or was there at the last synthesis. The mark
//! stands beside the path: `src/pay.rs (gone)`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Component, Path};

use super::real;

/// The history of a path that no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MentionFate {
    Gone,
    Moved(String),
    /// The history does not know it.
    Never,
    /// There is no history.
    Unknown,
}

/// The project's history. Core never runs git; the program implements this.
pub trait History {
    fn fate(&self, path: &str) -> MentionFate;
}

/// No history at all.
impl History for () {
    fn fate(&self, _: &str) -> MentionFate {
        MentionFate::Unknown
    }
}

/// The project as it is now, and its past.
pub struct Evidence<'a> {
    root: &'a Path,
    history: &'a dyn History,
    /// Files that statements named when they were there.
    known: &'a BTreeSet<String>,
    named: RefCell<BTreeSet<String>>,
}

/// A path and the mark beside it: `src/pay.rs`, `gone`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvidenceFinding {
    pub what: String,
    pub says: String,
}

const MARKS: [&str; 2] = [" (gone)", " (moved to "];

/// A word that may be a path, and its end in the text.
struct Mention<'a> {
    word: &'a str,
    end: usize,
    is_code: bool,
}

impl<'a> Evidence<'a> {
    pub fn new(
        root: &'a Path,
        history: &'a dyn History,
        known: &'a BTreeSet<String>,
    ) -> Evidence<'a> {
        Evidence {
            root,
            history,
            known,
            named: RefCell::default(),
        }
    }

    /// The files that statements named so far and that are there, or were.
    pub fn named(&self) -> BTreeSet<String> {
        self.named.borrow().clone()
    }

    /// Whether a path is a file of this project, or was one.
    fn is_known(&self, path: &str) -> bool {
        let is_file = || self.is_inside(path) && self.root.join(path).is_file();
        let is_known = self.known.contains(path) || is_file();
        if is_known {
            self.named.borrow_mut().insert(path.to_owned());
        }
        is_known
    }

    /// The paths that a note's related files name.
    pub fn related(lines: &[String]) -> Vec<String> {
        let words = lines.iter().flat_map(|line| words(line));
        words.filter_map(|it| path_of(it.word)).collect()
    }

    /// A mark for a path; none if it exists, or if its history is not clear.
    pub fn path(&self, path: &str, is_related: bool) -> Option<EvidenceFinding> {
        if !self.is_inside(path) || self.root.join(path).symlink_metadata().is_ok() {
            return None;
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let looks_so = name.rsplit_once('.').is_some_and(|(name, ending)| {
            let is_word = ending.starts_with(|it: char| it.is_ascii_alphabetic())
                && ending.chars().all(|it| it.is_ascii_alphanumeric());
            !folder.is_empty() && !name.is_empty() && is_word && ending.len() <= 8
        });
        let fate = self.history.fate(path);
        let is_gone = match fate {
            MentionFate::Gone | MentionFate::Moved(_) => true,
            MentionFate::Never => is_related && looks_so || self.known.contains(path),
            MentionFate::Unknown => looks_so || self.known.contains(path),
        };
        let says = match fate {
            _ if !is_gone => return None,
            MentionFate::Moved(to) => format!("moved to {to}"),
            _ => "gone".to_owned(),
        };
        let what = path.to_owned();
        Some(EvidenceFinding { what, says })
    }

    /// A statement with marks beside paths that are gone or moved. `related`: the paths
    /// of its notes.
    pub fn mark(&self, text: &str, related: &[String]) -> (String, Vec<EvidenceFinding>) {
        let text = unmarked(text);
        let mut marks: Vec<(usize, EvidenceFinding)> = Vec::new();
        for word in words(&text) {
            let is_meant = |it: &String| self.is_known(it) || word.is_code || it.contains('/');
            if let Some(path) = path_of(word.word).filter(is_meant)
                && let Some(found) = self.path(&path, related.contains(&path))
            {
                marks.push((word.end, found));
            }
        }
        let mut seen = BTreeSet::new();
        marks.retain(|(_, finding)| seen.insert(finding.clone()));
        marks.sort();
        let mut marked = text.clone();
        for (end, finding) in marks.iter().rev() {
            marked.insert_str(*end, &format!(" ({})", finding.says));
        }
        (marked, marks.into_iter().map(|it| it.1).collect())
    }

    /// Whether the existing part of the path, with links followed, is inside the project.
    fn is_inside(&self, path: &str) -> bool {
        let plain = |it| matches!(it, Component::Normal(_));
        Path::new(path).components().all(plain)
            && real(&self.root.join(path)).is_some_and(|it| it.starts_with(self.root))
    }
}

/// The text without marks.
pub fn unmarked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = MARKS.iter().filter_map(|it| rest.find(it)).min() {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // A mark directly follows a path and has at most three words; anything else in
        // parentheses is text.
        let end = rest.find(')').filter(|end| {
            let inner = rest[2..*end].split(' ').count();
            inner <= 3 && out.ends_with(|it: char| !it.is_whitespace())
        });
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => {
                out.push_str(&rest[..2]);
                rest = &rest[2..];
            }
        }
    }
    out + rest
}

/// Code spans, and words outside of them.
fn words<'a>(text: &'a str) -> Vec<Mention<'a>> {
    let mut words = Vec::new();
    let mut start = 0;
    for (number, piece) in text.split('`').enumerate() {
        let is_code = number % 2 == 1 && start + piece.len() < text.len();
        let mut push = |word: &'a str| {
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            // After the closing quote.
            let end = at + word.len() + usize::from(is_code);
            words.push(Mention { word, end, is_code });
        };
        start += piece.len() + 1;
        if is_code {
            push(piece);
            continue;
        }
        for word in piece.split_whitespace() {
            let bare = word.trim_matches(|it: char| "()[]{},;:!?\"'*_".contains(it));
            push(bare.trim_end_matches('.'));
        }
    }
    words
}

/// A path below the root, without the line it points at; none for what only looks like one.
fn path_of(word: &str) -> Option<String> {
    let path = word.strip_prefix("./").unwrap_or(word);
    let path = path.split('#').next().unwrap_or(path);
    let (path, line) = path.split_once(':').unwrap_or((path, ""));
    let is_line = |it: char| it.is_ascii_digit() || ":-–L".contains(it);
    let is_plain = |it: char| it.is_alphanumeric() || "/._-+".contains(it);
    let path = path.trim_end_matches('/');
    let parts: Vec<_> = path.split('/').collect();
    // `example.com/x.html` is an address, `1.2/1.3` are versions, `path/to/x.rs` is nobody's file.
    let is_elsewhere = parts.len() > 1 && parts[0].trim_start_matches('.').contains('.');
    let has_name = path.contains('/') || path.contains('.');
    let is_path = line.chars().all(is_line)
        && has_name
        && path.chars().all(is_plain)
        && !path.starts_with(['/', '-'])
        && !parts.iter().any(|it| it.is_empty() || *it == "..")
        && !is_elsewhere
        && !path.starts_with("path/to/");
    is_path.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Past;

    impl History for Past {
        fn fate(&self, path: &str) -> MentionFate {
            match path {
                "src/pay.rs" => MentionFate::Gone,
                "src/old.rs" => MentionFate::Moved("src/new.rs".into()),
                _ => MentionFate::Never,
            }
        }
    }

    fn marked(history: &dyn History, text: &str, related: &[&str]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("src/new.rs"), "fn refund() {}").unwrap();
        std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
        let related: Vec<_> = related.iter().map(|it| (*it).to_owned()).collect();
        let (text, findings) = Evidence::new(&root, history, &BTreeSet::new()).mark(text, &related);
        assert_eq!(findings.is_empty(), unmarked(&text) == text);
        text
    }

    #[test]
    fn what_is_gone_or_moved_is_marked_where_it_is_named() {
        for (text, expected) in [
            (
                "Fees are in src/pay.rs, see src/pay.rs.",
                "Fees are in src/pay.rs (gone), see src/pay.rs.",
            ),
            (
                "`src/pay.rs:12-30` rounds",
                "`src/pay.rs:12-30` (gone) rounds",
            ),
            ("(src/old.rs)", "(src/old.rs (moved to src/new.rs))"),
            (
                "`refund` in `src/new.rs` (gone)",
                "`refund` in `src/new.rs`",
            ),
        ] {
            assert_eq!(marked(&Past, text, &[]), expected);
        }
        assert_eq!(
            marked(&Past, "src/own.rs", &["src/own.rs"]),
            "src/own.rs (gone)"
        );
    }

    #[test]
    fn what_only_looks_like_a_path_is_left_alone() {
        for text in [
            "see https://example.com/a/b.html and example.com/x.html",
            "and/or, read/write, 1.2/1.3, v1.2.0, 24/7",
            "`src/**/*.rs` and `src/{a,b}.rs`, `src/<name>.rs`, path/to/file.rs",
            "`cargo test src/x.rs` with `npm` and `JWT` in `src/new.rs`",
            "../outside.rs, /etc/nothing.conf, out/nothing.conf, ~/x.rs",
            "Nothing is left of `src/new.rs` (gone are the days)",
            "`charge` rounds up",
            "Section 3.2 of notes.docx",
        ] {
            assert_eq!(marked(&Past, text, &[]), text);
            assert_eq!(marked(&(), text, &[]), text);
        }
    }

    #[test]
    fn without_a_history_a_path_that_looks_like_one_counts() {
        assert_eq!(
            marked(&(), "src/new.rs, src/a.rs, charge.rs", &[]),
            "src/new.rs, src/a.rs (gone), charge.rs"
        );
    }

    #[test]
    fn a_file_that_was_there_last_time_is_missed_by_its_bare_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let text = "Node.js reads limit.txt first";
        fs::write(root.join("limit.txt"), "7").unwrap();
        let none = BTreeSet::new();
        let evidence = Evidence::new(&root, &(), &none);
        assert_eq!(evidence.mark(text, &[]).0, text);
        let named = evidence.named();
        assert_eq!(named, ["limit.txt".to_owned()].into());
        fs::remove_file(root.join("limit.txt")).unwrap();
        let evidence = Evidence::new(&root, &(), &named);
        let marked = "Node.js reads limit.txt (gone) first";
        assert_eq!(evidence.mark(text, &[]).0, marked);
        assert_eq!(evidence.mark(marked, &[]).0, marked);
        assert_eq!(evidence.named(), named);
    }
}
