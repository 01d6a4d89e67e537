//! Checks of the files in the data directory: settings, databases, queue and logs.

use std::path::Path;

use foreword_core::db::OpenError;
use foreword_core::model::Millis;
use foreword_core::queue::Queue;
use foreword_core::safety;
use foreword_core::spool;
use foreword_core::store::Store;
use foreword_core::text::count;

use super::{Diagnosis, Examination};
use crate::config::policy::{FILE, RepositoryPolicy};
use crate::config::{Config, Mistake};
use crate::local_time;
use crate::log::{Fact, Log};
use crate::not_kept::{self, NotKept};
use crate::platform::{self, Lock};
use crate::service::{self, recover};
use crate::start;
use foreword_core::text::shell_word;

pub fn config_broken(exam: &Examination) -> Option<Diagnosis> {
    match Config::mistake(&exam.home)? {
        Mistake::File(error) => {
            let file = shell_word(&exam.home.config());
            let path = exam.home.config();
            Diagnosis::cured_by(
                format!("mv {file} {file}.broken"),
                format!("{}: {error}; hooks use the defaults", path.display()),
            )
        }
        Mistake::Variable { name, error } => {
            Diagnosis::cured_by(format!("unset {name}"), format!("{name}: {error}"))
        }
    }
}

pub fn queue_damaged(exam: &Examination) -> Option<Diagnosis> {
    let queue = Queue::inspect(&exam.home.queue());
    let damage = damage(queue, Queue::damage)?;
    Diagnosis::cured_by(
        exam.foreword("restore"),
        format!("queue.db is damaged ({damage}); events go to the spool meanwhile"),
    )
}

