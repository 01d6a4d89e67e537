//! Claude Code: its events, its tools, and the input of its hooks. `transcript` reads the file that it
//! keeps of each session.
//!
//! A hook's input is one object for all events, every field optional: the host adds fields from
//! version to version, and a hook must not fail because of them. The input is parsed once, and only
//! as deep as needed; `subject` parses a tool's input, for those events that are stored.

mod transcript;

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    Hook, HookInput, Host, HostEvent, Output, Plain, QuestionAnswer, Replacement, Subject,
    ToolKind, ToolUse, mend, plain_text,
};
use crate::model::{Event, EventKind};

pub const HOST: Host = Host {
    name: "claude-code",
    title: "Claude Code",
    events: EVENTS,
    replayed: REPLAYED,
    boring_tools: BORING,
    repeated: REPEATED,
    read,
    subject,
    bare_input,
    tool_kind,
    tool_use,
    own_tool,
    is_own_file,
    transcript: transcript::read,
};

const EVENTS: &[HostEvent] = &[
    event("SessionStart", Hook::Context, EventKind::SessionStart),
    event("UserPromptSubmit", Hook::New, EventKind::Prompt),
    // Stored only if a reminder is shown; PostToolUse stores the tool use itself.
    HostEvent {
        matcher: Some("Read|Edit|MultiEdit|Write|NotebookEdit"),
        ..event("PreToolUse", Hook::FileContext, EventKind::Receipt)
    },
    event("PostToolUse", Hook::Save, EventKind::ToolUse),
    event("PostToolUseFailure", Hook::Save, EventKind::ToolFailure),
    event("Stop", Hook::Summary, EventKind::Stop),
    event("StopFailure", Hook::Summary, EventKind::StopFailure),
    event("SessionEnd", Hook::Cleanup, EventKind::SessionEnd),
];

/// Events of our own making; their names are in no settings of the client.
const REPLAYED: &[HostEvent] = &[
    event("ToolRefused", Hook::Save, EventKind::Refusal),
    event("WordsBetween", Hook::Save, EventKind::Words),
];

const fn event(name: &'static str, hook: Hook, kind: EventKind) -> HostEvent {
    HostEvent {
        name,
        hook,
        kind,
        matcher: None,
    }
}

/// Reads the first JSON value; anything after it is ignored.
fn read(input: &[u8]) -> Option<HookInput<'_>> {
    let mut deserializer = serde_json::Deserializer::from_slice(input);
    deserializer.deserialize_map(Fields).ok()
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = HookInput<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the JSON object of a hook")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HookInput<'de>, A::Error> {
        let mut input = HookInput::default();
        let mut event = None;
        while let Some(Plain(name)) = map.next_key()? {
            match name.as_ref() {
                "hook_event_name" => event = text(&mut map)?,
                "session_id" => input.session_id = text(&mut map)?,
                "prompt_id" => input.prompt_id = text(&mut map)?,
                "agent_id" => input.agent_id = text(&mut map)?,
                "transcript_path" => input.transcript_path = text(&mut map)?,
                "cwd" => input.cwd = text(&mut map)?,
                "tool_name" => input.tool.name = text(&mut map)?,
                "tool_use_id" => input.tool.id = text(&mut map)?,
                "tool_input" => input.tool.input = map.next_value()?,
                // An object whose shape depends on the tool; an array of blocks for MCP.
                "tool_response" => input.tool.response = map.next_value()?,
                "error" => input.error = map.next_value()?,
                "is_interrupt" => input.interrupted = raw(&mut map)? == Some("true"),
                "prompt" => input.prompt = text(&mut map)?,
                "last_assistant_message" => {
                    // The client's own report of a failed call is no reply of the agent.
                    let reply = text(&mut map)?;
                    input.reply = reply.filter(|it| !it.starts_with("API Error: "));
                }
                "source" => input.source = text(&mut map)?,
                "model" => input.model = text(&mut map)?,
                "reason" => input.reason = text(&mut map)?,
                name => {
                    map.next_value::<IgnoredAny>()?;
                    if !IGNORED.contains(&name) {
                        input.unknown.push(name.chars().take(40).collect());
                    }
                }
            }
        }
        input.unknown.sort();
        input.unknown.dedup();
        input.unknown.truncate(UNKNOWN_MAX);
        if let Some(name) = &input.tool.name {
            input.tool.kind = tool_kind(name);
            input.tool.own = own_tool(name).map(str::to_owned);
        }
        input.event = event.and_then(|name| meaning(&name, &input));
        Ok(input)
    }
}

