//! Claude Code's tools: the purpose of each, and the fields of its input and response.

use serde_json::Value;

use crate::host::{Output, QuestionAnswer, Replacement, ToolKind, ToolUse};
use crate::model::{Event, EventKind};

/// Tools whose uses are not stored, since they do not describe the work. `default.toml` shows
/// the same list.
pub const BORING: &[&str] = &[
    "Glob",
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
        "Grep" => ToolKind::Search,
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
        path: text(input, "/file_path").or(text(input, "/notebook_path")),
        command: text(input, "/command"),
        description: text(input, "/description").unwrap_or_default(),
        replacements: replacements(input),
        content: text(input, "/content"),
        patch: patch(response),
        created: text(response, "/type") == Some("create"),
        output: response.map_or(Output::None, output),
        exit_code,
        error,
        interrupted: payload.interrupted || interrupted == Some(true),
        in_background: text(response, "/backgroundTaskId").is_some(),
        answers: answers(input, response),
    }
}

/// The plans that the client keeps of its own.
pub fn is_own_file(path: &str) -> bool {
    path.contains("/.claude/plans/")
}

fn replacements(input: Option<&Value>) -> Vec<Replacement<'_>> {
    let replacement = |edit| {
        let before = text(Some(edit), "/old_string");
        let after = text(Some(edit), "/new_string").or(text(Some(edit), "/new_source"))?;
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
        let is_it = |it: &&Value| text(Some(it), "/question") == Some(question);
        let asked = questions.into_iter().flatten().find(is_it);
        let options = asked.and_then(|it| it.get("options")?.as_array());
        let options = options.into_iter().flatten();
        Some(QuestionAnswer {
            question,
            answer: answer.as_str()?,
            options: options.filter_map(|it| text(Some(it), "/label")).collect(),
        })
    };
    answers.into_iter().flatten().filter_map(read).collect()
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
