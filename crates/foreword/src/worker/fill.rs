//! Reads from transcripts the events that hooks missed: when a session ends, when there is nothing
//! else to do, and before a session without an end event counts as interrupted. This is done only
//! where Foreword is switched on.

use anyhow::Context as _;
use foreword_core::fill::{self, FillRules};
use foreword_core::model::{EventKind, Millis};
use foreword_core::queue::Claim;
use foreword_core::text;

use super::Worker;
use crate::config;
use crate::home;
use crate::switch::{self, Switches};

impl Worker<'_> {
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
        let switches = Switches::read(self.home);
        // Settings that cannot be read may contain exclusions, so nothing is added.
        let (Some(settings), _) = config::hook_settings(self.home) else {
            return Ok(false);
        };
        let off = switch::off_in_environment() || switches.everywhere();
        if off || switch::is_withheld(self.home, session) {
            return Ok(false);
        }
        let rules = FillRules {
            now,
            since: switch::on_since(self.home),
            project_rules: &home::project_rules(settings.separate_worktrees),
            settings: &settings.capture,
            is_off: &|project| switches.covers(project, session),
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
