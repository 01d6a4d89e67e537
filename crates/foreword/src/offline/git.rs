//! Commands of git that matter to a story: a commit keeps edits, others undo them.

use super::call::chain;

/// A `git commit` somewhere in the line: its message, as far as it is there to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCommit {
    pub message: Option<String>,
    /// It takes the place of the commit before it.
    pub amends: bool,
}

impl GitCommit {
    pub fn of(typed: &str) -> Option<GitCommit> {
        let commands = commands(typed);
        let words = commands.iter().find(|words| words[0] == "commit")?;
        Some(GitCommit {
            message: message(&words[1..]),
            amends: words.iter().any(|word| word == "--amend"),
        })
    }
}

/// What a command of git does to edits that were made before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// Throws away what is not committed, everywhere or below these paths.
    Everything,
    Paths(Vec<String>),
    /// Puts everything aside, and takes it up again.
    Stash,
    Unstash,
    /// Takes a commit back: the last one, or the one with this id.
    Revert(Option<String>),
    /// Drops the last commits; the edits stay unless it is hard.
    Reset {
        commits: usize,
        hard: bool,
    },
}

impl Undo {
    pub fn of(typed: &str) -> Option<Undo> {
        commands(typed).iter().find_map(|words| {
            let (subcommand, rest) = words.split_first()?;
            let has = |option: &str| rest.iter().any(|word| word == option);
            let places = rest.iter().filter(|word| !word.starts_with('-'));
            let places: Vec<&str> = places.map(String::as_str).collect();
            let first = places.first().copied();
            match subcommand.as_str() {
                // `-b` and `-B` make branches; `--staged` alone leaves the files.
                "checkout" if has("-b") || has("-B") => None,
                "restore" if has("--staged") && !has("--worktree") => None,
                "checkout" | "restore" if places.is_empty() => None,
                "checkout" | "restore" => {
                    Some(match places.iter().any(|it| matches!(*it, "." | ":/")) {
                        true => Undo::Everything,
                        // What names no path that was edited (a branch, HEAD) matches none later.
                        false => Undo::Paths(places.into_iter().map(str::to_owned).collect()),
                    })
                }
                "reset" => {
                    let hard = has("--hard");
                    match first.map_or(0, commits_back) {
                        commits if commits > 0 && places.len() == 1 => {
                            Some(Undo::Reset { commits, hard })
                        }
                        _ => hard.then_some(Undo::Everything),
                    }
                }
                "stash" => match first {
                    None | Some("push" | "save") => Some(Undo::Stash),
                    Some("pop" | "apply") => Some(Undo::Unstash),
                    Some(_) => None,
                },
                "revert" => {
                    let named = first.filter(|it| *it != "HEAD");
                    Some(Undo::Revert(named.map(str::to_owned)))
                }
                _ => None,
            }
        })
    }
}

/// How many commits before the last one a place is: 2 for `HEAD~2` and `HEAD^^`.
fn commits_back(place: &str) -> usize {
    let head = place.strip_prefix("HEAD").or(place.strip_prefix('@'));
    let back = head.unwrap_or_default();
    let number = back.strip_prefix('~').and_then(|it| it.parse().ok());
    let marks = back.trim_matches(['^', '~']).is_empty();
    number.unwrap_or(if marks { back.len() } else { 0 })
}

/// The git commands of a line, from their subcommand on.
fn commands(typed: &str) -> Vec<Vec<String>> {
    let chain = chain(typed).into_iter();
    let commands = chain.filter(|simple| simple.words[0] == "git");
    let commands = commands.map(|simple| {
        let mut rest = &simple.words[1..];
        // Options of git itself: `-c name=value`, `-C folder`, `--no-pager`.
        while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
            let takes_value = matches!(option.as_str(), "-c" | "-C" | "--git-dir" | "--work-tree");
            rest = &rest[(1 + usize::from(takes_value)).min(rest.len())..];
        }
        rest.to_vec()
    });
    commands.filter(|words| !words.is_empty()).collect()
}

/// `[main 1a2b3c4] Subject`, which git prints.
pub fn committed(output: &str) -> Option<(String, String)> {
    output.lines().find_map(|line| {
        let (place, subject) = line.trim().strip_prefix('[')?.split_once("] ")?;
        let id = place.split_whitespace().next_back()?;
        let is_id = id.len() >= 7 && id.chars().all(|it| it.is_ascii_hexdigit());
        is_id.then(|| (id.to_owned(), subject.trim().to_owned()))
    })
}

/// The value of `-m`, also bundled as in `-qm` and `-am`, or of `--message`.
fn message(options: &[String]) -> Option<String> {
    let takes_it = |it: &String| {
        it == "--message" || (it.starts_with('-') && !it.starts_with("--") && it.ends_with('m'))
    };
    let value = match options.iter().position(takes_it) {
        Some(at) => options.get(at + 1)?,
        None => options
            .iter()
            .find_map(|word| word.strip_prefix("--message="))?,
    };
    // A here-document, the agents' favourite: the subject is its first line.
    let text = match value.strip_prefix("$(cat <<") {
        Some(document) => document.split_once('\n')?.1,
        None => value,
    };
    let subject = text.trim().lines().next()?.trim();
    (!subject.is_empty() && !subject.starts_with('$')).then(|| subject.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_seen_however_it_is_typed() {
        for (typed, message) in [
            ("git add -A && git commit -qm 'Add b'", Some("Add b")),
            (
                "git -c user.name=x -C app commit --message=\"Fix: c\"",
                Some("Fix: c"),
            ),
            (
                "git commit -am \"$(cat <<'EOF'\nSplit the parser\n\nMore.\nEOF\n)\"",
                Some("Split the parser"),
            ),
            ("git commit --amend --no-edit", None),
            ("git commit -F message.txt", None),
        ] {
            let commit = GitCommit::of(typed).unwrap();
            assert_eq!(commit.message.as_deref(), message, "{typed}");
            assert_eq!(commit.amends, typed.contains("--amend"), "{typed}");
        }
        for typed in [
            "git log --grep commit",
            "echo git commit -m x",
            "git status",
        ] {
            assert_eq!(GitCommit::of(typed), None, "{typed}");
        }
    }

    #[test]
    fn what_a_command_undoes_is_read_from_its_words() {
        let paths = |path: &str| Some(Undo::Paths(vec![path.to_owned()]));
        for (typed, undo) in [
            ("git checkout -- src/a.rs", paths("src/a.rs")),
            ("git restore src/a.rs && cargo test", paths("src/a.rs")),
            ("git checkout .", Some(Undo::Everything)),
            ("git reset --hard HEAD", Some(Undo::Everything)),
            (
                "git reset --hard HEAD~2",
                Some(Undo::Reset {
                    commits: 2,
                    hard: true,
                }),
            ),
            (
                "git reset --soft HEAD^",
                Some(Undo::Reset {
                    commits: 1,
                    hard: false,
                }),
            ),
            ("git reset HEAD src/a.rs", None),
            ("git stash", Some(Undo::Stash)),
            ("git stash pop", Some(Undo::Unstash)),
            ("git stash list", None),
            ("git revert --no-edit HEAD", Some(Undo::Revert(None))),
            ("git checkout -b side", None),
            ("git restore --staged a", None),
        ] {
            assert_eq!(Undo::of(typed), undo, "{typed}");
        }
    }
}
