//! Builds the inputs of hooks as Claude Code sends them; also for the worker's unit tests.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// One session of Claude Code, in one project.
pub struct Host {
    pub session: String,
    pub prompt: String,
    pub project: PathBuf,
    pub transcript: PathBuf,
    calls: std::cell::Cell<u32>,
}

impl Host {
    pub fn new(session: &str, project: &Path) -> Host {
        Host {
            session: session.to_owned(),
            prompt: format!("{session}-prompt"),
            project: project.to_owned(),
            transcript: PathBuf::from(format!("/transcripts/{session}.jsonl")),
            calls: std::cell::Cell::new(0),
        }
    }

    fn input(&self, event: &str, own: Value) -> Value {
        let mut input = serde_json::json!({
            "session_id": self.session,
            "transcript_path": self.transcript,
            "cwd": self.project,
            "hook_event_name": event,
        });
        for (name, value) in own.as_object().unwrap() {
            input[name] = value.clone();
        }
        input
    }

    pub fn start(&self, source: &str) -> Value {
        self.input("SessionStart", serde_json::json!({"source": source}))
    }

    pub fn prompt(&self, text: &str) -> Value {
        self.input(
            "UserPromptSubmit",
            serde_json::json!({"prompt_id": self.prompt, "prompt": text}),
        )
    }

    /// A successful tool use. Each call has an id of its own.
    pub fn tool(&self, tool: &str, input: Value, response: Value) -> Value {
        self.calls.set(self.calls.get() + 1);
        let id = format!("{}-call-{}", self.session, self.calls.get());
        self.input(
            "PostToolUse",
            serde_json::json!({
                "prompt_id": self.prompt, "tool_use_id": id,
                "tool_name": tool, "tool_input": input, "tool_response": response,
            }),
        )
    }

    /// A tool use that is about to happen.
    pub fn before(&self, tool: &str, input: Value) -> Value {
        let mut input = self.tool(tool, input, Value::Null);
        input["hook_event_name"] = "PreToolUse".into();
        input.as_object_mut().unwrap().remove("tool_response");
        input
    }

    pub fn bash(&self, command: &str, stdout: &str) -> Value {
        let response = serde_json::json!({"stdout": stdout, "stderr": "", "interrupted": false});
        self.tool("Bash", serde_json::json!({"command": command}), response)
    }

    pub fn bash_failed(&self, command: &str, error: &str) -> Value {
        let mut input = self.tool("Bash", serde_json::json!({"command": command}), Value::Null);
        input["hook_event_name"] = "PostToolUseFailure".into();
        input["error"] = error.into();
        input.as_object_mut().unwrap().remove("tool_response");
        input
    }

    /// An edit of one line, which is also made on disk.
    pub fn edit(&self, path: &str, old: &str, new: &str) -> Value {
        let file = self.project.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("{new}\n")).unwrap();
        let patch = serde_json::json!([{"lines": [format!("-{old}"), format!("+{new}")]}]);
        self.tool(
            "Edit",
            serde_json::json!({"file_path": file, "old_string": old, "new_string": new}),
            serde_json::json!({"filePath": file, "structuredPatch": patch}),
        )
    }

    pub fn stop(&self, reply: &str) -> Value {
        self.input(
            "Stop",
            serde_json::json!({"prompt_id": self.prompt, "last_assistant_message": reply}),
        )
    }

    pub fn end(&self) -> Value {
        self.input("SessionEnd", serde_json::json!({"reason": "other"}))
    }
}
