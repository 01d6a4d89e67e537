//! The skills and agents that the host finds beside its settings, under their plain names.
//!
//! They are the plugin's own files, with this program's path in place of its name. A file
//! that we wrote says so in its head, with a hash of all the rest: so one that somebody
//! edited, or that was never ours, is told from ours without a record, and left alone.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::SettingsFile;
use crate::host::{InstallScope, SettingsPlace};
use foreword_core::text::shell_word;

const MARK: &str = "# written by `foreword install`, ";

/// What is to be done with the files.
#[derive(Clone, Copy)]
pub enum Task<'a> {
    Write { program: &'a Path },
    Remove,
}

/// Says what it does, or with `only_show` would do; what is not ours stays.
pub fn settle(settings: &SettingsPlace, task: Task<'_>, only_show: bool) -> anyhow::Result<()> {
    let folder = settings.settings.parent().context("it has no folder")?;
    let mut written = 0;
    for (name, text) in settings.client.skills {
        let file = SettingsFile::read(&folder.join(name), settings.scope)?;
        let after = match task {
            Task::Write { program } => Some(marked(&worded(text, program, settings.scope))),
            Task::Remove => None,
        };
        if file.text == after {
            continue;
        }
        if file.text.as_deref().is_some_and(|text| !is_ours(text)) {
            let path = file.path.display();
            println!("{path} was edited or is somebody else's: it stays as it is.");
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
            "/summarize, /synthesize and /recall are there: {}",
            folder.join("skills").display()
        );
    }
    Ok(())
}

/// The folders that may hold nothing else, the innermost first.
fn emptied(path: &Path, end: &Path) -> Vec<PathBuf> {
    let folders = path.ancestors().skip(1).take_while(|it| *it != end);
    folders.map(Path::to_owned).collect()
}

/// A project's files are for everybody who works on it, wherever they have the program.
fn worded(text: &str, program: &Path, scope: InstallScope) -> String {
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
