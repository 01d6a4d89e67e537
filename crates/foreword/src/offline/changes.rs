//! Words for edits: which files, which lines, which names were defined in them.
//!
//! Several edits of a file are told as one change: a line that came and went again
//! was never there.

use foreword_core::text::{count, shorten};

use super::steps::Edit;
use super::{code, once, speech};

/// What edits made of one file.
#[derive(Debug, PartialEq)]
pub struct Change<'a> {
    pub path: &'a str,
    /// How long it was when it was made, if these edits made it.
    pub created: Option<usize>,
    /// Lines that are gone and lines that are there now, in the order of the edits.
    pub removed: Vec<&'a str>,
    pub added: Vec<&'a str>,
}

/// The changes that these edits come to, those of tests last.
pub fn changes<'a>(edits: &[&'a Edit]) -> Vec<Change<'a>> {
    let mut changes: Vec<Change<'a>> = Vec::new();
    for edit in edits {
        let path = edit.file.path.as_str();
        let at = changes.iter().position(|it| it.path == path);
        let at = at.unwrap_or_else(|| {
            changes.push(Change {
                path,
                created: edit.created.then_some(edit.lines),
                removed: Vec::new(),
                added: Vec::new(),
            });
            changes.len() - 1
        });
        let change = &mut changes[at];
        for line in &edit.removed {
            match change.added.iter().rposition(|it| it == line) {
                Some(at) => drop(change.added.remove(at)),
                None => change.removed.push(line),
            }
        }
        for line in &edit.added {
            match change.removed.iter().position(|it| it == line) {
                Some(at) => drop(change.removed.remove(at)),
                None => change.added.push(line),
            }
        }
    }
    changes.sort_by_key(|change| is_test(change.path));
    changes
}

fn is_test(path: &str) -> bool {
    let mut parts = path.split(['/', '.', '_', '-']);
    parts.any(|part| matches!(part, "test" | "tests" | "spec"))
}

pub fn paths<'a>(edits: &[&'a Edit]) -> Vec<&'a str> {
    changes(edits).iter().map(|change| change.path).collect()
}

/// `src/a.rs, src/b.rs and 3 more`.
pub fn names(edits: &[&Edit]) -> String {
    match paths(edits).as_slice() {
        [] => "no edited files".to_owned(),
        [one, two, rest @ ..] if !rest.is_empty() => {
            format!("{one}, {two} and {} more", rest.len())
        }
        few => few.join(", "),
    }
}

/// `shelf.py (+14 −3), README.md (+1)`.
pub fn sizes(edits: &[&Edit]) -> String {
    let size = |change: &Change<'_>| match (change.added.len(), change.removed.len()) {
        (added, 0) => format!("{} (+{added})", change.path),
        (added, removed) => format!("{} (+{added} −{removed})", change.path),
    };
    let sizes: Vec<String> = changes(edits).iter().map(size).collect();
    shorten(&sizes.join(", "), 140).into_owned()
}

/// `Created a.rs. Changed b.rs, c.rs.`
pub fn sentence(edits: &[&Edit]) -> String {
    let changes = changes(edits);
    let said = [("Created", true), ("Changed", false)].map(|(verb, created)| {
        let of_kind = changes.iter().filter(|it| it.created.is_some() == created);
        let paths: Vec<&str> = of_kind.map(|it| it.path).collect();
        match paths.is_empty() {
            true => String::new(),
            false => format!("{verb} {}. ", paths.join(", ")),
        }
    });
    said.concat().trim_end().to_owned()
}

/// One fact per file: the lines that changed, or how much there is of it and what
/// it defines.
pub fn facts(edits: &[&Edit]) -> Vec<String> {
    let changes = changes(edits);
    let facts = changes.iter().filter_map(|change| {
        let what = fact(change)?;
        Some(format!("{}{what}", change.path))
    });
    facts.collect()
}

