//! The nouns of Foreword. One word each; the glossary is in ARCHITECTURE.md.
//!
//! These are what things mean, apart from how they are sent (`host`) or
//! stored (`queue`, `store`).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Milliseconds since 1970, UTC.
pub type Millis = i64;

/// A closed set of words, the same in code, tables and JSON.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            #[must_use]
            pub fn parse(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl rusqlite::ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
                Ok(self.as_str().into())
            }
        }

        impl rusqlite::types::FromSql for $name {
            fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
                let word = value.as_str()?;
                $name::parse(word).ok_or_else(|| {
                    rusqlite::types::FromSqlError::Other(format!("unknown {} '{word}'", stringify!($name)).into())
                })
            }
        }
    };
}

words! {
    /// What kind of thing a hook told us.
    EventKind {
        SessionStart = "session_start",
        Prompt = "prompt",
        /// A turn that the host started by itself (a background task reported back).
        Notification = "notification",
        ToolUse = "tool_use",
        ToolFailure = "tool_failure",
        Stop = "stop",
        StopFailure = "stop_failure",
        SessionEnd = "session_end",
        /// Something of the memory was put before the agent, or opened by it.
        Receipt = "receipt",
    }
}

impl EventKind {
    /// Session starts and ends frame turns, and receipts are about us: none is part of one.
    #[must_use]
    pub fn is_of_a_turn(self) -> bool {
        !matches!(
            self,
            EventKind::SessionStart | EventKind::SessionEnd | EventKind::Receipt
        )
    }
}

words! {
    SessionState {
        Active = "active",
        Completed = "completed",
        Interrupted = "interrupted",
        Failed = "failed",
    }
}

words! {
    ObservationType {
        Decision = "decision",
        Bugfix = "bugfix",
        Feature = "feature",
        Refactor = "refactor",
        Discovery = "discovery",
    }
}

impl ObservationType {
    /// Something that was done, rather than decided or found out.
    #[must_use]
    pub fn is_work(self) -> bool {
        !matches!(self, ObservationType::Decision | ObservationType::Discovery)
    }
}

words! {
    /// Whose word an observation rests on, from most to least trusted.
    Origin {
        User = "user",
        Agent = "agent",
        Read = "read",
        Import = "import",
    }
}

words! {
    /// What became of an event.
    Outcome {
        Stored = "stored",
        /// Taken in, but nothing about it was worth keeping.
        Nothing = "nothing",
    }
}

words! {
    FileRole {
        Read = "read",
        Modified = "modified",
    }
}

words! {
    /// How a file is now that something was remembered about, from best to worst.
    Freshness {
        Fresh = "fresh",
        Changed = "changed",
        Gone = "gone",
    }
}

words! {
    /// Where an agent came to see something of the memory.
    Shown {
        /// At the start of a session.
        Index = "index",
        /// Beside a prompt that it is about.
        Prompt = "prompt",
        /// Before a file was read or edited.
        File = "file",
        /// The agent asked for it by its number.
        Opened = "opened",
    }
}

words! {
    /// What a search hit is.
    Kind {
        Observation = "observation",
        Summary = "summary",
        Prompt = "prompt",
        Note = "note",
    }
}

words! {
    /// Everything that can go wrong when a model is asked.
    FailureKind {
        /// 401, 403, not logged in.
        Auth = "auth",
        /// No credit left.
        Billing = "billing",
        /// 429; the reset time may be known.
        RateLimit = "rate_limit",
        /// There is no such model.
        Model = "model",
        /// The program or the address is not there, or not set.
        Missing = "missing",
        /// 5xx, 529, connection refused.
        Outage = "outage",
        /// No answer in time.
        Timeout = "timeout",
        /// The connection broke, or the process died, before the answer was whole.
        Broken = "broken",
        /// The question is too long for the model.
        TooLong = "too_long",
        /// The answer was longer than allowed and ends in the middle.
        CutOff = "cut_off",
        /// The model declined.
        Refusal = "refusal",
        /// An answer without any text.
        Empty = "empty",
        /// An answer in which none of the known tags is.
        Prose = "prose",
        /// Known tags, but nothing in them that could be kept.
        Schema = "schema",
        /// Any other fault that the provider finds with the request.
        Request = "request",
    }
}

