//! A fake host: makes hook inputs of made-up sessions, all of them different.
//!
//! The only file of the benches that knows the names of a host's events, tools, fields and variables.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::report::with;

/// Makes the inputs that a host sends to hooks.
pub struct FakeHost {
    pub project: PathBuf,
    events: u64,
}

/// The variable with the project's folder, in the environment of a hook.
pub const PROJECT_VARIABLE: &str = "CLAUDE_PROJECT_DIR";

/// The fields of a hook's input that hold the input and the output of a tool.
pub const TOOL_FIELDS: [&str; 3] = ["tool_input", "tool_response", "error"];

/// The beginning of `context`'s answer when there are memories to show.
pub const INDEX: &str = r#"{"hookSpecificOutput":{"additionalContext":"<foreword-memory"#;

/// The whole answer of `save`.
pub const SAVED: &str = r#"{"continue":true,"suppressOutput":true}"#;

/// Events after which a new session begins; all tool uses of a session are one turn.
const EVENTS_PER_SESSION: u64 = 200;
/// Bytes of a tool use without its output.
const AROUND: usize = 580;

impl FakeHost {
    pub fn new(project: PathBuf) -> FakeHost {
        FakeHost { project, events: 0 }
    }

    /// A shell command that the agent ran; the whole input has about `size` bytes.
    pub fn bash(&mut self, size: usize) -> String {
        let own = json!({
            "permission_mode": "default",
            "tool_name": "Bash",
            "tool_input": {
                "command": "cargo test -p pay && sed -n 1,120p src/token.rs",
                "description": "Run the tests and show the token module",
            },
            "tool_response": {
                "stdout": code(size.saturating_sub(AROUND)),
                "stderr": "",
                "interrupted": false,
                "isImage": false,
            },
            "duration_ms": 1834,
        });
        self.input(("PostToolUse", own))
    }

    pub fn prompt(&mut self) -> String {
        let prompt = "Refunds that were paid twice show up in the ledger; find out why, \
                      fix it and add a test. The token for the sandbox is in .env, do not print it.";
        self.input(prompt_sent(prompt))
    }

    pub fn read(&mut self) -> String {
        let file = self.project.join("src/refund.rs");
        let own = json!({"tool_name": "Read", "tool_input": {"file_path": file}});
        self.input(("PreToolUse", own))
    }

    pub fn stop(&mut self) -> String {
        let reply = "The refund was booked by the webhook and by the retry. It is keyed by the \
                     payment's id now.\n\nNext steps:\n- cover partial refunds";
        self.input(turn_ended(reply))
    }

    pub fn end(&mut self) -> String {
        self.input(session_ended())
    }

    pub fn start(&mut self) -> String {
        self.input(session_started())
    }

    fn input(&mut self, (event, own): HostEvent) -> String {
        self.events += 1;
        let (number, session) = (self.events, self.events / EVENTS_PER_SESSION);
        // A session begins and ends once, and its tool uses are one turn.
        let (session, turn) = match event {
            "SessionStart" | "SessionEnd" => (1_000_000_000 + number, number),
            "UserPromptSubmit" | "Stop" => (session, 1_000_000_000 + number),
            _ => (session, session),
        };
        let session = format!("687d8424-9948-4ccb-a944-{session:012}");
        let turn = format!("1d3bc9f6-1a0a-444e-ba69-{turn:012}");
        let call = json!({"tool_use_id": format!("toolu_01722d983bcaac{number:010}")});
        input(&self.project, &session, &turn, (event, with(call, own)))
    }
}

/// The name of an event, and the fields that only its input has.
pub type HostEvent = (&'static str, Value);

pub fn session_started() -> HostEvent {
    ("SessionStart", json!({"source": "startup"}))
}

pub fn prompt_sent(prompt: &str) -> HostEvent {
    ("UserPromptSubmit", json!({"prompt": prompt}))
}

/// A shell command that the agent ran, and its output.
pub fn command_ran(id: &str, command: &str, output: &str) -> HostEvent {
    let own = json!({
        "tool_name": "Bash",
        "tool_use_id": id,
        "tool_input": {"command": command},
        "tool_response": {"stdout": output, "stderr": "", "interrupted": false},
    });
    ("PostToolUse", own)
}

/// An edit of a file that the agent made.
pub fn file_edited(id: &str, file: &Path, before: &str, after: &str) -> HostEvent {
    let own = json!({
        "tool_name": "Edit",
        "tool_use_id": id,
        "tool_input": {"file_path": file, "old_string": before, "new_string": after},
        "tool_response": {"filePath": file},
    });
    ("PostToolUse", own)
}

pub fn turn_ended(reply: &str) -> HostEvent {
    let own = json!({"stop_hook_active": false, "last_assistant_message": reply});
    ("Stop", own)
}

pub fn session_ended() -> HostEvent {
    ("SessionEnd", json!({"reason": "prompt_input_exit"}))
}

/// The fields that every hook gets, and this one's own.
pub fn input(project: &Path, session: &str, turn: &str, (event, own): HostEvent) -> String {
    let input = json!({
        "session_id": session,
        "transcript_path": format!("/transcripts/{session}.jsonl"),
        "cwd": project,
        "prompt_id": turn,
        "hook_event_name": event,
    });
    with(input, own).to_string()
}

/// Output of a tool that fills `size` bytes of JSON: a line with a secret, then code and test
/// results with words that sound like secrets.
pub fn code(size: usize) -> String {
    const LINES: &[&str] = &[
        "running 14 tests",
        "test token::expiry_is_compared_in_utc ... ok",
        "test refund::a_refund_is_booked_once ... FAILED",
        "pub fn verify(token: &str, now: Timestamp) -> Result<Claims, TokenError> {",
        "    let secret = config.secret(\"pay\").ok_or(TokenError::NoSecret)?;",
        "    if claims.expires <= now { return Err(TokenError::Expired); }",
        "    // the api_key of the sandbox is read from the environment, see docs/setup.md",
        "    let rows = sql.prepare_cached(\"select id, amount from refunds where payment = ?1\")?;",
        "    assert_eq!(ledger.balance(account), Amount::from_cents(12_50), \"booked twice\");",
        "thread 'refund::a_refund_is_booked_once' panicked at src/refund.rs:118:9:",
        "  left: Amount(-1250)",
        " right: Amount(0)",
        "warning: unused variable: `password` --> src/login.rs:31:9",
        "   Compiling pay v0.4.2 (https://example.com/acme/pay?rev=5db57ab#5db57abc)",
        "}",
        "",
    ];
    let mut text = format!(
        "DATABASE_URL=postgres://pay:{}@localhost/pay\n",
        "s3cr3tw0rd"
    );
    let mut escaped = text.len() + 1;
    for line in LINES.iter().cycle() {
        escaped += line.len() + line.matches('"').count() + 2;
        if escaped > size {
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}
