//! Tables of real output: what each tool prints when it fails or passes, commits, shell edits.

use foreword_core::model::{Event, EventKind, FileRole, Payload, TouchedFile};
use serde_json::{Value, json};

use super::{Answer, Commit, Edit, Run, Step, step};

fn event(tool: &str, kind: EventKind, payload: Payload) -> Event {
    Event {
        id: uuid::Uuid::from_u128(7),
        key: "k".to_owned(),
        kind,
        host: "claude-code".to_owned(),
        host_session_id: "s".to_owned(),
        prompt_id: Some("p".to_owned()),
        agent_id: None,
        tool_name: Some(tool.to_owned()),
        tool_use_id: Some("t".to_owned()),
        cwd: Some("/p".to_owned()),
        project_dir: None,
        project: None,
        root: Some("/p".to_owned()),
        transcript_path: None,
        branch: None,
        commit: None,
        files: Vec::new(),
        payload,
        at: 5,
    }
}

/// A shell line that ended with this exit code and printed this.
fn shell(command: &str, exit_code: u8, output: &str) -> Step {
    let mut payload = Payload {
        input: Some(json!({"command": command})),
        ..Payload::default()
    };
    let kind = if exit_code == 0 {
        payload.response = Some(json!({"stdout": output, "stderr": "", "interrupted": false}));
        EventKind::ToolUse
    } else {
        payload.error = Some(format!("Exit code {exit_code}\n{output}"));
        EventKind::ToolFailure
    };
    step(&event("Bash", kind, payload)).unwrap()
}

fn run(command: &str, passed: bool, check: bool, telling: &str) -> Run {
    Run {
        command: command.to_owned(),
        passed,
        check,
        telling: telling.to_owned(),
    }
}

