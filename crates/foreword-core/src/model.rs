//! The types that the whole program shares; the glossary in ARCHITECTURE.md defines their names.
//!
//! They hold the meaning of things and do not depend on how a host sends them (`host`) or how
//! they are stored (`queue`, `store`).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Milliseconds since 1970, UTC.
pub type Millis = i64;

/// Defines an enum whose variants are stored as these strings, in tables and in JSON.
macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $string:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $string)] $variant,)+ }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $string,)+ }
            }

            pub fn parse(string: &str) -> Option<$name> {
                match string { $($string => Some($name::$variant),)+ _ => None }
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
                let string = value.as_str()?;
                $name::parse(string).ok_or_else(|| {
                    rusqlite::types::FromSqlError::Other(format!("unknown {} '{string}'", stringify!($name)).into())
                })
            }
        }
    };
}

string_enum! {
    /// The kind of an event.
    EventKind {
        SessionStart = "session_start",
        Prompt = "prompt",
        /// A turn that the host started by itself, because a background task has finished.
        Notification = "notification",
        ToolUse = "tool_use",
        ToolFailure = "tool_failure",
        Stop = "stop",
        StopFailure = "stop_failure",
        SessionEnd = "session_end",
        /// The user refused a tool use and said why. Only transcripts have it.
        Refusal = "refusal",
        /// What the agent wrote between two tool uses. Only transcripts have it.
        Words = "words",
        /// Items of the memory were shown to the agent, or the agent opened some.
        Receipt = "receipt",
    }
}

impl EventKind {
    /// Whether the event is part of a turn. Session starts and ends lie outside of turns, and
    /// receipts record what Foreword did, not the agent.
    pub fn is_of_a_turn(self) -> bool {
        !matches!(
            self,
            EventKind::SessionStart | EventKind::SessionEnd | EventKind::Receipt
        )
    }

    /// Whether a turn can have thousands of such events: tool uses, and the words between them.
    pub fn is_step(self) -> bool {
        matches!(
            self,
            EventKind::ToolUse | EventKind::ToolFailure | EventKind::Words
        )
    }
}

string_enum! {
    SessionState {
        Active = "active",
        Completed = "completed",
        Interrupted = "interrupted",
        Failed = "failed",
    }
}

string_enum! {
    ObservationType {
        Decision = "decision",
        Bugfix = "bugfix",
        Feature = "feature",
        Refactor = "refactor",
        Discovery = "discovery",
    }
}

string_enum! {
    /// The source that an observation was taken from, from most to least trusted.
    Origin {
        User = "user",
        Agent = "agent",
        Read = "read",
        Import = "import",
    }
}

string_enum! {
    /// The result of processing an event.
    Outcome {
        Stored = "stored",
        /// The event was processed, and nothing was derived from it.
        Nothing = "nothing",
    }
}

string_enum! {
    FileRole {
        Read = "read",
        Modified = "modified",
    }
}

string_enum! {
    /// The state of a file compared with when an observation recorded it, from best to worst.
    Freshness {
        Fresh = "fresh",
        Changed = "changed",
        Gone = "gone",
    }
}

string_enum! {
    /// The occasion on which an agent was shown an item of the memory.
    Shown {
        /// At the start of a session.
        Index = "index",
        /// With a prompt that is about the same thing.
        Prompt = "prompt",
        /// Before a file was read or edited.
        File = "file",
        /// The agent opened it by its number.
        Opened = "opened",
    }
}

string_enum! {
    /// The kind of item that a search finds.
    Kind {
        Observation = "observation",
        Summary = "summary",
        Prompt = "prompt",
        Note = "note",
    }
}

string_enum! {
    /// What a person did to an item by hand.
    Action {
        Remember = "remember",
        Edit = "edit",
        Pin = "pin",
        Hide = "hide",
        Relate = "relate",
        Import = "import",
    }
}

string_enum! {
    /// What a person says about two observations.
    Verdict {
        /// The first replaces the second.
        Supersedes = "supersedes",
        /// Neither replaces the other.
        Unrelated = "unrelated",
    }
}

