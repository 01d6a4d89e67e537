//! Reading the memory, for the commands and the MCP server.
//!
//! `Reader` opens the memory and knows the project and the settings. `search` is the one way to
//! search, `why` explains its order; `hands` changes what a person wants changed. `embed_client` asks
//! the worker to search by meaning, `named` finds sessions and items by what people type, `sentence_model` checks the model's files, and `recover` repairs a
//! damaged database or sets aside one that was written before the first release.

pub mod embed_client;
pub mod hands;
pub mod named;
pub mod recover;
pub mod search;
pub mod sentence_model;
pub mod when;
pub mod why;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use foreword_core::capture;
use foreword_core::db::OpenError;
use foreword_core::model::Millis;
use foreword_core::notes::mirror::{self, SeenNote};
use foreword_core::project::{self, Place};
use foreword_core::queue::Queue;
use foreword_core::search::{Filter, Hit, Sort, freshen, timeline};
use foreword_core::spool;
use foreword_core::store::{HostSession, Item, Store};

use crate::config::policy::ProjectPolicy;
use crate::config::{self, HookSettings};
use crate::home::{self, Home};
use crate::host;
use crate::log::Log;
use crate::platform::{self, Lock};
use crate::start;
use crate::start::{Ended, end_running};
use crate::switch::{self as switches, Switches};

/// How long a search copies notes that are new or changed before it begins. The rest is copied by the
/// worker, and by the next searches.
const COPY_MAX: Duration = Duration::from_millis(400);

/// Copies some of the notes of a working tree into the memory, for the worker; returns how many are left.
pub fn copy_notes(home: &Home, root: &Path, store: &mut Store) -> anyhow::Result<usize> {
    let reader = Reader::at(home.clone(), Some(root.to_owned()));
    let Some(project) = reader
        .project()
        .filter(|_| !reader.is_off() && !reader.is_excluded())
    else {
        return Ok(0);
    };
    let seen = mirror::seen(root);
    if !store.notes_differ(project, &seen)? {
        return Ok(0);
    }
    reader.copy_notes(store, &seen)
}

/// The data directory, for a command that only reads. It need not exist. An error if another user may
/// have written it.
pub fn home_to_look_at() -> anyhow::Result<Home> {
    let home =
        Home::from_env().context("neither FOREWORD_HOME nor HOME is set; set one of them")?;
    match home.distrust() {
        Some(why) => bail!(why),
        None => Ok(home),
    }
}

/// The data directory, for a command that may write there. Creates it.
pub fn home_to_write() -> anyhow::Result<Home> {
    let home = home_to_look_at()?;
    platform::make_files_private();
    std::fs::create_dir_all(home.dir())
        .with_context(|| format!("could not make the data directory {}", home.dir().display()))?;
    // Another user may have made it meanwhile.
    if let Some(why) = home.distrust() {
        bail!(why);
    }
    home.close_to_others();
    if let Some(kind) = platform::unsafe_filesystem(home.dir()) {
        anyhow::bail!(
            "{} is on {kind}, where SQLite's log is not safe; set FOREWORD_HOME to a local directory",
            home.dir().display()
        );
    }
    // A person makes this file, with the usual umask, and it may hold addresses.
    platform::close_to_others(&home.config());
    recover::set_unreleased_aside_alone(&home)?;
    Ok(home)
}

