//! `foreword recall`: prints the project's memory, or has Claude Code load it always.

use std::path::Path;

use anyhow::{Context as _, ensure};
use foreword_core::notes::FOLDER;

use super::notes::folder_here;
use crate::home;
use crate::host::{CLIENTS, InstallScope};
use crate::install::SettingsFile;
use crate::notes::recall;
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Of a sub-area: the folder of that name in `_memory/`
    #[arg(long)]
    scope: Option<String>,
    /// Have the coding agent load it at the start of every session, by a line in its instructions
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    auto: Option<String>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let scope = args.scope.as_deref();
    let root = folder_here(scope)?.root;
    if let Some(auto) = &args.auto {
        return always(&root, scope, auto == "on");
    }
    print!("{}", recall::recall(&root, scope, home::now())?);
    Ok(())
}

const BEGIN: &str = "<!-- foreword: loads the project's memory; `foreword recall --auto off` removes these three lines -->\n";
const END: &str = "<!-- foreword: end -->\n";

/// Adds the import at the top of the host's instructions, or removes it; every other byte stays.
fn always(root: &Path, scope: Option<&str>, on: bool) -> anyhow::Result<()> {
    let name = CLIENTS[0].instructions;
    let file = SettingsFile::read(&root.join(name), InstallScope::Project)?;
    ensure!(
        file.target.starts_with(root),
        "{name} is a link to {}, which is not in this project; nothing was changed",
        file.target.display()
    );
    let before = file.text.clone().unwrap_or_default();
    let mut after = without(&before).with_context(|| {
        format!("{name} has the beginning of Foreword's lines but not their end; remove them by hand, nothing was changed")
    })?;
    let master = match scope {
        Some(scope) => format!("{FOLDER}/{scope}/master.md"),
        None => format!("{FOLDER}/master.md"),
    };
    if on {
        after = format!("{BEGIN}@{master}\n{END}{after}");
    }
    if after == before {
        let does = if on { "loads it" } else { "does not load it" };
        println!("{name} {does} already.");
        return Ok(());
    }
    file.require_writable()?;
    let diff = show::diff(&file.target, file.text.as_deref(), Some(&after));
    print!("{diff}");
    if after.is_empty() {
        file.remove(&[])?;
    } else {
        file.replace(&after)
            .with_context(|| format!("could not write {name}"))?;
    }
    if on && !root.join(&master).exists() {
        println!("There is no {master} yet; `foreword synthesize` makes it.");
    }
    Ok(())
}

/// The text without our lines. None if their end is missing.
fn without(text: &str) -> Option<String> {
    let Some(begin) = text.find(BEGIN) else {
        return Some(text.to_owned());
    };
    let end = begin + text[begin..].find(END)? + END.len();
    Some(format!("{}{}", &text[..begin], &text[end..]))
}
