//! What each tool does.

use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use foreword_core::model::Millis;
use foreword_core::project::Place;
use foreword_core::search::{self, Query};
use foreword_core::store::{Item, Store};

use super::answer::{self, Part};
use super::arguments::{Format, Observations, Search};
use crate::home::{self, Home};
use crate::switch::{self, Switches};
use crate::{cli, config};

/// Who asks, where and when.
pub struct World {
    home: Home,
    place: Place,
    now: Millis,
}

impl World {
    /// The world of one call; an error where Foreword is switched off.
    pub fn now() -> anyhow::Result<World> {
        let home = cli::home_to_look_at()?;
        let (settings, _) = config::hook_settings(&home);
        let rules = home::project_rules(settings.unwrap_or_default().separate_worktrees);
        let dir = match std::env::var_os("CLAUDE_PROJECT_DIR").filter(|it| !it.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => std::env::current_dir().context("the current directory is gone")?,
        };
        let place = foreword_core::project::resolve(&dir, &rules);
        let session = std::env::var("CLAUDE_CODE_SESSION_ID").unwrap_or_default();
        let switches = Switches::read(&home);
        if switch::off_in_environment() || switches.covers(place.project.as_deref(), &session) {
            bail!("Foreword is switched off here; the user can switch it on with `foreword on`");
        }
        Ok(World {
            home,
            place,
            now: home::now(),
        })
    }

    fn project(&self) -> Option<&str> {
        self.place.project.as_deref()
    }

    /// The memory; none if nothing was ever remembered.
    fn store(&self) -> anyhow::Result<Option<Store>> {
        Ok(Store::look(&self.home.memory())?)
    }
}

const NOTHING_YET: &str = "Nothing is remembered yet.\n";

pub fn search(world: &World, asked: &Search) -> anyhow::Result<String> {
    let query = Query {
        words: &asked.query,
        filter: asked.filter(world.project(), world.now)?,
        sort: asked.sort()?,
        limit: asked.limit(),
        offset: 0,
    };
    let format = asked.format()?;
    let Some(store) = world.store()? else {
        return Ok(NOTHING_YET.to_owned());
    };
    let found = search::search(&store, &query)?;
    if found.hits.is_empty() {
        return Ok(answer::no_hits(&found));
    }
    let parts: Vec<Part> = if format == Format::Index {
        found.hits.iter().map(answer::line).collect()
    } else {
        let ids = found.hits.iter().map(|hit| hit.id);
        let (items, _) = items(&store, ids)?;
        items
            .iter()
            .map(|item| answer::item(item, format))
            .collect()
    };
    Ok(answer::framed(&parts, &answer::how(&found)))
}

/// Ids that one call may ask for.
const IDS_MAX: usize = 50;

pub fn get_observations(world: &World, asked: &Observations) -> anyhow::Result<String> {
    ensure!(!asked.ids.is_empty(), "ids is empty; `search` gives some");
    ensure!(asked.ids.len() <= IDS_MAX, "at most {IDS_MAX} ids at once");
    let Some(store) = world.store()? else {
        return Ok(NOTHING_YET.to_owned());
    };
    let (items, missing) = items(&store, asked.ids.iter().copied())?;
    let parts: Vec<Part> = items
        .iter()
        .map(|item| answer::item(item, Format::Full))
        .collect();
    Ok(answer::framed(&parts, &missing))
}

/// The items with these ids, and a line about those that are not there.
fn items(store: &Store, ids: impl Iterator<Item = i64>) -> anyhow::Result<(Vec<Item>, String)> {
    let mut items = Vec::new();
    let mut missing = Vec::new();
    for id in ids {
        match store.item(id)? {
            Some(item) => items.push(item),
            None => missing.push(format!("#{id}")),
        }
    }
    let missing = match missing.as_slice() {
        [] => String::new(),
        missing => format!("There is no {}.\n", missing.join(", ")),
    };
    Ok((items, missing))
}
