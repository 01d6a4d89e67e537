//! The floors of each crate: a top-level module uses only modules that stand above it in `lib.rs`.
//!
//! Every `crate::` and `super::` path is read, in `use` lines and in code; tests (`#[cfg(test)]`,
//! `tests.rs`) may look anywhere. How much of its crate a module is, `scripts/lines --check` counts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The top-level modules of each crate, in order. A new one is a decision about the architecture.
const CRATES: [(&str, &[&str]); 4] = [
    (
        "foreword-core",
        &[
            "model", "text", "fault", "files", "redact", "git", "project", "host", "capture", "db",
            "queue", "spool", "store", "export", "ledger", "fill", "notes", "search", "recall",
            "safety",
        ],
    ),
    (
        "foreword",
        &[
            "colour",
            "output",
            "platform",
            "home",
            "local_time",
            "progress",
            "host",
            "config",
            "log",
            "not_kept",
            "notice",
            "switch",
            "start",
            "hook",
            "service",
            "agent",
            "evidence",
            "offline",
            "notes",
            "worker",
            "install",
            "doctor",
            "show",
            "mcp",
            "cli",
        ],
    ),
    ("foreword-embed", &["weights", "wordpiece", "forward"]),
    (
        "foreword-bench",
        &[
            "machine",
            "process",
            "random",
            "statistics",
            "system",
            "database",
            "plot",
            "report",
            "host",
            "sandbox",
            "spawn",
            "speech",
            "memories",
            "agent",
            "derive",
            "redaction",
            "burst",
            "hooks",
            "census",
            "trial",
            "crash",
            "hands",
            "load",
            "soak",
            "server",
            "vectors",
            "hybrid",
            "search",
            "retrieval",
            "size",
            "mine",
        ],
    ),
];

#[test]
fn a_module_uses_only_modules_above_it() {
    for (name, modules) in CRATES {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{name}/src"));
        let floors = floors(&source);
        assert_eq!(floors, modules, "{name}");
        let upward = upward_edges(&source, &floors);
        assert!(
            upward.is_empty(),
            "{name}: these paths lead upwards: {upward:#?}"
        );
    }
}

#[test]
fn the_picture_in_architecture_md_shows_the_modules_in_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let page = std::fs::read_to_string(page).unwrap();
    let picture = page.split("```").find(|it| it.contains('┌')).unwrap();
    let (mut core, mut program) = (Vec::new(), Vec::new());
    for line in picture.lines() {
        let mut column = 0;
        for cell in line.split('│') {
            let (name, rest) = cell.trim().split_once("  ").unwrap_or_default();
            if name.chars().all(is_name) && !rest.is_empty() {
                let drawn = if column < 40 { &mut core } else { &mut program };
                drawn.push(name);
            }
            column += cell.chars().count() + 1;
        }
    }
    assert_eq!(
        (core, program),
        (CRATES[0].1.to_vec(), CRATES[1].1.to_vec())
    );
}

#[test]
fn an_upward_path_is_found_however_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "lib.rs",
        "pub mod low;\nmod high;\n#[cfg(test)]\nmod tests;\n",
    );
    write("high.rs", "use crate::low::X;\n");
    let found = |file: &str, text: &str| {
        write(file, text);
        let edges = upward_edges(folder.path(), &floors(folder.path()));
        write(file, "");
        edges.into_iter().map(|(_, path)| path).collect::<Vec<_>>()
    };
    let up = ["high".to_owned()];
    assert_eq!(found("low.rs", "use crate::high::X;"), up);
    assert_eq!(found("low.rs", "use crate::{low::{A, B}, high};"), up);
    assert_eq!(found("low.rs", "fn f() { crate::high::x() }"), up);
    assert_eq!(found("low.rs", "use super::high;"), up);
    assert_eq!(
        found("low/deep.rs", "fn f() { super::super::high::x() }"),
        up
    );
    assert_eq!(found("low.rs", "use super::{Y, high as other};"), up);
    let none: [String; 0] = [];
    assert_eq!(
        found("low.rs", "// crate::high\nfn f() { \"crate::high\" }"),
        none
    );
    assert_eq!(found("low/deep.rs", "use super::high::X;"), none);
    assert_eq!(
        found(
            "low.rs",
            "#[cfg(test)]\nmod tests {\n    use crate::high;\n}\n"
        ),
        none
    );
    assert_eq!(found("low/tests.rs", "use crate::high;"), none);
}

