//! Whatever the host does with a hook's pipes and whatever it writes into them:
//! exit code 0, an empty stderr, exactly the answer that the host expects, and
//! every complete input is stored.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Host, Sandbox};

const SAVED: &str = r#"{"continue":true,"suppressOutput":true}"#;

/// Each hook command, its right output, and an input.
fn hooks(host: &Host) -> [(&'static str, &'static str, Value); 5] {
    [
        ("context", "", host.start("startup")),
        ("new", "", host.prompt("Add refunds")),
        ("save", SAVED, host.bash("make", "done")),
        ("summary", "", host.stop("Added.")),
        ("cleanup", "", host.end()),
    ]
}

/// One way of treating a hook's pipes; by default as the host does.
struct Case<'a> {
    name: &'a str,
    /// How the shell starts the program.
    line: &'a str,
    input: &'a dyn Fn(Value) -> Vec<u8>,
    /// How many of the five inputs must be stored.
    stored: i64,
    /// The log line of each hook that could not store its event.
    noted: &'a str,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Case {
            name: "",
            line: r#"exec "$0" "$@""#,
            input: &|input| input.to_string().into_bytes(),
            stored: 5,
            noted: "",
        }
    }
}

fn check(case: &Case<'_>) {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let closed = |mark| case.line.contains(mark);
    for (hook, answer, input) in hooks(&Host::new("s1", &project)) {
        let mut command = sandbox.shell(case.line, &[hook]);
        command.env("CLAUDE_PROJECT_DIR", &project);
        let output = feed(command, &(case.input)(input));
        let what = format!("{hook}, {}: {output:?}", case.name);
        assert_eq!(output.status.code(), Some(0), "{what}");
        assert_eq!(output.stderr, b"", "{what}");
        let answer = if closed(">&-") && !closed("2>&-") {
            ""
        } else {
            answer
        };
        assert_eq!(output.stdout, answer.as_bytes(), "{what}");
    }
    sandbox.drain();
    let stored = sandbox.count("memory.db", "select count(*) from events");
    assert_eq!(stored, case.stored, "{}", case.name);
    let log = sandbox.log("hook.log");
    let noted = log.lines().filter(|line| line.contains(case.noted)).count();
    let expected = if case.noted.is_empty() { 0 } else { 5 };
    assert_eq!(
        (noted, log.lines().count()),
        (expected, expected),
        "{}: {log}",
        case.name
    );
}

/// Writes the input and closes the pipe, as the host does; stops when the hook reads no further.
fn feed(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[test]
fn an_input_as_the_host_sends_it_is_stored() {
    check(&Case {
        name: "with a newline",
        input: &|input| format!("{input}\n").into_bytes(),
        ..Case::default()
    });
    check(&Case {
        name: "pretty, with space around",
        input: &|input| format!("\n  {input:#}  \n\n").into_bytes(),
        ..Case::default()
    });
}

#[test]
fn an_input_that_says_nothing_is_noted_and_harmless() {
    let garbage: Vec<u8> = (0..4096_u32)
        .map(|it| (it.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let inputs: [(&str, &[u8], &str); 7] = [
        ("nothing", b"", "empty input"),
        ("space", b" \n\t ", "empty input"),
        ("no JSON", b"hello there", "not the JSON"),
        (
            "half of one",
            br#"{"session_id":"s1","hook_ev"#,
            "not the JSON",
        ),
        ("another kind of JSON", b"[1, 2, 3]", "not the JSON"),
        (
            "not UTF-8",
            b"{\"session_id\":\"\xff\xfe\",\"hook_event_name\":\"Stop\"}",
            "not the JSON",
        ),
        ("garbage", &garbage, "not the JSON"),
    ];
    for (name, input, noted) in inputs {
        check(&Case {
            name,
            input: &|_| input.to_vec(),
            stored: 0,
            noted,
            ..Case::default()
        });
    }
}

#[test]
fn closed_pipes_are_the_hosts_business() {
    check(&Case {
        name: "stdout closed",
        line: r#"exec "$0" "$@" >&-"#,
        ..Case::default()
    });
    check(&Case {
        name: "stderr closed",
        line: r#"exec "$0" "$@" 2>&-"#,
        ..Case::default()
    });
    check(&Case {
        name: "stdin closed",
        line: r#"exec "$0" "$@" <&-"#,
        stored: 0,
        noted: "empty input",
        ..Case::default()
    });
    check(&Case {
        name: "all closed",
        line: r#"exec "$0" "$@" <&- >&- 2>/dev/null"#,
        stored: 0,
        noted: "empty input",
        ..Case::default()
    });
}

#[test]
fn nobody_listens_to_the_answer_and_the_event_is_stored() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    for (hook, _, input) in hooks(&Host::new("s1", &project)) {
        let mut child = sandbox.hook_command(hook, &project).spawn().unwrap();
        drop(child.stdout.take());
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.to_string().as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(0), &b""[..]),
            "{hook}"
        );
    }
    sandbox.drain();
    assert_eq!(sandbox.count("memory.db", "select count(*) from events"), 5);
}

