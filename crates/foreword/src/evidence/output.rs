//! Reads what checks print: whether something failed, the line that tells what, and how many
//! tests passed. The formats are those of the tools that the tests name; no line of prose is judged
//! by its words.

use foreword_core::text::{is_unsafe, one_line, shorten};

/// The longest telling line, in characters.
const TELLING_MAX: usize = 160;

/// Output without colour codes and other control characters.
pub fn plain(output: &str) -> String {
    let mut plain = String::with_capacity(output.len());
    let mut escaped = false;
    for character in output.chars() {
        if character == '\u{1b}' {
            escaped = true;
        } else if escaped {
            // An escape sequence ends at its first letter.
            escaped = !character.is_ascii_alphabetic();
        } else if matches!(character, '\n' | '\t') || !is_unsafe(character) {
            plain.push(character);
        }
    }
    plain
}

/// Whether the output is that of a check that failed. For a command whose exit code is not known;
/// a summary that counts the tests is believed more than any other line.
pub fn is_red(output: &str) -> bool {
    let (mut summary, mut count, mut zero, mut mark) = (None, false, false, false);
    for line in output.lines().map(str::trim) {
        match failures(line) {
            Some((number, true)) => summary = Some(summary == Some(true) || number > 0),
            Some((0, false)) => zero = true,
            Some((_, false)) => count = true,
            None => mark |= is_failure_mark(line),
        }
    }
    summary.unwrap_or(!zero && (count || mark))
}

fn is_failure_mark(line: &str) -> bool {
    const BEGINNINGS: [&str; 12] = [
        "--- FAIL",
        "✖ ",
        "✗ ",
        "error[E",
        "error: could not compile",
        "FAILURES!",
        "ERRORS!",
        "Failed!",
        "npm ERR!",
        "npm error",
        "make: *** ",
        "error Command failed",
    ];
    const ANYWHERE: [&str; 6] = [
        "error TS",
        "error CS",
        ": error: ",
        "BUILD FAILED",
        "Failed Tests",
        "ELIFECYCLE",
    ];
    let word = line.split([' ', '\t', ':']).next().unwrap_or_default();
    matches!(word, "FAIL" | "FAILED")
        || BEGINNINGS.iter().any(|it| line.starts_with(it))
        || ANYWHERE.iter().any(|it| line.contains(it))
}

/// The number of failures that a line counts, and whether the line is a summary that counts other
/// results too.
fn failures(line: &str) -> Option<(u64, bool)> {
    if !line.contains(|it: char| it.is_ascii_digit()) {
        return None;
    }
    let (mut failed, mut others, mut errors) = (None, false, None);
    let mut number = None;
    let mut label = "";
    for token in line
        .split(|it: char| !it.is_alphanumeric())
        .filter(|it| !it.is_empty())
    {
        let value = token.parse::<u64>().ok();
        match (number, value) {
            (Some(count), None) => match token {
                "failed" | "failing" | "failure" | "failures" => failed = failed.max(Some(count)),
                "error" | "errors" => errors = errors.max(Some(count)),
                "passed" | "passing" | "total" | "tests" | "examples" | "problems" | "problem"
                | "assertions" | "files" => others = true,
                _ => {}
            },
            // `Failed:     1, Passed:    41`, `Tests: 3, Failures: 1.`, `# fail 1`
            (None, Some(value)) => match label {
                "Failed" | "Failures" | "fail" => failed = failed.max(Some(value)),
                "Errors" => errors = errors.max(Some(value)),
                "Passed" | "Tests" | "run" => others = true,
                _ => {}
            },
            _ => {}
        }
        number = value;
        label = token;
    }
    let is_timed = line.ends_with('s') && line.contains(" in ");
    let is_found = line.starts_with("Found ");
    if others || is_timed || is_found {
        failed = failed.max(errors);
    }
    failed.map(|failed| (failed, others))
}

