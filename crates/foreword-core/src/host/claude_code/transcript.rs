//! Reads the transcript of a session and rebuilds the inputs that its hooks were given.
//!
//! Claude Code writes one line of JSON for each message and tool result, and a file of its
//! own for each subagent. The format is not documented, so lines that are not understood are
//! skipped: half a line, an unknown kind, a line of another session. Each other line becomes
//! the input of a hook, so that `capture` treats it like any input. `fill` and the notes use it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{EVENTS, REPLAYED};
use crate::host::{Lines, ReplayedInput, Take};

/// Calls `take` with each input of a session's transcript and of its subagents' transcripts, until
/// it breaks off. A missing file has no inputs.
pub fn read(path: &Path, session: &str, take: Take<'_>) {
    let name = path.to_string_lossy();
    for path in [path.to_owned()].into_iter().chain(subagents(path)) {
        let mut reader = TranscriptReader {
            name: &name,
            session,
            prompt_id: None,
            calls: HashMap::new(),
            reply: None,
            words: None,
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
        for input in reader.end_of_turn() {
            if take(input).is_break() {
                return;
            }
        }
    }
}

/// The transcripts of subagents: `SESSION/subagents/agent-ID.jsonl` beside `SESSION.jsonl`.
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

/// Reads one transcript, line by line; the fields hold what earlier lines began.
struct TranscriptReader<'a> {
    /// The path of the session's transcript, also while a subagent's is read.
    name: &'a str,
    session: &'a str,
    /// The current turn; only the lines of the user have its id. Clients before 2.1.2xx wrote none:
    /// then it is made of the id of the prompt's line.
    prompt_id: Option<String>,
    /// Tool calls without a result so far, by id: name and input.
    calls: HashMap<String, (Value, Value)>,
    /// The agent's last message, which ends the turn unless a tool call follows.
    reply: Option<ReplayedInput>,
    /// The last longer text that the agent wrote between the tool calls of the turn.
    words: Option<ReplayedInput>,
}

/// The beginning of a made-up id of a turn. No hook ever sent it.
const MADE_UP: &str = "line-";
/// Words between tool calls are taken if there are at least this many,
const WORDS_MIN: usize = 30;
/// and if the turn ends with fewer than this.
const CLOSING_MIN: usize = 6;

