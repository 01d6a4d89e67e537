//! Stands in for Claude Code: at the start of a session, for `foreword demo`, and with a turn that was
//! captured, for `foreword doctor --ask`.

use std::path::Path;

use serde_json::{Value, json};

/// The events of a turn in which a test fails, its cause is found, and the test passes.
pub const SAMPLE_TURN: &str = include_str!("sample_turn.json");

/// The input of the hook that runs when a session starts.
pub fn start(session: &str, project: &Path) -> Value {
    json!({
        "session_id": session,
        "cwd": project,
        "hook_event_name": "SessionStart",
        "source": "startup",
    })
}

/// The text for the agent in a hook's answer.
pub fn added_context(answer: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let text = answer["hookSpecificOutput"]["additionalContext"].as_str();
    text.map(str::to_owned)
}
