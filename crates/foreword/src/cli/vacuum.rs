//! `foreword vacuum`: frees the space of deleted rows, and rebuilds the full-text index.

use std::path::Path;

use anyhow::Context as _;

use crate::home::Home;
use crate::service;
use crate::show;
use crate::start::alone;

pub fn run() -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let (before, after) = alone(&home, || {
        let before = sizes(&home);
        vacuum(&home)?;
        Ok((before, sizes(&home)))
    })?;
    for ((file, before), (_, after)) in before.into_iter().zip(after) {
        print!("{}", show::vacuumed(file, before, after));
    }
    Ok(())
}

fn vacuum(home: &Home) -> anyhow::Result<()> {
    let mut store = service::memory_to_write(home)?;
    let queue = service::queue_to_write(home)?;
    store
        .mend()
        .and_then(|()| store.vacuum())
        .context("could not vacuum memory.db")?;
    queue.vacuum().context("could not vacuum queue.db")
}

/// The size of each database, with its log.
fn sizes(home: &Home) -> [(&'static str, u64); 2] {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |it| it.len());
    ["memory.db", "queue.db"].map(|file| {
        let log = home.dir().join(format!("{file}-wal"));
        (file, size(&home.dir().join(file)) + size(&log))
    })
}
