//! What the host itself wrote down about a session, told as hooks would have told it.
//!
//! Claude Code keeps a line of JSON for everything that is said and done, and beside it
//! a file for each subagent. The format is its own affair: what is not understood is left
//! out, be it half a line, an unknown kind or a line of another session. What is
//! understood becomes the input of a hook, so that `capture` decides about it as ever.
//! `fill` asks for it.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::host::lines::Lines;
use crate::host::{Hook, ReplayedInput, Take};

/// Hands over the inputs of a session's transcript and of its subagents' transcripts, until
/// `take` breaks off. A file that is not there has none.
pub fn read(path: &Path, session: &str, take: Take<'_>) {
    let name = path.to_string_lossy();
    for path in [path.to_owned()].into_iter().chain(subagents(path)) {
        let mut reader = TranscriptReader {
            name: &name,
            session,
            prompt_id: None,
            calls: HashMap::new(),
            reply: None,
        };
        // An error while reading ends the file.
        let Ok(mut lines) = Lines::open(&path) else {
            continue;
        };
        while let Ok(Some(line)) = lines.next_line() {
            for input in reader.line(line).unwrap_or_default() {
                if take(input).is_break() {
                    return;
                }
            }
        }
        if reader.reply.take().map(&mut *take) == Some(ControlFlow::Break(())) {
            return;
        }
    }
}

/// `SESSION/subagents/agent-ID.jsonl` beside `SESSION.jsonl`.
fn subagents(path: &Path) -> Vec<PathBuf> {
    const FILES_MAX: usize = 100;
    let folder = path.with_extension("").join("subagents");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .take(FILES_MAX)
        .collect()
}

/// What is known when the next line comes.
struct TranscriptReader<'a> {
    /// The session's transcript, also in that of a subagent.
    name: &'a str,
    session: &'a str,
    /// Only the user's lines name their turn.
    prompt_id: Option<String>,
    /// Tools that were called and did not answer yet: name and input.
    calls: HashMap<String, (Value, Value)>,
    /// The end of the turn, unless it goes on.
    reply: Option<ReplayedInput>,
}

impl TranscriptReader<'_> {
    fn line(&mut self, line: &[u8]) -> Option<Vec<ReplayedInput>> {
        let mut line: Value = serde_json::from_slice(line).ok()?;
        if line["sessionId"] != self.session {
            return None;
        }
        let said = match line.get_mut("message")?.get_mut("content")?.take() {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks,
            _ => return None,
        };
        match line["message"]["role"].as_str()? {
            "user" => Some(self.user(&line, &said)),
            "assistant" => {
                self.assistant(&line, said);
                None
            }
            _ => None,
        }
    }

    fn user(&mut self, line: &Value, said: &[Value]) -> Vec<ReplayedInput> {
        let turn = line["promptId"].as_str().map(str::to_owned);
        if said.iter().any(|it| it["type"] == "tool_result") {
            self.prompt_id = turn.or(self.prompt_id.take());
            let results = said.iter().filter_map(|it| self.result(line, it));
            return results.collect();
        }
        if line["isMeta"] == true || line["isCompactSummary"] == true {
            return Vec::new();
        }
        // Somebody speaks: the turn before this is over.
        let reply = self.reply.take();
        self.prompt_id = turn;
        let texts: Vec<_> = said.iter().filter_map(|it| it["text"].as_str()).collect();
        let text = texts.join("\n");
        let is_prompt = line["agentId"].is_null() && !is_of_the_host(&text);
        let input = json!({"hook_event_name": "UserPromptSubmit", "prompt": text});
        let prompt = is_prompt.then(|| self.replayed(Hook::New, line, input));
        reply.into_iter().chain(prompt.flatten()).collect()
    }

    /// A tool that was not allowed to run, or could not, is none that hooks tell of.
    fn result(&mut self, line: &Value, result: &Value) -> Option<ReplayedInput> {
        let id = result["tool_use_id"].as_str().filter(|it| !it.is_empty())?;
        let (name, arguments) = self.calls.remove(id)?;
        let failed = result["is_error"] == true;
        let ran = match &line["permissionDecision"]["decision"] {
            Value::Null => !failed,
            decision => decision == "accept",
        };
        let mut input = json!({"tool_name": name, "tool_use_id": id, "tool_input": arguments});
        if failed {
            input["hook_event_name"] = "PostToolUseFailure".into();
            input["error"] = result["content"].clone();
        } else {
            // A subagent's result has only the words that the model was given.
            let whole = Some(&line["toolUseResult"]).filter(|it| !it.is_null());
            input["hook_event_name"] = "PostToolUse".into();
            input["tool_response"] = whole.unwrap_or(&result["content"]).clone();
        }
        ran.then(|| self.replayed(Hook::Save, line, input))
            .flatten()
    }

    fn assistant(&mut self, line: &Value, said: Vec<Value>) {
        let message = &line["message"];
        let reason = message["stop_reason"].as_str();
        let stops = matches!(reason, Some("end_turn" | "stop_sequence"));
        // An error of the host's stands there in the model's place.
        let is_reply = stops && message["model"] != "<synthetic>" && line["agentId"].is_null();
        for mut block in said {
            if block["type"] == "tool_use" {
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                let call = (block["name"].take(), block["input"].take());
                self.calls.insert(id, call);
                self.reply = None;
            } else if is_reply && block["text"].is_string() {
                let text = block["text"].take();
                let input = json!({"hook_event_name": "Stop", "last_assistant_message": text});
                self.reply = self.replayed(Hook::Summary, line, input);
            }
        }
    }

    /// None outside of a turn: then nobody could tell whether a hook told the same.
    fn replayed(&self, hook: Hook, line: &Value, mut input: Value) -> Option<ReplayedInput> {
        let prompt_id = self.prompt_id.clone()?;
        input["session_id"] = self.session.into();
        input["transcript_path"] = self.name.into();
        input["prompt_id"] = prompt_id.as_str().into();
        input["cwd"] = line["cwd"].clone();
        input["agent_id"] = line["agentId"].clone();
        let at: jiff::Timestamp = line["timestamp"].as_str()?.parse().ok()?;
        Some(ReplayedInput {
            hook,
            tool_use_id: input["tool_use_id"].as_str().map(str::to_owned),
            input: input.to_string(),
            branch: line["gitBranch"].as_str().map(str::to_owned),
            at: at.as_millisecond(),
            prompt_id,
        })
    }
}

/// Words that stand where a prompt would, and that nobody typed like this.
fn is_of_the_host(text: &str) -> bool {
    const BEGINNINGS: &[&str] = &["<command-", "<local-command-", "[Request interrupted by"];
    let text = text.trim_start();
    text.is_empty() || BEGINNINGS.iter().any(|it| text.starts_with(it))
}