#[test]
fn each_tools_failure_is_seen_behind_a_pipe_with_its_telling_line() {
    for (command, output, telling) in [
        (
            "pytest -q",
            ".F\n=== FAILURES ===\n    def test_sum():\n>       assert total([1]) == 2\nE       assert 1 == 2\nE        +  where 1 = total([1])\n\ntests/test_a.py:4: AssertionError\n=== short test summary info ===\nFAILED tests/test_a.py::test_sum - assert 1 == 2\n1 failed, 41 passed in 0.31s",
            "assert 1 == 2",
        ),
        (
            "python -m pytest",
            "FAILED tests/test_api.py::test_limit - KeyError: 'limit'\n========= 1 failed, 41 passed in 2.10s =========",
            "FAILED tests/test_api.py::test_limit - KeyError: 'limit'",
        ),
        (
            "npx jest",
            "FAIL src/cart.test.ts\n  ● Cart › totals\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 5\n    Received: 4\n\n      at Object.<anonymous> (src/cart.test.ts:9:20)\n\nTests:       1 failed, 3 passed, 4 total",
            "Expected: 5, Received: 4",
        ),
        (
            "pnpm vitest run",
            " ❯ src/a.test.ts (3 tests | 1 failed)\n   × adds 4ms\n⎯⎯⎯ Failed Tests 1 ⎯⎯⎯\n FAIL  src/a.test.ts > adds\nAssertionError: expected 4 to be 5 // Object.is equality\n ❯ src/a.test.ts:5:20\n Tests  1 failed | 2 passed (3)",
            "AssertionError: expected 4 to be 5 // Object.is equality",
        ),
        (
            "go test ./...",
            "ok  \texample.com/a\t0.003s\n--- FAIL: TestResume (0.00s)\n    resume_test.go:41: got 3 files, want 4\nFAIL\nFAIL\texample.com/b\t0.010s\nFAIL",
            "resume_test.go:41: got 3 files, want 4",
        ),
        (
            "go test ./b",
            "--- FAIL: TestX (0.00s)\npanic: runtime error: index out of range [3] with length 3 [recovered]\n\ngoroutine 6 [running]:\ntesting.tRunner.func1.2({0x1})\n\t/usr/go/src/testing/testing.go:1632 +0x230\nFAIL\texample.com/b\t0.010s",
            "panic: runtime error: index out of range [3] with length 3 [recovered]",
        ),
        (
            "cargo test",
            "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\n---- b stdout ----\nthread 'b' panicked at src/lib.rs:9:5:\nassertion `left == right` failed\n  left: 4\n right: 5\nnote: run with `RUST_BACKTRACE=1`\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\nerror: test failed, to rerun pass `--lib`",
            "assertion `left == right` failed, left: 4, right: 5",
        ),
        (
            "cargo build",
            "   Compiling x v0.1.0\nerror[E0308]: mismatched types\n --> src/a.rs:3:5\n  |\nerror: could not compile `x` (lib) due to 1 previous error",
            "error[E0308]: mismatched types",
        ),
        (
            "./gradlew test",
            "> Task :app:test FAILED\n\nCartTest > totals() FAILED\n    org.opentest4j.AssertionFailedError: expected: <5> but was: <4>\n        at app//CartTest.totals(CartTest.java:14)\n\n12 tests completed, 1 failed\n\nFAILURE: Build failed with an exception.\n* What went wrong:\nExecution failed for task ':app:test'.\n> There were failing tests. See the report at: file:///p\n\nBUILD FAILED in 3s",
            "org.opentest4j.AssertionFailedError: expected: <5> but was: <4>",
        ),
        (
            "npx tsc --noEmit",
            "src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
            "src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
        ),
        (
            "npx eslint src",
            "\n/p/src/a.js\n  1:36  error  'MoneySchema' is not defined  no-undef\n\n✖ 1 problem (1 error, 0 warnings)",
            "1:36 error 'MoneySchema' is not defined no-undef",
        ),
        (
            "bundle exec rspec",
            "F.\n\nFailures:\n\n  1) Cart totals\n     Failure/Error: expect(cart.total).to eq(5)\n\n       expected: 5\n            got: 4\n\n       (compared using ==)\n     # ./spec/cart_spec.rb:9:in 'block'\n\n2 examples, 1 failure",
            "expect(cart.total).to eq(5), expected: 5, got: 4",
        ),
        (
            "vendor/bin/phpunit",
            "F.\n\nThere was 1 failure:\n\n1) Tests\\CartTest::testTotal\nFailed asserting that 4 matches expected 5.\n\n/p/tests/CartTest.php:12\n\nFAILURES!\nTests: 2, Assertions: 2, Failures: 1.",
            "Failed asserting that 4 matches expected 5.",
        ),
        (
            "dotnet test",
            "  Failed Acme.CartTests.Totals [12 ms]\n  Error Message:\n   Assert.Equal() Failure: Values differ\nExpected: 5\nActual:   4\n  Stack Trace:\n     at Acme.CartTests.Totals() in /p/CartTests.cs:line 9\n\nFailed!  - Failed:     1, Passed:    41, Skipped:     0, Total:    42",
            "Assert.Equal() Failure: Values differ, Expected: 5, Actual: 4",
        ),
        (
            "npx mocha",
            "  Cart\n    1) totals\n\n  3 passing (8ms)\n  1 failing\n\n  1) Cart\n       totals:\n\n      AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n4 !== 5\n\n      at Context.<anonymous> (test/cart.js:7:12)",
            "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: 4 !== 5",
        ),
        (
            "npm test",
            "> cart@1.0.0 test\n> node --test\n\n✖ totals (1.2ms)\n  TypeError: cart.total is not a function\n      at TestContext.<anonymous> (file:///p/a.test.js:5:3)\nℹ tests 2\nℹ pass 1\nℹ fail 1",
            "TypeError: cart.total is not a function",
        ),
    ] {
        let piped = shell(&format!("cd app && {command} 2>&1 | tail -40"), 0, output);
        assert_eq!(
            piped.runs,
            [run(command, false, true, telling)],
            "{command}"
        );
        let alone = shell(command, 1, output);
        assert_eq!(
            alone.runs,
            [run(command, false, true, telling)],
            "{command}"
        );
    }
}

