//! What the host itself wrote down about a session, told as hooks would have told it.
//!
//! Claude Code keeps a line of JSON for everything that is said and done, and beside it
//! a file for each subagent. The format is its own affair: what is not understood is left
//! out, be it half a line, an unknown kind or a line of another session. What is
//! understood becomes the input of a hook, so that `capture` decides about it as ever.
//! `fill` asks for it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::capture::Hook;
use crate::model::Millis;

/// Of a longer file only the end is read: what hooks missed is missing there, if anywhere.
const FILE_MAX: u64 = 32 << 20;
/// A longer line is left out.
const LINE_MAX: u64 = 8 << 20;

/// Something that a hook tells, or would have told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub hook: Hook,
    pub prompt_id: String,
    pub tool_use_id: Option<String>,
    /// The hook's standard input.
    pub input: String,
    pub branch: Option<String>,
    pub at: Millis,
}

/// Hands over all that a session's transcript and those of its subagents tell, until
/// somebody has had enough. A file that is not there tells nothing.
pub fn read<E>(
    path: &Path,
    session: &str,
    mut tell: impl FnMut(Told) -> Result<(), E>,
) -> Result<(), E> {
    let name = path.to_string_lossy();
    for path in [path.to_owned()].into_iter().chain(subagents(path)) {
        let mut reader = Reader {
            name: &name,
            session,
            prompt_id: None,
            calls: HashMap::new(),
            reply: None,
        };
        // What cannot be read any more ends the file.
        let Ok(mut lines) = Lines::open(&path) else {
            continue;
        };
        while let Ok(Some(line)) = lines.next() {
            for told in reader.line(line) {
                tell(told)?;
            }
        }
        if let Some(told) = reader.reply.take() {
            tell(told)?;
        }
    }
    Ok(())
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

/// The lines of a file, one at a time, as long as they are of a sane length.
struct Lines {
    file: BufReader<File>,
    line: Vec<u8>,
}

impl Lines {
    fn open(path: &Path) -> io::Result<Lines> {
        // A pipe of this name would be waited for.
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut file = File::open(path)?;
        // What remains of the line that this falls into is no JSON, and is left out.
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(FILE_MAX)))?;
        Ok(Lines {
            file: BufReader::new(file),
            line: Vec::new(),
        })
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let mut skipping = false;
        loop {
            self.line.clear();
            let mut limited = self.file.by_ref().take(LINE_MAX);
            let length = limited.read_until(b'\n', &mut self.line)? as u64;
            if length == 0 {
                return Ok(None);
            }
            let too_long = length == LINE_MAX && !self.line.ends_with(b"\n");
            if !too_long && !skipping {
                return Ok(Some(&self.line));
            }
            skipping = too_long;
        }
    }
}

/// A line, as far as it is looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    prompt_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    agent_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    cwd: Option<Cow<'a, str>>,
    #[serde(borrow)]
    git_branch: Option<Cow<'a, str>>,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    #[serde(borrow)]
    permission_decision: Option<Permission<'a>>,
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Permission<'a> {
    #[serde(borrow)]
    decision: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: serde_json::Value,
    },
    ToolResult {
        tool_use_id: String,
        content: Option<serde_json::Value>,
        #[serde(default)]
        is_error: bool,
    },
    #[serde(other)]
    Other,
}

/// What a hook is given, in its words.
#[derive(Default, Serialize)]
struct Input<'a> {
    hook_event_name: &'a str,
    session_id: &'a str,
    transcript_path: &'a str,
    cwd: Option<&'a str>,
    prompt_id: &'a str,
    agent_id: Option<&'a str>,
    tool_name: Option<&'a str>,
    tool_use_id: Option<&'a str>,
    tool_input: Option<&'a serde_json::Value>,
    tool_response: Option<&'a serde_json::Value>,
    error: Option<&'a serde_json::Value>,
    prompt: Option<&'a str>,
    last_assistant_message: Option<&'a str>,
}

/// What is known when the next line comes.
struct Reader<'a> {
    /// The session's transcript, also in that of a subagent.
    name: &'a str,
    session: &'a str,
    /// Only the user's lines name their turn.
    prompt_id: Option<String>,
    /// Tools that were called and did not answer yet: name and input.
    calls: HashMap<String, (String, serde_json::Value)>,
    /// The end of the turn, unless it goes on.
    reply: Option<Told>,
}