/// The memory, for a command that reads it; none if there is none yet. A memory with an older schema
/// is migrated first; one with a newer schema is opened read-only.
pub fn memory(home: &Home) -> anyhow::Result<Option<Store>> {
    match Store::look(&home.memory()) {
        Err(OpenError::OtherSchema { found, known, .. }) if found < known => {
            // A worker of the older program must not go on writing after the migration.
            let is_ours = Lock::holder(&home.lock())?.is_some_and(platform::runs_this_program);
            let ended = if is_ours {
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
            recover::set_unreleased_aside_alone(home)?;
            Ok(None)
        }
        Err(error @ OpenError::OtherSchema { found, .. }) => {
            eprintln!("foreword: {error}; until then it is only read");
            Ok(Store::look_at(&home.memory(), found)?)
        }
        opened => Ok(opened?),
    }
}

/// Opens or creates the memory, for a command that writes.
pub fn memory_to_write(home: &Home) -> anyhow::Result<Store> {
    Store::open(&home.memory(), &home.backups()).context("could not open memory.db")
}

/// Opens or creates the queue, for a command that writes.
pub fn queue_to_write(home: &Home) -> anyhow::Result<Queue> {
    Queue::open(&home.queue(), &home.backups()).context("could not open queue.db")
}

/// The number of events that are not processed yet. The queue counts as empty if it cannot be read.
pub fn waiting(home: &Home) -> u64 {
    let queue = Queue::look(&home.queue()).ok().flatten();
    let queued = queue.and_then(|queue| Some(queue.counts().ok()?.pending));
    let spooled = spool::waiting(&home.spool()).map_or(0, |files| files.len() as u64);
    queued.unwrap_or_default() + spooled
}

/// The project that a directory belongs to, by the same rules as in hooks.
pub fn project_of(dir: &Path) -> Option<String> {
    let home = home_to_look_at().ok()?;
    Reader::at(home, Some(dir.to_owned())).place.project
}

/// The project and branch of the current directory.
pub fn current_place() -> Option<Place> {
    Some(Reader::here().ok()?.place)
}

/// The project that the current directory belongs to.
pub fn current_project() -> Option<String> {
    current_place()?.project
}

/// A reader of the memory: its project, its session of the host, the settings, and the time.
pub struct Reader {
    pub home: Home,
    /// Empty if the directory was deleted.
    pub place: Place,
    /// The session in which this process was started. The user may have cleared it since, which the
    /// host does not report.
    pub session: Option<HostSession>,
    /// None if they cannot be read; then the project may be excluded.
    pub settings: Option<HookSettings>,
    pub now: Millis,
}

impl Reader {
    /// The reader for a command: of the current directory's project.
    pub fn here() -> anyhow::Result<Reader> {
        Ok(Reader::at(home_to_look_at()?, std::env::current_dir().ok()))
    }

    /// The reader for the MCP server: of the project whose folder the host names, else of the current
    /// directory's.
    pub fn of_host() -> anyhow::Result<Reader> {
        let dir = host::project_dir().or_else(|| std::env::current_dir().ok());
        Ok(Reader::at(home_to_look_at()?, dir))
    }

    fn at(home: Home, dir: Option<PathBuf>) -> Reader {
        let (settings, _) = config::hook_settings(&home);
        let separate = settings.as_ref().is_some_and(|it| it.separate_worktrees);
        let rules = home::project_rules(separate);
        let session = host::session_here().map(|(client, id)| HostSession {
            host: client.host.name.to_owned(),
            id,
        });
        Reader {
            place: dir.map_or_else(Place::default, |dir| project::resolve(&dir, &rules)),
            session,
            settings,
            now: home::now(),
            home,
        }
    }

    pub fn project(&self) -> Option<&str> {
        self.place.project.as_deref()
    }

    /// Whether Foreword is off for this project or session.
    pub fn is_off(&self) -> bool {
        self.off_reason().is_some()
    }

    /// Why Foreword is off for this project or session; none if it is on.
    pub fn off_reason(&self) -> Option<String> {
        let session = self.session.as_ref().map_or("", |it| &it.id);
        if switches::off_in_environment()
            || Switches::read(&self.home).covers(self.project(), session)
        {
            return Some("it is switched off; `foreword on` switches it on again".to_owned());
        }
        self.policy().off()
    }

    /// What the repository and the user's settings restrict in this project.
    pub fn policy(&self) -> ProjectPolicy {
        let projects = self.settings.as_ref().map(|it| &it.projects);
        let projects = projects.cloned().unwrap_or_default();
        ProjectPolicy::of(self.place.root.as_deref(), self.project(), &projects)
    }

    /// Whether the settings exclude this project, or may do so because they cannot be read.
    pub fn is_excluded(&self) -> bool {
        self.settings.as_ref().is_none_or(|settings| {
            capture::is_excluded(&self.place, &settings.capture.exclude_projects)
        })
    }

    /// The time in which an older observation must have been opened to be in the index.
    pub fn unopened_kept(&self) -> Option<Millis> {
        self.settings.as_ref().and_then(HookSettings::unopened_kept)
    }

    /// The memory; an error if there is none yet.
    pub fn memory(&self) -> anyhow::Result<Store> {
        memory(&self.home)?.context("nothing is remembered yet")
    }

    /// The memory with the current notes of the project, for a search, and how many notes are left to
    /// be copied. No memory if there is none yet.
    fn memory_with_notes(&self) -> anyhow::Result<(Option<Store>, usize)> {
        let store = memory(&self.home)?;
        // If the notes cannot be copied into the memory (it is newer, or busy), the search finds
        // those that were copied last.
        let copied = if self.is_off() {
            Ok(0)
        } else {
            self.copy_notes_first(store.as_ref())
        };
        let left = copied.unwrap_or_else(|error| {
            let line = format!("the project's notes could not be read: {error:#}");
            Log::Worker.line(&self.home, &line);
            0
        });
        match store {
            None => Ok((memory(&self.home)?, left)),
            store => Ok((store, left)),
        }
    }

    fn copy_notes_first(&self, store: Option<&Store>) -> anyhow::Result<usize> {
        let (Some(project), Some(root)) = (self.project(), &self.place.root) else {
            return Ok(0);
        };
        let seen = mirror::seen(root);
        match store {
            Some(store) if !store.notes_differ(project, &seen)? => return Ok(0),
            None if seen.is_empty() => return Ok(0),
            _ => {}
        }
        let home = home_to_write()?;
        let mut store = Store::open(&home.memory(), &home.backups())?;
        let left = self.copy_notes(&mut store, &seen)?;
        if left > 0 {
            std::fs::write(home.notes_left(), root.as_os_str().as_encoded_bytes())?;
            start::wake_worker(&home);
        }
        Ok(left)
    }

    /// Copies notes into the memory for a short time; returns how many are left.
    fn copy_notes(&self, store: &mut Store, seen: &[SeenNote]) -> anyhow::Result<usize> {
        let (Some(project), Some(root)) = (self.project(), &self.place.root) else {
            return Ok(0);
        };
        let until = Instant::now() + COPY_MAX;
        let go_on = || Instant::now() < until;
        Ok(store.mirror_notes(project, root, seen, self.now, &go_on)?)
    }

    /// An error if the filter names a project that does not exist. The current one may have no
    /// memory yet.
    pub fn check_projects(&self, store: &Store, filter: &Filter) -> anyhow::Result<()> {
        let mut named = filter.projects.clone().unwrap_or_default();
        named.retain(|name| Some(name.as_str()) != self.project());
        match store.unknown_project(&named)? {
            Some(name) => bail!("no project is called '{name}'; `foreword projects` lists them"),
            None => Ok(()),
        }
    }

    /// The items with these ids, with the state of their files, and the ids that do not exist.
    pub fn items(
        &self,
        store: &Store,
        ids: impl IntoIterator<Item = i64>,
    ) -> rusqlite::Result<(Vec<Item>, Vec<i64>)> {
        let (mut items, mut missing) = (Vec::new(), Vec::new());
        for id in ids {
            match store.item_from(id, &self.place)? {
                Some(item) => items.push(item),
                None => missing.push(id),
            }
        }
        Ok((items, missing))
    }

    /// One item; an error if it does not exist.
    pub fn item(&self, store: &Store, id: i64) -> anyhow::Result<Item> {
        let item = store.item_from(id, &self.place)?;
        item.with_context(|| no_item(id))
    }

    /// The items before and after one, with the state of their files.
    pub fn timeline(&self, store: &Store, id: i64, around: u32) -> anyhow::Result<Vec<Hit>> {
        let mut hits = timeline(store, id, around)?;
        ensure!(!hits.is_empty(), no_item(id));
        freshen(store, &self.place, Sort::Date, &mut hits)?;
        Ok(hits)
    }
}

fn no_item(id: i64) -> String {
    format!("there is no #{id}; find numbers with `foreword search WORDS`")
}
