//! What a reader of the memory needs, whoever it is: a command, the MCP server, the viewer.
//!
//! It opens the memory, knows which project a directory belongs to, and counts the events that
//! no memory was made of yet. `frame` is how
//! recalled text is given to an agent, `embed_client` asks the worker to search by meaning,
//! `sentence_model` knows the model's files, `recover` mends a damaged database, `unreleased` sets
//! one aside that was written before the first release.

pub mod embed_client;
pub mod frame;
pub mod recover;
pub mod sentence_model;
pub mod unreleased;
pub mod when;
pub mod why;

use std::path::Path;

use anyhow::Context as _;
use foreword_core::db::OpenError;
use foreword_core::project::{self, Place};
use foreword_core::queue::Queue;
use foreword_core::spool;
use foreword_core::store::{self, Store};

use crate::home::{self, Home};
use crate::log::Log;
use crate::platform::{self, Lock};
use crate::start::control::{Ended, end_running};
use crate::switch::{self as switches, Switches};
use crate::{config, start};

/// The data directory, for a command that only looks: it need not be there.
pub fn home_to_look_at() -> anyhow::Result<Home> {
    Home::from_env().context("neither FOREWORD_HOME nor HOME is set; set one of them")
}

/// The data directory, for a command that may write there.
pub fn home_to_write() -> anyhow::Result<Home> {
    let home = home_to_look_at()?;
    platform::make_files_private();
    std::fs::create_dir_all(home.dir())
        .with_context(|| format!("could not make the data directory {}", home.dir().display()))?;
    if let Some(kind) = platform::unsafe_filesystem(home.dir()) {
        anyhow::bail!(
            "{} is on {kind}, where SQLite's log is not safe; set FOREWORD_HOME to a local directory",
            home.dir().display()
        );
    }
    unreleased::set_aside_alone(&home)?;
    Ok(home)
}

/// The memory, for a command that reads it; none if there is none yet. An older program's
/// is brought up to date first; a newer one's is read as far as it is still as we know it.
pub fn memory(home: &Home) -> anyhow::Result<Option<Store>> {
    match Store::look(&home.memory()) {
        Err(OpenError::OtherSchema { found, known, .. }) if found < known => {
            // One of the older program would go on in a memory that it does not know.
            let ours = Lock::holder(&home.lock())?.is_some_and(platform::runs_this_program);
            let ended = if ours {
                Ended::Nobody
            } else {
                end_running(home)?
            };
            platform::make_files_private();
            let store = Store::open(&home.memory(), &home.backups())?;
            if ended != Ended::Nobody {
                start::wake_worker(home);
            }
            Ok(Some(store))
        }
        Err(OpenError::Unreleased(_)) => {
            platform::make_files_private();
            unreleased::set_aside_alone(home)?;
            Ok(None)
        }
        Err(error @ OpenError::OtherSchema { found, .. }) => {
            eprintln!("foreword: {error}; until then it is only read");
            Ok(Store::look_at(&home.memory(), found)?)
        }
        looked => Ok(looked?),
    }
}

/// The memory, for a search: with what the project's notes say now.
pub fn memory_with_notes(home: &Home, here: &Place) -> anyhow::Result<Option<Store>> {
    let store = memory(home)?;
    mirror_notes(home, here);
    match store {
        None => memory(home),
        store => Ok(store),
    }
}

/// Has the memory know what the notes of this project say now. Where that cannot be done (a
/// newer memory, one that is busy), what is known already is found.
fn mirror_notes(home: &Home, here: &Place) {
    let (Some(project), Some(root)) = (&here.project, &here.root) else {
        return;
    };
    let seen = store::notes::seen(root);
    let off = switches::off_in_environment() || Switches::read(home).covers(Some(project), "");
    let mirror = || -> anyhow::Result<()> {
        match Store::look(&home.memory())? {
            Some(store) if !store.notes_differ(project, &seen)? => return Ok(()),
            None if seen.is_empty() => return Ok(()),
            _ => {}
        }
        let home = home_to_write()?;
        let mut store = Store::open(&home.memory(), &home.backups())?;
        Ok(store.mirror_notes(project, root, &seen, home::now())?)
    };
    if !off && let Err(error) = mirror() {
        Log::Worker.line(home, &format!("notes could not be taken in: {error:#}"));
    }
}

/// Events that no memory was made of yet. Whoever cannot look says nothing about them.
pub fn waiting(home: &Home) -> u64 {
    let queue = Queue::look(&home.queue()).ok().flatten();
    let queued = queue.and_then(|queue| Some(queue.counts().ok()?.pending));
    let spooled = spool::waiting(&home.spool()).map_or(0, |files| files.len() as u64);
    queued.unwrap_or_default() + spooled
}

/// The project that a directory belongs to, by the rules that hooks go by.
pub fn project_of(dir: &Path) -> Option<String> {
    place_of(dir)?.project
}

pub fn place_of(dir: &Path) -> Option<Place> {
    let home = Home::from_env()?;
    let (settings, _) = config::hook_settings(&home);
    let rules = home::project_rules(settings.unwrap_or_default().separate_worktrees);
    Some(project::resolve(dir, &rules))
}

/// Where the current directory belongs, with its branch.
pub fn current_place() -> Option<Place> {
    place_of(&std::env::current_dir().ok()?)
}

/// The project that the current directory belongs to.
pub fn current_project() -> Option<String> {
    current_place()?.project
}
