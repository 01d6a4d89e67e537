//! Events of tool uses, read as steps: an edit, a read, a command.
//!
//! Everything that is needed of an event is taken out of it here, once.

use std::path::Path;

use foreword_core::host::{self, Output, ToolKind};
use foreword_core::model::{Event, EventKind, FileRole, Millis, TouchedFile};
use foreword_core::text::{one_line, shorten};
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
        let what = match (event.kind, host::tool_kind(event)) {
            (EventKind::ToolUse | EventKind::ToolFailure, ToolKind::Shell) => {
                What::Command(command(event)?)
            }
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
    let tool_use = host::tool_use(event);
    if file.role == FileRole::Read {
        let content = match tool_use.output {
            Output::File(content) => content.to_owned(),
            _ => String::new(),
        };
        return Some(What::Read(Read { file, content }));
    }
    let content = tool_use.content.unwrap_or_default();
    let marked = |mark: char| {
        let lines = tool_use
            .patch
            .iter()
            .filter_map(|line| line.strip_prefix(mark));
        lines.flat_map(meaningful).collect::<Vec<String>>()
    };
    let (removed, added) = if tool_use.patch.is_empty() {
        let replacements = tool_use.replacements.iter();
        let removed = replacements.clone().flat_map(|it| meaningful(it.before));
        let added = replacements.flat_map(|it| meaningful(it.after));
        let added = added.chain(meaningful(content));
        (removed.collect(), added.collect())
    } else {
        (marked('-'), marked('+'))
    };
    Some(What::Edit(Edit {
        file,
        created: tool_use.created,
        lines: content.lines().count().max(added.len()),
        removed,
        added,
    }))
}

fn meaningful(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

fn command(event: &Event) -> Option<Command> {
    let tool_use = host::tool_use(event);
    let typed = tool_use.command?;
    if tool_use.interrupted {
        return None;
    }
    let failed = event.kind == EventKind::ToolFailure;
    let output = match tool_use.output {
        _ if failed => tool_use.error.to_owned(),
        Output::None => return None,
        Output::Printed(out, err) => format!("{out}\n{err}"),
        _ => String::new(),
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
        description: one_line(tool_use.description),
        passed: !failed && !hidden,
        exit_code: tool_use.exit_code.map(str::to_owned),
        output,
    })
}
