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
    "stat", "wc", "file", "diff", "ps", "kill", "sleep", "true", "mkdir", "rm", "cp", "mv",
    "touch", "sed", "awk", "tree", "env", "printenv",
];

impl Call {
    /// The command that a typed line is about: the last one of a chain, before any pipe.
    pub fn of(typed: &str) -> Option<Call> {
        let chain = typed.rsplit("&&").next()?.split(';').next_back()?;
        let simple = chain.split('|').next()?;
        let mut words: Vec<&str> = simple
            .split_whitespace()
            .take_while(|word| {
                !word.starts_with('>') && !word.starts_with("2>") && !word.starts_with("&>")
            })
            .collect();
        let is_assignment =
            |word: &&str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
        while words
            .first()
            .is_some_and(|word| is_assignment(word) || *word == "sudo" || *word == "time")
        {
            words.remove(0);
        }
        let (program, rest) = words.split_first()?;
        let mut name = (*program).to_owned();
        let mut arguments: Vec<String> = rest.iter().map(|&word| word.to_owned()).collect();
        let takes_name = if INTERPRETERS.contains(program) {
            if arguments.first().is_some_and(|word| word == "-m") {
                arguments.remove(0);
            }
            1
        } else if WITH_SUBCOMMAND.contains(program) {
            if matches!(arguments.first().map(String::as_str), Some("run" | "exec")) {
                2
            } else {
                1
            }
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

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '_')
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