#[test]
fn a_whole_input_is_enough_even_if_the_pipe_stays_open() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    for (hook, answer, input) in hooks(&Host::new("s1", &project)) {
        let mut child = sandbox.hook_command(hook, &project).spawn().unwrap();
        let mut held_open = child.stdin.take().unwrap();
        held_open.write_all(input.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(0), &b""[..]),
            "{hook}"
        );
        assert_eq!(output.stdout, answer.as_bytes());
        drop(held_open);
    }
    // A hook that waited until its timeout would have logged it.
    assert_eq!(sandbox.log("hook.log"), "");
    sandbox.drain();
    assert_eq!(sandbox.count("memory.db", "select count(*) from events"), 5);
}

#[test]
fn half_an_input_and_an_open_pipe_do_not_hold_the_session_up() {
    let mut sandbox = Sandbox::new();
    sandbox.unset("FOREWORD_HOOK_WITHIN_MS");
    let project = sandbox.project("app");
    let mut waiting = Vec::new();
    for (hook, answer, input) in hooks(&Host::new("s1", &project)) {
        let mut child = sandbox.hook_command(hook, &project).spawn().unwrap();
        let mut held_open = child.stdin.take().unwrap();
        let input = input.to_string();
        held_open
            .write_all(&input.as_bytes()[..input.len() - 1])
            .unwrap();
        waiting.push((hook, answer, child, held_open));
    }
    for (hook, answer, child, held_open) in waiting {
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(0), &b""[..]),
            "{hook}"
        );
        assert_eq!(output.stdout, answer.as_bytes());
        let log = sandbox.log("hook.log");
        let noted = log
            .lines()
            .filter(|line| line.contains(&format!(" {hook}: ")));
        assert_eq!(
            noted
                .filter(|line| line.contains("not complete after"))
                .count(),
            1,
            "{log}"
        );
        drop(held_open);
    }
}

#[test]
fn an_input_in_pieces_of_one_byte_is_one_input() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    for (hook, answer, input) in hooks(&Host::new("s1", &project)) {
        let mut child = sandbox.hook_command(hook, &project).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for byte in input.to_string().bytes() {
            stdin.write_all(&[byte]).unwrap();
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, answer.as_bytes());
    }
    sandbox.drain();
    assert_eq!(sandbox.count("memory.db", "select count(*) from events"), 5);
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn a_ten_megabyte_input_leaves_a_small_event() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    let long = "0123456789 ".repeat(1_000_000);
    let mut start = host.start(&long);
    start["model"] = long.clone().into();
    let mut end = host.end();
    end["reason"] = long.clone().into();
    for (hook, answer, input) in [
        ("context", "", start),
        ("new", "", host.prompt(&long)),
        ("save", SAVED, host.bash("make", &long)),
        ("save", SAVED, host.bash(&long, "done")),
        ("summary", "", host.stop(&long)),
        ("cleanup", "", end),
    ] {
        assert_eq!(sandbox.run_hook(hook, &project, &input), answer);
    }
    sandbox.drain();
    assert_eq!(sandbox.count("memory.db", "select count(*) from events"), 6);
    let largest = "select max(length(event -> '$.payload')) from events";
    assert!(sandbox.count("memory.db", largest) <= 64 << 10);
}

#[test]
fn however_deep_an_input_is_nested_it_is_stored() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    // First through the spool, then through the queue.
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let mut sent = 0;
    for _ in 0..2 {
        sandbox.keep_workers_away();
        for depth in (96..=132).chain([1, 1000, 100_000]) {
            let host = Host::new(&format!("s{sent}"), &project);
            let input = host.tool("Bash", json!({"command": "HERE"}), json!("AND HERE"));
            let input = input.to_string().replace("\"HERE\"", &nested(depth));
            let input = input.replace("\"AND HERE\"", &nested(depth));
            let output = sandbox.hook("save", &project, input.as_bytes());
            assert_eq!(
                (output.status.code(), output.stdout.as_slice()),
                (Some(0), SAVED.as_bytes())
            );
            sent += 1;
        }
        sandbox.drain();
        let stored = sandbox.count("memory.db", "select count(*) from events");
        let skipped = &sandbox.status()["skipped"];
        assert_eq!((stored, skipped), (sent, &json!(0)));
    }
    check(&Case {
        name: "100,000 deep in a field that nobody knows",
        input: &|mut input| {
            input["news"] = "HERE".into();
            input
                .to_string()
                .replace("\"HERE\"", &nested(100_000))
                .into_bytes()
        },
        ..Case::default()
    });
}

/// A key that redaction recognises, and that is in no file of this repository.
fn secret() -> String {
    [
        "sk",
        "-ant",
        "-api03-",
        "q7r2m9x4k8w3",
        "p5t6v1z0y3c8",
        "h2j4n6b8d0f1",
    ]
    .concat()
}