fn fact<'a>(change: &Change<'a>) -> Option<String> {
    let defined = names_defined(change);
    let defines = match defined.as_slice() {
        [] => String::new(),
        names => format!(", defines {}", quoted(names)),
    };
    if let Some(lines) = change.created {
        let lines = count(lines as u64, "line", "lines");
        return Some(format!(" is new, {lines}{defines}"));
    }
    let telling = |lines: &[&'a str]| -> Vec<&'a str> {
        let own = lines.iter().filter(|line| !is_import(line));
        own.copied().collect()
    };
    let (mut removed, mut added) = (telling(&change.removed), telling(&change.added));
    if removed.is_empty() && added.is_empty() {
        (removed, added) = (change.removed.clone(), change.added.clone());
    }
    let few = removed.len() <= 2 && added.len() <= 2 && defined.is_empty();
    Some(match (removed.as_slice(), added.as_slice()) {
        ([], []) => return None,
        ([old], [new]) if few => replaced(old, new),
        ([], new) if few => format!(": added {}", codes(new)),
        (old, []) if few => format!(": removed {}", codes(old)),
        (old, new) if few => format!(": {} became {}", codes(old), codes(new)),
        _ => {
            // The longest line tells most.
            let sample = added.iter().rev().max_by_key(|line| line.len().min(70));
            let sample = sample.filter(|_| defined.is_empty());
            let sample = sample.map(|line| format!(", among them {}", code(line, 70)));
            let lines = count(change.added.len() as u64, "line", "lines");
            let gone = change.removed.len();
            let sample = sample.unwrap_or_default();
            format!(": {lines} in, {gone} out{sample}{defines}")
        }
    })
}

/// Of long lines, only the words that differ.
fn replaced(old: &str, new: &str) -> String {
    if old.len().max(new.len()) <= 60 {
        return format!(": `{old}` became `{new}`");
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split(' ').collect(), new.split(' ').collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let shorter = old.len().min(new.len());
    let head = old.iter().zip(&new).take_while(same).count();
    let ends = old.iter().rev().zip(new.iter().rev());
    let tail = ends.take_while(same).count().min(shorter - head);
    // A word before, so that `40` becomes `"pool": 40`.
    let from = head.saturating_sub(usize::from(head + tail < shorter));
    let middle = |words: &[&str]| code(&words[from..words.len() - tail].join(" "), 100);
    match (middle(&old), middle(&new)) {
        (old, new) if old == "``" => format!(": now also {new}"),
        (old, new) if new == "``" => format!(": no longer {old}"),
        (old, new) => format!(": {old} became {new}"),
    }
}

fn codes(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| code(line, 80)).collect();
    lines.join(" ")
}

/// ``a`, `b` and 2 more`.
pub fn quoted(names: &[String]) -> String {
    let shown = names.iter().take(4).map(|name| format!("`{name}`"));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(4) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn is_import(line: &str) -> bool {
    let marks = "import |from |use |#include|require(|mod |package ";
    marks.split('|').any(|it| line.starts_with(it))
}

/// Names that the changes define and that were not defined before, tests last.
pub fn new_names(edits: &[&Edit]) -> Vec<String> {
    let changes = changes(edits);
    let mut names = once(changes.iter().flat_map(names_defined), |a, b| a == b);
    names.sort_by_key(|name| name.to_lowercase().starts_with("test"));
    names
}

fn names_defined(change: &Change<'_>) -> Vec<String> {
    let before: Vec<&str> = change.removed.iter().filter_map(|it| defined(it)).collect();
    let now = change.added.iter().filter_map(|it| defined(it));
    let new = now.filter(|name| !before.contains(name)).map(str::to_owned);
    once(new, |a, b| a == b)
}

/// The name that a line of source defines.
fn defined(line: &str) -> Option<&str> {
    let modifiers = "export default pub pub(crate) async static unsafe";
    let keywords = "def class fn struct enum trait function func interface";
    let is_modifier = |word: &&str| modifiers.split(' ').any(|it| it == *word);
    let mut words = line.split(' ').skip_while(is_modifier);
    let keyword = words.next()?;
    keywords.split(' ').find(|it| *it == keyword)?;
    let name = words.next()?;
    let end = name.find(|it: char| !it.is_alphanumeric() && it != '_');
    let name = &name[..end.unwrap_or(name.len())];
    (!name.is_empty() && !name.starts_with("__")).then_some(name)
}

/// Words that a sentence about these edits would use: identifiers and file names.
pub fn words(edits: &[&Edit]) -> Vec<String> {
    let common = [
        "return", "self", "from", "import", "with", "none", "true", "false", "test", "tests",
    ];
    let lines = edits
        .iter()
        .flat_map(|it| it.added.iter().chain(&it.removed));
    let paths = edits.iter().map(|edit| &edit.file.path);
    let words = lines.chain(paths).flat_map(|text| speech::words(text));
    let words = words.map(str::to_lowercase);
    let telling = words.filter(|it| it.chars().count() >= 4 && !common.contains(&it.as_str()));
    once(telling, |a, b| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_line_only_what_differs_is_shown() {
        let line =
            |middle: &str| format!("connect(\"a-rather-long-host.example\", {middle} retries = 3)");
        for (old, new, expected) in [
            ("port = 40,", "port = 20,", ": `= 40,` became `= 20,`"),
            ("", "port = 40,", ": now also `port = 40,`"),
            ("port = 40,", "", ": no longer `port = 40,`"),
        ] {
            let spaced = |middle: &str| line(middle).replace(",  ", ", ");
            assert_eq!(replaced(&spaced(old), &spaced(new)), expected);
        }
    }
}