/// What a hook told us, redacted and cut to size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub id: Uuid,
    /// The same thing told twice has the same key.
    pub key: String,
    pub kind: EventKind,
    pub host: String,
    pub host_session_id: String,
    pub prompt_id: Option<String>,
    pub agent_id: Option<String>,
    pub tool_name: Option<String>,
    pub tool_use_id: Option<String>,
    pub cwd: Option<String>,
    pub project_dir: Option<String>,
    /// What the resolver said while the directory was certainly there.
    pub project: Option<String>,
    /// The working tree's top, to which paths are shown relative.
    pub root: Option<String>,
    pub transcript_path: Option<String>,
    pub branch: Option<String>,
    pub commit: Option<String>,
    pub files: Vec<TouchedFile>,
    pub payload: Payload,
    pub at: Millis,
}

/// An event is stored as one JSON column, which the spool's files hold too. A field that is
/// added later must be an `Option` or have a serde default, so that older rows can be read.
impl rusqlite::ToSql for Event {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        let json = serde_json::to_string(self)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(json.into())
    }
}

impl rusqlite::types::FromSql for Event {
    fn column_result(
        value: rusqlite::types::ValueRef<'_>,
    ) -> rusqlite::types::FromSqlResult<Event> {
        serde_json::from_str(value.as_str()?)
            .map_err(|error| rusqlite::types::FromSqlError::Other(error.into()))
    }
}

/// A file named by a tool use, as it was right after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchedFile {
    pub path: String,
    pub role: FileRole,
    pub size: Option<u64>,
    pub mtime: Option<Millis>,
    /// Of the content, when it is small enough to be read in a hook.
    pub hash: Option<String>,
}

/// The content of an event: what the worker derives from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Payload {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// What was too large and therefore cut, and how much of it: field, bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<(String, u64)>,
    /// What was left out because it repeats the input or is secret: field, bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<(String, u64)>,
    /// How many secrets and private spans were taken out.
    #[serde(skip_serializing_if = "is_zero")]
    pub redacted: u32,
    /// Names of fields that the host sent and that we do not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

impl Payload {
    /// How long it is as JSON.
    #[must_use]
    pub fn json_bytes(&self) -> usize {
        serde_json::to_string(self).map_or(0, |json| json.len())
    }
}

/// What an agent was shown, or opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub shown: Shown,
    /// By their numbers, each with what brought it up.
    pub items: Vec<(i64, String)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// One insight, before it has an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// Names the same insight when its turn is derived from again.
    pub seed: String,
    #[serde(rename = "type")]
    pub kind: ObservationType,
    pub title: String,
    pub subtitle: String,
    pub facts: Vec<String>,
    pub narrative: String,
    pub concepts: Vec<String>,
    pub files: Vec<TouchedFile>,
    pub origin: Origin,
    pub agent_id: Option<String>,
    pub events: Vec<Uuid>,
    pub at: Millis,
}

impl Observation {
    /// An observation with no text, files or events yet.
    #[must_use]
    pub fn blank(seed: String, kind: ObservationType, origin: Origin) -> Observation {
        Observation {
            seed,
            kind,
            title: String::new(),
            subtitle: String::new(),
            facts: Vec::new(),
            narrative: String::new(),
            concepts: Vec::new(),
            files: Vec::new(),
            origin,
            agent_id: None,
            events: Vec::new(),
            at: 0,
        }
    }
}

/// What one prompt came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub request: String,
    pub investigated: String,
    pub learned: String,
    pub completed: String,
    pub next_steps: String,
    pub files_read: Vec<String>,
    pub files_edited: Vec<String>,
    pub notes: String,
}

/// Who derived something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    pub provider: String,
    pub model: Option<String>,
    pub prompt_version: Option<String>,
}

impl Provenance {
    #[must_use]
    pub fn offline() -> Provenance {
        Provenance {
            provider: "offline".to_owned(),
            model: None,
            prompt_version: None,
        }
    }
}

/// What one user prompt set in motion, whole: also the events that were stored earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The host's id of the user's prompt; none when events came before any prompt.
    pub prompt_id: Option<String>,
    /// In order of time.
    pub events: Vec<Event>,
}

/// What was derived from one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derived {
    pub observations: Vec<Observation>,
    pub summary: Option<Summary>,
}
