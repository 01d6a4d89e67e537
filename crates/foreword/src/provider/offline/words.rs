//! Reading commands and their output: which command it is, whether it failed, and
//! which line says why.

use foreword_core::text;

/// A command without what is around it: `cd x && FOO=1 cargo test -q 2>&1 | tail` is
/// `cargo test -q`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What it is: program and subcommand, or interpreter and script.
    pub name: String,
    pub arguments: Vec<String>,
}

const INTERPRETERS: &[&str] = &[
    "node", "python", "python3", "ruby", "bash", "sh", "deno", "bun", "php", "perl",
];
const WITH_SUBCOMMAND: &[&str] = &[
    "cargo",
    "go",
    "npm",
    "pnpm",
    "yarn",
    "npx",
    "make",
    "just",
    "git",
    "docker",
    "kubectl",
    "terraform",
    "dotnet",
    "mvn",
    "gradle",
    "./gradlew",
    "poetry",
    "uv",
    "pip",
    "rake",
    "bundle",
    "mix",
    "swift",
    "zig",
    "helm",
    "gh",
];
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
        let words = chain
            .iter()
            .rev()
            .find(|simple| !simple.piped_into)?
            .command();
        let (program, rest) = words.split_first()?;
        let mut name = program.clone();
        let mut arguments: Vec<String> = rest.to_vec();
        let takes_name = if INTERPRETERS.contains(&program.as_str()) {
            if arguments.first().is_some_and(|word| word == "-m") {
                arguments.remove(0);
            }
            1
        } else if WITH_SUBCOMMAND.contains(&program.as_str()) {
            let run = matches!(arguments.first().map(String::as_str), Some("run" | "exec"));
            if run { 2 } else { 1 }
        } else {
            0
        };
        for _ in 0..takes_name {
            if arguments.first().is_some_and(|word| !word.starts_with('-')) {
                name.push(' ');
                name.push_str(&arguments.remove(0));
            }
        }
        Some(Call { name, arguments })
    }

    /// Whether its failure would say something about the project.
    pub fn matters(&self) -> bool {
        let program = self.name.split(' ').next().unwrap_or_default();
        !LOOKING.contains(&program)
            && !matches!(
                self.name.as_str(),
                "git status" | "git log" | "git diff" | "git show"
            )
    }

    /// Whether this one passing proves that `other` would pass now: the same, or a wider run.
    pub fn covers(&self, other: &Call) -> bool {
        self.name == other.name
            && self
                .arguments
                .iter()
                .all(|argument| other.arguments.contains(argument))
    }
}

/// One command of a typed line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Simple {
    words: Vec<String>,
    /// It reads what the one before it printed.
    piped_into: bool,
}

impl Simple {
    /// Without assignments and helpers in front, and without redirections behind.
    fn command(&self) -> &[String] {
        let is_assignment =
            |word: &str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
        let start = self
            .words
            .iter()
            .position(|word| {
                !is_assignment(word) && !matches!(word.as_str(), "sudo" | "time" | "nohup")
            })
            .unwrap_or(self.words.len());
        let rest = &self.words[start..];
        let redirects = |word: &String| {
            word.starts_with('>') || word.starts_with("2>") || word.starts_with('<')
        };
        &rest[..rest.iter().position(redirects).unwrap_or(rest.len())]
    }
}

/// The commands of a typed line, as a shell would part them: quotes are respected,
/// and nothing is expanded.
fn chain(typed: &str) -> Vec<Simple> {
    let mut chain = vec![Simple::default()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = typed.chars().peekable();
    while let Some(character) = characters.next() {
        let end_word = |word: &mut Option<String>, chain: &mut Vec<Simple>| {
            if let (Some(word), Some(simple)) = (word.take(), chain.last_mut()) {
                simple.words.push(word);
            }
        };
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
                end_word(&mut word, &mut chain);
                let doubled = characters.next_if_eq(&character).is_some();
                chain.push(Simple {
                    words: Vec::new(),
                    piped_into: character == '|' && !doubled,
                });
            }
            (None, character) if character.is_whitespace() => end_word(&mut word, &mut chain),
            (None, character) => word.get_or_insert_default().push(character),
        }
    }
    if let (Some(word), Some(simple)) = (word, chain.last_mut()) {
        simple.words.push(word);
    }
    chain.retain(|simple| !simple.command().is_empty());
    chain
}

/// A `git commit` somewhere in the line: its message, as far as it is there to read.
#[derive(Debug, PartialEq, Eq)]
pub struct GitCommit {
    pub message: Option<String>,
}