#[test]
fn a_check_that_passes_is_seen_behind_a_pipe() {
    for (command, output) in [
        ("pytest -q", "....\n42 passed, 1 skipped in 0.31s"),
        (
            "npx jest",
            "PASS src/a.test.ts\nTest Suites: 2 passed, 2 total\nTests:       42 passed, 42 total",
        ),
        (
            "npx vitest run",
            " Test Files  2 passed (2)\n      Tests  42 passed (42)",
        ),
        ("go test ./...", "ok  \ta\t0.003s\nok  \tb\t(cached)"),
        (
            "cargo test",
            "test result: ok. 40 passed; 0 failed; 0 ignored\n\ntest result: ok. 2 passed; 0 failed",
        ),
        (
            "./gradlew check",
            "BUILD SUCCESSFUL in 3s\n5 actionable tasks",
        ),
        ("bundle exec rspec", "12 examples, 0 failures"),
        ("vendor/bin/phpunit", "OK (12 tests, 30 assertions)"),
        (
            "dotnet test",
            "Passed!  - Failed:     0, Passed:    42, Skipped:     0, Total:    42",
        ),
        ("npx mocha", "  42 passing (1s)"),
        ("npx tsc --noEmit", ""),
        ("npx eslint .", "\n✖ 2 problems (0 errors, 2 warnings)"),
    ] {
        let piped = shell(&format!("{command} 2>&1 | tail -5"), 0, output);
        assert_eq!(piped.runs, [run(command, true, true, "")], "{command}");
    }
}

#[test]
fn each_command_of_a_line_has_its_own_outcome() {
    let lint = "> a@1.0.0 lint\n> eslint .\n\n/p/a.js\n  1:1  error  bad  no-x\n\n✖ 1 problem (1 error, 0 warnings)";
    let red = "1 failed, 41 passed in 0.5s";
    for (command, exit_code, output, expected) in [
        (
            "npx tsc && pnpm lint && pnpm test",
            0,
            "Tests  4 passed (4)",
            vec![
                run("npx tsc", true, true, ""),
                run("pnpm lint", true, true, ""),
                run("pnpm test", true, true, ""),
            ],
        ),
        (
            "npx tsc && pnpm lint && pnpm test",
            1,
            lint,
            vec![
                run("npx tsc", true, true, ""),
                run("pnpm lint", false, true, "1:1 error bad no-x"),
            ],
        ),
        (
            "pytest && git push",
            1,
            "41 passed in 0.5s\nerror: failed to push some refs",
            vec![
                run("pytest", true, true, ""),
                run("git push", false, false, "error: failed to push some refs"),
            ],
        ),
        (
            "pytest; git status",
            0,
            red,
            vec![
                run("pytest", false, true, red),
                run("git status", true, false, ""),
            ],
        ),
        (
            "pytest || true",
            0,
            red,
            vec![run("pytest", false, true, red)],
        ),
        (
            "pytest > log; echo \"exit: $?\"",
            0,
            "exit: 1",
            vec![run("pytest", false, true, "exit: 1")],
        ),
        (
            "set -o pipefail; pytest | tail",
            0,
            "a log line: FAIL\n41 passed",
            vec![run("pytest", true, true, "")],
        ),
        (
            "ls src | head",
            0,
            "FAIL a.rs",
            vec![run("ls src", true, false, "")],
        ),
        (
            "mise run test && mise run lint",
            1,
            "[test] $ go test ./...\n--- FAIL: TestX (0.00s)\n    x_test.go:7: got 33.3, want 42.9\n[test] ERROR task failed",
            vec![run(
                "mise run test",
                false,
                true,
                "x_test.go:7: got 33.3, want 42.9",
            )],
        ),
        (
            "make fmt && make lint && make test | tail",
            1,
            "a.go:3:5: unused (lint)",
            vec![
                run("make fmt", true, false, ""),
                run("make lint", false, true, "a.go:3:5: unused (lint)"),
            ],
        ),
        (
            "cd api && go test ./...",
            1,
            "bash: line 1: cd: api: No such file or directory",
            vec![],
        ),
        (
            "python3 -c 'import yaml'",
            1,
            "Traceback (most recent call last):\n  File \"<string>\", line 1\nModuleNotFoundError: No module named 'yaml'",
            vec![run(
                "python3 -c 'import yaml'",
                false,
                false,
                "ModuleNotFoundError: No module named 'yaml'",
            )],
        ),
        (
            "python3 - <<'PY'\nimport tests\nPY",
            1,
            "ImportError: tests",
            vec![run("python3 -", false, false, "ImportError: tests")],
        ),
        (
            "vitest run",
            127,
            "bash: line 1: vitest: command not found",
            vec![run(
                "vitest run",
                false,
                false,
                "bash: line 1: vitest: command not found",
            )],
        ),
        (
            "ruby test/thumb_test.rb",
            1,
            "libvips.so.42: cannot open shared object file: No such file or directory (LoadError)\n\tfrom lib/thumb.rb:1:in '<top (required)>'",
            vec![run(
                "ruby test/thumb_test.rb",
                false,
                true,
                "libvips.so.42: cannot open shared object file: No such file or directory (LoadError)",
            )],
        ),
    ] {
        assert_eq!(
            shell(command, exit_code, output).runs,
            expected,
            "{command}"
        );
    }
}

