//! Words for edits: which files, which lines, which names were defined in them.

use foreword_core::text::{count, shorten};

use super::steps::Edit;

pub fn paths<'a>(edits: &[&'a Edit]) -> Vec<&'a str> {
    let mut paths: Vec<&str> = Vec::new();
    for edit in edits {
        if !paths.contains(&edit.file.path.as_str()) {
            paths.push(&edit.file.path);
        }
    }
    paths
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
    let size = |path: &str| {
        let of_file = || edits.iter().filter(|edit| edit.file.path == path);
        let added: usize = of_file()
            .map(|edit| edit.added.len().max(new_lines(edit)))
            .sum();
        let removed: usize = of_file().map(|edit| edit.removed.len()).sum();
        match (added, removed) {
            (added, 0) => format!("{path} (+{added})"),
            (added, removed) => format!("{path} (+{added} −{removed})"),
        }
    };
    let sizes: Vec<String> = paths(edits).into_iter().map(size).collect();
    shorten(&sizes.join(", "), 140).into_owned()
}

fn new_lines(edit: &Edit) -> usize {
    if edit.created { edit.lines } else { 0 }
}

pub fn sentence(edits: &[&Edit]) -> String {
    if edits.is_empty() {
        return String::new();
    }
    let created: Vec<_> = edits.iter().copied().filter(|edit| edit.created).collect();
    let created = paths(&created);
    let changed: Vec<_> = paths(edits)
        .into_iter()
        .filter(|path| !created.contains(path))
        .collect();
    let mut parts = Vec::new();
    if !created.is_empty() {
        parts.push(format!("Created {}", created.join(", ")));
    }
    if !changed.is_empty() {
        let verb = if parts.is_empty() {
            "Changed"
        } else {
            "changed"
        };
        parts.push(format!("{verb} {}", changed.join(", ")));
    }
    format!("{}.", parts.join("; "))
}

/// One fact per file: the lines that changed, or how much there is of it and what
/// it defines.
pub fn facts(edits: &[&Edit]) -> Vec<String> {
    paths(edits)
        .into_iter()
        .map(|path| fact(path, edits))
        .collect()
}

fn fact(path: &str, edits: &[&Edit]) -> String {
    let of_file: Vec<&Edit> = edits
        .iter()
        .copied()
        .filter(|edit| edit.file.path == path)
        .collect();
    let defined = new_names(&of_file);
    let defines = match defined.as_slice() {
        [] => String::new(),
        names => format!(", defines {}", quoted(names)),
    };
    if let Some(edit) = of_file.iter().find(|edit| edit.created) {
        let lines = count(edit.lines as u64, "line", "lines");
        return format!("{path} is new, {lines}{defines}");
    }
    let tells = |edit: &&&Edit| {
        !edit
            .added
            .iter()
            .chain(&edit.removed)
            .all(|it| is_import(it))
    };
    let telling = of_file.iter().find(tells).or(of_file.first());
    if let Some(edit) = telling
        && defined.is_empty()
        && (1..=2).contains(&edit.removed.len())
        && (1..=2).contains(&edit.added.len())
    {
        return format!(
            "{path}: {} became {}",
            code(&edit.removed),
            code(&edit.added)
        );
    }
    let added: usize = of_file.iter().map(|edit| edit.added.len()).sum();
    let removed: usize = of_file.iter().map(|edit| edit.removed.len()).sum();
    let sample = telling
        .and_then(|edit| edit.added.first())
        .filter(|_| defined.is_empty())
        .map(|line| format!(", among them `{}`", shorten(line, 70)));
    let added = count(added as u64, "line", "lines");
    format!(
        "{path}: {added} in, {removed} out{}{defines}",
        sample.unwrap_or_default()
    )
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
    let shown: Vec<String> = names
        .iter()
        .take(4)
        .map(|name| format!("`{name}`"))
        .collect();
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

/// Names that added lines define and removed ones did not, tests last.
pub fn new_names(edits: &[&Edit]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let gone = |name: &str| {
        edits
            .iter()
            .flat_map(|edit| &edit.removed)
            .any(|line| defined(line) == Some(name))
    };
    for line in edits.iter().flat_map(|edit| &edit.added) {
        if let Some(name) = defined(line)
            && !gone(name)
            && !names.iter().any(|it| it == name)
        {
            names.push(name.to_owned());
        }
    }
    names.sort_by_key(|name| name.to_lowercase().starts_with("test"));
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
        "create table ",
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
    let mut words: Vec<String> = Vec::new();
    let lines = edits
        .iter()
        .flat_map(|edit| edit.added.iter().chain(&edit.removed));
    let paths = paths(edits).into_iter().map(str::to_owned);
    for text in lines.cloned().chain(paths) {
        for word in text.split(|it: char| !it.is_alphanumeric() && it != '_') {
            let common = [
                "return", "self", "from", "import", "with", "none", "true", "false", "test",
            ];
            if word.chars().count() >= 4
                && !common.contains(&word.to_lowercase().as_str())
                && !words.iter().any(|it| it.eq_ignore_ascii_case(word))
            {
                words.push(word.to_owned());
            }
        }
    }
    words
}
