//! Events of tool uses, read as steps: an edit, a read, a command.
//!
//! Everything that is needed of an event is taken out of it here, once.

use std::path::Path;

use foreword_core::model::{Event, EventKind, FileRole, Millis, TouchedFile};
use serde_json::Value;
use uuid::Uuid;

use super::call::Call;
use super::output;

#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub event: Uuid,
    /// Which turn of the session it belongs to.
    pub turn: usize,
    pub at: Millis,
    pub agent_id: Option<String>,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    Edit(Edit),
    Read(Read),
    Command(Command),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// With its path relative to the working tree.
    pub file: TouchedFile,
    pub created: bool,
    /// Of the whole file, if it was written whole.
    pub lines: usize,
    /// Lines that went and came, trimmed, without blank ones.
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    pub file: TouchedFile,
    pub content: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    pub typed: String,
    pub call: Option<Call>,
    /// What the agent said it is for.
    pub description: String,
    /// As typed, on one line.
    pub text: String,
    pub passed: bool,
    pub exit_code: Option<String>,
    pub output: String,
}

impl Command {
    /// The shell found no such program or file: exit codes that it keeps for that.
    pub fn not_found(&self) -> bool {
        matches!(self.exit_code.as_deref(), Some("126" | "127"))
            || (self.output.contains("No such file or directory")
                && self.output.lines().count() <= 1)
    }
}

impl Step {
    pub fn edit(&self) -> Option<&Edit> {
        match &self.what {
            What::Edit(edit) => Some(edit),
            _ => None,
        }
    }

    pub fn command(&self) -> Option<&Command> {
        match &self.what {
            What::Command(command) => Some(command),
            _ => None,
        }
    }

    pub fn read(&self) -> Option<&Read> {
        match &self.what {
            What::Read(read) => Some(read),
            _ => None,
        }
    }

    /// None for events that are no tool use, or of a tool that proves nothing.
    pub fn of(turn: usize, event: &Event) -> Option<Step> {
        let failed = match event.kind {
            EventKind::ToolUse => false,
            EventKind::ToolFailure => true,
            _ => return None,
        };
        let what = match event.tool_name.as_deref()? {
            "Bash" => What::Command(command(event, failed)?),
            _ if failed => return None,
            _ => file_step(event)?,
        };
        Some(Step {
            event: event.id,
            turn,
            at: event.at,
            agent_id: event.agent_id.clone(),
            what,
        })
    }
}

fn file_step(event: &Event) -> Option<What> {
    let mut file = event.files.first()?.clone();
    file.path = relative(&file.path, event.root.as_deref());
    if file.role == FileRole::Read {
        let content = event
            .payload
            .response
            .as_ref()
            .and_then(|it| it.get("file"));
        let content = content.and_then(|file| text(file, "content"));
        return Some(What::Read(Read {
            file,
            content: content.unwrap_or_default().to_owned(),
        }));
    }
    let input = event.payload.input.as_ref()?;
    let response = event.payload.response.as_ref();
    let created = response
        .and_then(|it| it.get("type"))
        .and_then(Value::as_str)
        == Some("create");
    let content = text(input, "content");
    let (removed, added) = match response
        .and_then(|it| it.get("structuredPatch"))
        .and_then(Value::as_array)
    {
        Some(hunks) if !hunks.is_empty() => changed_lines(hunks),
        _ => {
            let added = text(input, "new_string").or(content).unwrap_or_default();
            (
                meaningful(text(input, "old_string").unwrap_or_default()),
                meaningful(added),
            )
        }
    };
    Some(What::Edit(Edit {
        file,
        created,
        lines: content.map_or(added.len(), |content| content.lines().count()),
        removed,
        added,
    }))
}

fn changed_lines(hunks: &[Value]) -> (Vec<String>, Vec<String>) {
    let lines = || {
        hunks
            .iter()
            .filter_map(|hunk| hunk.get("lines").and_then(Value::as_array))
            .flatten()
            .filter_map(Value::as_str)
    };
    let marked = |mark: char| {
        lines()
            .filter_map(|line| line.strip_prefix(mark))
            .flat_map(meaningful)
            .collect()
    };
    (marked('-'), marked('+'))
}

fn meaningful(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn command(event: &Event, failed: bool) -> Option<Command> {
    let payload = &event.payload;
    let typed = text(payload.input.as_ref()?, "command")?;
    if payload.interrupted {
        return None;
    }
    let (output, exit_code) = if failed {
        let error = payload.error.as_deref().unwrap_or_default();
        match error
            .strip_prefix("Exit code ")
            .and_then(|rest| rest.split_once('\n').or(Some((rest, ""))))
        {
            Some((code, output)) => (output.to_owned(), Some(code.trim().to_owned())),
            None => (error.to_owned(), None),
        }
    } else {
        let response = payload.response.as_ref()?;
        if response.get("interrupted").and_then(Value::as_bool) == Some(true) {
            return None;
        }
        let part = |name| text(response, name).unwrap_or_default();
        (format!("{}\n{}", part("stdout"), part("stderr")), None)
    };
    let output = output::plain(&output);
    // A pipe's exit code is its last command's, so the output has to speak.
    let hidden = typed.contains('|') && output::looks_failed(&output);
    Some(Command {
        typed: typed.to_owned(),
        call: Call::of(typed).map(|call| match &event.cwd {
            Some(cwd) => call.below(Path::new(cwd)),
            None => call,
        }),
        description: text(payload.input.as_ref()?, "description")
            .map(foreword_core::text::one_line)
            .unwrap_or_default(),
        text: foreword_core::text::one_line(typed),
        passed: !failed && !hidden,
        exit_code,
        output,
    })
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

impl Command {
    /// As it is quoted: without what is around it.
    pub fn name(&self) -> String {
        let text = self.call.as_ref().map_or(&self.text, |call| &call.text);
        foreword_core::text::shorten(text, 60).into_owned()
    }

    pub fn matters(&self) -> bool {
        self.call.as_ref().is_some_and(Call::matters)
    }
}

/// A path as people would write it in this project.
fn relative(path: &str, root: Option<&str>) -> String {
    let inside = root.and_then(|root| Path::new(path).strip_prefix(root).ok());
    inside.map_or_else(
        || path.to_owned(),
        |path| path.to_string_lossy().into_owned(),
    )
}
