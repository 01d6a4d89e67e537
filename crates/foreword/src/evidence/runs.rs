//! Which commands of a shell line passed.
//!
//! The exit code is that of the last command, so it proves something only for those that `&&` ties
//! to it. Of the others the output decides, and only for checks: a test, a lint, a build or a type
//! check. A command of which nothing is known gives no run.

use std::ops::Range;

use foreword_core::text::one_line;

use super::shell::{Joint, ShellCommand};
use super::{Run, ShellLine, base_name, output};

/// Looking around, moving files, fetching: a failure of these says nothing about the project, and
/// their arguments are no names of checks.
const LOOKING: &[&str] = &[
    "ls", "cat", "grep", "rg", "find", "head", "tail", "which", "pwd", "test", "[", "[[", "stat",
    "wc", "file", "diff", "ps", "kill", "curl", "wget", "ping", "ssh", "man", "mkdir", "rm", "cp",
    "mv", "touch", "sed", "awk", "tree", "printenv", "git", "gh", "jq", "less", "tee", "xargs",
    "sort", "chmod", "ln", "open", "vim", "code",
];

/// Programs that check, whatever their arguments. Others are known by the names of their tasks.
const CHECKERS: &[&str] = &[
    "pytest",
    "tox",
    "nox",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "eslint",
    "biome",
    "mypy",
    "pyright",
    "ruff",
    "flake8",
    "pylint",
    "rspec",
    "rubocop",
    "phpunit",
    "pest",
    "phpstan",
    "psalm",
    "ctest",
    "playwright",
    "cypress",
    "gradle",
    "gradlew",
    "mvn",
    "mvnw",
    "shellcheck",
    "make",
];

/// What became of each command: passed, failed, or none if it is not known or did not run.
pub fn outcomes(line: &ShellLine<'_>) -> Vec<Option<bool>> {
    let commands = &line.commands;
    let option = |part: &str| {
        let of_set = commands.iter().filter(|it| it.words[0] == "set");
        let mut words = of_set.flat_map(|it| &it.words[1..]);
        words.any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(part))
    };
    let is_strict = option("e");
    let pipefail = commands
        .iter()
        .any(|it| it.words.iter().any(|it| it == "pipefail"));
    let mut outcomes = vec![None; commands.len()];
    let mut unknown = Vec::new();
    let lists = lists(commands, is_strict);
    for (at, list) in lists.iter().enumerate() {
        let exit = match lists.get(at + 1) {
            None => Some(!line.failed),
            Some(next) => printed_exit(&commands[next[0].clone()], &line.output),
        };
        let has_or = list
            .iter()
            .any(|it| commands[it.end - 1].joint == Joint::Or);
        let blamed = (exit == Some(false)).then(|| blamed(line, list));
        for (number, pipeline) in list.iter().enumerate() {
            let is_masked = pipeline.len() > 1 && !pipefail;
            let main = main_command(commands, pipeline);
            let outcome = match (exit, blamed) {
                (Some(true), _) if !has_or => Some(true),
                (_, Some((last, _))) if number == last => Some(false),
                (_, Some((last, _))) if number > last => None,
                (_, Some((_, true))) if !has_or => Some(true),
                // Before a command that is only supposed to have failed.
                (_, Some((_, false))) if !is_check(&commands[main].words) => Some(true),
                (_, Some(_)) => None,
                _ if !is_check(&commands[main].words) => Some(true),
                _ => {
                    unknown.push(main);
                    None
                }
            };
            for at in pipeline.clone() {
                outcomes[at] = outcome;
            }
            if is_masked && outcome.is_some() && is_check(&commands[main].words) {
                outcomes[main] = None;
                unknown.push(main);
            }
        }
    }
    by_output(line, &unknown, &mut outcomes);
    outcomes
}