#[test]
fn a_commit_is_read_however_it_is_typed() {
    let commit = |subject: &str, body: &str, hash: &str, files: &[&str]| Commit {
        subject: subject.to_owned(),
        body: body.to_owned(),
        hash: Some(hash.to_owned()).filter(|it| !it.is_empty()),
        files: files.iter().map(|&it| it.to_owned()).collect(),
        amend: false,
    };
    for (command, output, expected) in [
        (
            "cd app && git add a.rs b.rs && git commit -qm 'Add b' && git push",
            "",
            vec![commit("Add b", "", "", &["app/a.rs", "app/b.rs"])],
        ),
        (
            "git commit -am \"$(cat <<'EOF'\nSplit the parser\n\nIt's read twice; see #3.\n\n🤖 Generated with a tool\n\nCo-Authored-By: A <a@b.c>\nEOF\n)\"",
            "[main 1a2b3c4] Split the parser\n 2 files changed, 5 insertions(+)\n create mode 100644 src/parse.rs\n rename src/{old.rs => new.rs} (90%)",
            vec![commit(
                "Split the parser",
                "It's read twice; see #3.",
                "1a2b3c4",
                &["src/new.rs", "src/parse.rs"],
            )],
        ),
        (
            "git -C /p commit -F - <<'EOF'\nTrade balance\n\nPer zone.\nEOF",
            "[main (root-commit) abcdef1] Trade balance\n a.py | 3 +++\n 1 file changed",
            vec![commit("Trade balance", "Per zone.", "abcdef1", &["a.py"])],
        ),
        (
            "cat > /tmp/m <<EOF\nFrom a file\nEOF\ngit commit -F /tmp/m",
            "",
            vec![commit("From a file", "", "", &[])],
        ),
        (
            "git commit -m One -m 'Why one.' a.rs && git commit -m Two",
            "[main 1111111] One\n[main 2222222] Two",
            vec![
                commit("One", "Why one.", "1111111", &[]),
                commit("Two", "", "2222222", &[]),
            ],
        ),
        (
            "git commit -qm 'Quiet' && git log --oneline -1",
            "9f8e7d6 Quiet",
            vec![commit("Quiet", "", "9f8e7d6", &[])],
        ),
        (
            "git commit --amend --no-edit",
            "[main 3333333] Same as before",
            vec![Commit {
                amend: true,
                ..commit("Same as before", "", "3333333", &[])
            }],
        ),
        (
            "git commit --allow-empty -m ci",
            "[main 4444444] ci",
            vec![],
        ),
        (
            "git commit -m x | tail -1",
            "nothing to commit, working tree clean",
            vec![],
        ),
        ("echo git commit -m x", "", vec![]),
        (
            "cd /tmp/try && git init && git commit -m initial",
            "[main 83cc426] initial",
            vec![],
        ),
    ] {
        assert_eq!(shell(command, 0, output).commits, expected, "{command}");
    }
    let push = shell(
        "git commit -m x && git push",
        1,
        "[main 5555555] x\nfatal: no remote",
    );
    assert_eq!(push.commits, [commit("x", "", "5555555", &[])]);
    assert_eq!(shell("git commit -m x", 1, "hook failed").commits, []);
}

