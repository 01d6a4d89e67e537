//! `foreword recall`: prints the project's memory, or has the coding agent load it in every session.

use anyhow::{Context as _, ensure};
use serde_json::json;

use super::JsonArgs;
use super::notes::folder_here;
use crate::host::InstallScope;
use crate::install::SettingsFile;
use crate::notes::recall::{self, master_name, with_autoload, without_autoload};
use crate::{home, host, show};

#[derive(clap::Args)]
pub struct Args {
    /// Of a sub-area: the folder of that name in `_memory/`
    #[arg(long)]
    scope: Option<String>,
    /// Have the coding agent load it at the start of every session, by a line in its instructions
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    auto: Option<String>,
    #[command(flatten)]
    json: JsonArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let scope = args.scope.as_deref();
    let root = folder_here(scope)?.root;
    let Some(auto) = &args.auto else {
        let recalled = recall::recall(&root, scope, home::now())?;
        let master = master_name(scope);
        let master = Some(&master).filter(|it| root.join(it).exists());
        let to_json = || json!({"master": master, "text": recalled.page()});
        if !args.json.json() && host::is_agent_here() {
            recalled.framed().print();
        } else {
            show::print(args.json.json(), to_json, || recalled.page());
        }
        return Ok(());
    };
    let is_on = auto == "on";
    let name = host::client_here().instructions;
    let file = SettingsFile::read(&root.join(name), InstallScope::Project)?;
    ensure!(
        file.target.starts_with(&root),
        "{name} is a link to {}, which is not in this project; nothing was changed",
        file.target.display()
    );
    let before = file.text.clone().unwrap_or_default();
    let after = without_autoload(&before).with_context(|| {
        format!("{name} has the beginning of Foreword's lines but not their end; remove them by hand, nothing was changed")
    })?;
    let after = if is_on {
        with_autoload(&after, scope)
    } else {
        after
    };
    if after == before {
        let does = if is_on {
            "loads it"
        } else {
            "does not load it"
        };
        println!("{name} {does} already.");
        return Ok(());
    }
    file.require_writable()?;
    show::print_diff(&file.target, file.text.as_deref(), Some(&after));
    if after.is_empty() {
        file.remove(&[])?;
    } else {
        file.replace(&after)
            .with_context(|| format!("could not write {name}"))?;
    }
    let master = master_name(scope);
    if is_on && !root.join(&master).exists() {
        println!("There is no {master} yet; `foreword synthesize` makes it.");
    }
    Ok(())
}
