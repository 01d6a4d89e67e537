//! `foreword backup`: a copy of the memory, now.

use anyhow::Context as _;
use foreword_core::safety::backup;
use foreword_core::store::Store;

use crate::config::Config;
use crate::service;
use crate::{home, show};

pub fn run() -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let kept = Config::load(&home)?.backup.kept();
    let now = home::now();
    let store = Store::look(&home.memory())?.context("nothing is remembered yet")?;
    let made = store
        .back_up(&home.backups(), now)
        .context("no backup was made")?;
    // If automatic backups are switched off, no backup is removed.
    if kept.daily + kept.weekly > 0 {
        backup::rotate(&home.backups(), kept, now).context("could not remove old backups")?;
    }
    print!("{}", show::backed_up(&made));
    Ok(())
}
