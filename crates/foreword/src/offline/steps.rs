//! Events of tool uses, read as steps: an edit, a read, a command.
//!
//! Everything that is needed of an event is taken out of it here, once.

use std::path::Path;

use foreword_core::model::{Event, EventKind, FileRole, Millis, TouchedFile};
use foreword_core::text::{one_line, shorten};
use serde_json::Value;
use uuid::Uuid;

use super::call::{Call, changes_files, removed};
use super::git::{GitCommit, Undo};
use super::output;
use crate::agent::repair::files::relative;

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
    /// As typed, on one line.
    pub text: String,
    pub call: Option<Call>,
    pub commit: Option<GitCommit>,
    pub undo: Option<Undo>,
    /// Files that it takes away.
    pub removes: Vec<String>,
    pub changes_files: bool,
    /// What the agent said it is for.
    pub description: String,
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

    /// As it is quoted: without what is around it.
    pub fn name(&self) -> String {
        let text = self.call.as_ref().map_or(&self.text, |call| &call.text);
        shorten(text, 60).into_owned()
    }

    pub fn matters(&self) -> bool {
        self.call.as_ref().is_some_and(Call::matters)
    }

    /// The line that says what went wrong.
    pub fn key_line(&self) -> Option<String> {
        output::key_line(&self.output)
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
        let what = match (event.kind, event.tool_name.as_deref()?) {
            (EventKind::ToolUse | EventKind::ToolFailure, "Bash") => What::Command(command(event)?),
            (EventKind::ToolUse, _) => file_step(event)?,
            _ => return None,
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
    let response = event.payload.response.as_ref();
    if file.role == FileRole::Read {
        let content = text(response, "/file/content").to_owned();
        return Some(What::Read(Read { file, content }));
    }
    let input = event.payload.input.as_ref();
    let content = text(input, "/content");
    let patch = patch(response);
    let marked = |mark: char| {
        let lines = patch.iter().filter_map(|line| line.strip_prefix(mark));
        lines.flat_map(meaningful).collect()
    };
    let (removed, added) = if patch.is_empty() {
        let added = format!("{}{content}", text(input, "/new_string"));
        (meaningful(text(input, "/old_string")), meaningful(&added))
    } else {
        (marked('-'), marked('+'))
    };
    Some(What::Edit(Edit {
        file,
        created: text(response, "/type") == "create",
        lines: content.lines().count().max(added.len()),
        removed,
        added,
    }))
}

/// The lines of the patch that the host shows.
fn patch(response: Option<&Value>) -> Vec<&str> {
    let patch = response.and_then(|it| it.get("structuredPatch")?.as_array());
    let hunks = patch.into_iter().flatten();
    let lines = hunks.filter_map(|hunk| hunk.get("lines")?.as_array());
    lines.flatten().filter_map(Value::as_str).collect()
}

fn meaningful(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

fn command(event: &Event) -> Option<Command> {
    let payload = &event.payload;
    let (input, response) = (payload.input.as_ref(), payload.response.as_ref());
    let typed = input?.get("command")?.as_str()?;
    let broken_off = response.and_then(|it| it.get("interrupted")?.as_bool());
    if payload.interrupted || broken_off == Some(true) {
        return None;
    }
    let failed = event.kind == EventKind::ToolFailure;
    let error = payload.error.as_deref().unwrap_or_default();
    let (exit_code, output) = match error.strip_prefix("Exit code ") {
        _ if !failed => {
            let response = Some(response?);
            let (out, err) = (text(response, "/stdout"), text(response, "/stderr"));
            (None, format!("{out}\n{err}"))
        }
        Some(rest) => {
            let (code, output) = rest.split_once('\n').unwrap_or((rest, ""));
            (Some(code.trim().to_owned()), output.to_owned())
        }
        None => (None, error.to_owned()),
    };
    let output = output::plain(&output);
    // A pipe's exit code is its last command's, so the output has to speak.
    let hidden = typed.contains('|') && output::looks_failed(&output);
    let call = Call::of(typed);
    Some(Command {
        text: one_line(typed),
        call: match &event.cwd {
            Some(cwd) => call.map(|call| call.below(Path::new(cwd))),
            None => call,
        },
        commit: GitCommit::of(typed),
        undo: Undo::of(typed),
        removes: removed(typed),
        changes_files: changes_files(typed),
        description: one_line(text(input, "/description")),
        passed: !failed && !hidden,
        exit_code,
        output,
    })
}

fn text<'a>(value: Option<&'a Value>, pointer: &str) -> &'a str {
    let text = value.and_then(|it| it.pointer(pointer)?.as_str());
    text.unwrap_or_default()
}
