//! Writes the skills and agents into the folder of the host's settings, and removes them.
//!
//! They are the plugin's own files, with this program's path in place of its name. The first lines
//! of each file have a mark with a hash of the rest. A file without it, or with another hash, was
//! edited or is not ours, and is left alone.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::SettingsFile;
use crate::host::{InstallScope, SettingsPlace};
use foreword_core::text::shell_word;

/// The start of the line that marks a file as ours; the hash follows.
const MARK: &str = "# written by `foreword install`, ";

/// Whether the files are written or removed.
#[derive(Clone, Copy)]
pub enum Task<'a> {
    Write { program: &'a Path },
    Remove,
}

/// Writes or removes the files, or with `only_show` only prints what would be done. Files that are
/// not ours stay.
pub fn settle(settings: &SettingsPlace, task: Task<'_>, only_show: bool) -> anyhow::Result<()> {
    let folder = settings
        .settings
        .parent()
        .context("the settings file is in no folder")?;
    let mut written = 0;
    for (name, text) in settings.client.skills {
        let file = SettingsFile::read(&folder.join(name), settings.scope)?;
        let after = match task {
            Task::Write { program } => Some(marked(&with_program(text, program, settings.scope))),
            Task::Remove => None,
        };
        if file.text == after {
            continue;
        }
        if file.text.as_deref().is_some_and(|text| !is_ours(text)) {
            let path = file.path.display();
            println!("{path} was edited or is not ours, so it was not changed.");
            continue;
        }
        if only_show {
            let done = if after.is_some() {
                "written"
            } else {
                "removed"
            };
            println!("{} would be {done}", file.path.display());
            continue;
        }
        match &after {
            Some(after) => drop(file.replace(after)?),
            None => file.remove(&emptied(&file.path, folder))?,
        }
        written += 1;
    }
    if written > 0 && matches!(task, Task::Write { .. }) {
        println!(
            "/summarize, /synthesize and /recall are installed: {}",
            folder.join("skills").display()
        );
    }
    Ok(())
}

/// The folders between a file and `end`, the innermost first. They are removed if they are empty.
fn emptied(path: &Path, end: &Path) -> Vec<PathBuf> {
    let folders = path.ancestors().skip(1).take_while(|it| *it != end);
    folders.map(Path::to_owned).collect()
}

/// The text with the command that runs this program: its path for the user, its name for a project,
/// whose files are shared with people who have the program elsewhere.
fn with_program(text: &str, program: &Path, scope: InstallScope) -> String {
    let text = text.replace("agent: foreword:", "agent: ");
    let program = match scope {
        InstallScope::User => shell_word(program).to_string(),
        InstallScope::Project => "foreword".to_owned(),
    };
    ["summarize", "synthesize", "recall"]
        .iter()
        .fold(text, |text, command| {
            text.replace(
                &format!("foreword {command}"),
                &format!("{program} {command}"),
            )
        })
}

fn marked(text: &str) -> String {
    let (head, body) = text.split_at(4);
    format!("{head}{MARK}{}\n{body}", hash(text))
}

fn is_ours(text: &str) -> bool {
    let unmarked = || {
        let (head, rest) = text.split_at_checked(4)?;
        let (hash, body) = rest.strip_prefix(MARK)?.split_once('\n')?;
        Some((hash, format!("{head}{body}")))
    };
    unmarked().is_some_and(|(written, text)| written == hash(&text))
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}