/// Files that hold the secret or a good part of it.
fn leaks(sandbox: &Sandbox) -> Vec<String> {
    let secret = secret();
    let body = &secret.as_bytes()[secret.len() - 36..];
    let mut leaks = Vec::new();
    for (path, bytes) in sandbox.files() {
        for part in body.chunks(12) {
            if memchr::memmem::find(&bytes, part).is_some() {
                let part = String::from_utf8_lossy(part);
                leaks.push(format!("{part} in {}", path.display()));
            }
        }
    }
    leaks
}

fn expect_redacted(sandbox: &Sandbox, project: &Path, inputs: &[(&str, Value)]) {
    // First through the spool, then through the queue.
    for road in ["spool", "queue"] {
        sandbox.keep_workers_away();
        for (number, (hook, input)) in inputs.iter().enumerate() {
            let mut input = input.clone();
            input["session_id"] = format!("{road}-{number}").into();
            sandbox.run_hook(hook, project, &input);
        }
        assert_eq!(leaks(sandbox), [""; 0], "by {road}");
        sandbox.drain();
        assert_eq!(leaks(sandbox), [""; 0], "by {road}, processed");
    }
    let stored = sandbox.count("memory.db", "select count(*) from events");
    let redacted = "select count(*) from events where event like '%[redacted:%'";
    let expected = 2 * inputs.len() as i64;
    assert_eq!(
        (stored, sandbox.count("memory.db", redacted)),
        (expected, expected)
    );
}

#[test]
fn a_secret_is_in_no_file_wherever_it_was_said() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    let secret = &secret();
    let sentence = &format!("use {secret} for it");
    let mut end = host.end();
    end["reason"] = sentence.clone().into();
    let deep = format!("{}\"{sentence}\"{}", "[".repeat(300), "]".repeat(300));
    let deep: Box<serde_json::value::RawValue> = serde_json::from_str(&deep).unwrap();
    let inputs = [
        ("new", host.prompt(sentence)),
        (
            "save",
            host.bash(&format!("curl -H 'x-api-key: {secret}' localhost"), "ok"),
        ),
        (
            "save",
            host.bash("cat notes.txt", &format!("KEY={secret}\nPORT=80")),
        ),
        ("save", host.bash_failed("deploy", sentence)),
        (
            "save",
            host.tool(
                "Write",
                json!({"file_path": "/p/a.txt", "content": sentence}),
                json!({"content": sentence}),
            ),
        ),
        (
            "save",
            host.tool(
                "Read",
                json!({"file_path": format!("/p/{secret}.txt")}),
                json!({}),
            ),
        ),
        (
            "save",
            host.tool(
                "mcp__db__query",
                json!({"a": [{"b": sentence}]}),
                json!([{"type": "text", "text": sentence}]),
            ),
        ),
        (
            "save",
            host.tool(
                "mcp__db__query",
                json!({"a": {secret.as_str(): 1}}),
                json!({secret.as_str(): 1}),
            ),
        ),
        (
            "save",
            host.tool(
                "Bash",
                json!({"command": "x", "deep": deep.get()}),
                Value::Null,
            ),
        ),
        ("summary", host.stop(sentence)),
        ("cleanup", end),
    ];
    expect_redacted(&sandbox, &project, &inputs);
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn a_secret_where_a_long_text_is_cut_is_in_no_file() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    let secret = &secret();
    let at = |place: usize, size: usize| {
        let head = "x ".repeat(place / 2);
        let tail = "y ".repeat((size - place) / 2);
        format!("{head}{secret} {tail}")
    };
    let size = 40_000;
    let mut inputs = Vec::new();
    // A text keeps 16 KB: half from its head, half from its tail; an event of many
    // texts keeps less of each.
    for kept in [8192, 4096, 2048, 1024] {
        for before in [0, 2, 10, 30, 48, 60] {
            let (head, tail) = (at(kept - before, size), at(size - kept - before, size));
            inputs.push(("new", host.prompt(&format!("{secret} {head}"))));
            inputs.push(("summary", host.stop(&format!("{tail} {secret}"))));
            let many: Vec<_> = (0..64 / (kept / 512)).map(|_| [&head, &tail]).collect();
            inputs.push((
                "save",
                host.tool(
                    "Bash",
                    json!({"command": secret, "many": many}),
                    json!({"stdout": tail}),
                ),
            ));
        }
    }
    expect_redacted(&sandbox, &project, &inputs);
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn a_secret_in_ten_megabytes_is_in_no_file() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    let secret = &secret();
    // There is a secret near every place where the text may be cut.
    let long = format!("{secret} and so on, ").repeat(10 * (1 << 20) / (secret.len() + 12));
    let inputs = [
        ("new", host.prompt(&long)),
        ("save", host.bash(&long, &long)),
        ("summary", host.stop(&long)),
    ];
    expect_redacted(&sandbox, &project, &inputs);
}