/// Decides about the checks whose exit code is hidden by a pipe, a `;` or a `||`.
fn by_output(line: &ShellLine<'_>, unknown: &[usize], outcomes: &mut [Option<bool>]) {
    if unknown.is_empty() {
        return;
    }
    if !output::is_red(&line.output) {
        for &at in unknown {
            outcomes[at] = Some(true);
        }
        return;
    }
    let failed = |at: usize| evidence(&line.commands[at].words, &line.output);
    let is_known = outcomes.contains(&Some(false));
    let none_speaks = unknown.iter().all(|&at| failed(at) != Some(true));
    for (number, &at) in unknown.iter().enumerate() {
        let is_last = number + 1 == unknown.len();
        outcomes[at] = match failed(at) {
            Some(failed) if !none_speaks => Some(!failed),
            // The output is that of another command.
            _ if is_known => None,
            _ if none_speaks && is_last => Some(false),
            _ => None,
        };
    }
}

/// The pipelines of a line, in lists that end at `;`. With `set -e` there is only one list.
fn lists(commands: &[ShellCommand], is_strict: bool) -> Vec<Vec<Range<usize>>> {
    let mut lists = vec![Vec::new()];
    let mut from = 0;
    for (at, command) in commands.iter().enumerate() {
        if command.joint == Joint::Pipe && at + 1 < commands.len() {
            continue;
        }
        if let Some(list) = lists.last_mut() {
            list.push(from..at + 1);
        }
        from = at + 1;
        if command.joint == Joint::Then && !is_strict && from < commands.len() {
            lists.push(Vec::new());
        }
    }
    lists.retain(|list| !list.is_empty());
    lists
}

/// The exit code that the next command prints: `echo "exit: $?"`.
fn printed_exit(next: &[ShellCommand], output: &str) -> Option<bool> {
    let [echo] = next else {
        return None;
    };
    let text = echo.words[1..].join(" ");
    let (before, _) = text.split_once("$?").filter(|_| echo.words[0] == "echo")?;
    let lines = output.lines().rev();
    let code = lines.filter_map(|line| line.trim().strip_prefix(before.trim_start()));
    let mut code = code.filter_map(|it| it.split(|it: char| !it.is_ascii_digit()).next());
    code.find(|it| !it.is_empty()).map(|code| code == "0")
}

/// Which pipeline of `a && b && c` failed, and whether the output shows it.
fn blamed(line: &ShellLine<'_>, list: &[Range<usize>]) -> (usize, bool) {
    let words = |it: &Range<usize>| &line.commands[main_command(&line.commands, it)].words;
    // A folder that is not there: nothing after `cd` ran.
    let changed_folder = list.iter().position(|it| words(it)[0] == "cd");
    if let Some(at) = changed_folder.filter(|_| has_no_folder(&line.output)) {
        return (at, true);
    }
    let shown = list
        .iter()
        .rposition(|it| is_check(words(it)) && evidence(words(it), &line.output) == Some(true));
    if let Some(shown) = shown {
        return (shown, true);
    }
    let last = list.iter().rposition(|it| !is_silent(words(it)));
    let last = last.unwrap_or(list.len() - 1);
    let passed = !output::passed(&line.output).is_empty() && !output::is_red(&line.output);
    let check = list.iter().rposition(|it| is_check(words(it)));
    let blamed = check.filter(|_| !passed).unwrap_or(last);
    (blamed, passed || list.len() == 1)
}

/// The command of a pipeline that its result is about: its check, or else the first one.
fn main_command(commands: &[ShellCommand], pipeline: &Range<usize>) -> usize {
    let check = pipeline.clone().find(|&at| is_check(&commands[at].words));
    check.unwrap_or(pipeline.start)
}

