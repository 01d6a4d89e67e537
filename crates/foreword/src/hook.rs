//! The short road: what Claude Code runs at every prompt and tool use.
//!
//! Read the input, make an event of it, write it down, answer, wake the worker,
//! leave. No runtime, no network, no migration; whatever goes wrong, the exit code
//! is 0 and the session goes on. What could not be done is left as a line for
//! `foreword status`.

mod stdin;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use foreword_core::capture::{self, Captured, Hook, World};
use foreword_core::db::OpenError;
use foreword_core::fault;
use foreword_core::index::{self, Request, Source};
use foreword_core::model::Event;
use foreword_core::queue::Inlet;
use foreword_core::spool;
use foreword_core::store::Store;
use uuid::Uuid;

use crate::config;
use crate::home::{self, Home};
use crate::install::record;
use crate::log::Log;
use crate::platform;
use crate::start;
use crate::switch::{self, Switches};

/// The host cuts what a hook prints at 10,000 characters; we stay below by choosing.
const OUTPUT_MAX: usize = 9_500;

const OWN_RUN: &str = "one of Foreword's own agent runs";

/// Runs a hook. There is no way for it to fail.
pub fn run(hook: Hook) {
    std::panic::set_hook(Box::new(|_| {}));
    let _ = std::panic::catch_unwind(|| road(hook));
}

fn road(hook: Hook) {
    platform::make_files_private();
    let home = Home::from_env();
    let told = home
        .as_ref()
        .and_then(|home| Some((home, take(hook, home)?)));
    let Some((home, event)) = told else {
        print(plain_answer(hook));
        return;
    };
    let kept = keep(home, hook, &event);
    fault::point("hook:after-insert");
    match hook {
        Hook::Context => print(&context(home, &event)),
        _ => print(plain_answer(hook)),
    }
    if kept {
        start::wake_worker(home);
    }
}

/// What this hook was told, if it is to be kept.
fn take(hook: Hook, home: &Home) -> Option<Event> {
    if switch::off_in_environment() || is_second(home) {
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
    match capture_event(hook, &input, home)? {
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
            Some(*event)
        }
        Captured::Dropped(drop) if drop.is_intended() => {
            count(&drop.to_string());
            None
        }
        Captured::Dropped(drop) => {
            let (size, ending) = (input.bytes.len(), input.ending);
            let line = format!("{}: {drop} ({size} bytes, {ending})", hook.name());
            Log::Hook.line(home, &line);
            None
        }
    }
}

/// Where the memory agent runs, nobody else does: this holds also if the mark in the
/// environment was lost on the way.
fn is_own_run(event: &Event, home: &Home) -> bool {
    let agent = home.agent();
    let cwd = event.cwd.as_deref().map(PathBuf::from);
    cwd.into_iter()
        .chain(project_dir())
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

/// A hook of the plugin, beside hooks from the settings that tell the same: they do
/// the work. Only a plugin's hook pays for the look.
fn is_second(home: &Home) -> bool {
    std::env::var_os("CLAUDE_PLUGIN_ROOT").is_some()
        && record::stands(home, project_dir().as_deref())
}

fn project_dir() -> Option<PathBuf> {
    std::env::var_os("CLAUDE_PROJECT_DIR")
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from)
}

fn capture_event(hook: Hook, input: &stdin::Input, home: &Home) -> Option<Captured> {
    let (settings, problem) = config::hook_settings(home);
    if let Some(problem) = problem {
        let went_on = match settings {
            Some(_) => "the other settings hold",
            None => "nothing is kept until it is mended, since something may be excluded",
        };
        Log::Hook.line(home, &format!("{}: {problem}; {went_on}", hook.name()));
    }
    let settings = settings?;
    let world = World {
        now: home::now(),
        event_id: Uuid::now_v7(),
        project_dir: project_dir(),
        rules: home::project_rules(settings.separate_worktrees),
    };
    Some(capture::capture(
        hook,
        &input.bytes,
        &world,
        &settings.capture,
    ))
}

/// Writes the event down: in the queue, else in the spool.
fn keep(home: &Home, hook: Hook, event: &Event) -> bool {
    fault::point("hook:before-insert");
    let queued = Inlet::open(&home.queue()).and_then(|inlet| {
        inlet.push(event)?;
        inlet.leave();
        Ok(())
    });
    let Err(error) = queued else {
        return true;
    };
    // On a fresh home there is no queue yet: nothing to mention.
    if !matches!(error, OpenError::Missing(_)) {
        Log::Hook.line(
            home,
            &format!("{}: queue.db: {error}; the event was spooled", hook.name()),
        );
    }
    match spool::write(&home.spool(), event) {
        Ok(()) => true,
        Err(error) => {
            Log::Hook.line(
                home,
                &format!("{}: spool: {error}; an event was lost", hook.name()),
            );
            false
        }
    }
}

/// What hooks print when they have nothing to add.
fn plain_answer(hook: Hook) -> &'static str {
    match hook {
        Hook::Save => r#"{"continue":true,"suppressOutput":true}"#,
        // A Stop hook that prints prolongs the turn; a SessionEnd hook that prints is an error.
        Hook::Context | Hook::New | Hook::Summary | Hook::Cleanup => "",
    }
}

/// The index for a session that starts, as the host wants it; nothing if there is nothing to say.
fn context(home: &Home, event: &Event) -> String {
    // A memory that we cannot read (newer, damaged) is one that says nothing.
    let store = Store::look(&home.memory()).ok().flatten();
    let program = program();
    let request = Request {
        program: &program,
        project: event.project.as_deref(),
        host_session_id: &event.host_session_id,
        source: Source::parse(event.payload.source.as_deref()),
        branch: event.branch.as_deref(),
        root: event.root.as_deref().map(Path::new),
    };
    let Ok(Some(index)) = index::index(store.as_ref(), &request) else {
        return String::new();
    };
    let answer = serde_json::json!({
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": index.text}
    });
    let answer = answer.to_string();
    if answer.chars().count() > OUTPUT_MAX {
        Log::Hook.line(
            home,
            "context: the index came out too long and was left out",
        );
        return String::new();
    }
    answer
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
