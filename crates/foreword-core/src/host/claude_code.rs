//! Claude Code: the names of its events and tools.
//!
//! `wire` decodes the input of its hooks, `tools` finds path, command, output and change in a
//! tool's input and response, `transcript` reads the file that it keeps of each session.

mod tools;
mod transcript;
mod wire;

use super::{Hook, Host, HostEvent};
use crate::model::EventKind;

pub const HOST: Host = Host {
    name: "claude-code",
    title: "Claude Code",
    events: EVENTS,
    replayed: REPLAYED,
    boring_tools: tools::BORING,
    repeated: tools::REPEATED,
    read: wire::read,
    subject: wire::subject,
    bare_input: tools::bare_input,
    tool_kind: tools::kind,
    tool_use: tools::tool_use,
    is_own_file: tools::is_own_file,
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
