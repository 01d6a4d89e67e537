//! Files that the commands of a shell line wrote, removed or renamed.

use std::path::Path;

use super::commits::{git_command, printed_by};
use super::programs::{Kind, kind, program};
use super::shell::ShellCommand;
use super::{Edit, ShellLine, Step};

/// Adds the edits and removals of a command that passed to its step. `before` is the command whose
/// output it reads.
pub fn read(
    line: &ShellLine<'_>,
    command: &ShellCommand,
    before: Option<&ShellCommand>,
    step: &mut Step,
) {
    let path = |name: &str| line.path(command, name);
    let mut edit = |name: &str, before: String, after: String| {
        step.edits.extend(path(name).map(|path| Edit {
            path,
            before,
            after,
            created: false,
        }));
    };
    // Files that take what is printed: `cat > a <<EOF`, `echo x >> a`, `… | tee a`.
    if let Some(text) = printed_by(command).or_else(|| printed_by(before?)) {
        let is_tee = command.words[0] == "tee";
        let taken_by_tee = names(&command.words[1..]).filter(|_| is_tee);
        for name in taken_by_tee.chain(command.writes.iter().map(String::as_str)) {
            edit(name, String::new(), text.clone());
        }
    }
    let (name, arguments) = git_command(command).unwrap_or_else(|| program(&command.words));
    match name {
        "sed" | "perl" if is_in_place(arguments) => {
            // `sed -i 's/a/b/' FILES`; without a substitution the first word is a script.
            let (scripts, files): (Vec<&str>, Vec<&str>) =
                names(arguments).partition(|it| substitution(it).is_some());
            let part = |number: usize| {
                let parts = scripts.iter().filter_map(|it| substitution(it));
                let parts = parts.map(|it| it[number].replace("\\b", ""));
                parts.collect::<Vec<_>>().join("\n")
            };
            for file in files.iter().skip(usize::from(scripts.is_empty())) {
                edit(file, part(0), part(1));
            }
        }
        "mv" => {
            let mut names: Vec<&str> = names(arguments).collect();
            let target = names.pop().unwrap_or_default();
            for name in &names {
                let is_renamed = names.len() == 1 && is_file_name(target) || !is_file_name(name);
                let base = if is_renamed { "" } else { base_name(name) };
                let whole = Path::new(target).join(base);
                edit(&whole.to_string_lossy(), String::new(), String::new());
            }
            step.removed.extend(names.into_iter().filter_map(path));
        }
        "rm" => step.removed.extend(names(arguments).filter_map(path)),
        "restore" if !arguments.iter().any(|it| it == "--staged") => {
            step.restored.extend(names(arguments).filter_map(path));
        }
        "checkout" => {
            let files = arguments.iter().skip_while(|it| *it != "--");
            let files = files.map(String::as_str).skip(1).filter_map(path);
            step.restored.extend(files);
        }
        _ if formats(&command.words) => {
            for file in names(arguments).filter(|it| is_file_name(it)) {
                edit(file, String::new(), String::new());
            }
        }
        _ => {}
    }
}

fn names(words: &[String]) -> impl Iterator<Item = &str> {
    let words = words.iter().map(String::as_str);
    words.filter(|it| !it.is_empty() && !it.starts_with('-'))
}

fn is_in_place(arguments: &[String]) -> bool {
    let mut options = arguments.iter().filter(|it| it.starts_with('-'));
    options.any(|it| it == "--in-place" || !it.starts_with("--") && it.contains('i'))
}

/// The two parts of `s/a/b/`.
fn substitution(script: &str) -> Option<[&str; 2]> {
    let delimiter = script.strip_prefix('s')?.chars().next()?;
    let mut parts = script.split(delimiter).skip(1);
    let pair = [parts.next()?, parts.next()?];
    (!delimiter.is_alphanumeric() && parts.next().is_some()).then_some(pair)
}

/// Whether a command rewrites the files that it names: `prettier --write`, `ruff format`, `black`.
fn formats(words: &[String]) -> bool {
    let (name, arguments) = program(words);
    let has = |options: &[&str]| arguments.iter().any(|it| options.contains(&it.as_str()));
    let writes = ["-w", "--write", "--fix", "fmt", "format"];
    let is_formatter = matches!(name, "black" | "isort" | "rustfmt") || has(&writes);
    let only_looks = matches!(kind(words), Kind::Silent | Kind::Looking);
    is_formatter && !only_looks && !has(&["--check", "--diff", "--dry-run"])
}

fn base_name(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

/// Whether a word has the form of a file's name: something, a dot and an ending.
fn is_file_name(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let parts = name.rsplit_once('.');
    parts.is_some_and(|(stem, ending)| !stem.is_empty() && (1..8).contains(&ending.len()))
}
