//! Reads what checks print: whether something failed, and the line that tells what. The formats are
//! those of the tools that the tests name; no line of prose is judged by its words.

use foreword_core::text::{flat, is_unsafe, shorten};

use super::programs::{program, tasks};

/// The longest telling line, in characters.
const TELLING_MAX: usize = 160;

/// Lines that a check prints if it failed: the program, with its first argument if it has several
/// formats, and parts of such lines (see `has_part`).
const FAILURES: [(&str, &str); 16] = [
    ("pytest", "^FAILED ;^ERROR ;^E   ; failed in "),
    ("jest", "^● ;^FAIL "),
    ("vitest", "^FAIL ;Failed Tests"),
    ("mocha", " failing$"),
    ("go test", "^FAIL\t;^FAIL$;^--- FAIL"),
    ("cargo test", "^test result: FAILED;error: test failed"),
    ("cargo nextest", "^FAIL ["),
    ("cargo", "^error[E;^error: could not compile"),
    ("tsc", "error TS"),
    ("eslint", "^✖ "),
    ("rspec", "^Failure/Error;^rspec ./"),
    ("phpunit", "^FAILURES!;^ERRORS!"),
    ("dotnet", "^Failed!;error CS;^Build FAILED"),
    ("gradle", "BUILD FAILED;^FAILURE:"),
    ("gradlew", "BUILD FAILED;^FAILURE:"),
    ("make", "^make: *** ;: error: "),
];

/// Other lines that show a failure.
const OTHER_FAILURES: &str = "^✗ ;^FAIL;npm ERR!;npm error;ELIFECYCLE";

/// Lines of a stack trace, or those that only name the place.
const FRAMES: &str = "^at ;^from ;^File \";^-->;^|;^> Task ;^note: ;^help: ;^❯ ;:in ';:in `";

/// How well a line tells what failed, from 0 to 9: the first row of which it has a part.
const WEIGHTS: [(u8, &str); 6] = [
    (0, FRAMES),
    // Lines about the failure of something before them.
    (
        1,
        "could not compile;to rerun pass;failing tests;ELIFECYCLE;npm ERR!;npm error;\
         ommand failed;make: ***;xit code;exited with;task failed",
    ),
    (
        9,
        "^E  ;^panic: ;^Failure/Error:;^Failed asserting;^error[E;^Expected:;^expected:;\
         panicked at ';error TS;error CS;: error: ;Error) ;Error)$;.java:[;\
         assertion failed: ;> but was: <",
    ),
    (8, "^error: ;^Error: ;^ERROR: ;^fatal: "),
    (6, "^--- FAIL: ;^FAILED ;^✖ ;^✗ ;^× ;^● "),
    (
        5,
        "o such file or directory;command not found;ermission denied",
    ),
];

/// Whether a line has one of several parts, which `;` separates. `^` stands for the beginning of the
/// line, `$` for its end.
fn has_part(line: &str, parts: &str) -> bool {
    parts.split(';').any(|part| {
        let beginning = part.strip_prefix('^');
        let bare = beginning.unwrap_or(part);
        match (beginning, bare.strip_suffix('$')) {
            (Some(_), Some(whole)) => line == whole,
            (Some(beginning), None) => line.starts_with(beginning),
            (None, Some(end)) => line.ends_with(end),
            (None, None) => line.contains(part),
        }
    })
}

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

/// Whether the output is that of checks that passed; none if nothing shows it. A summary that
/// counts the tests is believed more than any other line.
pub fn verdict(output: &str) -> Option<bool> {
    let (mut summary, mut failed, mut passed) = (None, false, false);
    for line in output.lines().map(str::trim) {
        match counts(line) {
            (Some(number), true) => summary = Some(summary != Some(false) && number == 0),
            (Some(number), false) => failed |= number > 0,
            (None, has_others) => {
                passed |= has_others || has_part(line, "^ok \t;^ok  \t;^BUILD SUCC");
                failed |= is_failure_mark(line);
            }
        }
    }
    let by_lines = if failed {
        Some(false)
    } else {
        passed.then_some(true)
    };
    summary.or(by_lines)
}

fn is_failure_mark(line: &str) -> bool {
    let mut parts = FAILURES.iter().map(|(_, parts)| *parts);
    parts.any(|it| has_part(line, it)) || has_part(line, OTHER_FAILURES)
}

/// The number of failures that a line counts, and whether it counts other results too.
fn counts(line: &str) -> (Option<u64>, bool) {
    const OTHERS: &str = "pass total test example problem assert file run";
    let (mut failed, mut errors, mut has_others) = (None, None, false);
    if !line.contains(|it: char| it.is_ascii_digit()) {
        return (None, false);
    }
    let tokens = line.split(|it: char| !it.is_alphanumeric());
    let tokens: Vec<&str> = tokens.filter(|it| !it.is_empty()).collect();
    for pair in tokens.windows(2) {
        let (count, label) = match (pair[0].parse(), pair[1].parse()) {
            (Ok(count), Err(_)) if pair[1].starts_with(char::is_lowercase) => (count, pair[1]),
            // `Failed:     1, Passed:    41`, `Tests: 3, Failures: 1.`, `# fail 1`
            (Err(_), Ok(count)) if pair[0].starts_with(char::is_uppercase) || pair[0] == "fail" => {
                (count, pair[0])
            }
            _ => continue,
        };
        let label = label.to_lowercase();
        if label.starts_with("fail") {
            failed = failed.max(Some(count));
        } else if label.starts_with("error") {
            errors = errors.max(Some(count));
        } else {
            has_others |= OTHERS.split(' ').any(|it| label.starts_with(it));
        }
    }
    if has_others || line.starts_with("Found ") {
        failed = failed.max(errors);
    }
    (failed, has_others)
}