impl TranscriptReader<'_> {
    fn line(&mut self, line: &[u8]) -> Option<Vec<ReplayedInput>> {
        let mut line: Value = serde_json::from_slice(line).ok()?;
        // Older clients wrote the lines of subagents, without the id, into the session's own file.
        let is_nameless_agent = line["isSidechain"] == true && line["agentId"].is_null();
        if line["sessionId"] != self.session || is_nameless_agent {
            return None;
        }
        let content = match line.get_mut("message")?.get_mut("content")?.take() {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks,
            _ => return None,
        };
        match line["message"]["role"].as_str()? {
            "user" => Some(self.user(&line, &content)),
            "assistant" => {
                self.assistant(&line, content);
                None
            }
            _ => None,
        }
    }

    fn user(&mut self, line: &Value, content: &[Value]) -> Vec<ReplayedInput> {
        let turn = line["promptId"].as_str().map(str::to_owned);
        if content.iter().any(|block| block["type"] == "tool_result") {
            self.prompt_id = turn.or(self.prompt_id.take());
            let results = content.iter().filter_map(|block| self.result(line, block));
            return results.collect();
        }
        if line["isMeta"] == true || line["isCompactSummary"] == true {
            return Vec::new();
        }
        // A new prompt: the turn before it is over.
        let ending = self.end_of_turn();
        let made_up = || Some(format!("{MADE_UP}{}", line["uuid"].as_str()?));
        self.prompt_id = turn.or_else(made_up);
        let texts: Vec<_> = content
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        let text = texts.join("\n");
        let is_prompt = line["agentId"].is_null() && !is_from_host(&text);
        let input = json!({"hook_event_name": "UserPromptSubmit", "prompt": text});
        let prompt = is_prompt.then(|| self.replayed(line, input));
        ending.into_iter().chain(prompt.flatten()).collect()
    }

    /// The last inputs of a turn: its closing words, and if they are few, the words before them.
    fn end_of_turn(&mut self) -> Vec<ReplayedInput> {
        let (words, reply) = (self.words.take(), self.reply.take());
        let closing = reply.as_ref().and_then(|it| {
            let input: Value = serde_json::from_str(&it.input).ok()?;
            Some(count_words(input["last_assistant_message"].as_str()?))
        });
        let words = words.filter(|_| closing.unwrap_or_default() < CLOSING_MIN);
        words.into_iter().chain(reply).collect()
    }

    /// The input of the hook after a tool use; none for a tool that did not run, since hooks do not
    /// run then either.
    fn result(&mut self, line: &Value, result: &Value) -> Option<ReplayedInput> {
        let id = result["tool_use_id"].as_str().filter(|it| !it.is_empty())?;
        let (name, arguments) = self.calls.remove(id)?;
        let failed = result["is_error"] == true;
        let text = text_of(&result["content"]);
        let ran = match &line["permissionDecision"]["decision"] {
            // An older client: only a command that ran has an exit code.
            Value::Null => !failed || text.starts_with("Exit code "),
            decision => decision == "accept",
        };
        let mut input = json!({"tool_name": name, "tool_use_id": id, "tool_input": arguments});
        if !ran {
            let reason = refusal(&text, &line["permissionDecision"])?;
            input["hook_event_name"] = "ToolRefused".into();
            input["reason"] = reason.into();
        } else if failed {
            input["hook_event_name"] = "PostToolUseFailure".into();
            input["error"] = result["content"].clone();
        } else {
            // A subagent's result has only the text that the model was given.
            let whole = Some(&line["toolUseResult"]).filter(|it| !it.is_null());
            input["hook_event_name"] = "PostToolUse".into();
            input["tool_response"] = whole.unwrap_or(&result["content"]).clone();
        }
        self.replayed(line, input)
    }

    fn assistant(&mut self, line: &Value, content: Vec<Value>) {
        let message = &line["message"];
        let reason = message["stop_reason"].as_str();
        let is_older = || {
            self.prompt_id
                .as_ref()
                .is_some_and(|it| it.starts_with(MADE_UP))
        };
        let stops = match reason {
            Some(reason) => matches!(reason, "end_turn" | "stop_sequence"),
            // Older clients wrote no reason.
            None => is_older(),
        };
        // A `<synthetic>` message is an error of the host, not a reply of the model.
        let is_own = message["model"] != "<synthetic>" && line["agentId"].is_null();
        for mut block in content {
            if block["type"] == "tool_use" {
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                let call = (block["name"].take(), block["input"].take());
                self.calls.insert(id, call);
                self.reply = None;
            } else if is_own && let Value::String(text) = block["text"].take() {
                if count_words(&text) >= WORDS_MIN {
                    let mut input = json!({"last_assistant_message": text});
                    input["hook_event_name"] = "WordsBetween".into();
                    input["tool_use_id"] = line["uuid"].clone();
                    self.words = self.replayed(line, input);
                }
                if stops {
                    let input = json!({"hook_event_name": "Stop", "last_assistant_message": text});
                    self.reply = self.replayed(line, input);
                }
            }
        }
    }

    /// None outside of a turn: without its id, the event could not be matched with a hook's.
    fn replayed(&self, line: &Value, mut input: Value) -> Option<ReplayedInput> {
        let prompt_id = self.prompt_id.clone()?;
        let mut events = EVENTS.iter().chain(REPLAYED);
        let event = events.find(|event| input["hook_event_name"] == event.name)?;
        input["session_id"] = self.session.into();
        input["transcript_path"] = self.name.into();
        input["prompt_id"] = prompt_id.as_str().into();
        input["cwd"] = line["cwd"].clone();
        input["agent_id"] = line["agentId"].clone();
        let at: jiff::Timestamp = line["timestamp"].as_str()?.parse().ok()?;
        Some(ReplayedInput {
            hook: event.hook,
            kind: event.kind,
            tool_use_id: input["tool_use_id"].as_str().map(str::to_owned),
            input: input.to_string(),
            branch: line["gitBranch"].as_str().map(str::to_owned),
            at: at.as_millisecond(),
            prompt_id,
        })
    }
}

/// The text of a tool's result: plain, or in blocks.
fn text_of(content: &Value) -> String {
    let blocks = content.as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => texts.collect::<Vec<_>>().join("\n"),
    }
}

/// Why the user refused a tool use; none if a rule or a mode did, or no reason was given.
fn refusal(result: &str, decision: &Value) -> Option<String> {
    let by_user = decision["source"]
        .as_str()
        .is_some_and(|it| it.starts_with("user"));
    let given = decision["reason"].as_str().filter(|_| by_user);
    let said = || {
        let is_refusal = result.starts_with("The user doesn't want to");
        let (_, said) = result.split_once("the user said:").filter(|_| is_refusal)?;
        // The client may add a note of its own.
        Some(said.split("\n\nNote: ").next().unwrap_or(said))
    };
    let reason = given.or_else(said)?.trim();
    (!reason.is_empty()).then(|| reason.to_owned())
}

/// The number of words; two Chinese or Japanese characters count as one.
fn count_words(text: &str) -> usize {
    let is_wide = |it: &char| matches!(*it, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}');
    let words = text.split_whitespace();
    words
        .map(|word| word.chars().filter(is_wide).count().div_ceil(2).max(1))
        .sum()
}

/// Whether the text of a user's line was written by the host, not typed by a person.
fn is_from_host(text: &str) -> bool {
    const BEGINNINGS: &[&str] = &["<command-", "<local-command-", "[Request interrupted by"];
    let text = text.trim_start();
    text.is_empty() || BEGINNINGS.iter().any(|it| text.starts_with(it))
}