impl Reader<'_> {
    fn line(&mut self, line: &[u8]) -> Vec<Told> {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
            return Vec::new();
        };
        if line.session_id != self.session {
            return Vec::new();
        }
        match line.message.role.as_ref() {
            "user" => self.user(&line),
            "assistant" => {
                self.assistant(&line);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn user(&mut self, line: &Line<'_>) -> Vec<Told> {
        let mut told = Vec::new();
        if let Some(prompt_id) = &line.prompt_id {
            self.prompt_id = Some(prompt_id.to_string());
        }
        let (mut texts, mut has_results) = (Vec::new(), false);
        for block in blocks(line.message.content) {
            match block {
                Block::Text { text } => texts.push(text),
                Block::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } => {
                    has_results = true;
                    told.extend(self.result(line, &tool_use_id, content.as_ref(), is_error));
                }
                Block::ToolUse { .. } | Block::Other => {}
            }
        }
        if has_results {
            return told;
        }
        // Somebody speaks: the turn before this is over.
        told.extend(self.reply.take());
        let text = texts.join("\n");
        let is_typed = !line.is_meta && !line.is_compact_summary && line.agent_id.is_none();
        if is_typed && !is_of_the_host(&text) {
            let input = Input {
                hook_event_name: "UserPromptSubmit",
                prompt: Some(&text),
                ..Input::default()
            };
            told.extend(self.told(Hook::New, line, input));
        }
        told
    }

    /// A tool that was not allowed to run, or could not, is none that hooks tell of.
    fn result(
        &mut self,
        line: &Line<'_>,
        id: &str,
        content: Option<&serde_json::Value>,
        is_error: bool,
    ) -> Option<Told> {
        let (name, input) = self.calls.remove(id)?;
        let ran = match &line.permission_decision {
            Some(permission) => permission.decision == "accept",
            None => !is_error,
        };
        if !ran {
            return None;
        }
        // A subagent's result has only the words that the model was given.
        let response = line
            .tool_use_result
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        let response = response.as_ref().or(content);
        let input = Input {
            hook_event_name: if is_error {
                "PostToolUseFailure"
            } else {
                "PostToolUse"
            },
            tool_name: Some(&name),
            tool_use_id: Some(id),
            tool_input: Some(&input),
            tool_response: response.filter(|_| !is_error),
            error: content.filter(|_| is_error),
            ..Input::default()
        };
        self.told(Hook::Save, line, input)
    }

    fn assistant(&mut self, line: &Line<'_>) {
        let is_of_a_model = line.message.model.as_deref() != Some("<synthetic>");
        let stops = matches!(
            line.message.stop_reason.as_deref(),
            Some("end_turn" | "stop_sequence")
        );
        for block in blocks(line.message.content) {
            match block {
                Block::ToolUse { id, name, input } => {
                    self.calls.insert(id, (name, input));
                    self.reply = None;
                }
                Block::Text { text } if stops && is_of_a_model && line.agent_id.is_none() => {
                    let input = Input {
                        hook_event_name: "Stop",
                        last_assistant_message: Some(&text),
                        ..Input::default()
                    };
                    self.reply = self.told(Hook::Summary, line, input);
                }
                Block::Text { .. } | Block::ToolResult { .. } | Block::Other => {}
            }
        }
    }

    /// None outside of a turn: then nobody could tell whether a hook told the same.
    fn told(&self, hook: Hook, line: &Line<'_>, input: Input<'_>) -> Option<Told> {
        let prompt_id = self.prompt_id.clone()?;
        let input = Input {
            session_id: self.session,
            transcript_path: self.name,
            cwd: line.cwd.as_deref(),
            prompt_id: &prompt_id,
            agent_id: line.agent_id.as_deref(),
            ..input
        };
        Some(Told {
            hook,
            tool_use_id: input.tool_use_id.map(str::to_owned),
            input: serde_json::to_string(&input).ok()?,
            branch: line.git_branch.as_deref().map(str::to_owned),
            at: line
                .timestamp
                .parse::<jiff::Timestamp>()
                .ok()?
                .as_millisecond(),
            prompt_id,
        })
    }
}

fn blocks(content: &RawValue) -> Vec<Block> {
    if let Ok(text) = serde_json::from_str(content.get()) {
        return vec![Block::Text { text }];
    }
    serde_json::from_str(content.get()).unwrap_or_default()
}

/// Words that stand where a prompt would, and that nobody typed like this.
fn is_of_the_host(text: &str) -> bool {
    const BEGINNINGS: &[&str] = &["<command-", "<local-command-", "[Request interrupted by"];
    let text = text.trim_start();
    text.is_empty() || BEGINNINGS.iter().any(|it| text.starts_with(it))
}