#[test]
fn a_shell_line_edits_and_removes_files() {
    let edit = |path: &str, before: &str, after: &str| Edit {
        path: path.to_owned(),
        before: before.to_owned(),
        after: after.to_owned(),
        created: false,
    };
    for (command, edits, removed) in [
        (
            "sed -i 's/old/new/g' src/a.js b.js",
            vec![edit("src/a.js", "old", "new"), edit("b.js", "old", "new")],
            vec![],
        ),
        (
            "sed -i '' -e 's|a|b|' x.py",
            vec![edit("x.py", "a", "b")],
            vec![],
        ),
        ("sed -n 1,5p a.js", vec![], vec![]),
        (
            "cat > app/a.rs <<'EOF'\nfn main() {}\nEOF",
            vec![edit("app/a.rs", "", "fn main() {}")],
            vec![],
        ),
        (
            "cd app && echo 'x = 1' >> conf.toml",
            vec![edit("app/conf.toml", "", "x = 1")],
            vec![],
        ),
        (
            "cat <<EOF | tee /p/c.yml\na: 1\nEOF",
            vec![edit("c.yml", "", "a: 1")],
            vec![],
        ),
        ("cargo test > /tmp/log; echo x > /tmp/y", vec![], vec![]),
        (
            "npx prettier --write src/a.ts docs",
            vec![edit("src/a.ts", "", "")],
            vec![],
        ),
        ("black --check a.py", vec![], vec![]),
        ("cargo fmt", vec![], vec![]),
        (
            "git mv src/a.rs src/b.rs",
            vec![edit("src/b.rs", "", "")],
            vec!["src/a.rs"],
        ),
        (
            "mv a.rs b.rs old/",
            vec![edit("old/a.rs", "", ""), edit("old/b.rs", "", "")],
            vec!["a.rs", "b.rs"],
        ),
        (
            "rm -rf tmp.txt && git rm -q x.md",
            vec![],
            vec!["tmp.txt", "x.md"],
        ),
        ("git checkout -- src/a.rs", vec![], vec![]),
        ("git checkout main", vec![], vec![]),
        ("git reset --hard", vec![], vec![]),
    ] {
        let step = shell(command, 0, "");
        assert_eq!(step.edits, edits, "{command}");
        assert_eq!(step.removed, removed, "{command}");
        let written: Vec<_> = step.files.iter().map(|it| (&it.path, it.role)).collect();
        let edited = edits.iter().map(|it| (&it.path, FileRole::Modified));
        assert_eq!(written, edited.collect::<Vec<_>>(), "{command}");
    }
}

#[test]
fn git_puts_files_back() {
    for (command, restored) in [
        ("git checkout -- src/a.rs b.rs", vec!["src/a.rs", "b.rs"]),
        ("git checkout HEAD -- src/a.rs", vec!["src/a.rs"]),
        ("git restore src/a.rs", vec!["src/a.rs"]),
        ("git restore --staged src/a.rs", vec![]),
        ("git checkout main", vec![]),
    ] {
        assert_eq!(shell(command, 0, "").restored, restored, "{command}");
    }
}

