//! What is in the data directory: settings, databases, and work that does not get done.

use std::path::Path;

use foreword_core::db::OpenError;
use foreword_core::model::Millis;
use foreword_core::queue::Queue;
use foreword_core::safety;
use foreword_core::spool;
use foreword_core::store::Store;
use foreword_core::text::count;

use super::{Trouble, World};
use crate::config::{Config, Mistake};
use crate::log::{Fact, Log};
use crate::platform::{self, Lock};
use crate::service::unreleased;
use crate::start;
use foreword_core::text::shell_word;

pub fn config_broken(world: &World) -> Option<Trouble> {
    match Config::mistake(&world.home)? {
        Mistake::File(error) => {
            let file = shell_word(&world.home.config());
            let path = world.home.config();
            Trouble::cured_by(
                format!("mv {file} {file}.broken"),
                format!("{}: {error}; hooks use the defaults", path.display()),
            )
        }
        Mistake::Variable { name, error } => {
            Trouble::cured_by(format!("unset {name}"), format!("{name}: {error}"))
        }
    }
}

pub fn queue_damaged(world: &World) -> Option<Trouble> {
    let queue = Queue::inspect(&world.home.queue());
    let damage = damage(queue, Queue::damage)?;
    Trouble::cured_by(
        world.foreword("restore"),
        format!("queue.db is damaged ({damage}); events go to the spool meanwhile"),
    )
}

pub fn memory_damaged(world: &World) -> Option<Trouble> {
    let store = Store::inspect(&world.home.memory());
    let damage = damage(store, Store::damage)?;
    Trouble::cured_by(
        world.foreword("restore"),
        format!("memory.db is damaged ({damage}); what it holds cannot be relied on"),
    )
}

fn damage<T>(
    opened: Result<Option<T>, OpenError>,
    look: fn(&T) -> Option<String>,
) -> Option<String> {
    match opened {
        Ok(database) => look(&database?),
        Err(error) => error.is_damage().then(|| error.to_string()),
    }
}

pub fn queue_newer(world: &World) -> Option<Trouble> {
    newer(world, Queue::inspect(&world.home.queue()).err()?, "queue")
}

pub fn memory_newer(world: &World) -> Option<Trouble> {
    newer(world, Store::inspect(&world.home.memory()).err()?, "memory")
}

/// A later version of Foreword was here. It left a copy as it was for us.
fn newer(world: &World, error: OpenError, name: &str) -> Option<Trouble> {
    let OpenError::OtherSchema { found, known, .. } = error else {
        return None;
    };
    if found < known {
        return None; // The next worker brings it up to date.
    }
    let file = format!("{name}.db");
    let mut cure = set_aside(world, &file);
    let copy = world
        .home
        .backups()
        .join(format!("{name}.before-{}.db", known + 1));
    if copy.exists() {
        let [copy, file] = [&copy, &world.home.dir().join(&file)].map(|it| shell_word(it));
        cure = format!("{cure} && cp {copy} {file}");
    }
    Trouble::cured_by(
        cure,
        format!(
            "{file} was written by a later Foreword (schema {found}; this one knows {known}): use that one, or go back"
        ),
    )
}

/// Moves a database and what belongs to it into a folder of its own. Nothing is deleted.
fn set_aside(world: &World, file: &str) -> String {
    let dir = shell_word(world.home.dir());
    let stop = world.foreword("worker stop");
    let aside = new_folder(world);
    format!("{stop} && mkdir -m 700 {aside} && mv {dir}/{file}* {aside}/")
}

/// A name that is still free in the data directory, for a shell.
fn new_folder(world: &World) -> String {
    let name = |number| world.home.dir().join(format!("set-aside-{number}"));
    let free = (1..).map(name).find(|path| !path.exists());
    free.map_or(String::new(), |path| shell_word(&path))
}

/// Hooks try again by themselves; so often in a row is no accident.
const FAILED_STARTS_MAX: u32 = 3;

pub fn worker_not_starting(world: &World) -> Option<Trouble> {
    let tries = start::failed_starts(&world.home);
    let runs = matches!(Lock::holder(&world.home.lock()), Ok(Some(_)));
    if tries < FAILED_STARTS_MAX || runs {
        return None;
    }
    let last = Log::Worker.tail(&world.home, 1).pop();
    let last = last.map_or(String::new(), |last| format!("; its last word: {last}"));
    Trouble::cured_by(
        world.foreword("worker start"),
        format!("the worker did not come up {tries} times in a row{last}"),
    )
}