/// The line that tells what failed; empty if nothing was printed.
pub fn telling(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|it| !it.is_empty()).collect();
    let mut best = (0, lines.len().saturating_sub(1));
    let mut before = "";
    for (at, line) in lines.iter().enumerate() {
        let weight = weight(line.strip_prefix("[ERROR] ").unwrap_or(line).trim(), before);
        if weight > best.0 {
            best = (weight, at);
        }
        before = line;
    }
    let Some((line, below)) = lines.get(best.1..).and_then(<[_]>::split_first) else {
        return String::new();
    };
    let line = line.strip_prefix("[ERROR]").unwrap_or(line);
    let line = line.strip_prefix("E  ").unwrap_or(line);
    let line = line.strip_prefix("Failure/Error:").unwrap_or(line);
    let mut telling = one_line(line.trim_matches(['=', ' ']));
    if telling.ends_with(':')
        && let Some(next) = below.first().filter(|it| !is_frame(it))
    {
        telling = format!("{telling} {}", one_line(next));
    }
    for next in below.iter().take(4).filter(|it| is_half_of_a_pair(it)) {
        if !telling.contains(*next) {
            telling = format!("{telling}, {}", one_line(next));
        }
    }
    shorten(&telling, TELLING_MAX).into_owned()
}

/// `left: 1`, `Received: 2`, `actual  : 3`: what was compared.
fn is_half_of_a_pair(line: &str) -> bool {
    let label = line.split_once(':').map(|(label, _)| label.trim_end());
    label.is_some_and(|label| {
        let halves = [
            "left", "right", "expected", "received", "actual", "got", "want",
        ];
        halves.iter().any(|it| label.eq_ignore_ascii_case(it))
    })
}

/// How well a line tells what failed, from 0 to 10. `before` is the line before it.
fn weight(line: &str, before: &str) -> u8 {
    let starts = |beginnings: &[&str]| beginnings.iter().any(|it| line.starts_with(it));
    let has = |parts: &[&str]| parts.iter().any(|it| line.contains(it));
    if is_frame(line) {
        return 0;
    }
    if is_consequence(line) {
        return 1;
    }
    if before.contains("panicked at") && before.ends_with(':') || before == "Error Message:" {
        return 9;
    }
    if let Some((name, message)) = named_error(line) {
        let is_assertion = name.contains("Assertion") || name.contains("Comparison");
        return match message {
            "" if name.len() < line.len() => 10,
            "" => 5,
            _ if is_assertion => 9,
            _ => 8,
        };
    }
    if starts(&[
        "E  ",
        "panic: ",
        "Failure/Error:",
        "Failed asserting",
        "e: file:",
        "error[E",
    ]) || has(&[
        "panicked at '",
        "error TS",
        "error CS",
        ": error: ",
        "Error) ",
        ".java:[",
    ]) || has(&["assertion failed: ", "> but was: <"])
        || line.ends_with("Error)")
        || (line.starts_with("Expected") && line.contains(':') || line.starts_with("expected:"))
        || is_placed_error(line)
    {
        return 9;
    }
    let is_below_failed_task = before.starts_with("Execution failed for task");
    if starts(&["error: ", "Error: ", "ERROR: ", "fatal: "])
        || (line.starts_with("FAILED ") && line.contains(" - "))
        || (line.starts_with("> ") && is_below_failed_task)
    {
        return 8;
    }
    if has(&[
        "No such file or directory",
        "command not found",
        "Permission denied",
    ]) {
        return 7;
    }
    if starts(&["--- FAIL: ", "FAILED ", "✖ ", "✗ ", "× ", "● "]) || line.ends_with(" FAILED")
    {
        return 6;
    }
    let number = line.split(") ").next().unwrap_or_default();
    if number.len() < 4 && number.parse::<u32>().is_ok() {
        return 5;
    }
    match failures(line) {
        Some((1.., _)) => 4,
        _ if is_failure_mark(line) => 3,
        _ if has(&["rror", "ailed"]) => 2,
        _ => 0,
    }
}

/// A line of a stack trace, or one that only names the place.
fn is_frame(line: &str) -> bool {
    let beginnings = [
        "at ",
        "from ",
        "File \"",
        "-->",
        "|",
        "> Task ",
        "Error Trace:",
        "note: ",
        "help: ",
        "❯ ",
    ];
    beginnings.iter().any(|it| line.starts_with(it))
        || ((line.contains(":in '") || line.contains(":in `")) && !line.contains("Error)"))
}