impl GitCommit {
    pub fn of(typed: &str) -> Option<GitCommit> {
        chain(typed).iter().find_map(|simple| {
            let (program, mut rest) = simple.command().split_first()?;
            if program != "git" {
                return None;
            }
            // Options of git itself: `-c name=value`, `-C folder`, `--no-pager`.
            while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
                let takes_value =
                    matches!(option.as_str(), "-c" | "-C" | "--git-dir" | "--work-tree");
                rest = &rest[(1 + usize::from(takes_value)).min(rest.len())..];
            }
            let (subcommand, options) = rest.split_first()?;
            (subcommand == "commit").then(|| GitCommit {
                message: message(options),
            })
        })
    }
}

/// The value of `-m`, also bundled as in `-qm` and `-am`, or of `--message`.
fn message(options: &[String]) -> Option<String> {
    let at = options.iter().position(|word| {
        word == "--message"
            || (word.starts_with('-') && !word.starts_with("--") && word.ends_with('m'))
    });
    let value = match at {
        Some(at) => options.get(at + 1)?.as_str(),
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

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '_')
}

/// Output without colour codes and other control characters, line by line.
pub fn plain(output: &str) -> String {
    let mut plain = String::with_capacity(output.len());
    let mut characters = output.chars();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => {
                // An escape sequence ends at its first letter.
                for next in characters.by_ref() {
                    if next.is_ascii_alphabetic() {
                        break;
                    }
                }
            }
            '\n' | '\t' => plain.push(character),
            character if text::is_unsafe(character) => {}
            character => plain.push(character),
        }
    }
    plain
}

/// Marks that test runners and compilers leave when something is wrong.
const FAILURE_MARKS: &[&str] = &[
    "test result: FAILED",
    "FAILED (",
    "error: could not compile",
    "error[E",
    "Traceback (most recent call last)",
    "npm ERR!",
    "npm error",
    "FAIL ",
    "FAILURES!",
    "Build FAILED",
    "BUILD FAILED",
    "--- FAIL:",
    "panicked at",
    "Tests failed",
    "AssertionError",
];

pub fn looks_failed(output: &str) -> bool {
    FAILURE_MARKS.iter().any(|mark| output.contains(mark))
}

/// What a reply says first, on one line: what comes after is lists and details.
pub fn first_paragraph(reply: &str) -> String {
    let paragraph = reply.trim().split("\n\n").next().unwrap_or_default();
    text::one_line(paragraph)
}

/// The line that says what went wrong.
pub fn key_line(output: &str) -> Option<String> {
    let lines: Vec<&str> = output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let after = |mark: &str| {
        let at = lines.iter().position(|line| line.contains(mark))?;
        lines.get(at + 1).copied()
    };
    let starting = |marks: &[&str]| {
        lines
            .iter()
            .copied()
            .find(|line| marks.iter().any(|mark| line.starts_with(mark)))
    };
    let containing = |marks: &[&str]| {
        lines
            .iter()
            .copied()
            .find(|line| marks.iter().any(|mark| line.contains(mark)))
    };
    let found = starting(&["E  "])
        .map(|line| line.trim_start_matches("E").trim())
        .or_else(|| after("panicked at"))
        .or_else(|| starting(&["error[", "error:", "Error:", "fatal:", "ERROR:"]))
        .or_else(|| containing(&["Error: ", "Exception: ", "error TS", "Error:", "--- FAIL:"]))
        .or_else(|| {
            containing(&[
                "error",
                "not found",
                "No such file",
                "denied",
                "undefined",
                "FAIL",
                "failed",
            ])
        })
        .or(lines.last().copied())?;
    Some(text::shorten(&text::one_line(found), 160).into_owned())
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
            let message = message.map(str::to_owned);
            assert_eq!(GitCommit::of(typed), Some(GitCommit { message }), "{typed}");
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
    fn only_the_same_or_a_wider_run_proves_a_repair() {
        let failed = Call::of("cargo test expiry").unwrap();
        for (typed, covers) in [
            ("cargo test expiry", true),
            ("cargo test", true),
            ("cargo test login", false),
            ("cargo build", false),
        ] {
            assert_eq!(Call::of(typed).unwrap().covers(&failed), covers, "{typed}");
        }
    }

    #[test]
    fn the_key_line_is_the_one_a_person_would_quote() {
        for (output, line) in [
            (
                "running 1 test\nthread 'x' panicked at src/a.rs:1:2:\nassertion failed: now < exp\nnote: run",
                "assertion failed: now < exp",
            ),
            (
                "   Compiling x\nerror[E0308]: mismatched types\n --> src/a.rs",
                "error[E0308]: mismatched types",
            ),
            (
                "F\n>   assert 1 == 2\nE   AssertionError: assert 1 == 2",
                "AssertionError: assert 1 == 2",
            ),
            (
                "a.js:3\nTypeError: x is not a function\n  at y",
                "TypeError: x is not a function",
            ),
            ("one\ntwo", "two"),
        ] {
            assert_eq!(key_line(output).as_deref(), Some(line));
        }
        assert_eq!(key_line(" \n"), None);
    }
}