pub fn memory_damaged(exam: &Examination) -> Option<Diagnosis> {
    let store = Store::inspect(&exam.home.memory());
    let damage = damage(store, Store::damage)?;
    Diagnosis::cured_by(
        exam.foreword("restore"),
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

pub fn queue_newer(exam: &Examination) -> Option<Diagnosis> {
    newer(exam, Queue::inspect(&exam.home.queue()).err()?, "queue")
}

pub fn memory_newer(exam: &Examination) -> Option<Diagnosis> {
    newer(exam, Store::inspect(&exam.home.memory()).err()?, "memory")
}

/// A later version of Foreword migrated the database. It left a copy of the old one.
fn newer(exam: &Examination, error: OpenError, name: &str) -> Option<Diagnosis> {
    let OpenError::OtherSchema { found, known, .. } = error else {
        return None;
    };
    if found < known {
        return None; // The next worker brings it up to date.
    }
    let file = format!("{name}.db");
    let mut cure = set_aside(exam, &file);
    let copy = exam
        .home
        .backups()
        .join(format!("{name}.before-{}.db", known + 1));
    if copy.exists() {
        let [copy, file] = [&copy, &exam.home.dir().join(&file)].map(|it| shell_word(it));
        cure = format!("{cure} && cp {copy} {file}");
    }
    Diagnosis::cured_by(
        cure,
        format!(
            "{file} was written by a later Foreword (schema {found}; this one knows {known}): use that one, or go back"
        ),
    )
}

/// A command that moves a database and its log into a new folder.
fn set_aside(exam: &Examination, file: &str) -> String {
    let dir = shell_word(exam.home.dir());
    let stop = exam.foreword("worker stop");
    let aside = new_folder(exam);
    format!("{stop} && mkdir -m 700 {aside} && mv {dir}/{file}* {aside}/")
}

/// An unused name in the data directory, quoted for a shell.
fn new_folder(exam: &Examination) -> String {
    let name = |number| exam.home.dir().join(format!("set-aside-{number}"));
    let free = (1..).map(name).find(|path| !path.exists());
    free.map_or(String::new(), |path| shell_word(&path))
}

/// The failed starts in a row that are reported. Hooks try again by themselves.
const FAILED_STARTS_MAX: u32 = 3;

pub fn worker_not_starting(exam: &Examination) -> Option<Diagnosis> {
    let tries = start::failed_starts(&exam.home);
    let runs = matches!(Lock::holder(&exam.home.lock()), Ok(Some(_)));
    if tries < FAILED_STARTS_MAX || runs {
        return None;
    }
    let last = Log::Worker.tail(&exam.home, 1).pop();
    let last = last.map(|last| format!("; its last log line: {}", local_time::log_line(&last)));
    let last = last.unwrap_or_default();
    Diagnosis::cured_by(
        exam.foreword("worker start"),
        format!("the worker failed to start {tries} times in a row{last}"),
    )
}

/// A stopped worker still holds the lock, so no other is started.
pub fn worker_halted(exam: &Examination) -> Option<Diagnosis> {
    let holder = Lock::holder(&exam.home.lock()).ok().flatten();
    let pid = holder.filter(|pid| platform::is_halted(*pid))?;
    let evidence = format!("the worker (pid {pid}) is halted (SIGSTOP); events wait in the queue");
    Diagnosis::cured_by(format!("kill -CONT {pid}"), evidence)
}

/// The age of a waiting event that is reported. Usually events wait for seconds.
const WAIT_MAX: Millis = 3_600_000;

pub fn queue_old(exam: &Examination) -> Option<Diagnosis> {
    let queue = Queue::inspect(&exam.home.queue()).ok().flatten();
    let queued = queue.and_then(|queue| queue.counts().ok()?.oldest_at);
    let spooled = spool::waiting(&exam.home.spool()).unwrap_or_default();
    let spooled = spooled.first().and_then(|file| spooled_at(file));
    let oldest = queued.into_iter().chain(spooled).min()?;
    if exam.now - oldest < WAIT_MAX {
        return None;
    }
    let hours = (exam.now - oldest) / WAIT_MAX;
    Diagnosis::cured_by(
        exam.foreword("worker drain"),
        format!("an event has been waiting for {hours} h"),
    )
}

/// The time of a spooled file, which its name begins with.
pub fn spooled_at(file: &Path) -> Option<Millis> {
    let id: uuid::Uuid = file.file_stem()?.to_str()?.parse().ok()?;
    let (seconds, _) = id.get_timestamp()?.to_unix();
    Millis::try_from(seconds.checked_mul(1000)?).ok()
}

pub fn events_skipped(exam: &Examination) -> Option<Diagnosis> {
    let queue = Queue::inspect(&exam.home.queue()).ok().flatten()?;
    let skipped = queue.skipped().ok()?;
    let why = skipped.first()?.last_error.as_deref().unwrap_or("unknown");
    let events = count(skipped.len() as u64, "event was", "events were");
    Diagnosis::cured_by(
        exam.foreword("retry"),
        format!("{events} skipped after failing too often: {why}"),
    )
}

/// Reports events that were lost, if the last one was within a day. The cure begins to count anew.
pub fn events_lost(exam: &Examination) -> Option<Diagnosis> {
    let not_kept = NotKept::read(&exam.home);
    let last_at = not_kept.losses().map(|row| row.last_at).max()?;
    if exam.now - last_at > DAY {
        return None;
    }
    let advice = "cure other findings first, such as a full disk, permissions or settings, which may be the \
                  cause; `foreword dropped` counts the reasons. This one ends a day after the last loss";
    Diagnosis::advised(advice.to_owned(), not_kept::lost_line(&not_kept)?)
}

/// Reports that the worker recovered a damaged database, or opened a replaced one again.
pub fn recovered(exam: &Examination) -> Option<Diagnosis> {
    let what = "a database was damaged or replaced";
    let advice = "nothing to do if `foreword check` finds nothing; this ends after a day";
    lately(exam, Fact::Recovered, what, advice)
}

/// Reports databases of an unreleased version that were set aside. They are never deleted.
pub fn unreleased_set_aside(exam: &Examination) -> Option<Diagnosis> {
    let set = safety::recover::unreleased_aside(exam.home.dir())?;
    let record = shell_word(&exam.home.dir().join("unreleased.json"));
    Diagnosis::cured_by(
        format!("mv {record} {record}.seen"),
        recover::unreleased_line(&set),
    )
}

pub fn payloads_unexpected(exam: &Examination) -> Option<Diagnosis> {
    let what = "a hook did not understand what the coding agent sent";
    let advice = "update Foreword and the coding agent, so that they know each other's format; \
                  `foreword logs` has the lines. This ends a day after the last one";
    lately(exam, Fact::PayloadUnexpected, what, advice)
}

const DAY: Millis = 24 * 3_600_000;

/// Reports a fact of the last day's log with its last line. No command undoes what has happened.
fn lately(exam: &Examination, fact: Fact, what: &str, advice: &str) -> Option<Diagnosis> {
    let lines = fact.since(&exam.home, exam.now - DAY);
    let last = lines.last()?;
    let times = count(lines.len() as u64, "time", "times");
    Diagnosis::advised(
        advice.to_owned(),
        format!(
            "{what}, {times} in the last day: {}",
            local_time::log_line(last)
        ),
    )
}

pub fn spool_unreadable(exam: &Examination) -> Option<Diagnosis> {
    let spool = exam.home.spool();
    let files = spool::unreadable(&spool).ok().filter(|&files| files > 0)?;
    let dir = shell_word(exam.home.dir());
    let files = count(files as u64, "file", "files");
    Diagnosis::cured_by(
        format!("mv {dir}/spool/unreadable {}", new_folder(exam)),
        format!("{files} in spool/unreadable could not be read as events"),
    )
}

/// The names of fields that we do not know, with the number of events that had them.
pub fn unknown_fields(exam: &Examination) -> Vec<(String, u64)> {
    let store = Store::inspect(&exam.home.memory()).ok().flatten();
    store
        .and_then(|store| store.unknown_fields().ok())
        .unwrap_or_default()
}

/// Lines about the `.foreword.toml` of the current project.
pub fn repository_notes() -> Vec<String> {
    let Some(root) = service::current_place().and_then(|it| it.root) else {
        return Vec::new();
    };
    let RepositoryPolicy {
        ignored, problem, ..
    } = RepositoryPolicy::read(&root);
    let ignored = (!ignored.is_empty()).then(|| {
        let keys = ignored.join(", ");
        format!("{FILE} of this project has keys that are ignored: {keys}; it may have off, exclude_paths, no_model and no_team")
    });
    let problem = problem
        .map(|it| format!("{FILE} of this project cannot be used, so Foreword is off in it: {it}"));
    ignored.into_iter().chain(problem).collect()
}
