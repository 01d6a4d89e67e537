//! The worker's tasks besides deriving: it deletes what is older than the settings allow, makes
//! backups, starts the embedder, and recovers a damaged database.
//!
//! It also reads from transcripts the events that hooks missed: when a session ends, when there is
//! nothing else to do, and before a session without an end event counts as interrupted. This is done
//! only where Foreword is switched on.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use foreword_core::files;
use foreword_core::fill::{self, FillRules};
use foreword_core::model::{EventKind, Millis};
use foreword_core::queue::Claim;
use foreword_core::safety::backup;
use foreword_core::spool;
use foreword_core::text;

use super::embed::Embedder;
use super::{Until, Worker};
use crate::config;
use crate::home::{self, Home};
use crate::log::{Fact, Log};
use crate::notice::Notice;
use crate::platform::deadline::{self, Parting};
use crate::service;
use crate::service::embed_client;
use crate::service::recover;
use crate::switch::{self, Switches, TranscriptGate};

const HOUR: Duration = Duration::from_hours(1);

/// The time between two housekeepings.
const HOUSEKEEPING: Millis = 6 * 3_600_000;
const BACKUP_LOOK: Millis = 3_600_000;
/// A backup that takes longer than this hangs.
const BACKUP_MAX: Duration = Duration::from_mins(10);

/// Recovers a damaged database, and logs it.
pub fn recover(home: &Home) -> anyhow::Result<()> {
    for line in recover::recover(home).context("could not recover a damaged database")? {
        Fact::Recovered.record(home, &line);
        Notice::Recovered.post(home, &line);
    }
    Ok(())
}

/// Completes a recovery that was interrupted.
pub fn finish_recovery(home: &Home) -> anyhow::Result<()> {
    if recover::is_unfinished(home) {
        recover(home)?;
    }
    Ok(())
}

/// Removes the files of a folder whose names contain `name` and that were last written before `kept`.
fn sweep(folder: &Path, name: &str, kept: Duration) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|it| it.modified()).ok();
        let age = modified.and_then(|it| it.elapsed().ok());
        if entry.file_name().to_string_lossy().contains(name) && age.is_some_and(|it| it > kept) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether `every` has passed since `last`, or the clock was set back.
fn is_time(last: Millis, every: Millis, now: Millis) -> bool {
    !(0..every).contains(&(now - last))
}

