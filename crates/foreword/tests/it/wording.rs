//! The exact output of the commands that show memory, on one small memory.

use std::path::PathBuf;

use serde_json::json;

use crate::mcp::Client;
use crate::support::{Host, Sandbox};

/// Two sessions on one file, and a third whose prompt still waits.
struct Memory {
    sandbox: Sandbox,
    project: PathBuf,
}

impl Memory {
    fn new() -> Memory {
        let sandbox = Sandbox::new();
        let project = sandbox.project("pay");
        sandbox.keep_workers_away();
        let send = |hook, input| sandbox.run_hook(hook, &project, &input);
        let host = Host::new("5e5510a1-mended", &project);
        send("new", host.prompt("Fix the expiry test"));
        let error = "Exit code 101\nthread 'expiry' panicked at src/token.rs:9:5:\nassertion failed: now <= expires";
        send("save", host.bash_failed("cargo test", error));
        send(
            "save",
            host.edit("src/token.rs", "now < expires", "now <= expires"),
        );
        send(
            "save",
            host.bash(
                "cargo test",
                "test result: ok. 8 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            ),
        );
        send(
            "summary",
            host.stop("`Token::is_valid` compared with `<`, so a token was invalid in its last second. It uses `<=` now."),
        );
        sandbox.drain();
        let host = Host::new("5e5510b2-added", &project);
        send("new", host.prompt("Tokens need a grace period of a minute"));
        send(
            "save",
            host.edit("src/token.rs", "now <= expires", "now <= expires + GRACE"),
        );
        send(
            "save",
            host.edit("src/grace.rs", "", "pub const GRACE: u64 = 60;"),
        );
        send(
            "save",
            host.bash(
                "git commit -am 'feat: tokens have a grace period'",
                "[main 3f9c2ab] feat: tokens have a grace period\n 2 files changed",
            ),
        );
        send(
            "summary",
            host.stop("Tokens are valid for a minute longer."),
        );
        sandbox.drain();
        std::fs::remove_file(project.join("src/grace.rs")).unwrap();
        sandbox.keep_workers_away();
        let host = Host::new("5e5510c3-waits", &project);
        sandbox.run_hook("new", &project, &host.prompt("What is left?"));
        Memory { sandbox, project }
    }

    /// The output of each command, with dates and times replaced.
    fn prints(&self, commands: &[&str]) -> String {
        let mut all = String::new();
        for line in commands {
            let words: Vec<_> = line.split(' ').collect();
            let mut command = self.sandbox.command(&words);
            let output = command.current_dir(&self.project).output().unwrap();
            let [printed, error] =
                [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
            all += &format!("$ foreword {line}\n{printed}{error}\n");
        }
        without_times(&all)
    }
}

/// Days as DATE, times of day as TIME.
fn without_times(text: &str) -> String {
    let is_date = |it: &str| {
        let parts: Vec<_> = it.split('-').collect();
        parts.len() == 3 && parts.iter().all(|it| it.parse::<u32>().is_ok())
    };
    let is_time = |it: &str| {
        let (hour, minute) = it.split_once(':').unwrap_or_default();
        [hour, minute]
            .iter()
            .all(|it| it.len() == 2 && it.parse::<u8>().is_ok())
    };
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let bare = word.trim_end();
        let plain = match bare {
            date if is_date(date) => "DATE",
            time if is_time(time) => "TIME",
            other => other,
        };
        out += plain;
        out += &word[bare.len()..];
    }
    out
}

#[test]
fn looking_back() {
    let memory = Memory::new();
    insta::assert_snapshot!(memory.prints(&[
        "sessions",
        "sessions --summaries",
        "sessions --since 2999-01-01",
        "timeline 2",
        "timeline grace period",
        "timeline 99",
    ]));
}

#[test]
fn searching() {
    let memory = Memory::new();
    insta::assert_snapshot!(memory.prints(&[
        "search expires",
        "search grace kumquat",
        "search kumquat",
        "search gra",
        "search grace --type decision",
        "search --type feature",
        "search expires --format facts",
        "search grace --format summaries",
    ]));
}

#[test]
fn showing() {
    let memory = Memory::new();
    insta::assert_snapshot!(memory.prints(&["show 2", "show 5", "show 3", "show 1", "show 99"]));
}

#[test]
fn an_agent_looking_back() {
    let memory = Memory::new();
    let mut client = Client::new(&memory.sandbox, &memory.project);
    let mut all = String::new();
    for (tool, arguments) in [
        ("search", json!({"query": "expires"})),
        ("search", json!({"query": "grace", "format": "summaries"})),
        ("search", json!({"query": "kumquat"})),
        ("timeline", json!({"id": 2})),
        ("get_observations", json!({"ids": [2]})),
    ] {
        let printed = client.text_of(tool, arguments.clone());
        all += &format!("{tool} {arguments}\n{printed}\n");
    }
    client.end();
    insta::assert_snapshot!(without_times(&all));
}
