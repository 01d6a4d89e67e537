//! Exactly what Claude Code writes to a hook's standard input.
//!
//! One struct for all events, every field optional: the host adds fields from
//! version to version, and a hook must not fail for it. What a field means is
//! decided in `capture`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
pub struct HookInput<'a> {
    #[serde(borrow)]
    pub hook_event_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub transcript_path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub cwd: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub prompt_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub tool_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// Left as text: it can be megabytes, and parts of it are not wanted.
    #[serde(borrow)]
    pub tool_input: Option<&'a RawValue>,
    /// An object whose shape depends on the tool; an array of blocks for MCP.
    #[serde(borrow)]
    pub tool_response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(default)]
    pub is_interrupt: bool,
    #[serde(borrow)]
    pub prompt: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub last_assistant_message: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub source: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub reason: Option<Cow<'a, str>>,
}

/// The parts of a tool's input that say what it was about.
#[derive(Debug, Default, Deserialize)]
pub struct Subject<'a> {
    #[serde(borrow, alias = "notebook_path")]
    pub file_path: Option<Cow<'a, str>>,
    /// What a shell was given.
    #[serde(borrow)]
    pub command: Option<Cow<'a, str>>,
}

impl<'a> HookInput<'a> {
    /// Reads the first JSON value; what may follow it is not looked at.
    pub fn read(input: &'a [u8]) -> Option<HookInput<'a>> {
        let mut deserializer = serde_json::Deserializer::from_slice(input);
        HookInput::deserialize(&mut deserializer).ok()
    }

    /// What the tool was pointed at. Reads through the whole input: ask once.
    pub fn subject(&self) -> Subject<'a> {
        let subject = self
            .tool_input
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        subject.unwrap_or_default()
    }
}
