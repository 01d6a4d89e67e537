//! Files that the commands of a shell line wrote, removed, renamed or put back.

use super::commits::{git_command, printed_by};
use super::runs::program;
use super::shell::{Joint, ShellCommand};
use super::{Edit, ShellLine, Step};

/// Adds the edits, removals and restored files of a line to its step.
pub fn read(line: &ShellLine<'_>, outcomes: &[Option<bool>], step: &mut Step) {
    let folders = line.folders();
    for (at, command) in line.commands.iter().enumerate() {
        if outcomes[at] != Some(true) {
            continue;
        }
        let folder = &folders[at];
        let path = |name: &str| line.path(folder, name);
        let before = at.checked_sub(1).map(|at| &line.commands[at]);
        let before = before.filter(|it| it.joint == Joint::Pipe);
        for (name, text) in written(command, before) {
            step.edits
                .extend(path(name).map(|path| edit(path, String::new(), text)));
        }
        for (name, before, after) in changed(command) {
            step.edits
                .extend(path(name).map(|path| edit(path, before, after)));
        }
        let (removed, renamed) = removed(command);
        step.removed
            .extend(removed.iter().filter_map(|it| path(it)));
        let renamed = renamed.iter().filter_map(|it| path(it));
        step.edits
            .extend(renamed.map(|it| edit(it, String::new(), String::new())));
        step.restored
            .extend(restored(command).filter_map(|it| match it {
                "." | ":/" => Some(".".to_owned()),
                name => path(name),
            }));
    }
}

fn edit(path: String, before: String, after: String) -> Edit {
    Edit {
        path,
        before,
        after,
        created: false,
    }
}

/// Files that take what is printed: `cat > a <<EOF`, `echo x >> a`, `… | tee a`.
fn written<'a>(command: &'a ShellCommand, before: Option<&ShellCommand>) -> Vec<(&'a str, String)> {
    let printed = printed_by(command).or_else(|| printed_by(before?));
    let text = printed.unwrap_or_default();
    let names: Vec<&str> = match command.words[0].as_str() {
        "cat" | "echo" | "printf" => command.writes.iter().map(String::as_str).collect(),
        "tee" if !text.is_empty() => names(&command.words[1..]).collect(),
        _ => Vec::new(),
    };
    names.into_iter().map(|name| (name, text.clone())).collect()
}

fn names(words: &[String]) -> impl Iterator<Item = &str> {
    let words = words.iter().map(String::as_str);
    words.filter(|it| !it.is_empty() && !it.starts_with('-'))
}

/// Files that a command changes in place, with the replacement if it names one.
fn changed(command: &ShellCommand) -> Vec<(&str, String, String)> {
    let (name, arguments) = program(&command.words);
    let has = |option: &str| arguments.iter().any(|it| it == option);
    let mut short = arguments
        .iter()
        .filter(|it| it.starts_with('-') && !it.starts_with("--"));
    if matches!(name, "sed" | "perl") {
        let in_place = short.any(|it| it.contains('i')) || has("--in-place");
        return if in_place {
            substituted(arguments)
        } else {
            Vec::new()
        };
    }
    let subcommand = arguments.first().map_or("", String::as_str);
    let formats = match name {
        "gofmt" | "goimports" => has("-w"),
        "prettier" => has("--write") || has("-w"),
        "eslint" | "rubocop" => has("--fix") || has("-a") || has("-A"),
        "ruff" => has("--fix") || subcommand == "format",
        "biome" => has("--write"),
        "cargo" | "go" => matches!(subcommand, "fmt" | "fix"),
        "black" | "isort" | "rustfmt" => true,
        _ => arguments.iter().take(2).any(|it| it == "generate"),
    };
    if !formats || has("--check") || has("--diff") || has("--dry-run") {
        return Vec::new();
    }
    let files = names(arguments).filter(|it| is_file_name(it));
    files.map(|it| (it, String::new(), String::new())).collect()
}

/// Whether a word has the form of a file's name: something, a dot and an ending.
fn is_file_name(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let parts = name.rsplit_once('.');
    parts.is_some_and(|(stem, ending)| !stem.is_empty() && (1..8).contains(&ending.len()))
}

/// The files of `sed -i 's/a/b/' FILES`, with what is replaced.
fn substituted(arguments: &[String]) -> Vec<(&str, String, String)> {
    let mut scripts = Vec::new();
    let mut files = Vec::new();
    let mut words = arguments
        .iter()
        .map(String::as_str)
        .filter(|it| !it.is_empty());
    let has_option = arguments
        .iter()
        .any(|it| it.starts_with('-') && it.ends_with('e'));
    while let Some(word) = words.next() {
        if word.starts_with('-') {
            if word.ends_with('e') && !word.starts_with("--") {
                scripts.extend(words.next());
            }
        } else if !has_option && scripts.is_empty() {
            scripts.push(word);
        } else {
            files.push(word);
        }
    }
    let part = |number: usize| {
        let parts = scripts.iter().filter_map(|script| {
            let delimiter = script.strip_prefix('s')?.chars().next()?;
            script.split(delimiter).nth(number)
        });
        parts.collect::<Vec<_>>().join("\n")
    };
    let edit = |file| (file, part(1), part(2));
    files.into_iter().map(edit).collect()
}

/// Files that a command removes, and the new names of those it renames.
fn removed(command: &ShellCommand) -> (Vec<String>, Vec<String>) {
    let (name, arguments) = match git_command(command) {
        Some(git) => git,
        None => program(&command.words),
    };
    let mut names: Vec<String> = names(arguments).map(str::to_owned).collect();
    match name {
        "rm" => (names, Vec::new()),
        "mv" if names.len() >= 2 => {
            let target = names.pop().unwrap_or_default();
            let is_folder = names.len() > 1 || target.ends_with('/') || !is_file_name(&target);
            let renamed = names.iter().map(|name| {
                let base = name.trim_end_matches('/').rsplit('/').next();
                match base.filter(|_| is_folder && is_file_name(name)) {
                    Some(base) => format!("{}/{base}", target.trim_end_matches('/')),
                    None => target.clone(),
                }
            });
            let renamed = renamed.collect();
            (names, renamed)
        }
        _ => (Vec::new(), Vec::new()),
    }
}

/// The files that git puts back: `git checkout -- a`, `git restore a`, `git reset --hard`.
fn restored(command: &ShellCommand) -> impl Iterator<Item = &str> {
    let (subcommand, arguments) = git_command(command).unwrap_or_default();
    let has = |option: &str| arguments.iter().any(|it| it == option);
    let dashes = arguments.iter().position(|it| it == "--");
    let names: Vec<&str> = match subcommand {
        "checkout" => match dashes {
            Some(at) => names(&arguments[at + 1..]).collect(),
            None => names(arguments)
                .filter(|it| *it == "." || is_file_name(it))
                .collect(),
        },
        "restore" if has("--worktree") || !has("--staged") => names(arguments).collect(),
        "reset" if has("--hard") && !arguments.iter().any(|it| it.starts_with("HEAD~")) => {
            vec!["."]
        }
        _ => Vec::new(),
    };
    names.into_iter()
}
