//! `foreword restore`: goes back to a backup. A damaged memory is recovered instead, from the newest
//! good backup and the rows that can still be read.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use foreword_core::safety::{backup, recover as recovery};

use crate::home::{self, Home};
use crate::service;
use crate::service::recover;
use crate::show;
use crate::start::alone;

#[derive(clap::Args)]
pub struct Args {
    /// A backup; without it the newest good one
    file: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    print!("{}", alone(&home, || restore(&home, args))?);
    Ok(())
}

fn restore(home: &Home, args: &Args) -> anyhow::Result<String> {
    let mut said: String = recover::recover(home)?
        .into_iter()
        .map(|line| line + "\n")
        .collect();
    let now = home::now();
    let file = match &args.file {
        Some(file) => file.clone(),
        // A damaged database has just been recovered.
        None if !said.is_empty() => return Ok(said),
        None => {
            let newest = backup::newest_good(&home.backups(), now)?;
            let newest = newest.context("there is no backup; `foreword backup` makes one")?;
            newest.path
        }
    };
    let good = backup::is_good(&file);
    ensure!(good, "{} is not a sound backup", file.display());
    let restored = recovery::restore(&home.memory(), &file, &home.backups(), now)
        .context("nothing was restored")?;
    said += &show::restored(&file.display().to_string(), &restored);
    Ok(said)
}
