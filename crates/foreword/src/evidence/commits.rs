//! The commits of a shell line: their messages as typed, their ids and files as git printed them.

use super::shell::ShellCommand;
use super::{Commit, ShellLine};

/// The subcommand of git and its arguments; none for another program.
pub fn git_command(command: &ShellCommand) -> Option<(&str, &[String])> {
    let (program, mut rest) = command.words.split_first()?;
    // Options of git itself: `-c name=value`, `-C folder`, `--no-pager`.
    while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
        let takes_value = matches!(option.as_str(), "-c" | "-C");
        rest = rest.get(1 + usize::from(takes_value)..)?;
    }
    let (subcommand, rest) = rest.split_first()?;
    (program == "git").then_some((subcommand, rest))
}

/// The commits that a line made.
pub fn commits(line: &ShellLine<'_>) -> Vec<Commit> {
    let mut printed = printed(&line.output);
    let mut added: Vec<String> = Vec::new();
    let mut commits = Vec::new();
    for command in &line.commands {
        let (subcommand, options) = git_command(command).unwrap_or_default();
        if line.is_scratch(&command.folder) {
            continue;
        }
        if subcommand == "add" {
            let paths = options.iter().filter(|it| *it != ".");
            added.extend(paths.filter_map(|it| line.path(command, it)));
        }
        if matches!(subcommand, "commit" | "revert") {
            // The message of a revert is made by git, which prints its subject.
            let message = match subcommand {
                "commit" => message(line, command, options),
                _ => String::new(),
            };
            let subject = message.lines().next().unwrap_or_default().trim();
            let is_same = |it: &Commit| subject.is_empty() || it.subject == subject;
            let found = printed.iter().position(is_same).unwrap_or(0);
            let printed = (found < printed.len()).then(|| printed.remove(found));
            let added = std::mem::take(&mut added);
            commits.extend(commit(line, &message, printed, added, options));
        }
    }
    commits
}

/// A commit, if it was made: `printed` is what git printed of it.
fn commit(
    line: &ShellLine<'_>,
    message: &str,
    printed: Option<Commit>,
    added: Vec<String>,
    options: &[String],
) -> Option<Commit> {
    let has = |option: &str| options.iter().any(|it| it == option);
    // `nothing to commit`, `nothing added to commit`, `no changes added to commit`
    let mut lines = line.output.lines();
    let failed = line.failed || lines.any(|it| it.starts_with("no") && it.contains(" to commit"));
    if printed.is_none() && failed || has("--allow-empty") || has("--dry-run") {
        return None;
    }
    let mut commit = printed.unwrap_or_default();
    let (subject, body) = message.split_once('\n').unwrap_or((message, ""));
    if !subject.is_empty() {
        commit.subject = subject.trim().to_owned();
    }
    commit.body = without_trailers(body);
    commit.hash = commit
        .hash
        .or_else(|| hash_in_log(&line.output, &commit.subject));
    commit.files.extend(added);
    commit.files.sort();
    commit.files.dedup();
    commit.amend = has("--amend");
    Some(commit).filter(|it| !it.subject.is_empty())
}

/// The message of a commit as far as the line has it: `-m` (several are paragraphs), or `-F` with a
/// here-document or with a file that the same line writes.
fn message(line: &ShellLine<'_>, command: &ShellCommand, options: &[String]) -> String {
    let mut paragraphs = Vec::new();
    for pair in options.windows(2) {
        let (option, value) = (&pair[0], &pair[1]);
        let short = option.starts_with('-') && !option.starts_with("--");
        if option == "--message" || short && option.ends_with('m') {
            paragraphs.push(value.clone());
        } else if option == "--file" || short && option.ends_with('F') {
            let mut writers = line.commands.iter();
            let writer = writers.find(|it| it.writes.contains(value));
            let document = command.document.clone();
            paragraphs.extend(document.or_else(|| printed_by(writer?)));
        }
    }
    // What is expanded by the shell is not known.
    paragraphs.retain(|it| !it.starts_with('$'));
    paragraphs.join("\n\n").trim().to_owned()
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
        is_label && line.starts_with(char::is_uppercase) || line.contains("Generated with")
    };
    let lines = body.lines().filter(|it| !is_trailer(&it.trim()));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The commits that git printed: `[main 1a2b3c4] Subject`, and the files that it lists below.
fn printed(output: &str) -> Vec<Commit> {
    let mut commits: Vec<Commit> = Vec::new();
    for line in output.lines() {
        if let Some((hash, subject)) = head(line.trim()) {
            commits.push(Commit {
                hash: Some(hash.to_owned()),
                subject: subject.trim().to_owned(),
                ..Commit::default()
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
    if let Some((name, _)) = line.split_once(" | ") {
        return Some(name.trim().to_owned());
    }
    if let Some((_, mode)) = line.split_once(" mode ") {
        return Some(mode.split_once(' ')?.1.to_owned());
    }
    let (renamed, _) = line.strip_prefix("rename ")?.rsplit_once(" (")?;
    let (before, after) = renamed.split_once(" => ")?;
    let folder = before.split_once('{').map_or("", |(folder, _)| folder);
    Some(format!("{folder}{}", after.replace('}', "")).replace("//", "/"))
}

/// The id of a commit in `git log --oneline`.
fn hash_in_log(output: &str, subject: &str) -> Option<String> {
    output.lines().find_map(|line| {
        let (hash, rest) = line.trim().split_once(' ')?;
        (is_hash(hash) && rest.ends_with(subject)).then(|| hash.to_owned())
    })
}