/// The runs of a line, without commands that only prepare or print.
pub fn runs(line: &ShellLine<'_>, outcomes: &[Option<bool>]) -> Vec<Run> {
    let commands = &line.commands;
    let pipelines = lists(commands, true).concat();
    let mains = pipelines.iter().map(|it| main_command(commands, it));
    let mains: Vec<usize> = mains
        .filter(|&at| !is_silent(&commands[at].words))
        .collect();
    let checks = || {
        mains
            .iter()
            .copied()
            .filter(|&at| is_check(&commands[at].words))
    };
    // Of several checks, the count that passed is that of the last one that runs tests.
    let tests = checks().rfind(|&at| runs_tests(&commands[at].words));
    let counted = tests.or(checks().next_back());
    let not_found = line.exit_code == Some("127") && is_not_found(&line.output);
    let runs = mains.iter().filter_map(|&at| {
        let passed = outcomes[at]?;
        let check = is_check(&commands[at].words);
        Some(Run {
            command: one_line(&commands[at].text),
            passed,
            check: check && (passed || !not_found),
            telling: match passed {
                true if Some(at) == counted => output::passed(&line.output),
                true => String::new(),
                false => output::telling(&line.output),
            },
        })
    });
    runs.collect()
}

/// The shell's own words for a `cd` that failed.
fn has_no_folder(output: &str) -> bool {
    let mut lines = output.lines().filter(|it| it.contains("cd:"));
    lines.any(|it| it.contains("o such file or directory"))
}

/// The shell's own words for a program that is not installed.
fn is_not_found(output: &str) -> bool {
    let mut lines = output.lines();
    lines.any(|it| it.contains(": command not found") || it.trim_end().ends_with(": not found"))
}

/// A command that only prepares others or prints something.
fn is_silent(words: &[String]) -> bool {
    matches!(
        words[0].as_str(),
        "cd" | "pushd"
            | "popd"
            | "export"
            | "set"
            | "source"
            | "."
            | "echo"
            | "printf"
            | "true"
            | "sleep"
            | "wait"
            | ":"
            | "unset"
            | "for"
            | "case"
            | "exit"
            | "trap"
            | "pwd"
    )
}

/// The program and its arguments without what only starts it: `npx`, `poetry run`, `python -m`.
pub fn program(words: &[String]) -> (&str, &[String]) {
    let mut rest = words;
    loop {
        let at = |number: usize| rest.get(number).map_or("", String::as_str);
        let started = match (base_name(at(0)), at(1)) {
            ("npx" | "bunx" | "pnpx" | "uvx" | "dotenv" | "xvfb-run" | "nice" | "stdbuf", _) => 1,
            ("npm" | "pnpm" | "yarn" | "bun" | "mise", "exec" | "dlx" | "x")
            | ("uv" | "poetry" | "pipenv" | "pdm" | "hatch", "run")
            | ("bundle", "exec")
            | ("python" | "python3", "-m")
            | ("timeout", _) => 2,
            ("docker" | "podman", "exec") => 2,
            ("docker", "compose") if matches!(at(2), "exec" | "run") => 3,
            _ => break,
        };
        let is_container = matches!(at(0), "docker" | "podman");
        let options = rest
            .iter()
            .skip(started)
            .take_while(|it| it.starts_with('-'));
        let from = started + options.count() + usize::from(is_container);
        match rest.get(from..) {
            Some(left) if !left.is_empty() => rest = left,
            _ => break,
        }
    }
    match rest.split_first() {
        Some((program, rest)) => (base_name(program), rest),
        None => ("", rest),
    }
}

/// Whether a command is a test, a lint, a build or a type check.
pub fn is_check(words: &[String]) -> bool {
    let (name, arguments) = program(words);
    if LOOKING.contains(&name) || is_silent(words) || is_one_liner(words) {
        return false;
    }
    if CHECKERS.contains(&name) || arguments.iter().any(|it| it == "--check" || it == "--test") {
        return name != "make" || arguments.is_empty() || tasks(name, arguments).any(is_check_name);
    }
    is_check_name(name) || tasks(name, arguments).any(is_check_name)
}

/// A script that is typed into the line, to be thrown away: `python -c …`, `node - <<EOF`.
fn is_one_liner(words: &[String]) -> bool {
    let (name, arguments) = program(words);
    let options = arguments.iter().take_while(|it| it.starts_with('-'));
    let mut options = options.map(String::as_str);
    is_interpreter(name)
        && (arguments.is_empty()
            || options.any(|it| {
                matches!(it, "-" | "--eval" | "--print")
                    || !it.starts_with("--") && { it.ends_with(['c', 'e', 'p']) || it == "-r" }
            }))
}

