//! The short road: the commands that a host runs at every prompt and tool use.
//!
//! Read the input, make an event of it, write it down, answer, wake the worker,
//! leave. No runtime, no network, no migration; whatever goes wrong, the exit code
//! is 0 and the session goes on. What could not be done is left as a line for
//! `foreword status`. `added` is what a hook tells the agent from the memory.

mod added;
mod stdin;

use std::io::Write as _;
use std::path::PathBuf;

use foreword_core::capture::{self, CaptureContext, Captured, Drop};
use foreword_core::db::OpenError;
use foreword_core::fault;
use foreword_core::host::{Hook, Host};
use foreword_core::model::Event;
use foreword_core::queue::Inlet;
use foreword_core::spool;
use uuid::Uuid;

use crate::config::{self, HookSettings};
use crate::home::{self, Home};
use crate::host::{self, Client};
use crate::log::{Fact, Log};
use crate::platform;
use crate::start;
use crate::switch::{self, Switches};
use added::added;

const OWN_RUN: &str = "one of Foreword's own agent runs";

/// Runs a hook. There is no way for it to fail.
pub fn run(hook: Hook, host: &'static Host) {
    std::panic::set_hook(Box::new(|_| {}));
    let _ = std::panic::catch_unwind(|| road(hook, host));
}

fn road(hook: Hook, host: &'static Host) {
    platform::make_files_private();
    let client = Client::of(host);
    let home = Home::from_env();
    let told = home
        .as_ref()
        .and_then(|home| Some((home, take(hook, client, home)?)));
    let Some((home, (event, settings))) = told else {
        print((client.plain_answer)(hook));
        return;
    };
    // What is about to happen to a file is told when it has happened.
    let mut kept = hook != Hook::FileContext && keep(home, hook, &event) != Kept::Lost;
    fault::point("hook:after-insert");
    let added = added(home, client, hook, &event, &settings.show);
    let receipt = added.as_ref().and_then(|it| it.receipt(&event));
    // First the receipt: of two hooks at once, one reminds.
    let written = receipt.map(|receipt| keep(home, hook, &receipt));
    kept |= written == Some(Kept::New);
    match added {
        Some(added) if hook == Hook::Context || written == Some(Kept::New) => print(&added.answer),
        _ => print((client.plain_answer)(hook)),
    }
    if kept {
        start::wake_worker(home);
    }
}

/// What this hook was told, if it is to be kept, and by which settings.
fn take(hook: Hook, client: &Client, home: &Home) -> Option<(Event, HookSettings)> {
    if switch::off_in_environment() || client.is_second(home, host::project_dir().as_deref()) {
        return None;
    }
    let switches = Switches::read(home);
    if switches.everywhere() {
        return None;
    }
    // While something is switched off, nothing is counted: it might be just that.
    let count = |reason: &str| {
        if switches.is_empty() {
            Log::Dropped.line(home, reason);
        }
    };
    if switch::own_child() {
        count(OWN_RUN);
        return None;
    }
    let input = stdin::read();
    let Some(settings) = settings(hook, home) else {
        withhold(client.host, home, &input);
        return None;
    };
    match capture_event(hook, client.host, &input, &settings) {
        Captured::Event(event) if is_own_run(&event, home) => {
            count(OWN_RUN);
            None
        }
        Captured::Event(event) => {
            if switches.covers(event.project.as_deref(), &event.host_session_id) {
                return None;
            }
            if event.payload.redacted > 0 {
                count("a secret or private part of an event");
            }
            if !event.payload.cut.is_empty() {
                count("a part of an event that was too large");
            }
            Some((*event, settings))
        }
        Captured::Dropped(drop) if drop.is_intended() => {
            count(&drop.to_string());
            if matches!(drop, Drop::ExcludedProject | Drop::ExcludedPath) {
                withhold(client.host, home, &input);
            }
            None
        }
        Captured::Dropped(drop) => {
            let (size, ending) = (input.bytes.len(), input.ending);
            let line = format!("{}: {drop} ({size} bytes, {ending})", hook.name());
            Fact::PayloadUnexpected.record(home, &line);
            None
        }
    }
}

fn withhold(host: &Host, home: &Home, input: &stdin::Input) {
    if let Some(session) = capture::session_of(host, &input.bytes) {
        switch::withhold(home, &session);
    }
}

/// Where the memory agent runs, nobody else does: this holds also if the mark in the
/// environment was lost on the way.
fn is_own_run(event: &Event, home: &Home) -> bool {
    let agent = home.agent();
    let cwd = event.cwd.as_deref().map(PathBuf::from);
    cwd.into_iter()
        .chain(host::project_dir())
        // The host tells paths with their links resolved.
        .any(|dir| {
            let resolved = || {
                agent
                    .canonicalize()
                    .is_ok_and(|agent| dir.starts_with(agent))
            };
            dir.starts_with(&agent) || (dir.ends_with("agent") && resolved())
        })
}

fn settings(hook: Hook, home: &Home) -> Option<HookSettings> {
    let (settings, problem) = config::hook_settings(home);
    if let Some(problem) = problem {
        let went_on = match settings {
            Some(_) => "the other settings hold",
            None => "nothing is kept until it is mended, since something may be excluded",
        };
        Log::Hook.line(home, &format!("{}: {problem}; {went_on}", hook.name()));
    }
    settings
}

fn capture_event(
    hook: Hook,
    host: &'static Host,
    input: &stdin::Input,
    settings: &HookSettings,
) -> Captured {
    let context = CaptureContext {
        host,
        now: home::now(),
        event_id: Uuid::now_v7(),
        project_dir: host::project_dir(),
        rules: home::project_rules(settings.separate_worktrees),
    };
    capture::capture(hook, &input.bytes, &context, &settings.capture)
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    New,
    /// It was in the queue already.
    Known,
    Lost,
}

/// Writes the event down: in the queue, else in the spool.
fn keep(home: &Home, hook: Hook, event: &Event) -> Kept {
    fault::point("hook:before-insert");
    let queued = Inlet::open(&home.queue()).and_then(|inlet| {
        let is_new = inlet.push(event)?;
        inlet.leave();
        Ok(if is_new { Kept::New } else { Kept::Known })
    });
    let error = match queued {
        Ok(kept) => return kept,
        Err(error) => error,
    };
    // On a fresh home there is no queue yet: nothing to mention.
    if !matches!(error, OpenError::Missing(_)) {
        Log::Hook.line(
            home,
            &format!("{}: queue.db: {error}; the event was spooled", hook.name()),
        );
    }
    match spool::write(&home.spool(), event) {
        Ok(()) => Kept::New,
        Err(error) => {
            Fact::EventLost.record(
                home,
                &format!("{}: spool: {error}; an event was lost", hook.name()),
            );
            Kept::Lost
        }
    }
}

/// How the agent can run this program from a shell: it need not be on its PATH.
pub fn program() -> String {
    let Ok(program) = std::env::current_exe() else {
        return "foreword".to_owned();
    };
    let below_home = std::env::var_os("HOME").and_then(|home| {
        let rest = program.strip_prefix(home).ok()?;
        Some(format!("~/{}", rest.display()))
    });
    below_home.unwrap_or_else(|| program.display().to_string())
}

fn print(answer: &str) {
    if !answer.is_empty() {
        // The host may have closed its end already; that is its business.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(answer.as_bytes()).and_then(|()| out.flush());
    }
}
