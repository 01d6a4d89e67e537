//! Words for edits: which files, which lines, which names were defined in them.
//!
//! Several edits of a file are told as one change: a line that came and went again
//! was never there.

use foreword_core::text::{count, shorten};

use super::steps::Edit;

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
    let paths = paths(edits);
    match paths.as_slice() {
        [] => "no edited files".to_owned(),
        [one] => (*one).to_owned(),
        [one, two] => format!("{one}, {two}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
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

pub fn sentence(edits: &[&Edit]) -> String {
    let changes = changes(edits);
    let listed = |created: bool, verb: &str| {
        let of_kind = changes.iter().filter(|it| it.created.is_some() == created);
        let paths: Vec<&str> = of_kind.map(|it| it.path).collect();
        (!paths.is_empty()).then(|| format!("{verb} {}", paths.join(", ")))
    };
    match (listed(true, "Created"), listed(false, "Changed")) {
        (None, None) => String::new(),
        (Some(one), None) | (None, Some(one)) => format!("{one}."),
        (Some(created), Some(changed)) => format!("{created}. {changed}."),
    }
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

fn fact(change: &Change<'_>) -> Option<String> {
    let telling = |lines: &[&'_ str]| -> Vec<String> {
        let own = lines.iter().filter(|line| !is_import(line));
        own.map(|line| (*line).to_owned()).collect()
    };
    let (mut removed, mut added) = (telling(&change.removed), telling(&change.added));
    if removed.is_empty() && added.is_empty() {
        removed = change.removed.iter().map(|it| (*it).to_owned()).collect();
        added = change.added.iter().map(|it| (*it).to_owned()).collect();
    }
    let defined = names_defined(change);
    let defines = match defined.as_slice() {
        [] => String::new(),
        names => format!(", defines {}", quoted(names)),
    };
    if let Some(lines) = change.created {
        let lines = count(lines as u64, "line", "lines");
        return Some(format!(" is new, {lines}{defines}"));
    }
    match (removed.as_slice(), added.as_slice()) {
        ([], []) => None,
        ([old], [new]) if defined.is_empty() => Some(replaced(old, new)),
        ([], new @ ([_] | [_, _])) if defined.is_empty() => Some(format!(": added {}", code(new))),
        (old @ ([_] | [_, _]), []) => Some(format!(": removed {}", code(old))),
        ([_] | [_, _], [_] | [_, _]) if defined.is_empty() => {
            Some(format!(": {} became {}", code(&removed), code(&added)))
        }
        _ => {
            // The longest line tells most.
            let sample = added.iter().rev().max_by_key(|line| line.len().min(70));
            let sample = sample.filter(|_| defined.is_empty());
            let sample = sample.map(|line| format!(", among them `{}`", shorten(line, 70)));
            let lines = count(change.added.len() as u64, "line", "lines");
            let gone = change.removed.len();
            let sample = sample.unwrap_or_default();
            Some(format!(": {lines} in, {gone} out{sample}{defines}"))
        }
    }
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
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(same)
        .count();
    let tail = tail.min(shorter - head);
    // A word before, so that `40` becomes `"pool": 40`.
    let from = head.saturating_sub(usize::from(head + tail < shorter));
    let middle = |words: &[&str]| words[from..words.len() - tail].join(" ");
    let (old, new) = (middle(&old), middle(&new));
    match (old.as_str(), new.as_str()) {
        ("", new) => format!(": now also `{}`", shorten(new, 100)),
        (old, "") => format!(": no longer `{}`", shorten(old, 100)),
        (old, new) => format!(": `{}` became `{}`", shorten(old, 100), shorten(new, 100)),
    }
}

fn code(lines: &[String]) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| format!("`{}`", shorten(line, 80)))
        .collect();
    lines.join(" ")
}

/// ``a`, `b` and 2 more`.
pub fn quoted(names: &[String]) -> String {
    let shown = names.iter().take(4).map(|name| format!("`{name}`"));
    let shown: Vec<String> = shown.collect();
    match names.len().saturating_sub(4) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn is_import(line: &str) -> bool {
    [
        "import ", "from ", "use ", "#include", "require(", "mod ", "package ",
    ]
    .iter()
    .any(|it| line.starts_with(it))
}

/// Names that the changes define and that were not defined before, tests last.
pub fn new_names(edits: &[&Edit]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in changes(edits).iter().flat_map(names_defined) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_by_key(|name| name.to_lowercase().starts_with("test"));
    names
}

fn names_defined(change: &Change<'_>) -> Vec<String> {
    let before: Vec<&str> = change.removed.iter().filter_map(|it| defined(it)).collect();
    let mut names: Vec<String> = Vec::new();
    for name in change.added.iter().filter_map(|it| defined(it)) {
        if !before.contains(&name) && !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The name that a line of source defines.
fn defined(line: &str) -> Option<&str> {
    let keywords = [
        "def ",
        "class ",
        "fn ",
        "struct ",
        "enum ",
        "trait ",
        "function ",
        "func ",
        "interface ",
    ];
    let mut rest = line;
    for word in [
        "export ",
        "default ",
        "pub ",
        "pub(crate) ",
        "async ",
        "static ",
        "unsafe ",
    ] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let rest = keywords
        .iter()
        .find_map(|keyword| rest.strip_prefix(keyword))?;
    let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    (!name.is_empty() && !name.starts_with("__")).then_some(name)
}

/// Words that a sentence about these edits would use: identifiers and file names.
pub fn words(edits: &[&Edit]) -> Vec<String> {
    let common = [
        "return", "self", "from", "import", "with", "none", "true", "false", "test", "tests",
    ];
    let mut words: Vec<String> = Vec::new();
    let lines = edits
        .iter()
        .flat_map(|edit| edit.added.iter().chain(&edit.removed));
    let paths = edits.iter().map(|edit| &edit.file.path);
    for text in lines.chain(paths) {
        for word in text.split(|it: char| !it.is_alphanumeric() && it != '_') {
            let word = word.to_lowercase();
            if word.chars().count() >= 4
                && !common.contains(&word.as_str())
                && !words.contains(&word)
            {
                words.push(word);
            }
        }
    }
    words
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
