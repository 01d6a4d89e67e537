//! The program with malformed input: hooks, the worker behind them, the MCP
//! server. Each reader by itself is tested in `src/tests.rs`.

#[path = "../../src/tests/mutator.rs"]
mod mutator;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::audit::audit;
use crate::support::{Host, Sandbox};
use mutator::{files, folder, fuzz};

#[test]
fn a_hook_ends_well_and_a_worker_deals_with_whatever_it_kept() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let samples = files(&folder().join("../claude-code/hooks"));
    let mut sent = 0;
    fuzz("hooks", samples, 80, |input| {
        sandbox.keep_workers_away();
        let hooks = [
            "context",
            "new",
            "file-context",
            "save",
            "summary",
            "cleanup",
        ];
        sent += 1;
        // The right hook for the event, if the input still names its event.
        let text = String::from_utf8_lossy(input);
        let hook = match () {
            () if text.contains("\"SessionStart\"") => "context",
            () if text.contains("\"UserPromptSubmit\"") => "new",
            () if text.contains("\"PostToolUse") => "save",
            () if text.contains("\"Stop") => "summary",
            () => hooks[sent % hooks.len()],
        };
        let output = sandbox.hook(hook, &project, input);
        assert_eq!(output.status.code(), Some(0), "{hook}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{hook}");
        let json = serde_json::from_slice::<Value>(&output.stdout);
        assert!(
            output.stdout.is_empty() || json.is_ok(),
            "{hook}: {output:?}"
        );
    });
    assert!(!sandbox.log("hook.log").contains("lost"));
    sandbox.drain();
    // The same prompt with another id is another prompt, so `doubled` is not checked.
    assert_eq!(audit(&sandbox, []).damage, [""; 0]);
    let taken = sandbox.count("memory.db", "select count(*) from events");
    assert!(taken > 20, "{taken} of {sent}");
    assert_eq!(sandbox.run(&["check"]), "11 checks, nothing found\n");
    let start = json!({"session_id": "after", "cwd": project, "hook_event_name": "SessionStart", "source": "startup"});
    sandbox.run_hook("context", &project, &start);
}

/// An MCP client that sends any lines.
struct Client {
    server: Child,
    answers: BufReader<std::process::ChildStdout>,
    pings: u64,
}

impl Client {
    fn new(sandbox: &Sandbox) -> Client {
        let mut server = sandbox.command(&["mcp"]);
        let mut server = server.stdin(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(server.stdout.take().unwrap());
        let mut client = Client {
            server,
            answers,
            pings: 0,
        };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        client.send(
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
                .to_string()
                .as_bytes(),
        );
        client.send(br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
        client
    }

    fn send(&mut self, line: &[u8]) {
        let stdin = self.server.stdin.as_mut().unwrap();
        stdin.write_all(&[line, b"\n"].concat()).unwrap();
    }

    /// Sends a ping; returns the messages that come before its answer.
    fn messages_until_ping(&mut self) -> Vec<String> {
        self.pings += 1;
        let id = format!("ping-{}", self.pings);
        self.send(
            json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
                .to_string()
                .as_bytes(),
        );
        let mut messages = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(
                self.answers.read_line(&mut line).unwrap(),
                0,
                "the server is gone"
            );
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if message["id"] == id.as_str() {
                return messages;
            }
            messages.push(line);
        }
    }
}

#[test]
fn an_mcp_server_survives_every_line() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    sandbox.drain();
    let mut client = Client::new(&sandbox);
    fuzz("mcp", Vec::new(), 300, |input| {
        let line: Vec<u8> = input
            .iter()
            .copied()
            .filter(|byte| *byte != b'\n')
            .collect();
        client.send(&line);
        for messages in client.messages_until_ping() {
            assert!(!messages.contains("failed inside Foreword"), "{messages}");
        }
    });
    drop(client.server.stdin.take());
    let output = client.server.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        !String::from_utf8_lossy(&output.stderr).contains("panicked"),
        "{output:?}"
    );
}

#[test]
fn a_worker_deals_with_whatever_is_in_the_spool() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    // Without a worker there is no queue yet, so the hook writes its event to the spool.
    sandbox.keep_workers_away();
    let host = Host::new("s1", &project);
    sandbox.run_hook(
        "save",
        &project,
        &host.bash("ls persimmon", "persimmon.txt"),
    );
    let spool = sandbox.home().join("spool");
    let samples = files(&spool);
    assert_eq!(samples.len(), 1);
    let mut number = 1;
    fuzz("spool", samples, 100, |input| {
        number += 1;
        // With equal ids all would be one event.
        let text = String::from_utf8_lossy(input);
        let input = match serde_json::from_str::<Value>(&text) {
            Ok(mut event) if event["id"].is_string() => {
                event["id"] = uuid::Uuid::from_u128(number).to_string().into();
                event["key"] = format!("tool:{number}").into();
                event.to_string().into_bytes()
            }
            _ => input.to_vec(),
        };
        std::fs::write(spool.join(format!("{number}.json")), input).unwrap();
    });
    sandbox.drain();
    assert_eq!(audit(&sandbox, []).damage, [""; 0]);
    let taken = sandbox.count("memory.db", "select count(*) from events");
    let aside = std::fs::read_dir(spool.join("unreadable")).unwrap().count();
    assert_eq!(
        taken as u128 + aside as u128,
        number,
        "{aside} were set aside"
    );
    assert!(taken > 5, "{taken}");
    assert_eq!(sandbox.run(&["check"]), "11 checks, nothing found\n");
    sandbox.run(&["search", "persimmon", "--all-projects"]);
    sandbox.run(&["sessions", "--all-projects"]);
}