/// A line that says only that something before it failed.
fn is_consequence(line: &str) -> bool {
    let parts = [
        "could not compile",
        "aborting due to",
        "to rerun pass",
        "Execution failed for task",
        "There were failing tests",
        "ELIFECYCLE",
        "npm ERR!",
        "npm error",
        "Command failed",
        "make: ***",
        "exit code",
        "exited with",
        "Lifecycle script",
        "task failed",
        "Test failed. See",
    ];
    parts.iter().any(|it| line.contains(it))
}

/// `TypeError: x is not a function`, `org.junit.ComparisonFailure: expected …`: the name of the
/// error and its message. The name may stand behind the place of the error.
fn named_error(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("E  ").map_or(line, str::trim);
    let is_name = |it: &str| {
        ["Error", "Exception", "Failure"]
            .iter()
            .any(|end| it.len() > end.len() && it.ends_with(end))
    };
    for part in line.split_whitespace().take(3) {
        let name = part.trim_end_matches(':');
        if !is_name(name) || name.contains(['(', '"', '\'', '/']) {
            continue;
        }
        let at = part.as_ptr() as usize - line.as_ptr() as usize;
        let rest = &line[at + name.len()..];
        // `AssertionError [ERR_ASSERTION]: …`
        let rest = match rest.strip_prefix(" [").and_then(|it| it.split_once(']')) {
            Some((_, rest)) => rest,
            None => rest,
        };
        return match rest.strip_prefix(':') {
            Some(message) => Some((name, message.trim())),
            None => (rest.is_empty() && at == 0).then_some((name, "")),
        };
    }
    None
}

/// An error with its place in front: `x_test.go:12: got 3`, `./a.go:3:5: undefined: b`, and of
/// linters `1:36  error  'x' is not defined`.
fn is_placed_error(line: &str) -> bool {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let mut words = line.split_whitespace();
    let place = words.next().unwrap_or_default();
    let next = words.next();
    let numbers: Vec<&str> = place.split(':').collect();
    let linter = || numbers.len() == 2 && numbers.iter().all(|it| is_number(it));
    let go = || match &numbers[..] {
        [file, line, .., ""] => file.ends_with(".go") && is_number(line),
        _ => false,
    };
    next.is_some() && (next == Some("error") && linter() || go())
}

/// How many tests passed, as a person would say it; empty if the output does not tell.
pub fn passed(output: &str) -> String {
    let (mut sum, mut last, mut packages, mut line_of_success) = (0, None, 0, "");
    for line in output.lines().map(str::trim) {
        if let Some(result) = line.strip_prefix("test result: ok. ") {
            sum += passed_in(result).unwrap_or_default();
        } else if !line.starts_with("Test Suites:") && !line.starts_with("Test Files") {
            last = passed_in(line).or(last);
        }
        packages += usize::from(line.starts_with("ok  \t") || line.starts_with("ok \t"));
        if line.starts_with("OK (") || line.starts_with("BUILD SUCCESSFUL") {
            line_of_success = line;
        }
    }
    match (Some(sum).filter(|it| *it > 0).or(last), packages) {
        (Some(count), _) => format!("{count} passed"),
        (None, 1..) => format!("{packages} packages ok"),
        (None, 0) => shorten(line_of_success, TELLING_MAX).into_owned(),
    }
}

/// `42 passed`, `42 passing`, `12 examples, 0 failures`, `Passed:    41`, `# pass 12`, `Ran 5 tests`.
fn passed_in(line: &str) -> Option<u64> {
    let tokens = line.split(|it: char| !it.is_alphanumeric());
    let tokens: Vec<&str> = tokens.filter(|it| !it.is_empty()).collect();
    tokens.windows(2).find_map(|pair| match pair {
        [number, "passed" | "passing" | "examples" | "example"] => number.parse().ok(),
        ["Passed" | "pass", number] => number.parse().ok(),
        [number, "tests" | "test"] if tokens[0] == "Ran" => number.parse().ok(),
        _ => None,
    })
}
