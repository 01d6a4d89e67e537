//! Exactly what Claude Code writes to a hook's standard input.
//!
//! One struct for all events, every field optional: the host adds fields from
//! version to version, and a hook must not fail for it. What a field means is
//! decided in `capture`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
pub struct HookInput<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub hook_event_name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub transcript_path: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub cwd: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub prompt_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub tool_name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// Left as text: it can be megabytes, and parts of it are not wanted.
    #[serde(borrow)]
    pub tool_input: Option<&'a RawValue>,
    /// An object whose shape depends on the tool; an array of blocks for MCP.
    #[serde(borrow)]
    pub tool_response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub is_interrupt: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub prompt: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub last_assistant_message: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub source: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub model: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
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

/// The fields that Claude Code was seen to send, also those that we make nothing of.
const KNOWN: &[&str] = &[
    "agent_id",
    "agent_transcript_path",
    "agent_type",
    "background_tasks",
    "context_tokens",
    "cwd",
    "duration_ms",
    "effort",
    "error",
    "estimated_cache_write_usd",
    "hook_event_name",
    "is_interrupt",
    "last_assistant_message",
    "mcp_server",
    "model",
    "permission_mode",
    "prompt",
    "prompt_cache_likely_expired",
    "prompt_id",
    "reason",
    "seconds_since_last_response",
    "session_crons",
    "session_id",
    "source",
    "stop_hook_active",
    "tool_input",
    "tool_name",
    "tool_response",
    "tool_use_id",
    "transcript_path",
];

/// Looking through a larger input for new fields would cost a hook more than it tells.
const UNKNOWN_FIELDS_IN: usize = 32 << 10;

/// The names of fields that a newer host sends and that we do not know: `doctor` counts them.
pub fn unknown_fields(input: &[u8]) -> Vec<String> {
    if input.len() > UNKNOWN_FIELDS_IN {
        return Vec::new();
    }
    let mut deserializer = serde_json::Deserializer::from_slice(input);
    let fields: Result<BTreeMap<Plain<'_>, IgnoredAny>, _> =
        Deserialize::deserialize(&mut deserializer);
    let names = fields.unwrap_or_default().into_keys().map(|name| name.0);
    let unknown = names.filter(|name| !KNOWN.contains(&name.as_ref()));
    unknown
        .take(8)
        .map(|name| name.chars().take(40).collect())
        .collect()
}

/// A text, or nothing if it is something else: one odd field must not cost the event.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    let raw: Option<&'de RawValue> = Deserialize::deserialize(deserializer)?;
    Ok(raw.and_then(plain_text))
}

/// The text that a JSON string stands for.
pub fn plain_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    match serde_json::from_str::<Plain<'_>>(raw.get()) {
        Ok(plain) => Some(plain.0),
        Err(_) => serde_json::from_str(&mend(raw.get())?).ok().map(Cow::Owned),
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Plain<'a>(#[serde(borrow)] Cow<'a, str>);

/// Half an emoji (an unpaired surrogate, from a host that counts in UTF-16) is no text in
/// Rust: it is replaced. None if there is none. Asked only when something did not parse.
pub fn mend(json: &str) -> Option<String> {
    let input = json.as_bytes();
    let mut mended: Option<String> = None;
    let mut at = 0;
    while let Some(found) = input
        .get(at..)
        .and_then(|rest| rest.iter().position(|&byte| byte == b'\\'))
    {
        at += found;
        let Some(unit) = surrogate(input, at) else {
            at += 2;
            continue;
        };
        let paired = unit < 0xdc00 && surrogate(input, at + 6).is_some_and(|low| low >= 0xdc00);
        if !paired {
            let mended = mended.get_or_insert_with(|| json.to_owned());
            mended.replace_range(at..at + 6, "\\ufffd");
        }
        at += if paired { 12 } else { 6 };
    }
    mended
}

/// The surrogate that is written as `\uXXXX` here.
fn surrogate(input: &[u8], at: usize) -> Option<u16> {
    let digits = input.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}

impl Subject<'_> {
    fn into_owned(self) -> Subject<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Subject {
            file_path: owned(self.file_path),
            command: owned(self.command),
        }
    }
}

impl<'a> HookInput<'a> {
    /// Reads the first JSON value; what may follow it is not looked at.
    pub fn read(input: &'a [u8]) -> Option<HookInput<'a>> {
        let mut deserializer = serde_json::Deserializer::from_slice(input);
        HookInput::deserialize(&mut deserializer).ok()
    }

    /// The numbers that one of our own tools was given.
    pub fn ids(&self) -> Vec<i64> {
        #[derive(Default, Deserialize)]
        struct Ids {
            ids: Vec<i64>,
        }
        let ids = self
            .tool_input
            .and_then(|raw| serde_json::from_str::<Ids>(raw.get()).ok());
        ids.unwrap_or_default().ids
    }

    /// What the tool was pointed at. Reads through the whole input: ask once.
    pub fn subject(&self) -> Subject<'a> {
        let Some(raw) = self.tool_input else {
            return Subject::default();
        };
        serde_json::from_str(raw.get())
            .or_else(|_| {
                let mended = mend(raw.get()).unwrap_or_default();
                serde_json::from_str(&mended).map(Subject::into_owned)
            })
            .unwrap_or_default()
    }
}