#[test]
fn housekeeping_of_git_is_plumbing() {
    for (command, plumbing) in [
        ("git status", true),
        ("cd x && git log --oneline | head -3", true),
        (
            "gh pr create --title x --body \"$(cat <<'EOF'\na\nEOF\n)\"",
            true,
        ),
        ("git push && cargo test", false),
        ("git rm a", false),
        ("ls", false),
    ] {
        assert_eq!(shell(command, 0, "").plumbing, plumbing, "{command}");
    }
}

fn edited(tool: &str, path: &str, input: Value, response: Value) -> Step {
    let mut event = event(
        tool,
        EventKind::ToolUse,
        Payload {
            input: Some(input),
            response: Some(response),
            ..Payload::default()
        },
    );
    event.files = vec![TouchedFile {
        path: path.to_owned(),
        role: FileRole::Modified,
        size: None,
        mtime: None,
        hash: None,
    }];
    step(&event).unwrap()
}

#[test]
fn every_edit_tool_gives_its_edits() {
    let texts = |step: &Step| -> Vec<String> {
        let edits = step.edits.iter();
        let texts =
            edits.map(|it| format!("{} {}>{} {}", it.path, it.before, it.after, it.created));
        texts.collect()
    };
    let edit = json!({"file_path": "/p/a.rs", "old_string": "a", "new_string": "b"});
    assert_eq!(
        texts(&edited("Edit", "/p/a.rs", edit, json!({}))),
        ["a.rs a>b false"]
    );
    let edits = json!({"edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]});
    assert_eq!(
        texts(&edited("MultiEdit", "/p/a.rs", edits, json!({}))),
        ["a.rs a>b false", "a.rs c> false"]
    );
    let written = json!({"file_path": "/p/a.rs", "content": "x\ny"});
    assert_eq!(
        texts(&edited(
            "Write",
            "/p/a.rs",
            written.clone(),
            json!({"type": "create", "structuredPatch": []})
        )),
        ["a.rs >x\ny true"]
    );
    let patch = json!({"type": "update", "structuredPatch": [{"lines": [" x", "-z", "+y"]}]});
    assert_eq!(
        texts(&edited("Write", "/p/a.rs", written.clone(), patch)),
        ["a.rs z>y false"]
    );
    let cell =
        json!({"notebook_path": "/p/n.ipynb", "new_source": "df.head()", "edit_mode": "insert"});
    assert_eq!(
        texts(&edited("NotebookEdit", "/p/n.ipynb", cell, json!({}))),
        ["n.ipynb >df.head() false"]
    );
    let plan = edited(
        "Write",
        "/u/.claude/plans/a.md",
        written,
        json!({"type": "create"}),
    );
    assert_eq!((plan.edits, plan.files), (vec![], vec![]));
}

#[test]
fn an_answer_of_the_user_has_the_options_refused() {
    let asked = |answers: Value| {
        let options = json!([{"label": "Pre-built binaries"}, {"label": "Build from source"}, {"label": "Docker"}]);
        let questions = json!([
            {"question": "How to install?", "options": options, "multiSelect": true},
            {"question": "Go on?", "options": [{"label": "Yes"}, {"label": "No"}]},
        ]);
        let response = json!({"questions": questions, "answers": answers});
        let payload = Payload {
            response: Some(response),
            ..Payload::default()
        };
        step(&event("AskUserQuestion", EventKind::ToolUse, payload))
            .unwrap()
            .answers
    };
    let answer = |answer: &str, refused: &[&str]| Answer {
        question: "How to install?".to_owned(),
        answer: answer.to_owned(),
        refused: refused.iter().map(|&it| it.to_owned()).collect(),
    };
    assert_eq!(
        asked(json!({"How to install?": "Docker", "Go on?": "Yes"})),
        [answer(
            "Docker",
            &["Pre-built binaries", "Build from source"]
        )]
    );
    assert_eq!(
        asked(json!({"How to install?": "Docker, Pre-built binaries"})),
        [answer("Docker, Pre-built binaries", &["Build from source"])]
    );
}