fn is_interpreter(name: &str) -> bool {
    let name = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    matches!(
        name,
        "python"
            | "node"
            | "ruby"
            | "perl"
            | "php"
            | "bash"
            | "sh"
            | "zsh"
            | "tsx"
            | "deno"
            | "bun"
    )
}

/// The words that name what a program does: `test:unit` of `npm run test:unit`. A path is such a
/// name only as the script of an interpreter.
fn tasks<'a>(name: &'a str, arguments: &'a [String]) -> impl Iterator<Item = &'a str> {
    let names = arguments.iter().filter(|it| !it.starts_with('-'));
    let names = names
        .map(String::as_str)
        .filter(|it| !matches!(*it, "run" | "-w"));
    let (most, may_be_path) = if is_interpreter(name) {
        (1, true)
    } else {
        (2, false)
    };
    names
        .take(most)
        .filter(move |it| may_be_path || !it.contains('/'))
}

fn is_check_name(name: &str) -> bool {
    let mut parts = name.split(|it: char| !it.is_alphanumeric());
    parts.any(|part| {
        matches!(
            part,
            "lint" | "check" | "checks" | "typecheck" | "build" | "compile" | "verify"
        ) || matches!(part, "validate" | "clippy" | "vet" | "tsc" | "nextest")
            || is_test_name(part)
    })
}

fn is_test_name(part: &str) -> bool {
    matches!(
        part,
        "test" | "tests" | "spec" | "specs" | "e2e" | "unittest" | "pytest" | "jest"
    ) || matches!(
        part,
        "vitest" | "mocha" | "rspec" | "phpunit" | "nextest" | "playwright"
    )
}

fn runs_tests(words: &[String]) -> bool {
    let (name, arguments) = program(words);
    let mut names = std::iter::once(name).chain(tasks(name, arguments));
    names.any(|it| it.split(|it: char| !it.is_alphanumeric()).any(is_test_name))
}

/// Whether the output shows that this check failed; none if its format is not known.
fn evidence(words: &[String], output: &str) -> Option<bool> {
    let (name, arguments) = program(words);
    let first = arguments.first().map_or("", String::as_str);
    let marks: &[&str] = match (name, first) {
        ("pytest", _) => &["FAILED ", "\nERROR ", "\nE   ", " failed,", " failed in "],
        ("jest", _) => &["● ", "FAIL "],
        ("vitest", _) => &["FAIL ", "Failed Tests"],
        ("mocha", _) => &[" failing"],
        ("go", "test") => &["FAIL\t", "--- FAIL", "\nFAIL"],
        ("go", _) => &[".go:"],
        ("cargo", "test" | "nextest") => {
            &["test result: FAILED", " test)", "test failed", "FAIL ["]
        }
        ("cargo", _) => &["error[E", "error: "],
        ("tsc" | "vue-tsc", _) => &["error TS"],
        ("eslint", _) => &[" problem"],
        ("rspec", _) => &["Failure/Error", "rspec ./"],
        ("phpunit" | "pest", _) => &["FAILURES!", "ERRORS!"],
        ("dotnet", _) => &["Failed!", "error CS", "Build FAILED"],
        ("gradle" | "gradlew", _) => &["BUILD FAILED", "FAILURE:"],
        ("npm" | "pnpm" | "yarn" | "bun", _) => {
            let script = tasks(name, arguments).next()?;
            return Some(has_started(script, output) && output::is_red(output));
        }
        ("mise", _) => {
            let task = tasks(name, arguments).next()?;
            return Some(output.contains(&format!("[{task}] ERROR")));
        }
        _ => return None,
    };
    Some(
        marks
            .iter()
            .any(|mark| output.contains(mark) || output.starts_with(mark.trim_start())),
    )
}

/// Package managers print `> name@1.0.0 script` before they run it.
fn has_started(script: &str, output: &str) -> bool {
    let mut headers = output.lines().filter_map(|it| it.strip_prefix("> "));
    headers.any(|it| it.contains('@') && it.split(' ').any(|word| word == script))
}
