//! What a tool use proves: the files it changed, the checks it ran, the commits it made, the answers
//! that the user gave.
//!
//! Everything that is needed of a tool's event is taken out of it here, once. A shell line is parted
//! into commands (`shell`); `runs` finds out which of them passed, by the exit code or by what was
//! printed (`output`), with what is known of the `programs`; `commits` and `writes` read what the
//! others did to the project.

mod commits;
mod output;
mod programs;
mod runs;
mod shell;
#[cfg(test)]
mod tests;
mod writes;

use std::path::{Component, Path, PathBuf};

use foreword_core::host::{self, Output, ToolKind, ToolUse};
use foreword_core::model::{Event, EventKind, FileRole, Millis, TouchedFile};
use foreword_core::text::flat;
use uuid::Uuid;

use crate::agent::repair::files::relative;
use programs::Kind;
use shell::ShellCommand;

/// What one tool use proves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    pub event: Uuid,
    pub at: Millis,
    /// With paths relative to the working tree; also those that a shell command wrote.
    pub files: Vec<TouchedFile>,
    pub edits: Vec<Edit>,
    pub runs: Vec<Run>,
    pub commits: Vec<Commit>,
    pub answers: Vec<Answer>,
    /// Files that it deleted or renamed away.
    pub removed: Vec<String>,
    /// Files that git put back as they were committed.
    pub restored: Vec<String>,
    /// Only housekeeping of git or its forge (checkout, pull, push, status …): it proves nothing
    /// about the work.
    pub plumbing: bool,
}

/// A change of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    pub path: String,
    /// The text that went, and the text that came. Both are empty if only the file is known.
    pub before: String,
    pub after: String,
    /// The tool said that the file is new.
    pub created: bool,
}

/// A command of a shell line: `a && b && c` that ends well gives three that passed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    pub command: String,
    pub passed: bool,
    /// A test, a lint, a build or a type check.
    pub check: bool,
    /// The line that tells what failed; empty if it passed.
    pub telling: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    pub subject: String,
    /// Without its trailers (`Co-Authored-By: …`).
    pub body: String,
    pub hash: Option<String>,
    /// As git listed them, or as they were added in the same line.
    pub files: Vec<String>,
    pub amend: bool,
}

/// What the user answered to a question of the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub question: String,
    pub answer: String,
    /// The options that were not taken.
    pub refused: Vec<String>,
}

/// None for events that are no tool use.
pub fn step(event: &Event) -> Option<Step> {
    if !matches!(event.kind, EventKind::ToolUse | EventKind::ToolFailure) {
        return None;
    }
    let tool_use = host::tool_use(event);
    let files = event.files.iter();
    let files = files.filter(|file| !host::is_own_file(event, &file.path));
    let files = files.map(|file| TouchedFile {
        path: relative(&file.path, event.root.as_deref()),
        ..file.clone()
    });
    let mut step = Step {
        event: event.id,
        at: event.at,
        files: files.collect(),
        ..Step::default()
    };
    match (host::tool_kind(event), event.kind) {
        (ToolKind::Shell, _) => read_shell(event, &tool_use, &mut step),
        (ToolKind::Edit, EventKind::ToolUse) => {
            if let Some(file) = step.files.first() {
                step.edits = edits(&file.path, &tool_use);
            }
        }
        _ => step.answers = answers(&tool_use),
    }
    Some(step)
}

fn edits(path: &str, tool_use: &ToolUse<'_>) -> Vec<Edit> {
    let edit = |before: String, after: String| Edit {
        path: path.to_owned(),
        before,
        after,
        created: tool_use.created,
    };
    if !tool_use.replacements.is_empty() {
        let replacements = tool_use.replacements.iter();
        let edits = replacements.map(|it| edit(it.before.to_owned(), it.after.to_owned()));
        return edits.collect();
    }
    // A file that is written whole: only the lines that changed, if they are known.
    let marked = |mark: char| {
        let lines = tool_use.patch.iter().filter_map(|it| it.strip_prefix(mark));
        lines.collect::<Vec<_>>().join("\n")
    };
    let (before, after) = (marked('-'), marked('+'));
    if before.is_empty() && after.is_empty() {
        let content = tool_use.content.unwrap_or_default();
        return vec![edit(String::new(), content.to_owned())];
    }
    vec![edit(before, after)]
}

fn answers(tool_use: &ToolUse<'_>) -> Vec<Answer> {
    let answers = tool_use.answers.iter().map(|it| {
        let taken: Vec<&str> = it.answer.split(", ").collect();
        let is_refused = |option: &&&str| it.answer != **option && !taken.contains(*option);
        let refused = it.options.iter().filter(is_refused);
        Answer {
            question: flat(it.question),
            answer: flat(it.answer),
            refused: refused.map(|it| flat(it)).collect(),
        }
    });
    answers
        .filter(|it| !it.answer.is_empty() && !is_yes_or_no(it))
        .collect()
}

