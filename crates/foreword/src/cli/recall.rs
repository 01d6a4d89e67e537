//! `foreword recall`: prints the project's memory, or has the host load it always.

use std::path::Path;

use anyhow::Context as _;
use foreword_core::notes::FOLDER;

use crate::home;
use crate::install::SettingsFile;
use crate::install::record::{Place, Scope};
use crate::{recall, show};

#[derive(clap::Args)]
pub struct Args {
    /// Of a sub-area: the folder of that name in `_memory/`
    #[arg(long)]
    scope: Option<String>,
    /// Have Claude Code load it at the start of every session, by a line in CLAUDE.md
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    auto: Option<String>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let root = super::project_root()?;
    if let Some(auto) = &args.auto {
        return always(&root, args.scope.as_deref(), auto == "on");
    }
    print!(
        "{}",
        recall::recall(&root, args.scope.as_deref(), home::now())?
    );
    Ok(())
}

const BEGIN: &str = "<!-- foreword: loads the project's memory; `foreword recall --auto off` removes these three lines -->\n";
const END: &str = "<!-- foreword: end -->\n";

/// At the top of CLAUDE.md: so the user's own words come after it, and it can be taken out to the byte.
fn always(root: &Path, scope: Option<&str>, on: bool) -> anyhow::Result<()> {
    // Checks the scope's name.
    foreword_core::notes::Folder::at(root, scope)?;
    let file = SettingsFile::read(&Place {
        scope: Scope::Project,
        settings: root.join("CLAUDE.md"),
    })?;
    if !file.target.starts_with(root) {
        anyhow::bail!(
            "CLAUDE.md is a link to {}, which is not in this project; nothing was changed",
            file.target.display()
        );
    }
    let before = file.text.clone().unwrap_or_default();
    let Some(mut after) = without(&before) else {
        anyhow::bail!(
            "CLAUDE.md has the beginning of Foreword's lines but not their end; remove them by hand, nothing was changed"
        );
    };
    let master = match scope {
        Some(scope) => format!("{FOLDER}/{scope}/master.md"),
        None => format!("{FOLDER}/master.md"),
    };
    if on {
        after = format!("{BEGIN}@{master}\n{END}{after}");
    }
    if after == before {
        println!(
            "CLAUDE.md {} already.",
            if on { "loads it" } else { "does not load it" }
        );
        return Ok(());
    }
    file.require_writable()?;
    print!(
        "{}",
        show::diff(&file.target, file.text.as_deref(), Some(&after))
    );
    if after.is_empty() {
        file.remove(&[])?;
    } else {
        file.replace(&after).context("could not write CLAUDE.md")?;
    }
    if on && !root.join(&master).exists() {
        println!("There is no {master} yet; `foreword synthesize` makes it.");
    }
    Ok(())
}

/// The text without our lines. None if they have no end.
fn without(text: &str) -> Option<String> {
    let Some(begin) = text.find(BEGIN) else {
        return Some(text.to_owned());
    };
    let end = begin + text[begin..].find(END)? + END.len();
    Some(format!("{}{}", &text[..begin], &text[end..]))
}