/// An event stores the names of at most this many unknown fields.
const UNKNOWN_MAX: usize = 8;

/// Fields that Claude Code is known to send and that Foreword does not use.
#[rustfmt::skip] // A list is read in a line.
const IGNORED: &[&str] = &[
    "agent_transcript_path", "agent_type", "background_tasks", "context_tokens", "duration_ms",
    "effort", "estimated_cache_write_usd", "mcp_server", "permission_mode",
    "prompt_cache_likely_expired", "seconds_since_last_response", "session_crons",
    "stop_hook_active",
];

/// The hook command and the kind of an event; none if no command is connected to it.
fn meaning(name: &str, input: &HookInput<'_>) -> Option<(Hook, EventKind)> {
    let mut events = EVENTS.iter().chain(REPLAYED);
    let event = events.find(|event| event.name == name)?;
    let kind = match event.kind {
        EventKind::Prompt if is_notification(input) => EventKind::Notification,
        EventKind::Receipt => {
            input.tool.kind.file_role()?;
            EventKind::Receipt
        }
        kind => kind,
    };
    Some((event.hook, kind))
}

/// Whether the prompt is a background task's report: it begins a turn, but no person typed it.
fn is_notification(input: &HookInput<'_>) -> bool {
    let prompt = input.prompt.as_deref().unwrap_or_default();
    prompt.trim_start().starts_with("<task-notification>")
}

/// A text, or none if the value has another type: one odd field must not lose the event.
fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Cow<'de, str>>, A::Error> {
    let raw: Option<&'de RawValue> = map.next_value()?;
    Ok(raw.and_then(plain_text))
}

fn raw<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<&'de str>, A::Error> {
    let raw: Option<&'de RawValue> = map.next_value()?;
    Ok(raw.map(RawValue::get))
}

#[derive(Default, Deserialize)]
struct ToolInput<'a> {
    #[serde(borrow, alias = "notebook_path")]
    file_path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    command: Option<Cow<'a, str>>,
}

fn subject<'a>(input: &HookInput<'a>) -> Subject<'a> {
    let Some(raw) = input.tool.input else {
        return Subject::default();
    };
    if let Ok(input) = serde_json::from_str::<ToolInput<'a>>(raw.get()) {
        return Subject {
            paths: input.file_path.into_iter().collect(),
            command: input.command,
        };
    }
    let mended = mend(raw.get()).unwrap_or_default();
    let input: ToolInput<'_> = serde_json::from_str(&mended).unwrap_or_default();
    let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
    Subject {
        paths: owned(input.file_path).into_iter().collect(),
        command: owned(input.command),
    }
}

/// Tools whose uses are not stored, since they do not describe the work; `capture.boring_tools`
/// replaces the list.
#[rustfmt::skip] // A list is read in a line.
const BORING: &[&str] = &[
    "Glob", "LS", "ListMcpResourcesTool", "ReadMcpResourceTool", "ToolSearch", "TodoRead",
    "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskUpdate", "BashOutput",
    "KillShell", "EnterPlanMode", "Skill", "SlashCommand",
];

/// Parts of a tool's response that only repeat its input or the file on disk.
const REPEATED: &[(&str, &str)] = &[
    ("Write", "content"),
    ("Write", "originalFile"),
    ("Edit", "originalFile"),
    ("Edit", "oldString"),
    ("Edit", "newString"),
    ("MultiEdit", "originalFile"),
    ("NotebookEdit", "original_file"),
    ("NotebookEdit", "updated_file"),
];