/// It has the lock, so no other takes its place.
pub fn worker_halted(world: &World) -> Option<Trouble> {
    let holder = Lock::holder(&world.home.lock()).ok().flatten();
    let pid = holder.filter(|pid| platform::is_halted(*pid))?;
    let evidence = format!("the worker (pid {pid}) is halted; what hooks are told waits");
    Trouble::cured_by(format!("kill -CONT {pid}"), evidence)
}

/// A turn's events wait seconds, not hours.
const WAIT_MAX: Millis = 3_600_000;

pub fn queue_old(world: &World) -> Option<Trouble> {
    let queue = Queue::inspect(&world.home.queue()).ok().flatten();
    let queued = queue.and_then(|queue| queue.counts().ok()?.oldest_at);
    let spooled = spool::waiting(&world.home.spool()).unwrap_or_default();
    let spooled = spooled.first().and_then(|file| spooled_at(file));
    let oldest = queued.into_iter().chain(spooled).min()?;
    if world.now - oldest < WAIT_MAX {
        return None;
    }
    let hours = (world.now - oldest) / WAIT_MAX;
    Trouble::cured_by(
        world.foreword("worker drain"),
        format!("an event has been waiting for {hours} h"),
    )
}

/// A spooled file is named by an id that begins with its time.
fn spooled_at(file: &Path) -> Option<Millis> {
    let id: uuid::Uuid = file.file_stem()?.to_str()?.parse().ok()?;
    let (seconds, _) = id.get_timestamp()?.to_unix();
    Millis::try_from(seconds.checked_mul(1000)?).ok()
}

pub fn events_skipped(world: &World) -> Option<Trouble> {
    let queue = Queue::inspect(&world.home.queue()).ok().flatten()?;
    let skipped = queue.skipped().ok()?;
    let why = skipped.first()?.last_error.as_deref().unwrap_or("unknown");
    let events = count(skipped.len() as u64, "event was", "events were");
    Trouble::cured_by(
        world.foreword("worker drain --skipped"),
        format!("{events} skipped after failing too often: {why}"),
    )
}

pub fn events_lost(world: &World) -> Option<Trouble> {
    lately(world, Fact::EventLost, "a hook could not write an event")
}

/// Not trouble any more, but worth knowing: the worker put it right by itself.
pub fn recovered(world: &World) -> Option<Trouble> {
    lately(world, Fact::Recovered, "a damaged database was recovered")
}

/// Worth knowing until somebody has read it: the files are never removed by us.
pub fn unreleased_set_aside(world: &World) -> Option<Trouble> {
    let set = safety::unreleased::recorded(world.home.dir())?;
    let record = shell_word(&world.home.dir().join("unreleased.json"));
    Trouble::cured_by(format!("mv {record} {record}.seen"), unreleased::line(&set))
}

pub fn payloads_unexpected(world: &World) -> Option<Trouble> {
    let what = "a hook did not understand what the coding agent sent";
    lately(world, Fact::PayloadUnexpected, what)
}

const DAY: Millis = 24 * 3_600_000;

/// A fact of the last day's log. The reason is in its line; once that is dealt with, the log can
/// start anew.
fn lately(world: &World, fact: Fact, what: &str) -> Option<Trouble> {
    let lines = fact.since(&world.home, world.now - DAY);
    let last = lines.last()?;
    let times = count(lines.len() as u64, "time", "times");
    let file = shell_word(&fact.log().path(&world.home));
    Trouble::cured_by(
        format!("mv {file} {file}.1"),
        format!("{what}, {times} in the last day: {last}"),
    )
}

pub fn spool_unreadable(world: &World) -> Option<Trouble> {
    let spool = world.home.spool();
    let files = spool::unreadable(&spool).ok().filter(|&files| files > 0)?;
    let dir = shell_word(world.home.dir());
    let files = count(files as u64, "file", "files");
    Trouble::cured_by(
        format!("mv {dir}/spool/unreadable {}", new_folder(world)),
        format!("{files} in spool/unreadable could not be read as events"),
    )
}

/// What a newer host sends that we do not know, by name and how often it was there.
pub fn unknown_fields(world: &World) -> Vec<(String, u64)> {
    let store = Store::inspect(&world.home.memory()).ok().flatten();
    store
        .and_then(|store| store.unknown_fields().ok())
        .unwrap_or_default()
}
