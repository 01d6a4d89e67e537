//! The commits of a shell line: their messages as typed, their ids and files as git printed them.

use super::runs::program;
use super::shell::ShellCommand;
use super::{Commit, ShellLine};

/// The words of a git command from its subcommand on; none for another program.
fn git(command: &ShellCommand) -> Option<&[String]> {
    let (program, mut rest) = command.words.split_first()?;
    if program != "git" {
        return None;
    }
    // Options of git itself: `-c name=value`, `-C folder`, `--no-pager`.
    while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
        let takes_value = matches!(option.as_str(), "-c" | "-C" | "--git-dir" | "--work-tree");
        rest = rest.get(1 + usize::from(takes_value)..)?;
    }
    (!rest.is_empty()).then_some(rest)
}

/// The subcommand of git and its arguments.
pub fn git_command(command: &ShellCommand) -> Option<(&str, &[String])> {
    let (subcommand, rest) = git(command)?.split_first()?;
    Some((subcommand, rest))
}

/// Whether a line only does housekeeping with git or its forge.
pub fn is_plumbing(commands: &[ShellCommand]) -> bool {
    let is_housekeeping = |command: &ShellCommand| match git_command(command) {
        Some((subcommand, _)) => !matches!(subcommand, "rm" | "mv" | "apply" | "am" | "bisect"),
        None => matches!(
            program(&command.words).0,
            "gh" | "glab"
                | "cd"
                | "echo"
                | "sleep"
                | "pwd"
                | "true"
                | "head"
                | "tail"
                | "grep"
                | "wc"
                | "cat"
                | "sort"
        ),
    };
    let is_of_git = |it: &ShellCommand| {
        git_command(it).is_some() || matches!(program(&it.words).0, "gh" | "glab")
    };
    commands.iter().any(is_of_git) && commands.iter().all(is_housekeeping)
}

/// The commits that a line made.
pub fn commits(line: &ShellLine<'_>) -> Vec<Commit> {
    let output = &line.output;
    let mut printed = printed(output);
    let mut added: Vec<String> = Vec::new();
    let mut commits = Vec::new();
    let folders = line.folders();
    for (at, command) in line.commands.iter().enumerate() {
        let paths = |words: &[String]| -> Vec<String> {
            let paths = words.iter().filter(|it| *it != "." && !it.starts_with(':'));
            paths.filter_map(|it| line.path(&folders[at], it)).collect()
        };
        let Some((subcommand, options)) = git_command(command) else {
            continue;
        };
        if line.is_scratch(&folders[at]) {
            continue;
        }
        match subcommand {
            "add" => added.extend(paths(options)),
            "commit" => {
                let before = at.checked_sub(1).map(|at| &line.commands[at]);
                let message = message(line, command, options, before);
                let found = printed.iter().position(|it| match message.lines().next() {
                    Some(subject) => it.subject == subject.trim(),
                    None => true,
                });
                let found = found.or((!printed.is_empty()).then_some(0));
                let printed = found.map(|at| printed.remove(at));
                let mut files = std::mem::take(&mut added);
                files.extend(arguments_after_dashes(options).map_or(Vec::new(), paths));
                let is_empty = options
                    .iter()
                    .any(|it| it == "--allow-empty" || it == "--dry-run");
                if !is_empty && let Some(commit) = commit(line, &message, printed, files, options) {
                    commits.push(commit);
                }
            }
            _ => {}
        }
    }
    commits
}

fn arguments_after_dashes(options: &[String]) -> Option<&[String]> {
    let dashes = options.iter().position(|it| it == "--")?;
    options.get(dashes + 1..)
}

fn commit(
    line: &ShellLine<'_>,
    message: &str,
    printed: Option<PrintedCommit>,
    added: Vec<String>,
    options: &[String],
) -> Option<Commit> {
    let says_nothing = [
        "nothing to commit",
        "nothing added to commit",
        "no changes added to commit",
    ];
    let failed = line.failed || says_nothing.iter().any(|it| line.output.contains(it));
    if printed.is_none() && failed {
        return None;
    }
    let printed = printed.unwrap_or_default();
    let (subject, body) = message
        .trim()
        .split_once('\n')
        .unwrap_or((message.trim(), ""));
    let subject = if subject.is_empty() {
        &printed.subject
    } else {
        subject.trim()
    };
    let hash = printed.hash.or_else(|| hash_in_log(&line.output, subject));
    let mut files = printed.files;
    files.extend(added);
    files.sort();
    files.dedup();
    (!subject.is_empty()).then(|| Commit {
        subject: subject.to_owned(),
        body: without_trailers(body),
        hash,
        files,
        amend: options.iter().any(|it| it == "--amend"),
    })
}

