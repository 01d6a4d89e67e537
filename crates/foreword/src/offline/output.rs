//! Reading what commands print: whether something failed, and which line says why.

use foreword_core::text;

use super::speech::has;

/// Output without colour codes and other control characters, line by line.
pub fn plain(output: &str) -> String {
    let mut plain = String::with_capacity(output.len());
    let mut escaped = false;
    for character in output.chars() {
        if character == '\u{1b}' {
            escaped = true;
        } else if escaped {
            // An escape sequence ends at its first letter.
            escaped = !character.is_ascii_alphabetic();
        } else if matches!(character, '\n' | '\t') || !text::is_unsafe(character) {
            plain.push(character);
        }
    }
    plain
}

/// Marks that test runners and compilers leave when something is wrong.
const FAILURE_MARKS: &str = "test result: FAILED, FAILED (, error: could not compile, error[E, \
    Traceback (most recent call last), npm ERR!, npm error, FAIL , FAILURES!, Build FAILED, \
    BUILD FAILED, --- FAIL:, panicked at, Tests failed, AssertionError";

pub fn looks_failed(output: &str) -> bool {
    has(output, FAILURE_MARKS)
}

/// The line that says what went wrong.
pub fn key_line(output: &str) -> Option<String> {
    let lines = output.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && heading(line).is_none())
        .collect();
    let starting = |mark: &str| lines.iter().position(|line| line.starts_with(mark));
    let containing = |marks: &str| lines.iter().position(|line| has(line, marks));
    let errors = ["error[", "error:", "Error:", "fatal:", "ERROR:"];
    let at = starting("E  ")
        .or_else(|| Some(containing("panicked at")? + 1).filter(|&at| at < lines.len()))
        .or_else(|| errors.iter().filter_map(|mark| starting(mark)).min())
        .or_else(|| containing("Error:, Exception: , error TS, --- FAIL:"))
        .or_else(|| containing("error, not found, No such file, denied, undefined, FAIL, failed"));
    let line = at.map_or(lines.last(), |at| lines.get(at))?;
    let line = match line.strip_prefix("E  ") {
        Some(rest) => rest.trim(),
        None => line,
    };
    Some(text::shorten(&text::one_line(line), 160).into_owned())
}

/// `FAIL: test_x (tests.X)` heads what a test has to say; it is not what it says.
fn heading(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("FAIL: ")
        .or_else(|| line.strip_prefix("ERROR: "))?;
    let (test, place) = rest.split_once(" (")?;
    (place.ends_with(')') && !test.contains(' ')).then_some(test)
}

/// The first test that is named as failing.
pub fn failing_test(output: &str) -> Option<String> {
    let named = |line: &str| {
        let pytest = || Some(line.strip_prefix("FAILED ")?.split_once("::")?.1);
        let cargo = || line.strip_prefix("test ")?.strip_suffix(" ... FAILED");
        let named = heading(line)
            .or_else(pytest)
            .or_else(|| line.strip_prefix("--- FAIL: "))
            .or_else(cargo)?;
        named.split([' ', '[']).next().map(str::to_owned)
    };
    let mut tests = output.lines().map(str::trim).filter_map(named);
    tests.find(|name| !name.is_empty())
}

/// The one short line that a command printed about a version.
pub fn version(command: &str, output: &str) -> Option<String> {
    let line = output.trim();
    let digits = line
        .as_bytes()
        .windows(3)
        .any(|it| it[0].is_ascii_digit() && it[1] == b'.' && it[2].is_ascii_digit());
    let asked = command.contains("version") || command.ends_with(" -V");
    (asked && digits && !line.contains('\n') && line.len() <= 80).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_failing_test_is_named() {
        for (output, test) in [
            (
                "F\nFAIL: test_a (t.A.test_a)\nAssertionError: 1 != 2",
                Some("test_a"),
            ),
            ("FAILED tests/a.py::test_b[x y] - assert", Some("test_b")),
            ("--- FAIL: TestC (0.00s)", Some("TestC")),
            ("test d::e ... FAILED", Some("d::e")),
            ("ERROR: no space left", None),
        ] {
            assert_eq!(failing_test(output).as_deref(), test, "{output}");
        }
    }

    #[test]
    fn a_heading_is_not_the_key_line() {
        let output = "E\nERROR: test_a (t.A)\nTypeError: no argument 'x'";
        assert_eq!(
            key_line(output).as_deref(),
            Some("TypeError: no argument 'x'")
        );
    }
}
