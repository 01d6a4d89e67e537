//! Claude Code's tools: the purpose of each, and the fields of its input and response.

use serde_json::Value;

use crate::host::{Output, ToolKind, ToolUse};
use crate::model::{Event, EventKind};

/// Tools whose uses are not stored, since they do not describe the work. `default.toml` shows
/// the same list.
pub const BORING: &[&str] = &[
    "Glob",
    "Grep",
    "LS",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
    "ToolSearch",
    "TodoRead",
    "TodoWrite",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskUpdate",
    "BashOutput",
    "KillShell",
    "AskUserQuestion",
    "EnterPlanMode",
    "Skill",
    "SlashCommand",
];

/// Parts of a tool's response that only repeat its input or the file on disk.
pub const REPEATED: &[(&str, &str)] = &[
    ("Write", "content"),
    ("Write", "originalFile"),
    ("Edit", "originalFile"),
    ("Edit", "oldString"),
    ("Edit", "newString"),
    ("MultiEdit", "originalFile"),
    ("NotebookEdit", "original_file"),
    ("NotebookEdit", "updated_file"),
];

pub fn kind(name: &str) -> ToolKind {
    match name {
        "Bash" => ToolKind::Shell,
        "Read" | "NotebookRead" => ToolKind::Read,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "WebFetch" | "WebSearch" => ToolKind::Web,
        _ if name.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

/// The bare name of one of Foreword's own MCP tools, connected by `foreword install` or by the
/// plugin.
pub fn own(name: &str) -> Option<&str> {
    let is_own = name.starts_with("mcp__foreword__") || name.starts_with("mcp__plugin_foreword_");
    let own = is_own.then(|| name.rsplit_once("__"));
    own.flatten().map(|(_, own)| own)
}

pub fn bare_input(paths: Vec<String>, command: Option<String>) -> Value {
    let path = paths.into_iter().next().map(|it| ("file_path", it));
    let fields = path.into_iter().chain(command.map(|it| ("command", it)));
    let fields = fields.map(|(name, text)| (name.to_owned(), Value::String(text)));
    Value::Object(fields.collect())
}

pub fn tool_use(event: &Event) -> ToolUse<'_> {
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
        path: text(input, "/file_path"),
        command: text(input, "/command"),
        description: text(input, "/description").unwrap_or_default(),
        before: text(input, "/old_string"),
        after: text(input, "/new_string"),
        content: text(input, "/content"),
        patch: patch(response),
        created: text(response, "/type") == Some("create"),
        output: response.map_or(Output::None, output),
        exit_code,
        error,
        interrupted: payload.interrupted || interrupted == Some(true),
    }
}

fn output(response: &Value) -> Output<'_> {
    let field = |pointer: &str| text(Some(response), pointer);
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

fn text<'a>(value: Option<&'a Value>, pointer: &str) -> Option<&'a str> {
    value?.pointer(pointer)?.as_str()
}
