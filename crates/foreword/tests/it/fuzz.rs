//! The program itself, told what nobody would send: hooks, the worker behind them, the MCP
//! server. Each reader by itself is tried in `src/tests.rs`.

#[path = "../../src/tests/mutator.rs"]
mod mutator;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::audit::audit;
use crate::support::Sandbox;
use mutator::{files, folder, fuzz};

#[test]
fn a_hook_ends_well_and_a_worker_deals_with_whatever_it_kept() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let samples = files(&folder().join("../claude-code/hooks"));
    let mut told = 0;
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
        told += 1;
        // The right one for what it is, where that can be seen.
        let text = String::from_utf8_lossy(input);
        let hook = match () {
            () if text.contains("\"SessionStart\"") => "context",
            () if text.contains("\"UserPromptSubmit\"") => "new",
            () if text.contains("\"PostToolUse") => "save",
            () if text.contains("\"Stop") => "summary",
            () => hooks[told % hooks.len()],
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
    // The same prompt with another id is another prompt, so nothing is called doubled here.
    assert_eq!(audit(&sandbox, []).damage, [""; 0]);
    let taken = sandbox.count("memory.db", "select count(*) from events");
    assert!(taken > 20, "{taken} of {told}");
    assert_eq!(sandbox.run(&["check"]), "9 checks, nothing found\n");
    let start = json!({"session_id": "after", "cwd": project, "hook_event_name": "SessionStart", "source": "startup"});
    sandbox.told("context", &project, &start);
}

/// A client that sends lines, sound or not.
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

    /// Everything that is said until an answer shows that the server still listens.
    fn hear_until_it_listens(&mut self) -> Vec<String> {
        self.pings += 1;
        let id = format!("ping-{}", self.pings);
        self.send(
            json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
                .to_string()
                .as_bytes(),
        );
        let mut said = Vec::new();
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
                return said;
            }
            said.push(line);
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
        for said in client.hear_until_it_listens() {
            assert!(!said.contains("failed inside Foreword"), "{said}");
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
    let spool = sandbox.home().join("spool");
    std::fs::create_dir_all(&spool).unwrap();
    let sample = std::fs::read(folder().join("../databases/unreleased/spool.json")).unwrap();
    let mut number = 0;
    fuzz("spool", vec![sample], 100, |input| {
        number += 1;
        // Else all would be one event.
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
    assert_eq!(sandbox.run(&["check"]), "9 checks, nothing found\n");
    sandbox.run(&["search", "persimmon", "--all-projects"]);
    sandbox.run(&["sessions", "--all-projects"]);
}
