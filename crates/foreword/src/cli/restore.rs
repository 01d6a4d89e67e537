//! `foreword restore`: goes back to a backup. A damaged memory is recovered instead, from the newest
//! good backup and the rows that can still be read.
//!
//! Going back loses what came after the backup, so a healthy memory is replaced only after a yes. To
//! count what would come back and go, the restore is tried on a copy.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use foreword_core::safety::backup;
use foreword_core::safety::recover::{self as recovery, Restored};
use foreword_core::store::Store;
use foreword_core::text::if_there;

use super::notes::confirm;
use crate::home::{self, Home};
use crate::service;
use crate::service::recover;
use crate::show;
use crate::start::alone;

#[derive(clap::Args)]
pub struct Args {
    /// A backup; without it the newest good one
    file: Option<PathBuf>,
    /// Restore without asking
    #[arg(long)]
    yes: bool,
    /// Show what would come back and what would be gone, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let damaged = recover::damaged(&home);
    if args.dry_run {
        for file in &damaged {
            println!(
                "{file} is damaged; it would be recovered, from the newest good backup and the rows that can still be read"
            );
        }
    }
    // Recovering a damaged memory loses nothing that could be kept, so it needs no question.
    if args.file.is_some() || damaged.is_empty() {
        let file = backup_of(&home, args)?;
        let plan = plan(&home, &file).context("nothing was restored")?;
        if let Some(plan) = &plan {
            print!("{}", show::restore_plan(&file.display().to_string(), plan));
        }
        if plan.is_some() && !args.yes && !args.dry_run {
            match confirm("Go back to it?")? {
                Some(true) => {}
                Some(false) => {
                    println!("Nothing was changed.");
                    return Ok(());
                }
                None => bail!(
                    "nothing was changed, since the memory is not damaged; --yes goes back without asking"
                ),
            }
        }
    }
    if args.dry_run {
        eprintln!("Nothing was changed: this was a dry run.");
        return Ok(());
    }
    print!("{}", alone(&home, || restore(&home, args))?);
    Ok(())
}

/// The backup to go back to.
fn backup_of(home: &Home, args: &Args) -> anyhow::Result<PathBuf> {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => {
            let newest = backup::newest_good(&home.backups(), home::now())?;
            let newest = newest.context("there is no backup; `foreword backup` makes one")?;
            newest.path
        }
    };
    let good = backup::is_good(&file);
    ensure!(good, "{} is not a sound backup", file.display());
    Ok(file)
}

/// What a restore would change, found out on a copy of the memory; none if there is no memory that
/// could be lost.
fn plan(home: &Home, file: &Path) -> anyhow::Result<Option<Restored>> {
    let Ok(Some(store)) = Store::look(&home.memory()) else {
        return Ok(None);
    };
    let folder = tempfile::tempdir_in(home.dir())?;
    let now = home::now();
    let copy = Home::at(folder.path()).memory();
    std::fs::rename(store.back_up(folder.path(), now)?.path, &copy)?;
    // What was forgotten since the backup stays forgotten; a file beside the memory lists it.
    let [from, to] = [home.memory(), copy.clone()].map(|it| it.with_extension("db.forgotten"));
    if_there(std::fs::copy(from, to))?;
    Ok(Some(recovery::restore(&copy, file, folder.path(), now)?))
}

fn restore(home: &Home, args: &Args) -> anyhow::Result<String> {
    let mut said: String = recover::recover(home)?
        .into_iter()
        .map(|line| line + "\n")
        .collect();
    // A damaged database has just been recovered.
    if args.file.is_none() && !said.is_empty() {
        return Ok(said);
    }
    let file = backup_of(home, args)?;
    let restored = recovery::restore(&home.memory(), &file, &home.backups(), home::now())
        .context("nothing was restored")?;
    said += &show::restored(&file.display().to_string(), &restored);
    Ok(said)
}
