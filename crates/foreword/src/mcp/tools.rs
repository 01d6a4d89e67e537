//! What each tool does.

use anyhow::{Context as _, bail, ensure};
use foreword_core::capture;
use foreword_core::model::{Kind, Millis};
use foreword_core::project::Place;
use foreword_core::redact::redact;
use foreword_core::search::{self, Query, Sort};
use foreword_core::store::{HostSession, Item, ItemBody, Said, Store};
use foreword_core::text;

use super::answer;
use super::arguments::{Forget, Format, Observations, Recall, Remember, Search, Timeline};
use crate::home::{self, Home};
use crate::host;
use crate::notes::recall;
use crate::service;
use crate::service::embed_client;
use crate::service::frame::{Part, framed};
use crate::switch::{self, Switches};
use crate::{config, show, start};

/// Who asks, where and when.
pub struct World {
    home: Home,
    place: Place,
    /// The host's session, as it was when the server started: the host does not say when
    /// the user clears it.
    session: Option<HostSession>,
    /// The user excluded this project, or may have: the settings cannot be read.
    excluded: bool,
    now: Millis,
}

impl World {
    /// The world of one call; an error where Foreword is switched off.
    pub fn now() -> anyhow::Result<World> {
        let home = service::home_to_look_at()?;
        let (settings, _) = config::hook_settings(&home);
        let unreadable = settings.is_none();
        let settings = settings.unwrap_or_default();
        let rules = home::project_rules(settings.separate_worktrees);
        let dir = match host::project_dir() {
            Some(dir) => dir,
            None => std::env::current_dir().context("the current directory is gone")?,
        };
        let place = foreword_core::project::resolve(&dir, &rules);
        let session = host::session_here().map(|(client, id)| HostSession {
            host: client.host.name.to_owned(),
            id,
        });
        let off = Switches::read(&home).covers(
            place.project.as_deref(),
            session.as_ref().map_or("", |it| &it.id),
        );
        if off || switch::off_in_environment() {
            bail!("Foreword is switched off here; the user can switch it on with `foreword on`");
        }
        Ok(World {
            excluded: unreadable
                || capture::is_excluded(&place, &settings.capture.exclude_projects),
            home,
            place,
            session,
            now: home::now(),
        })
    }

    fn project(&self) -> Option<&str> {
        self.place.project.as_deref()
    }

    /// The memory; none if nothing was ever remembered.
    fn store(&self) -> anyhow::Result<Option<Store>> {
        service::memory(&self.home)
    }

    /// The memory, to be written.
    fn store_to_write(&self) -> anyhow::Result<Store> {
        // Makes the data directory, and refuses one on which SQLite is not safe.
        service::home_to_write()?;
        Ok(Store::open(&self.home.memory(), &self.home.backups())?)
    }
}

const NOTHING_YET: &str = "Nothing is remembered yet.\n";

pub fn search(world: &World, asked: &Search) -> anyhow::Result<String> {
    let format = asked.format()?;
    let query = Query {
        words: &asked.query,
        filter: asked.filter(&world.place, world.now)?,
        sort: asked.sort()?,
        limit: asked.limit() * format.hits_per_line(),
        offset: 0,
    };
    let Some(store) = service::memory_with_notes(&world.home, &world.place)? else {
        return Ok(NOTHING_YET.to_owned());
    };
    if let Some(name) = store.unknown_project(asked.named_projects())? {
        bail!("no project is called '{name}'; [\"*\"] is all of them");
    }
    let (mut found, note) = embed_client::search(&world.home, &store, &query)?;
    if format.hits_per_line() == 1 {
        search::freshen(&store, &world.place, query.sort, &mut found.hits)?;
    }
    if format == Format::Json {
        return Ok(answer::json(&found.hits));
    }
    let note = text::capitalised(&note) + &show::waiting(service::waiting(&world.home));
    if found.hits.is_empty() {
        return Ok(answer::no_hits(&found) + &note);
    }
    let with_project = query.filter.spans_projects();
    let parts: Vec<Part> = match format {
        Format::Sessions | Format::Summaries => {
            let sessions = search::sessions_of(&store, &query, &found.hits, asked.limit())?;
            let parts = sessions
                .iter()
                .map(|it| answer::session(it, format, with_project));
            parts.flatten().collect()
        }
        Format::Index => {
            let lines = found.hits.iter();
            lines.map(|it| answer::line(it, with_project)).collect()
        }
        Format::Facts | Format::Full | Format::Json => {
            let ids = found.hits.iter().map(|hit| hit.id);
            let (items, _) = items(&store, &world.place, ids)?;
            items
                .iter()
                .map(|item| answer::item(item, format))
                .collect()
        }
    };
    Ok(framed(&parts, &(answer::how(&asked.query, &found) + &note)))
}

/// Ids that one call may ask for.
const IDS_MAX: usize = 50;

pub fn get_observations(world: &World, asked: &Observations) -> anyhow::Result<String> {
    ensure!(!asked.ids.is_empty(), "ids is empty; `search` gives some");
    ensure!(asked.ids.len() <= IDS_MAX, "at most {IDS_MAX} ids at once");
    let Some(store) = world.store()? else {
        return Ok(NOTHING_YET.to_owned());
    };
    let (items, missing) = items(&store, &world.place, asked.ids.iter().copied())?;
    let parts = items.iter().map(|item| {
        let part = answer::item(item, Format::Full);
        Ok(part.with(&answer::related(&embed_client::related(
            &world.home,
            &store,
            item.id,
        )?)))
    });
    let parts: Vec<Part> = parts.collect::<anyhow::Result<_>>()?;
    Ok(framed(&parts, &missing))
}