impl Worker<'_> {
    pub(super) fn keep_house(&mut self, now: Millis) {
        if !is_time(self.house_kept, HOUSEKEEPING, now) {
            return;
        }
        self.house_kept = now;
        let days = |days: u32| Millis::from(days) * 24 * 3_600_000;
        let retention = &self.config.retention;
        let (events_kept, journal_kept) =
            (days(retention.events_days), days(retention.journal_days));
        if let Err(error) = spool::sweep(&self.home.spool(), now) {
            self.log(&format!("housekeeping in the spool: {error}"));
        }
        // Half-written files of killed processes, and marks of sessions long over.
        sweep(&self.home.backups(), ".partial", HOUR);
        sweep(self.home.dir(), ".partial", HOUR);
        sweep(&self.home.withheld(), "", 60 * 24 * HOUR);
        self.fill_silent(now);
        if let Err(error) = self
            .deriver
            .store
            .keep_house(now, events_kept, journal_kept)
        {
            self.log(&format!("housekeeping: {error}"));
        }
    }

    /// Copies some of the notes that a search left; true if there are more.
    pub(super) fn copy_notes(&mut self) -> bool {
        let path = self.home.notes_left();
        let Ok(root) = files::read(&path, files::PATH_MAX as u64) else {
            return false;
        };
        let root = Path::new(OsStr::from_bytes(&root));
        let copied = service::copy_notes(self.home, root, &mut self.deriver.store);
        if let Err(error) = &copied {
            self.log(&format!("notes could not be copied: {error:#}"));
        }
        let more = copied.is_ok_and(|left| left > 0);
        if !more {
            let _ = std::fs::remove_file(path);
        }
        more
    }

    /// Starts the embedder if it is wanted, and lets it work while there is nothing else to do.
    pub(super) fn embed(&mut self, until: Until) {
        let wanted = until == Until::Idle && self.config.model.embed;
        self.embedder.take_if(|it| !it.is_reachable());
        if !wanted || Switches::read(self.home).everywhere() {
            self.embedder = None;
        } else if self.embedder.is_none() && embed_client::is_installed(self.home) {
            self.embedder = Embedder::start(self.home)
                .inspect_err(|error| self.log(&format!("search goes by words: {error:#}")))
                .ok();
        }
        if let Some(embedder) = &self.embedder {
            embedder.go_on();
        }
    }

    /// Makes a backup if one is due; fails if the memory turns out to be damaged.
    pub(super) fn back_up(&mut self, now: Millis) -> anyhow::Result<()> {
        let (backups, kept) = (self.home.backups(), self.config.backup.kept());
        let wanted = kept.daily + kept.weekly > 0;
        if !wanted || !is_time(self.backup_looked_at, BACKUP_LOOK, now) {
            return Ok(());
        }
        self.backup_looked_at = now;
        if !backup::is_due(&self.home.memory(), &backups, now) {
            return Ok(());
        }
        deadline::leave(Parting {
            line: Log::Worker.prepared(self.home, "a backup hung; the worker ended itself", ""),
            exit_code: 1,
            ..Parting::default()
        });
        deadline::start(BACKUP_MAX);
        let backed_up = self.back_up_now(now);
        deadline::stop();
        backed_up
    }

    fn back_up_now(&self, now: Millis) -> anyhow::Result<()> {
        let (backups, kept) = (self.home.backups(), self.config.backup.kept());
        let store = &self.deriver.store;
        // Check first: a copy would hide damage that is only in the indexes.
        if let Some(damage) = store.damage() {
            let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            return Err(rusqlite::Error::SqliteFailure(corrupt, Some(damage)).into());
        }
        let made = store.back_up(&backups, now);
        let rotated = made.and_then(|_| Ok(backup::rotate(&backups, kept, now)?));
        if let Err(error) = rotated {
            self.log(&format!("no backup was made: {error}"));
        }
        Ok(())
    }

    /// Fills a session whose end is in this claim. True if events were added.
    pub(super) fn fill_ended(&mut self, claim: &Claim, now: Millis) -> anyhow::Result<bool> {
        let session = &claim.host_session_id;
        let ends = |claim: &Claim| {
            claim
                .events
                .iter()
                .any(|it| it.kind == EventKind::SessionEnd)
        };
        if !ends(claim) {
            self.open.insert(session.clone());
            return Ok(false);
        }
        self.open.remove(session);
        self.fill(session, now)
            .context("could not queue what a transcript has")
    }

    /// Fills the sessions that have no end event yet. True if events were added.
    pub(super) fn fill_open(&mut self, now: Millis) -> bool {
        let open = std::mem::take(&mut self.open);
        self.fill_each(open, now)
    }

    /// Fills the sessions that will count as interrupted.
    pub(super) fn fill_silent(&mut self, now: Millis) {
        match self.deriver.store.silent_sessions(now) {
            Ok(sessions) => {
                self.fill_each(sessions, now);
            }
            Err(error) => self.log(&format!("could not look for silent sessions: {error}")),
        }
    }

    /// Fills each session; one that fails is logged and skipped.
    fn fill_each(&self, sessions: impl IntoIterator<Item = String>, now: Millis) -> bool {
        let mut any = false;
        for session in sessions {
            match self.fill(&session, now) {
                Ok(new) => any |= new,
                Err(error) => self.log(&format!("could not queue what a transcript has: {error}")),
            }
        }
        any
    }

    fn fill(&self, session: &str, now: Millis) -> rusqlite::Result<bool> {
        // Settings that cannot be read may contain exclusions, so nothing is added.
        let (Some(settings), _) = config::hook_settings(self.home) else {
            return Ok(false);
        };
        if switch::off_in_environment() || switch::is_withheld(self.home, session) {
            return Ok(false);
        }
        let gate = TranscriptGate::new(self.home, session, &settings.projects);
        let rules = FillRules {
            now,
            project_rules: &home::project_rules(settings.separate_worktrees),
            settings: &settings.capture,
            is_barred: &|event| gate.bars(event),
        };
        let count = fill::fill(&self.queue, &self.deriver.store, session, &rules)?;
        if count > 0 {
            let events = text::count(count as u64, "event", "events");
            self.log(&format!(
                "{events} that hooks missed came from a transcript"
            ));
        }
        Ok(count > 0)
    }
}
