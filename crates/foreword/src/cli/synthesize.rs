//! `foreword synthesize`: makes the master of all notes, shows what changes, and asks.

use std::path::PathBuf;

use super::notes::{folder_here, input, may_write};
use crate::config::Config;
use crate::notes::synthesize::{Options, Synthesis};
use crate::{host, service, show};

#[derive(clap::Args)]
pub struct Args {
    /// A part of the project with a memory of its own: _memory/SCOPE
    #[arg(long)]
    scope: Option<String>,
    /// Take in all notes again, as if it were the first time
    #[arg(long)]
    full: bool,
    /// Show what would change, and write nothing
    #[arg(long, visible_alias = "diff")]
    dry_run: bool,
    /// Write without asking
    #[arg(long)]
    yes: bool,
    /// Put the proposal in place that an earlier run left
    #[arg(long, conflicts_with_all = ["full", "dry_run", "sections", "sources", "draft"])]
    accept: bool,
    /// Other sections than the usual ones, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    sections: Vec<String>,
    /// Print what a master is made of, for an agent that writes it
    #[arg(long, conflicts_with = "draft")]
    sources: bool,
    /// Take this as the new master, written by an agent; - reads it from standard input
    #[arg(long, value_name = "FILE")]
    draft: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = folder_here(args.scope.as_deref())?;
    let home = service::home_to_look_at()?;
    let config = Config::load(&home)?;
    let draft = args.draft.as_deref().map(|it| input("the draft", it));
    let options = Options {
        only_look: args.dry_run || args.sources,
        by_agent: host::is_agent_here(),
        full: args.full,
        sections: args.sections.clone(),
        draft: draft.transpose()?,
    };
    let say = |line: &str| eprintln!("{line}");
    let synthesis = Synthesis::begin(&home, &config, &folder, options, &say)?;
    if args.sources {
        let nothing = "nothing new to write; `foreword synthesize` shows what else changes, `--sources --full` prints all notes\n";
        match synthesis.sources()? {
            Some(sources) => sources.print(),
            None => print!("{nothing}"),
        }
        return Ok(());
    }
    let proposal = if args.accept {
        synthesis.accepted()?
    } else {
        synthesis.propose()?
    };
    for remark in &proposal.remarks {
        println!("{remark}");
    }
    let master = folder.master();
    let master = folder.name(&master);
    if !args.accept {
        if let Some(nothing) = synthesis.unchanged(&proposal)? {
            println!("{nothing}");
            return Ok(());
        }
        let old = synthesis.old.as_deref();
        show::print_diff(master, old, Some(&proposal.text));
    }
    match may_write("Write master.md?", args.yes || args.accept, args.dry_run)? {
        Some(true) => {
            proposal.write(&folder)?;
            println!("Wrote {}", master.display());
        }
        Some(false) => {}
        None => {
            proposal.leave(&folder)?;
            let scope = folder.scope.as_ref().map(|it| format!(" --scope {it}"));
            let scope = scope.unwrap_or_default();
            let name = master.with_file_name("proposal.md");
            let name = name.display();
            println!("Left as {name}; `foreword synthesize{scope} --accept` puts it in place.");
        }
    }
    Ok(())
}