/// The top-level modules in their order, without those for tests.
fn floors(source: &Path) -> Vec<String> {
    let text = without_tests(&std::fs::read_to_string(source.join("lib.rs")).unwrap());
    let modules = text.lines().filter_map(|line| {
        let line = line.trim_start_matches("pub ").strip_prefix("mod ")?;
        line.strip_suffix(';').map(str::to_owned)
    });
    modules.collect()
}

/// Each file with a path to a module that stands below its own, and that module.
fn upward_edges(source: &Path, floors: &[String]) -> BTreeSet<(PathBuf, String)> {
    let floor = |name: &str| floors.iter().position(|it| it == name);
    let mut edges = BTreeSet::new();
    for file in rust_files(source) {
        let relative = file.strip_prefix(source).unwrap().with_extension("");
        let parents: Vec<_> = relative.iter().map(|it| it.to_str().unwrap()).collect();
        let (Some(own), false) = (floor(parents[0]), parents.contains(&"tests")) else {
            continue;
        };
        let code = without_strings(&without_tests(&std::fs::read_to_string(&file).unwrap()));
        for name in top_level_names(&code, parents.len()) {
            if floor(&name).is_some_and(|it| it > own) {
                edges.insert((relative.clone(), name));
            }
        }
    }
    edges
}

pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    files
}

/// The code without comments and without items behind `#[cfg(test)]`. It is formatted by rustfmt,
/// so an item ends where its indentation comes back.
pub fn without_tests(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let bare = line.trim_start();
        if bare.starts_with("//") {
            continue;
        }
        if bare != "#[cfg(test)]" {
            out.push_str(line.split(" // ").next().unwrap_or_default());
            out.push('\n');
            continue;
        }
        let item = lines
            .find(|it| !it.trim_start().starts_with("#["))
            .unwrap_or_default();
        if !item.ends_with([';', '}']) {
            let end = format!("{}}}", &item[..item.len() - item.trim_start().len()]);
            lines.find(|it| it.starts_with(&end));
        }
    }
    out
}

/// The code with every string literal emptied.
fn without_strings(code: &str) -> String {
    let mut out = String::new();
    let mut characters = code.chars().peekable();
    while let Some(character) = characters.next() {
        out.push(character);
        match character {
            '"' => {
                while let Some(inner) = characters.next() {
                    match inner {
                        '\\' => drop(characters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                out.push('"');
            }
            // A quotation mark as a character opens no string.
            '\'' if characters.peek() == Some(&'"') => drop(characters.next()),
            _ => {}
        }
    }
    out
}

/// The first name below the crate's root of every `crate::` path, and of every `super::` path that
/// climbs from a module of this depth to the root.
fn top_level_names(code: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        if !code[..at].ends_with(is_name) {
            names.extend(first_names(&code[at + "crate::".len()..]));
        }
    }
    let climb = "super::".repeat(depth);
    for (at, _) in code.match_indices(&climb) {
        if !code[..at].ends_with(is_name) && !code[..at].ends_with("super::") {
            names.extend(first_names(&code[at + climb.len()..]));
        }
    }
    names
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// `a::b` gives a; `{a::{b, c}, d}` gives a and d.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| {
        text.trim_start()
            .chars()
            .take_while(|it| is_name(*it))
            .collect()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let mut names = vec![name(group)];
    let mut depth = 1;
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(&group[at + 1..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}
