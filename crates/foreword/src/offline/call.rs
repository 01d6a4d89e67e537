//! Reading commands as they were typed: which command it is, and whether its failure
//! would say something about the project. `git` reads the ones that commit or undo.

use std::path::{Path, PathBuf};

use foreword_core::text::one_line;

/// A command without what is around it: `cd x && FOO=1 cargo test -q 2>&1 | tail` is
/// `cargo test -q`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What it is: program and subcommand, or interpreter and script.
    pub name: String,
    pub arguments: Vec<String>,
    /// Where `cd` went before it; empty if it did not.
    pub folder: PathBuf,
    /// All of it on one line, as a person would quote it.
    pub text: String,
}

/// Programs of which the first argument says what is done: interpreters and the like.
const NAMED_BY_ARGUMENT: &str = "node python python3 ruby bash sh deno bun php perl \
    cargo go npm pnpm yarn npx make just git docker kubectl terraform dotnet mvn gradle \
    ./gradlew poetry uv pip rake bundle mix swift zig helm gh";

/// Looking around: a failure of these says nothing about the project.
const LOOKING: &[&str] = &[
    "ls", "cat", "grep", "rg", "find", "head", "tail", "which", "cd", "pwd", "test", "[", "echo",
    "stat", "wc", "file", "diff", "ps", "kill", "sleep", "curl", "wget", "ping", "ssh", "man",
    "true", "mkdir", "rm", "cp", "mv", "touch", "sed", "awk", "tree", "env", "printenv",
];

impl Call {
    /// The command that a typed line is about: the last one of a chain, before any pipe.
    pub fn of(typed: &str) -> Option<Call> {
        let chain = chain(typed);
        let simple = chain.iter().rev().find(|simple| !simple.piped_into)?;
        let text = one_line(&simple.words.join(" "));
        let (program, arguments) = simple.words.split_first()?;
        let (mut name, mut arguments) = (program.clone(), arguments.to_vec());
        if NAMED_BY_ARGUMENT.split(' ').any(|it| it == program) {
            let of_name = match arguments.first().map(String::as_str) {
                Some("run" | "exec") => 2,
                Some("-m") => {
                    arguments.remove(0);
                    1
                }
                _ => 1,
            };
            let of_name = arguments.iter().take(of_name);
            let of_name = of_name.take_while(|it| !it.starts_with('-')).count();
            for word in arguments.drain(..of_name) {
                name = format!("{name} {word}");
            }
        }
        Some(Call {
            name,
            arguments,
            folder: folder(&chain),
            text,
        })
    }

    /// The same call in the folder that the shell was seen in.
    pub fn below(mut self, cwd: &Path) -> Call {
        // A shell that stays where `cd` went is seen there already.
        self.folder = if cwd.ends_with(&self.folder) {
            cwd.to_owned()
        } else {
            cwd.join(&self.folder)
        };
        self
    }

    /// Whether its failure would say something about the project.
    pub fn matters(&self) -> bool {
        let program = self.name.split(' ').next().unwrap_or_default();
        !LOOKING.contains(&program)
            && !matches!(
                self.name.as_str(),
                "git status" | "git log" | "git diff" | "git show" | "git ls-files" | "git branch"
            )
    }

    /// Whether this one passing proves that `other` would pass now: the same, or a wider run.
    pub fn covers(&self, other: &Call) -> bool {
        let in_other = |argument: &String| other.arguments.contains(argument);
        self.name == other.name
            && self.folder == other.folder
            && self.arguments.iter().all(in_other)
    }
}

/// Where the `cd`s of a line lead, from where it is typed.
fn folder(chain: &[Simple]) -> PathBuf {
    let targets = chain.iter().filter_map(|simple| match &simple.words[..] {
        [program, target] if program.trim_start_matches('(') == "cd" => Some(target),
        _ => None,
    });
    targets.filter(|target| *target != ".").collect()
}

/// Whether a typed line changes files by a command that is known for it.
pub fn changes_files(typed: &str) -> bool {
    chain(typed).iter().any(|simple| changes(&simple.words))
}

fn changes(words: &[String]) -> bool {
    // `npx prettier` and `python -m black` without what only starts them.
    let words = match words {
        [npx, rest @ ..] if npx == "npx" => rest,
        [_, how, rest @ ..] if matches!(how.as_str(), "-m" | "exec" | "run") => rest,
        words => words,
    };
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let has = |option: &str| rest.iter().any(|word| word == option);
    let short = |letter: char| {
        let is_short = |it: &&String| it.starts_with('-') && !it.starts_with("--");
        rest.iter().filter(is_short).any(|it| it.contains(letter))
    };
    let only_looks = ["--check", "--dry-run", "--diff", "--stat", "--help"];
    if only_looks.iter().any(|it| has(it)) {
        return false;
    }
    let subcommand = rest.first().map(String::as_str).unwrap_or_default();
    match program.as_str() {
        "sed" | "perl" => short('i') || rest.iter().any(|it| it.starts_with("--in-place")),
        "gofmt" | "goimports" => short('w'),
        "prettier" => has("--write") || has("-w"),
        "eslint" => has("--fix"),
        "ruff" => has("--fix") || subcommand == "format",
        "cargo" => matches!(subcommand, "fmt" | "fix") || has("--fix"),
        "go" => matches!(subcommand, "fmt" | "generate"),
        "git" => matches!(subcommand, "apply" | "mv"),
        "black" | "rustfmt" | "patch" | "mv" | "cp" => !rest.is_empty(),
        _ => false,
    }
}

