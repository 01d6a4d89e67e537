//! Checks that sessions really reach Foreword: settings can look right, and still the host runs no
//! hook.

use std::path::{Path, PathBuf};

use foreword_core::capture;
use foreword_core::model::Millis;
use foreword_core::project;
use foreword_core::queue::Queue;
use foreword_core::spool;
use foreword_core::store::Store;
use foreword_core::text::modified_at;

use super::host::Hooks;
use super::{Diagnosis, Examination};
use crate::config;
use crate::config::policy::ProjectPolicy;
use crate::home;
use crate::host::Client;
use crate::install::InstallRecord;
use crate::switch::{self, OffTimes, Switches};

/// So many of the newest sessions must have left no event. A single one may have run without settings,
/// or with FOREWORD_OFF, which leaves no trace.
const UNSEEN_MIN: usize = 3;
/// The most transcripts that are looked into.
const READ_MAX: usize = 50;

pub fn sessions_unseen(exam: &Examination) -> Option<Diagnosis> {
    let hooks = Hooks::find(exam).filter(Hooks::any)?;
    let client = hooks.place.client;
    let installed = InstallRecord::written_at(&exam.home, &hooks.place)?;
    // Spooled events are not read here; other checks report those that wait too long.
    if spool::waiting(&exam.home.spool()).is_ok_and(|it| !it.is_empty()) {
        return None;
    }
    let newest = newest_transcripts(client, installed);
    let expected = newest
        .iter()
        .filter_map(|path| Session::of(client, path))
        .filter(|session| session.at > installed && session.should_be_known(exam));
    let expected: Vec<Session> = expected.take(UNSEEN_MIN).collect();
    let unseen = expected.first()?;
    if expected.iter().any(|session| session.is_known(exam)) {
        return None;
    }
    let (title, path) = (client.host.title, unseen.transcript.display());
    let command = client.command;
    Diagnosis::advised(
        format!(
            "`{command} doctor` names settings that {title} does not load; then start a new session. Sessions that ran with FOREWORD_OFF=1 or without the settings are no reason to worry"
        ),
        format!(
            "{title} is connected, but no event came from its newest sessions since the install, such as {path}"
        ),
    )
}

/// The transcripts that were written to after the install, the newest first.
fn newest_transcripts(client: &Client, installed: Millis) -> Vec<PathBuf> {
    let changed = |path: &Path| modified_at(&std::fs::metadata(path).ok()?);
    let paths = (client.transcripts)().into_iter();
    let mut paths: Vec<(Millis, PathBuf)> = paths
        .filter_map(|path| Some((changed(&path)?, path)))
        .filter(|(at, _)| *at > installed)
        .collect();
    paths.sort_unstable();
    paths.reverse();
    let paths = paths.into_iter().take(READ_MAX);
    paths.map(|(_, path)| path).collect()
}

/// The first input in a transcript.
struct Session {
    id: String,
    transcript: PathBuf,
    cwd: PathBuf,
    at: Millis,
}

impl Session {
    /// None if nobody asked for anything in it.
    fn of(client: &Client, transcript: &Path) -> Option<Session> {
        let id = transcript.file_stem()?.to_str()?;
        let mut first = None;
        let _ = client.host.replay(transcript, id, |input| {
            first = Some(input);
            Err(())
        });
        let first = first?;
        let input = (client.host.read)(first.input.as_bytes())?;
        Some(Session {
            id: id.to_owned(),
            transcript: transcript.to_owned(),
            cwd: PathBuf::from(&*input.cwd?),
            at: first.at,
        })
    }

    /// Whether hooks should have stored something of it: it is not the memory agent's, and nothing
    /// that is recorded switches Foreword off for it.
    fn should_be_known(&self, exam: &Examination) -> bool {
        let (Some(settings), _) = config::hook_settings(&exam.home) else {
            return false;
        };
        let rules = home::project_rules(settings.separate_worktrees);
        let place = project::resolve(&self.cwd, &rules);
        let key = place.project.as_deref();
        let agent = exam.home.agent();
        let agent = agent.canonicalize().unwrap_or(agent);
        let policy = ProjectPolicy::of(place.root.as_deref(), key, &settings.projects);
        !self.cwd.starts_with(agent)
            && !Switches::read(&exam.home).covers(key, &self.id)
            && !OffTimes::read(&exam.home).cover(key, &self.id, self.at)
            && !capture::is_excluded(&place, &settings.capture.exclude_projects)
            && !switch::is_withheld(&exam.home, &self.id)
            && policy.off().is_none()
    }

    /// Whether an event of it is stored or waits. A database that cannot be read is reported by
    /// other checks.
    fn is_known(&self, exam: &Examination) -> bool {
        let store = Store::inspect(&exam.home.memory());
        let queue = Queue::inspect(&exam.home.queue());
        let (Ok(store), Ok(queue)) = (store, queue) else {
            return true;
        };
        let is_stored = |store: Store| store.sessions_named(&self.id).map(|it| !it.is_empty());
        let waits = |queue: Queue| queue.has_session(&self.id);
        store.is_some_and(|it| is_stored(it).unwrap_or(true))
            || queue.is_some_and(|it| waits(it).unwrap_or(true))
    }
}