string_enum! {
    /// The ways in which a request to a model can fail.
    FailureKind {
        /// 401, 403, not logged in.
        Auth = "auth",
        /// No credit left.
        Billing = "billing",
        /// 429; the reset time may be known.
        RateLimit = "rate_limit",
        /// There is no such model.
        Model = "model",
        /// The provider's program or address does not exist or is not configured.
        Missing = "missing",
        /// 5xx, 529, connection refused.
        Outage = "outage",
        /// There was no answer in time.
        Timeout = "timeout",
        /// The connection broke or the process died before the answer was complete.
        Broken = "broken",
        /// The request is too long for the model.
        TooLong = "too_long",
        /// The answer reached its length limit and is incomplete.
        CutOff = "cut_off",
        /// The model declined.
        Refusal = "refusal",
        /// The answer has no text.
        Empty = "empty",
        /// The answer has none of the tags that were asked for.
        Prose = "prose",
        /// The answer has known tags, but nothing usable in them.
        Schema = "schema",
        /// The provider rejected the request for any other reason.
        Request = "request",
    }
}

/// One event of a session, made from a hook's input, redacted and cut to size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub id: Uuid,
    /// Identifies the input: the same input received twice has the same key.
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
    /// The project key, resolved in the hook, while the directory certainly exists.
    pub project: Option<String>,
    /// The top of the working tree; paths are shown relative to it.
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
        let json = serde_json::to_string(self);
        let json = json.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
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

/// A file that a tool use names, and its state right after the tool use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchedFile {
    pub path: String,
    pub role: FileRole,
    pub size: Option<u64>,
    pub mtime: Option<Millis>,
    /// Hash of the content, if the file is small enough to be read in a hook.
    pub hash: Option<String>,
}

/// The content of an event, from which the worker derives observations.
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
    /// Fields that were too large and were cut: name, bytes removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<(String, u64)>,
    /// Fields that were left out because they repeat the input or are secret: name, bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<(String, u64)>,
    /// The number of secrets and private spans that were replaced.
    #[serde(skip_serializing_if = "is_zero")]
    pub redacted: u32,
    /// Names of fields that the host sent and that Foreword does not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

impl Payload {
    /// The length of the payload as JSON.
    pub fn json_bytes(&self) -> usize {
        serde_json::to_string(self).map_or(0, |json| json.len())
    }
}

/// A record of the items that an agent was shown or has opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub shown: Shown,
    /// The number of each item, and the reason why it was shown.
    pub items: Vec<(i64, String)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// One insight about the work, before it is stored and has an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// Identifies the same insight when its turn is derived again.
    pub seed: String,
    #[serde(rename = "type")]
    pub kind: ObservationType,
    pub title: String,
    pub subtitle: String,
    pub facts: Vec<String>,
    /// Whose words each fact is; those that are missing have the observation's origin.
    pub fact_origins: Vec<Origin>,
    pub narrative: String,
    pub concepts: Vec<String>,
    pub files: Vec<TouchedFile>,
    pub origin: Origin,
    pub agent_id: Option<String>,
    pub events: Vec<Uuid>,
    pub at: Millis,
    /// Why it no longer holds; none while it does.
    pub retracted: Option<String>,
}

impl Observation {
    /// An observation with no text, files or events yet.
    pub fn blank(seed: String, kind: ObservationType, origin: Origin) -> Observation {
        Observation {
            seed,
            kind,
            title: String::new(),
            subtitle: String::new(),
            facts: Vec::new(),
            fact_origins: Vec::new(),
            narrative: String::new(),
            concepts: Vec::new(),
            files: Vec::new(),
            origin,
            agent_id: None,
            events: Vec::new(),
            at: 0,
            retracted: None,
        }
    }
}

/// A summary of one turn.
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

/// What a session as a whole came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionDigest {
    pub title: String,
    pub subtitle: String,
    /// What was unfinished at its end.
    pub open: Vec<String>,
    /// Attempts that were given up, with the reason.
    pub given_up: Vec<String>,
}

/// The provider, model and prompt that an observation or a summary was derived with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    pub provider: String,
    pub model: Option<String>,
    pub prompt_version: Option<String>,
}

impl Provenance {
    pub fn offline() -> Provenance {
        Provenance {
            provider: "offline".to_owned(),
            model: None,
            prompt_version: None,
        }
    }
}

/// A user prompt and all events that followed from it, including those stored earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The host's id of the prompt; none if the events came before any prompt.
    pub prompt_id: Option<String>,
    /// In order of time.
    pub events: Vec<Event>,
}

/// The observations and the summary that were derived from one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derived {
    pub observations: Vec<Observation>,
    pub summary: Option<Summary>,
    pub marks: Vec<Mark>,
}

/// A statement about an earlier observation, by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// It does not hold, for this reason.
    Retracted(i64, String),
    /// The new observation with this seed replaces it.
    SupersededBy(i64, String),
    /// The coding agent itself wrote it in this turn, by `remember`.
    OfTurn(i64),
}