/// Whether the output shows that this check failed.
pub fn is_shown_by(words: &[String], output: &str) -> bool {
    let (name, arguments) = program(words);
    let first = arguments.first().map_or("", String::as_str);
    let with_task = format!("{name} {first}");
    let is_of_tool = |(tool, _): &&(&str, &str)| *tool == with_task || *tool == name;
    if let Some((_, parts)) = FAILURES.iter().find(is_of_tool) {
        return output.lines().any(|line| has_part(line.trim(), parts));
    }
    // Package managers print `> name@1.0.0 script` before they run it.
    let Some(task) = tasks(words).next() else {
        return false;
    };
    let is_header = |line: &str| {
        let is_script = line.starts_with("> ") && line.contains('@');
        is_script && line.split(' ').any(|word| word == task)
    };
    output.contains(&format!("[{task}] ERROR"))
        || output.lines().any(is_header) && verdict(output) == Some(false)
}

/// The line that tells what failed; empty if nothing was printed.
pub fn telling(output: &str) -> String {
    let lines = output
        .lines()
        .map(|it| it.trim().trim_start_matches("[ERROR] "));
    let lines: Vec<&str> = lines.filter(|it| !it.is_empty()).collect();
    let mut best = (0, lines.len().saturating_sub(1));
    let mut before = "";
    for (at, line) in lines.iter().enumerate() {
        let weight = weight(line, before);
        if weight > best.0 {
            best = (weight, at);
        }
        before = line;
    }
    let Some((line, below)) = lines.get(best.1..).and_then(<[_]>::split_first) else {
        return String::new();
    };
    let line = line.strip_prefix("E  ").unwrap_or(line);
    let line = line.strip_prefix("Failure/Error:").unwrap_or(line);
    let mut telling = flat(line.trim_matches(['=', ' ']));
    if telling.ends_with(':')
        && let Some(next) = below.first().filter(|it| !has_part(it, FRAMES))
    {
        telling = format!("{telling} {}", flat(next));
    }
    for next in below.iter().take(4).filter(|it| is_half_of_a_pair(it)) {
        if !telling.contains(*next) {
            telling = format!("{telling}, {}", flat(next));
        }
    }
    shorten(&telling, TELLING_MAX).into_owned()
}

/// `left: 1`, `Received: 2`, `actual  : 3`: what was compared.
fn is_half_of_a_pair(line: &str) -> bool {
    const HALVES: &str = "left right expected received actual got want";
    let label = line
        .split_once(':')
        .map_or("", |(label, _)| label.trim_end());
    HALVES.split(' ').any(|it| label.eq_ignore_ascii_case(it))
}

/// How well a line tells what failed. `before` is the line before it.
fn weight(line: &str, before: &str) -> u8 {
    let by_part = WEIGHTS.iter().find(|(_, parts)| has_part(line, parts));
    let by_part = by_part.map(|(weight, _)| *weight);
    let is_panic = before.contains("panicked at") && before.ends_with(':');
    match by_part {
        Some(weight @ (0 | 1)) => weight,
        _ if is_panic || is_named_error(line) || is_placed_error(line) => 9,
        Some(weight) => weight,
        None if counts(line).0.is_some_and(|it| it > 0) => 4,
        None if is_failure_mark(line) => 3,
        None => u8::from(has_part(line, "rror;ailed")) * 2,
    }
}

/// `TypeError: x is not a function`, `AssertionError [ERR_ASSERTION]: …`, with the place of the
/// error in front or not.
fn is_named_error(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    words.windows(2).take(3).any(|pair| {
        let name = pair[0].trim_end_matches(':');
        let ends = ["Error", "Exception", "Failure"];
        let is_name = name.len() > "Error".len() && ends.iter().any(|it| name.ends_with(it));
        let has_message = name.len() < pair[0].len() || pair[1].starts_with('[');
        is_name && has_message && !name.contains(['(', '"', '\'', '/'])
    })
}

/// An error with its place in front: `x_test.go:12: got 3`, `./a.go:3:5: undefined: b`, and of
/// linters `1:36  error  'x' is not defined`.
fn is_placed_error(line: &str) -> bool {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let mut words = line.split_whitespace();
    let place: Vec<&str> = words.next().unwrap_or_default().split(':').collect();
    match (&place[..], words.next()) {
        ([file, line, .., ""], Some(_)) => file.ends_with(".go") && is_number(line),
        ([line, column], Some("error")) => is_number(line) && is_number(column),
        _ => false,
    }
}
