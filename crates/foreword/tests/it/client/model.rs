//! The model that the client talks to: a scripted server on loopback, and its log.
//!
//! The log shows the text that an agent really got. The server writes it, not Foreword or the
//! client, and before it answers; so the log is complete once the client has ended.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::checkout;

/// The text that the client puts before the context of a SessionStart hook.
const ADDED: &str = "SessionStart hook additional context: ";

pub struct Model {
    server: Child,
    port: String,
    log: PathBuf,
}

impl Model {
    /// Starts the server with its files in `folder`; it answers `turns` one by one, then "OK.".
    pub fn start(folder: &Path, turns: &Value) -> Model {
        let server = "testdata/claude-code/fake_anthropic.py";
        Model::scripted(server, folder, &serde_json::json!({"turns": turns}))
    }

    /// Starts a server with a whole script.
    pub fn scripted(server: &str, folder: &Path, spec: &Value) -> Model {
        std::fs::create_dir_all(folder).unwrap();
        let (script, log) = (folder.join("script.json"), folder.join("requests.jsonl"));
        std::fs::write(&script, spec.to_string()).unwrap();
        let mut server = Command::new("python3")
            .arg(checkout().join(server))
            .arg("--script")
            .arg(script)
            .arg("--log")
            .arg(&log)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the scripted model needs python3");
        let mut line = String::new();
        let mut stdout = BufReader::new(server.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let port = line
            .strip_prefix("READY ")
            .and_then(|address| address.trim().rsplit(':').next())
            .unwrap_or_else(|| panic!("the scripted model did not come up: {line:?}"))
            .to_owned();
        Model { server, port, log }
    }

    pub fn port(&self) -> &str {
        &self.port
    }

    /// Every request to the main model so far.
    pub fn requests(&self) -> Vec<Request> {
        self.asked("main")
    }

    /// Every request in one lane so far.
    pub fn asked(&self, lane: &str) -> Vec<Request> {
        let entries = self.entries(lane).into_iter();
        entries
            .map(|mut entry| Request(entry["body"].take()))
            .collect()
    }

    /// The tokens in and out that the main lane's script reports, with those of the cache.
    pub fn usage(&self) -> (u64, u64) {
        let entries = self.entries("main");
        let sum = |field: &str| {
            let used = |entry: &Value| entry["reply"]["usage"][field].as_u64().unwrap_or(0);
            entries.iter().map(used).sum::<u64>()
        };
        let input = [
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ];
        (input.iter().map(|it| sum(it)).sum(), sum("output_tokens"))
    }

    fn entries(&self, lane: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|entry: &Value| entry["lane"] == lane)
            .collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The body of one request to the model.
#[derive(Debug)]
pub struct Request(pub Value);

impl Request {
    /// The session's id in the request.
    pub fn session(&self) -> String {
        let user = self.0["metadata"]["user_id"].as_str().unwrap();
        let user: Value = serde_json::from_str(user).unwrap();
        user["session_id"].as_str().unwrap().to_owned()
    }

    /// Whether a text of the request contains these words.
    pub fn contains(&self, words: &str) -> bool {
        texts(&self.0).iter().any(|text| text.contains(words))
    }

    /// How often the request contains these words.
    pub fn count(&self, words: &str) -> usize {
        let texts = texts(&self.0);
        texts.iter().map(|text| text.matches(words).count()).sum()
    }

    /// The names of the tools that the request describes.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.0["tools"].as_array();
        let names = tools
            .into_iter()
            .flatten()
            .map(|tool| tool["name"].as_str());
        names.map(Option::unwrap).collect()
    }

    /// The result of the last tool use.
    pub fn tool_result(&self) -> String {
        let messages = self.0["messages"].as_array().unwrap();
        let mut blocks = messages
            .iter()
            .filter_map(|it| it["content"].as_array())
            .flatten();
        let last = blocks.rfind(|it| it["type"] == "tool_result").unwrap();
        texts(&last["content"]).join("\n")
    }

    /// The contexts of SessionStart hooks in the conversation, oldest first. An index
    /// has no empty line, so the first one ends it.
    pub fn contexts(&self) -> Vec<String> {
        texts(&self.0["messages"])
            .iter()
            .flat_map(|text| text.split(ADDED).skip(1))
            .map(|added| added.split("\n\n").next().unwrap_or(added).to_owned())
            .collect()
    }
}

/// Every string in a JSON value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}