/// What `rm` takes away.
pub fn removed(typed: &str) -> Vec<String> {
    let chain = chain(typed).into_iter();
    let names = chain.filter(|simple| simple.words[0] == "rm");
    let names = names.flat_map(|simple| simple.words.into_iter().skip(1));
    names.filter(|word| !word.starts_with('-')).collect()
}

/// One command of a typed line, without assignments and helpers in front and without
/// redirections behind.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Simple {
    pub words: Vec<String>,
    /// It reads what the one before it printed.
    piped_into: bool,
}

/// The commands of a typed line, as a shell would part them: quotes are respected,
/// and nothing is expanded.
pub fn chain(typed: &str) -> Vec<Simple> {
    let mut chain = Vec::new();
    let mut simple = Simple::default();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = typed.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(characters.next()),
            // `2>&1` is one word, not a job in the background.
            (None, '&') if word.as_deref().is_some_and(|word| word.ends_with('>')) => {
                word.get_or_insert_default().push('&');
            }
            (None, ';' | '&' | '|' | '\n') => {
                simple.words.extend(word.take());
                chain.push(std::mem::take(&mut simple));
                let doubled = characters.next_if_eq(&character).is_some();
                simple.piped_into = character == '|' && !doubled;
            }
            (None, character) if character.is_whitespace() => simple.words.extend(word.take()),
            (None, character) => word.get_or_insert_default().push(character),
        }
    }
    simple.words.extend(word);
    chain.push(simple);
    for simple in &mut chain {
        let start = simple.words.iter().take_while(|it| is_helper(it)).count();
        simple.words.drain(..start);
        let redirects = |it: &String| it.starts_with(['>', '<']) || it.starts_with("2>");
        let end = simple.words.iter().position(redirects);
        simple.words.truncate(end.unwrap_or(usize::MAX));
    }
    chain.retain(|simple| !simple.words.is_empty());
    chain
}

/// `sudo`, `RUST_LOG=1`.
fn is_helper(word: &str) -> bool {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let assigned = word.split_once('=').map(|(name, _)| name);
    matches!(word, "sudo" | "time" | "nohup")
        || assigned.is_some_and(|name| !name.is_empty() && name.chars().all(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(typed: &str) -> (String, Vec<String>) {
        let call = Call::of(typed).unwrap();
        (call.name, call.arguments)
    }

    #[test]
    fn a_call_is_what_is_run_without_what_is_around_it() {
        for (typed, name, arguments) in [
            (
                "cd app && RUST_LOG=1 cargo test -q 2>&1 | tail -5",
                "cargo test",
                vec!["-q"],
            ),
            ("npm run build", "npm run build", vec![]),
            (
                "python -m pytest tests/a.py",
                "python pytest",
                vec!["tests/a.py"],
            ),
            ("node check.js --all", "node check.js", vec!["--all"]),
            ("pytest -k x > log", "pytest", vec!["-k", "x"]),
            ("echo 'a && b; c' | wc", "echo", vec!["a && b; c"]),
        ] {
            assert_eq!(
                call(typed),
                (
                    name.into(),
                    arguments.into_iter().map(String::from).collect()
                ),
                "{typed}"
            );
        }
    }

    #[test]
    fn only_the_same_or_a_wider_run_proves_a_repair() {
        let failed = Call::of("cargo test expiry").unwrap();
        for (typed, covers) in [
            ("cargo test expiry", true),
            ("cargo test", true),
            ("cargo test login", false),
            ("cargo build", false),
            ("cd other && cargo test", false),
        ] {
            assert_eq!(Call::of(typed).unwrap().covers(&failed), covers, "{typed}");
        }
    }

    #[test]
    fn a_folder_is_the_same_however_it_was_gone_to() {
        let folder = |typed: &str, cwd: &str| Call::of(typed).unwrap().below(cwd.as_ref()).folder;
        for (typed, cwd, expected) in [
            ("make", "/p", "/p"),
            ("cd /p && make", "/p", "/p"),
            ("cd app/ && make", "/p", "/p/app"),
            ("cd app && make", "/p/app", "/p/app"),
            ("cd /other && make", "/p", "/other"),
        ] {
            assert_eq!(folder(typed, cwd), Path::new(expected), "{typed}");
        }
    }

    #[test]
    fn some_commands_are_known_to_change_files() {
        for (typed, changes) in [
            ("sed -i 's/x/y/' a.js", true),
            ("perl -pi -e 's/x/y/' a", true),
            ("cd app && npx prettier --write .", true),
            ("python -m black .", true),
            ("cargo fmt", true),
            ("cargo fmt --check", false),
            ("sed -n 1,5p a.js", false),
            ("git apply --check x.patch", false),
            ("cargo test", false),
            ("echo 'sed -i'", false),
        ] {
            assert_eq!(changes_files(typed), changes, "{typed}");
        }
    }
}