fn tool_kind(name: &str) -> ToolKind {
    match name {
        "Bash" => ToolKind::Shell,
        "Read" | "NotebookRead" => ToolKind::Read,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "WebFetch" | "WebSearch" => ToolKind::Web,
        "Grep" => ToolKind::Search,
        _ if name.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

/// The bare name of one of Foreword's own MCP tools, connected by `foreword install` or by the
/// plugin.
fn own_tool(name: &str) -> Option<&str> {
    let is_own = name.starts_with("mcp__foreword__") || name.starts_with("mcp__plugin_foreword_");
    let own = is_own.then(|| name.rsplit_once("__"));
    own.flatten().map(|(_, own)| own)
}

fn bare_input(paths: Vec<String>, command: Option<String>) -> Value {
    let path = paths.into_iter().next().map(|it| ("file_path", it));
    let fields = path.into_iter().chain(command.map(|it| ("command", it)));
    let fields = fields.map(|(name, text)| (name.to_owned(), Value::String(text)));
    Value::Object(fields.collect())
}

fn tool_use(event: &Event) -> ToolUse<'_> {
    let payload = &event.payload;
    let (input, response) = (payload.input.as_ref(), payload.response.as_ref());
    let interrupted = response.and_then(|it| it.get("interrupted")?.as_bool());
    let error = payload.error.as_deref().unwrap_or_default();
    let (exit_code, error) = match error.strip_prefix("Exit code ") {
        Some(rest) if event.kind == EventKind::ToolFailure => {
            let (code, output) = rest.split_once('\n').unwrap_or((rest, ""));
            (Some(code.trim()), output)
        }
        _ => (None, error),
    };
    ToolUse {
        path: string(input, "/file_path").or(string(input, "/notebook_path")),
        command: string(input, "/command"),
        description: string(input, "/description").unwrap_or_default(),
        replacements: replacements(input),
        content: string(input, "/content"),
        patch: patch(response),
        created: string(response, "/type") == Some("create"),
        output: response.map_or(Output::None, output),
        exit_code,
        error,
        interrupted: payload.interrupted || interrupted == Some(true),
        in_background: string(response, "/backgroundTaskId").is_some(),
        answers: answers(input, response),
    }
}

/// The plans that the client keeps of its own.
fn is_own_file(path: &str) -> bool {
    path.contains("/.claude/plans/")
}

fn replacements(input: Option<&Value>) -> Vec<Replacement<'_>> {
    let replacement = |edit| {
        let before = string(Some(edit), "/old_string");
        let after = string(Some(edit), "/new_string").or(string(Some(edit), "/new_source"))?;
        Some(Replacement {
            before: before.unwrap_or_default(),
            after,
        })
    };
    match input.and_then(|it| it.get("edits")?.as_array()) {
        Some(edits) => edits.iter().filter_map(replacement).collect(),
        None => input.and_then(replacement).into_iter().collect(),
    }
}

/// The answers are in the response, by question; older clients wrote them into the input.
fn answers<'a>(input: Option<&'a Value>, response: Option<&'a Value>) -> Vec<QuestionAnswer<'a>> {
    let field = |name: &str| {
        response
            .and_then(|it| it.get(name))
            .or_else(|| input?.get(name))
    };
    let answers = field("answers").and_then(Value::as_object);
    let questions = field("questions").and_then(Value::as_array);
    let read = |(question, answer): (&'a String, &'a Value)| {
        let is_it = |it: &&Value| string(Some(it), "/question") == Some(question);
        let asked = questions.into_iter().flatten().find(is_it);
        let options = asked.and_then(|it| it.get("options")?.as_array());
        let options = options.into_iter().flatten();
        Some(QuestionAnswer {
            question,
            answer: answer.as_str()?,
            options: options
                .filter_map(|it| string(Some(it), "/label"))
                .collect(),
        })
    };
    answers.into_iter().flatten().filter_map(read).collect()
}

fn output(response: &Value) -> Output<'_> {
    let field = |pointer: &str| string(Some(response), pointer);
    if let Some(content) = field("/file/content") {
        Output::File(content)
    } else if response.get("structuredPatch").is_some() {
        Output::Change
    } else if let Some(stdout) = field("/stdout") {
        Output::Printed(stdout, field("/stderr").unwrap_or_default())
    } else {
        Output::Other(response)
    }
}

fn patch(response: Option<&Value>) -> Vec<&str> {
    let patch = response.and_then(|it| it.get("structuredPatch")?.as_array());
    let hunks = patch.into_iter().flatten();
    let lines = hunks.filter_map(|hunk| hunk.get("lines")?.as_array());
    lines.flatten().filter_map(Value::as_str).collect()
}

fn string<'a>(value: Option<&'a Value>, pointer: &str) -> Option<&'a str> {
    value?.pointer(pointer)?.as_str()
}
