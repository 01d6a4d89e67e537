//! Writes a session's transcript as the host does, from recorded lines.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Host, Sandbox};

pub struct Transcript {
    pub path: PathBuf,
    session: String,
    prompt: String,
    cwd: PathBuf,
    /// The age of the lines, in milliseconds.
    pub ago: i64,
}

impl Transcript {
    /// The path that the inputs of this session's hooks name; the file is made with the first line.
    pub fn of(sandbox: &Sandbox, host: &mut Host) -> Transcript {
        let folder = sandbox.user_home().join(".claude/projects/p");
        std::fs::create_dir_all(&folder).unwrap();
        host.transcript = folder.join(format!("{}.jsonl", host.session));
        Transcript {
            path: host.transcript.clone(),
            session: host.session.clone(),
            prompt: host.prompt.clone(),
            cwd: host.project.clone(),
            ago: 0,
        }
    }

    /// A recorded line with the ids of this session and turn, and a new time.
    pub fn line(&self, recorded: &str, change: impl FnOnce(&mut Value)) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/transcript");
        let text = std::fs::read_to_string(folder.join(format!("{recorded}.json"))).unwrap();
        let mut line: Value = serde_json::from_str(&text).unwrap();
        line["sessionId"] = self.session.clone().into();
        line["timestamp"] = time(self.ago).into();
        line["cwd"] = self.cwd.to_str().unwrap().into();
        if line["type"] == "user" {
            line["promptId"] = self.prompt.clone().into();
        }
        change(&mut line);
        self.raw(&format!("{line}\n"));
    }

    pub fn raw(&self, text: &str) {
        let mut options = std::fs::OpenOptions::new();
        let file = options.create(true).append(true).open(&self.path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub fn prompt(&self, text: &str) {
        self.line("user.string", |line| {
            line["message"]["content"] = text.into();
        });
    }

    /// Writes a tool use, given the input of its hook.
    pub fn tool(&self, input: &Value) {
        self.tool_but(input, |_| {});
    }

    /// The same, with something else about its result.
    pub fn tool_but(&self, input: &Value, change: impl FnOnce(&mut Value)) {
        let id = &input["tool_use_id"];
        self.line("assistant.tool_use", |line| {
            line["message"]["content"] = json!([{
                "type": "tool_use", "id": id, "name": input["tool_name"], "input": input["tool_input"],
            }]);
        });
        self.line("user.tool_result", |line| {
            let failed = input["hook_event_name"] == "PostToolUseFailure";
            let words = if failed {
                &input["error"]
            } else {
                &input["tool_response"]
            };
            line["toolUseResult"] = words.clone();
            line["message"]["content"] = json!([{
                "type": "tool_result", "tool_use_id": id, "is_error": failed, "content": words,
            }]);
            change(line);
        });
    }

    pub fn reply(&self, text: &str) {
        self.line("assistant.text", |line| {
            line["message"]["stop_reason"] = "end_turn".into();
            line["message"]["content"][0]["text"] = text.into();
        });
    }
}

/// The time `ago` milliseconds ago, as the host writes it.
pub fn time(ago: i64) -> String {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let at = i64::try_from(now).unwrap() - ago;
    jiff::Timestamp::from_millisecond(at).unwrap().to_string()
}