pub fn timeline(world: &World, asked: &Timeline) -> anyhow::Result<String> {
    let Some(store) = world.store()? else {
        return Ok(NOTHING_YET.to_owned());
    };
    let mut note = String::new();
    let id = match (asked.id, &asked.query) {
        (Some(id), _) => id,
        (None, Some(words)) => {
            let here = Search::default();
            let query = Query {
                words,
                filter: here.filter(&world.place, world.now)?,
                sort: Sort::Relevance,
                limit: 1,
                offset: 0,
            };
            let (found, how) = embed_client::search(&world.home, &store, &query)?;
            note = text::capitalised(&how);
            match found.hits.first() {
                Some(hit) => hit.id,
                None => return Ok(answer::no_hits(&found) + &note),
            }
        }
        (None, None) => bail!("give an id or a query"),
    };
    let mut hits = search::timeline(&store, id, asked.around())?;
    search::freshen(&store, &world.place, Sort::Date, &mut hits)?;
    ensure!(
        !hits.is_empty(),
        "there is no #{id}; `search` gives numbers"
    );
    let parts: Vec<Part> = hits.iter().map(|hit| answer::dated_line(hit, id)).collect();
    Ok(framed(&parts, &note))
}

/// A memory is a few sentences; a document belongs into the repository.
const SAID_MAX: usize = 4_000;

pub fn remember(world: &World, asked: &Remember) -> anyhow::Result<String> {
    let kind = asked.kind()?;
    let length = asked.text.chars().count();
    ensure!(!asked.text.trim().is_empty(), "text is empty");
    ensure!(
        length <= SAID_MAX,
        "text has {length} characters, more than {SAID_MAX}; say it shorter"
    );
    let project = world.project();
    let project =
        project.context("this directory is no project, so there is nowhere to remember it")?;
    ensure!(
        !world.excluded,
        "the user's settings exclude this project; nothing is written here"
    );
    let redacted = redact(&asked.text);
    ensure!(
        !redacted.text.replace("[private]", "").trim().is_empty(),
        "all of it is private, so nothing was kept"
    );
    // Without a session of the host, what was said in a project has one of its own.
    let session = match &world.session {
        Some(session) => session.clone(),
        None => HostSession {
            host: "mcp".to_owned(),
            id: format!("said in {project}"),
        },
    };
    let hash = blake3::hash(redacted.text.as_bytes()).to_hex();
    let id = world.store_to_write()?.remember(&Said {
        text: &redacted.text,
        kind,
        project,
        session: &session,
        seed: format!("said:{}", &hash[..16]),
        now: world.now,
    })?;
    // The worker sees to its vectors.
    if embed_client::is_installed(&world.home) {
        start::wake_worker(&world.home);
    }
    Ok(match redacted.count {
        0 => format!("Remembered as #{id}.\n"),
        count => format!("Remembered as #{id}, without {count} secret or private parts.\n"),
    })
}

pub fn forget(world: &World, asked: &Forget) -> anyhow::Result<String> {
    ensure!(!asked.ids.is_empty(), "ids is empty; `search` gives some");
    ensure!(asked.ids.len() <= IDS_MAX, "at most {IDS_MAX} ids at once");
    let Some(store) = world.store()? else {
        return Ok(NOTHING_YET.to_owned());
    };
    let (items, missing) = items(&store, &world.place, asked.ids.iter().copied())?;
    // A prompt holds its turn together, and what came of it quotes it.
    let kept = |it: &&Item| matches!(it.body.kind(), Kind::Prompt | Kind::Note);
    if let Some(item) = items.iter().find(kept) {
        bail!(
            "#{} is a {}; only observations and summaries can be forgotten{}",
            item.id,
            item.body.kind(),
            match &item.body {
                ItemBody::Note { path, .. } => format!(", a note by deleting {path}"),
                _ => String::new(),
            }
        );
    }
    if !asked.confirm {
        let parts: Vec<Part> = items.iter().map(answer::title).collect();
        let note =
            format!("{missing}Nothing is forgotten yet: with confirm these are, for good.\n");
        return Ok(framed(&parts, &note));
    }
    drop(store);
    let gone = world.store_to_write()?.forget(&asked.ids, world.now)?;
    let gone: Vec<_> = gone.iter().map(|id| format!("#{id}")).collect();
    Ok(match gone.as_slice() {
        [] => missing,
        gone => format!("Forgotten: {}.\n{missing}", gone.join(", ")),
    })
}

pub fn recall(world: &World, asked: &Recall) -> anyhow::Result<String> {
    let root = world.place.root.as_deref();
    let root = root.context("this directory is no project, so it has no master.md")?;
    recall::recall(root, asked.scope.as_deref(), world.now)
}

/// The items with these ids, and a line about those that are not there.
fn items(
    store: &Store,
    here: &Place,
    ids: impl Iterator<Item = i64>,
) -> anyhow::Result<(Vec<Item>, String)> {
    let mut items = Vec::new();
    let mut missing = Vec::new();
    for id in ids {
        match store.item_from(id, here)? {
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