/// The message of a commit as far as the line has it: `-m` (several are paragraphs), or `-F` with a
/// here-document or with a file that the same line writes.
fn message(
    line: &ShellLine<'_>,
    command: &ShellCommand,
    options: &[String],
    before: Option<&ShellCommand>,
) -> String {
    let mut paragraphs = Vec::new();
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let short = word
            .strip_prefix('-')
            .filter(|it| !it.starts_with('-'))
            .unwrap_or_default();
        if word == "--message" || short.ends_with('m') {
            paragraphs.extend(words.next().cloned());
        } else if let Some(text) = word.strip_prefix("--message=") {
            paragraphs.push(text.to_owned());
        } else if word == "--file" || short.ends_with('F') {
            paragraphs.extend(words.next().and_then(|file| match file.as_str() {
                "-" | "/dev/stdin" => command.document.clone().or_else(|| printed_by(before?)),
                file => {
                    let mut writers = line.commands.iter();
                    let writer = writers.find(|it| it.writes.iter().any(|it| it == file))?;
                    printed_by(writer)
                }
            }));
        }
    }
    // What is expanded by the shell is not known.
    paragraphs.retain(|it| !it.starts_with('$'));
    paragraphs.join("\n\n")
}

/// What `cat <<EOF`, `echo` and `printf` print.
pub fn printed_by(command: &ShellCommand) -> Option<String> {
    let (program, words) = command.words.split_first()?;
    match program.as_str() {
        "cat" | "tee" => command.document.clone(),
        "echo" | "printf" => {
            let words = words.iter().map(String::as_str);
            let words = words.skip_while(|it| matches!(*it, "-e" | "-n" | "%s" | "%s\\n"));
            Some(words.collect::<Vec<_>>().join(" ").replace("\\n", "\n"))
        }
        _ => None,
    }
}

/// A body without the lines that tools add to it.
fn without_trailers(body: &str) -> String {
    let is_trailer = |line: &&str| {
        let label = line.split_once(": ").map_or("", |(label, _)| label);
        let is_label = label.contains('-') && !label.contains(' ');
        is_label && line.starts_with(char::is_uppercase)
            || line.contains("Generated with")
            || line.starts_with('🤖')
    };
    let lines = body.lines().filter(|it| !is_trailer(&it.trim()));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A commit as git prints it.
#[derive(Debug, Default)]
struct PrintedCommit {
    hash: Option<String>,
    subject: String,
    files: Vec<String>,
}

/// `[main 1a2b3c4] Subject`, and the files that git lists below it.
fn printed(output: &str) -> Vec<PrintedCommit> {
    let mut commits: Vec<PrintedCommit> = Vec::new();
    for line in output.lines() {
        if let Some((hash, subject)) = head(line.trim()) {
            commits.push(PrintedCommit {
                hash: Some(hash.to_owned()),
                subject: subject.trim().to_owned(),
                files: Vec::new(),
            });
        } else if let Some(commit) = commits.last_mut() {
            commit.files.extend(listed_file(line));
        }
    }
    commits
}

fn head(line: &str) -> Option<(&str, &str)> {
    let (place, subject) = line.strip_prefix('[')?.split_once("] ")?;
    let hash = place.split_whitespace().next_back()?;
    is_hash(hash).then_some((hash, subject))
}

fn is_hash(word: &str) -> bool {
    (7..=40).contains(&word.len()) && word.bytes().all(|it| it.is_ascii_hexdigit())
}

/// ` create mode 100644 a.rs`, ` rename src/{a.rs => b.rs} (90%)`, ` a.rs | 3 +-`.
fn listed_file(line: &str) -> Option<String> {
    let line = line.strip_prefix(' ')?.trim();
    let mode = line
        .strip_prefix("create mode ")
        .or(line.strip_prefix("delete mode "));
    let name = if let Some(mode) = mode {
        mode.split_once(' ')?.1
    } else if let Some(renamed) = line.strip_prefix("rename ") {
        renamed.rsplit_once(" (")?.0
    } else {
        let (name, changed) = line.split_once(" | ")?;
        let changed = changed.trim_start();
        let is_count = changed.starts_with(|it: char| it.is_ascii_digit());
        (is_count || changed.starts_with("Bin")).then_some(name.trim())?
    };
    Some(new_name(name))
}

/// `src/{a.rs => b.rs}` and `a.rs => b.rs` are renamed to `src/b.rs` and `b.rs`.
fn new_name(name: &str) -> String {
    let Some((before, after)) = name.split_once(" => ") else {
        return name.to_owned();
    };
    match (before.split_once('{'), after.split_once('}')) {
        (Some((folder, _)), Some((new, rest))) => format!("{folder}{new}{rest}").replace("//", "/"),
        _ => after.to_owned(),
    }
}

/// The id of a commit in `git log --oneline`.
fn hash_in_log(output: &str, subject: &str) -> Option<String> {
    output.lines().find_map(|line| {
        let (hash, rest) = line.trim().split_once(' ')?;
        (is_hash(hash) && rest.ends_with(subject)).then(|| hash.to_owned())
    })
}
