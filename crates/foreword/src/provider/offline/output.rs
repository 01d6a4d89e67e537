//! Reading what commands print: whether something failed, and which line says why.

use foreword_core::text;

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

/// The line that says what went wrong.
pub fn key_line(output: &str) -> Option<String> {
    let lines: Vec<&str> = output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && heading(line).is_none())
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
    output.lines().map(str::trim).find_map(|line| {
        let named = heading(line)
            .or_else(|| {
                line.strip_prefix("FAILED ")?
                    .split_once("::")
                    .map(|it| it.1)
            })
            .or_else(|| line.strip_prefix("--- FAIL: "))
            .or_else(|| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))?;
        let name = named.split([' ', '[']).next()?;
        (!name.is_empty()).then(|| name.to_owned())
    })
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
