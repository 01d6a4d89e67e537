//! Decodes the JSON that Claude Code writes to a hook's standard input.
//!
//! One object for all events, every field optional: the host adds fields from version to version,
//! and a hook must not fail because of them. The input is parsed once, and only as deep as needed;
//! `subject` parses a tool's input, for those events that are stored.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::value::RawValue;

use super::{EVENTS, REPLAYED, tools};
use crate::host::json::{Plain, mend, plain_text};
use crate::host::{HookInput, Subject};
use crate::model::EventKind;

/// Reads the first JSON value; anything after it is ignored.
pub fn read(input: &[u8]) -> Option<HookInput<'_>> {
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
            input.tool.kind = tools::kind(name);
            input.tool.own = tools::own(name).map(str::to_owned);
        }
        input.event = event.and_then(|name| meaning(&name, &input));
        Ok(input)
    }
}

/// An event stores the names of at most this many unknown fields.
const UNKNOWN_MAX: usize = 8;

/// Fields that Claude Code is known to send and that Foreword does not use.
const IGNORED: &[&str] = &[
    "agent_transcript_path",
    "agent_type",
    "background_tasks",
    "context_tokens",
    "duration_ms",
    "effort",
    "estimated_cache_write_usd",
    "mcp_server",
    "permission_mode",
    "prompt_cache_likely_expired",
    "seconds_since_last_response",
    "session_crons",
    "stop_hook_active",
];

/// The hook command and the kind of an event; none if no command is connected to it.
fn meaning(name: &str, input: &HookInput<'_>) -> Option<(super::Hook, EventKind)> {
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

pub fn subject<'a>(input: &HookInput<'a>) -> Subject<'a> {
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