/// A plain yes or no is an answer to that question alone; among more options it is a choice.
fn is_yes_or_no(answer: &Answer) -> bool {
    const PLAIN: &str = "yes no ja nein sí si oui non sim não はい いいえ 是 否 不";
    let mut words = answer.answer.split(|it: char| !it.is_alphanumeric());
    let first = words.next().unwrap_or_default().to_lowercase();
    answer.refused.len() <= 1 && PLAIN.split(' ').any(|it| it == first)
}

/// A shell line that has ended.
struct ShellLine<'a> {
    commands: Vec<ShellCommand>,
    output: String,
    failed: bool,
    exit_code: Option<&'a str>,
    root: Option<&'a str>,
    /// As the host gives it: it may be a link to `root`.
    project_dir: Option<&'a str>,
}

fn read_shell(event: &Event, tool_use: &ToolUse<'_>, step: &mut Step) {
    let failed = event.kind == EventKind::ToolFailure;
    let output = match tool_use.output {
        _ if failed => tool_use.error.to_owned(),
        Output::Printed(out, err) => format!("{out}\n{err}"),
        Output::Other(serde_json::Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let has_ended = !tool_use.interrupted && !tool_use.in_background;
    let Some(typed) = tool_use.command.filter(|_| has_ended) else {
        return;
    };
    let line = ShellLine {
        commands: commands(typed, event.cwd.as_deref().unwrap_or_default()),
        output: output::plain(&output),
        failed,
        exit_code: tool_use.exit_code,
        root: event.root.as_deref(),
        project_dir: event.project_dir.as_deref(),
    };
    let pipelines = runs::pipelines(&line);
    for pipeline in pipelines.iter().filter(|it| it.passed == Some(true)) {
        let mut before = None;
        for command in pipeline.commands {
            writes::read(&line, command, before, step);
            before = Some(command);
        }
    }
    step.runs = runs::runs(&line, &pipelines);
    step.commits = commits::commits(&line);
    step.plumbing = step.edits.is_empty() && step.removed.is_empty() && is_plumbing(&line.commands);
    for path in step.edits.iter().map(|edit| &edit.path) {
        if step.files.iter().all(|file| file.path != *path) {
            step.files.push(TouchedFile {
                path: path.clone(),
                role: FileRole::Modified,
                size: None,
                mtime: None,
                hash: None,
            });
        }
    }
}

/// The commands of a line that was typed in a folder: `cd` changes it for those that follow.
fn commands(typed: &str, cwd: &str) -> Vec<ShellCommand> {
    let mut folder = PathBuf::from(cwd);
    let mut commands = shell::commands(typed);
    for (at, command) in commands.iter_mut().enumerate() {
        command.folder.clone_from(&folder);
        if let [program, target] = &command.words[..]
            && program == "cd"
            // A shell that stays where `cd` went is seen there already.
            && !(at == 0 && folder.ends_with(target))
        {
            folder.push(target);
        }
    }
    commands
}

/// Whether a line only does housekeeping with git or its forge.
fn is_plumbing(commands: &[ShellCommand]) -> bool {
    let is_of_git = |it: &ShellCommand| matches!(it.words[0].as_str(), "git" | "gh" | "glab");
    let is_housekeeping = |it: &ShellCommand| match commits::git_command(it) {
        Some((subcommand, _)) => !matches!(subcommand, "rm" | "mv" | "apply" | "am" | "bisect"),
        None => matches!(programs::kind(&it.words), Kind::Silent | Kind::Looking),
    };
    commands.iter().any(is_of_git) && commands.iter().all(is_housekeeping)
}

impl ShellLine<'_> {
    /// Whether a folder is a temporary one outside of the working tree.
    fn is_scratch(&self, folder: &Path) -> bool {
        let inside = [self.root, self.project_dir];
        let is_inside = inside
            .into_iter()
            .flatten()
            .any(|it| folder.starts_with(it));
        !is_inside && (folder.starts_with("/tmp") || folder.starts_with("/private/tmp"))
    }

    /// A path as it is stored; none for what is outside of the working tree or no plain name.
    fn path(&self, command: &ShellCommand, name: &str) -> Option<String> {
        if name.is_empty() || name.starts_with('-') || name.contains(['$', '*', '?', '{', '`', '~'])
        {
            return None;
        }
        let mut whole = PathBuf::new();
        for part in command.folder.join(name).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    whole.pop();
                }
                part => whole.push(part),
            }
        }
        let path = relative(&whole.to_string_lossy(), self.root);
        let is_outside = path.starts_with('/') && (self.root.is_some() || self.is_scratch(&whole));
        (!path.is_empty() && !is_outside).then_some(path)
    }
}
