//! Hooks: the commands that a host runs at every prompt and tool use, and waits for.
//!
//! A hook reads its input, makes an event of it, writes the event, prints an answer, wakes the
//! worker and exits. It has no async runtime, no network and no migration. Whatever goes wrong,
//! the exit code is 0 and the session goes on; the failure is logged for `foreword status`.
//! `answer` builds the text that a hook adds to the session from the memory.
//!
//! The host writes one JSON object to a pipe that may be slow, endless or never closed. Reading stops
//! at the end of that object, at the end of the pipe, or at `SIZE_MAX`.
//!
//! The whole hook has a deadline (`platform::deadline`). A hook that hangs is ended by it: an event that
//! was captured by then is spooled, and one that was not is counted as lost, since its secrets may
//! still be in it.

mod answer;

pub use answer::asks_agent;

use std::fmt;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::Duration;

use foreword_core::capture::{self, CaptureContext, Captured, Drop};
use foreword_core::db::OpenError;
use foreword_core::fault;
use foreword_core::host::{Hook, Host};
use foreword_core::model::Event;
use foreword_core::queue::Inlet;
use foreword_core::spool;
use uuid::Uuid;

use crate::config::policy::ProjectPolicy;
use crate::config::{self, HookSettings, provider};
use crate::home::{self, Home};
use crate::host::{self, Client};
use crate::log::{Fact, Log};
use crate::not_kept::{self, Reason};
use crate::platform;
use crate::platform::deadline::{self, Parting, PartingFile};
use crate::start;
use crate::switch::{self, Switches};

/// Runs a hook. It never fails: even a panic ends in exit code 0 and prints nothing.
pub fn run(hook: Hook, host: &'static Host) {
    std::panic::set_hook(Box::new(|_| {}));
    let _ = std::panic::catch_unwind(|| capture_and_answer(hook, host));
}

fn capture_and_answer(hook: Hook, host: &'static Host) {
    let client = Client::of(host);
    let plain_answer = (client.plain_answer)(hook);
    deadline::leave(Parting {
        answer: plain_answer,
        ..Parting::default()
    });
    deadline::outlive_signals();
    deadline::start(time_limit(hook));
    platform::make_files_private();
    let home = Home::from_env().filter(|home| home.distrust().is_none());
    let Some(home) = &home else {
        print(plain_answer);
        return;
    };
    let (event, settings) = match read_event(hook, client, home) {
        Ok(read) => read,
        Err(notice) => {
            let notice = notice.filter(|_| hook == Hook::Context);
            let answer = (client.answer)(hook, None, notice);
            print(answer.as_deref().unwrap_or(plain_answer));
            return;
        }
    };
    // The event before a tool runs is not stored; the one after it will be.
    let event_saved = hook != Hook::FileContext && {
        leave_event(home, hook, plain_answer, &event);
        save(home, hook, &event) != Saved::Lost
    };
    if !event_saved && hook != Hook::FileContext {
        let size = serde_json::to_vec(&event).map_or(0, |json| json.len());
        not_kept::count(home, Reason::CouldNotWrite, hook, size);
    }
    fault::point("hook:after-insert");
    deadline::leave(Parting {
        answer: plain_answer,
        count: not_kept::prepared(home, Reason::LateReminder, hook),
        ..Parting::default()
    });
    let answer = answer::answer(home, client, hook, &event, &settings);
    let receipt = answer.as_ref().and_then(|answer| answer.receipt(&event));
    // The receipt is written before the reminder is printed: of two hooks that run at the same
    // time, only the one whose receipt is new shows the reminder.
    let receipt_saved = receipt.map(|receipt| save(home, hook, &receipt));
    let is_new_receipt = receipt_saved == Some(Saved::New);
    deadline::leave(Parting::default());
    match answer {
        Some(answer) if hook == Hook::Context || is_new_receipt => print(&answer.text),
        _ => print(plain_answer),
    }
    if event_saved || is_new_receipt {
        start::wake_worker(home);
    }
}

/// The longest time that a hook takes. One host ends its last hook after a second.
fn time_limit(hook: Hook) -> Duration {
    // A build for tests is slow, and several run at once.
    #[cfg(any(debug_assertions, feature = "faults"))]
    if let Ok(Ok(ms)) = std::env::var("FOREWORD_HOOK_WITHIN_MS").map(|it| it.parse()) {
        return Duration::from_millis(ms);
    }
    match hook {
        Hook::Cleanup => Duration::from_millis(500),
        _ => Duration::from_secs(1),
    }
}

/// If the hook is ended from now on, its event is spooled.
fn leave_event(home: &Home, hook: Hook, answer: &'static str, event: &Event) {
    let Ok(json) = serde_json::to_vec(event) else {
        return;
    };
    let spool = home.spool();
    let [partial, path] = spool::paths(&spool, event);
    deadline::leave(Parting {
        answer,
        file: PartingFile::new(&[home.dir(), &spool], [&partial, &path], json.leak()),
        ..event_lost(home, hook)
    });
}

/// If the hook is ended from now on, its event counts as lost.
fn event_lost(home: &Home, hook: Hook) -> Parting {
    let limit = time_limit(hook).as_secs_f32();
    let before = format!(
        "{}: not complete after {limit} s; an event of ",
        hook.name()
    );
    Parting {
        line: Log::Hook.prepared(home, &before, " bytes was lost"),
        count: not_kept::prepared(home, Reason::Deadline, hook),
        ..Parting::default()
    }
}

/// Reads the hook's input. Returns the event and the settings that apply to it; an error if nothing
/// may be stored, with a notice for the user if the project's repository is the reason.
fn read_event(
    hook: Hook,
    client: &Client,
    home: &Home,
) -> Result<(Event, HookSettings), Option<String>> {
    if client.is_duplicate(home, host::project_dir().as_deref()) {
        return Err(None);
    }
    let switches = Switches::read(home);
    if switch::off_in_environment() || switches.everywhere() {
        not_kept::count_off(home, hook);
        return Err(None);
    }
    let count = |reason: Reason, bytes: usize| not_kept::count(home, reason, hook, bytes);
    if switch::own_child() {
        count(Reason::OwnRun, 0);
        return Err(None);
    }
    if hook != Hook::FileContext {
        deadline::leave(Parting {
            answer: (client.plain_answer)(hook),
            ..event_lost(home, hook)
        });
    }
    let input = read_input();
    let size = input.bytes.len();
    let Some(mut settings) = settings(hook, home) else {
        count(Reason::BrokenSettings, size);
        withhold(client.host, home, &input);
        return Err(None);
    };
    let mut captured = capture_event(hook, client.host, &input, &settings);
    // Only for Foreword's own tools it is looked up who writes the memory.
    if captured == Captured::Dropped(Drop::OwnTool) && provider::is_agent(home) {
        settings.capture.keeps_remember = true;
        captured = capture_event(hook, client.host, &input, &settings);
    }
    match captured {
        Captured::Event(event) if is_own_run(&event, home) => {
            count(Reason::OwnRun, size);
            Err(None)
        }
        Captured::Event(event) => {
            if switches.covers(event.project.as_deref(), &event.host_session_id) {
                not_kept::count_off(home, hook);
                return Err(None);
            }
            let policy = ProjectPolicy::of_event(&event, &settings.projects);
            if let Some(why) = policy.off() {
                not_kept::count_off(home, hook);
                switch::withhold(home, &event.host_session_id);
                // The user's own settings are no news to the user.
                let by_repository = policy.repository.policy.off;
                return Err(by_repository.then(|| format!("Foreword is off here: {why}.")));
            }
            if policy.excludes(&event) {
                count(Drop::ExcludedPath.into(), size);
                switch::withhold(home, &event.host_session_id);
                return Err(None);
            }
            if event.payload.redacted > 0 {
                count(Reason::SecretPart, 0);
            }
            if !event.payload.cut.is_empty() {
                count(Reason::LargePart, 0);
            }
            Ok((*event, settings))
        }
        Captured::Dropped(drop) if drop.is_intended() => {
            count(drop.into(), size);
            if matches!(drop, Drop::ExcludedProject | Drop::ExcludedPath) {
                withhold(client.host, home, &input);
            }
            Err(None)
        }
        Captured::Dropped(drop) => {
            let ending = input.ending;
            count(ending.reason(), size);
            let line = format!("{}: {drop} ({size} bytes, {ending})", hook.name());
            Fact::PayloadUnexpected.record(home, &line);
            Err(None)
        }
    }
}

fn withhold(host: &Host, home: &Home, input: &Input) {
    if let Some(session) = capture::session_of(host, &input.bytes) {
        switch::withhold(home, &session);
    }
}

/// Whether the event comes from the memory agent, by the folder that only it runs in. This holds
/// also if the variable that marks its processes was lost on the way.
fn is_own_run(event: &Event, home: &Home) -> bool {
    let agent = home.agent();
    let cwd = event.cwd.as_deref().map(PathBuf::from);
    cwd.into_iter()
        .chain(host::project_dir())
        // The host sends paths with their links resolved.
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
        let consequence = match settings {
            Some(_) => "the other settings hold",
            None => "nothing is stored until that is corrected, because something may be excluded",
        };
        Log::Hook.line(home, &format!("{}: {problem}; {consequence}", hook.name()));
    }
    settings
}

fn capture_event(
    hook: Hook,
    host: &'static Host,
    input: &Input,
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

/// The result of writing an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Saved {
    New,
    /// The event was in the queue already.
    Known,
    Lost,
}

/// Writes an event into the queue, or into the spool if the queue cannot be written.
fn save(home: &Home, hook: Hook, event: &Event) -> Saved {
    fault::point("hook:before-insert");
    while fault::planted("queue-hangs") {
        std::thread::park();
    }
    let queued = Inlet::open(&home.queue()).and_then(|inlet| {
        let is_new = inlet.push(event)?;
        inlet.leave();
        Ok(if is_new { Saved::New } else { Saved::Known })
    });
    let error = match queued {
        Ok(saved) => return saved,
        Err(error) => error,
    };
    if !home.make() {
        return Saved::Lost;
    }
    // Before the disk is full: once there is a file of counters, a count needs no room.
    not_kept::begin(home);
    // A new data directory has no queue yet; that is not logged.
    if !matches!(error, OpenError::Missing(_)) {
        Log::Hook.line(
            home,
            &format!("{}: queue.db: {error}; the event was spooled", hook.name()),
        );
    }
    match spool::write(&home.spool(), event) {
        Ok(()) => Saved::New,
        Err(error) => {
            Log::Hook.line(
                home,
                &format!("{}: spool: {error}; an event was lost", hook.name()),
            );
            Saved::Lost
        }
    }
}

fn print(answer: &str) {
    if !answer.is_empty() {
        // The host may have closed its end of the pipe already; that is no error.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(answer.as_bytes()).and_then(|()| out.flush());
    }
}

/// The largest input in bytes, more than any tool use has.
const SIZE_MAX: usize = 64 << 20;

#[derive(Debug)]
struct Input {
    bytes: Vec<u8>,
    ending: InputEnding,
}

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputEnding {
    Complete,
    Closed,
    TooLarge,
}

impl InputEnding {
    /// Why input that ended like this and could not be understood was not kept.
    fn reason(self) -> Reason {
        match self {
            InputEnding::Complete | InputEnding::Closed => Reason::NotUnderstood,
            InputEnding::TooLarge => Reason::TooLarge,
        }
    }
}

impl fmt::Display for InputEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputEnding::Complete => "complete",
            InputEnding::Closed => "input ended early",
            InputEnding::TooLarge => "too large",
        })
    }
}

fn read_input() -> Input {
    let descriptor = std::io::stdin().as_raw_fd();
    let mut bytes = Vec::new();
    let mut object = Object::default();
    let ending = loop {
        let start = bytes.len();
        match platform::read_some(descriptor, &mut bytes) {
            Ok(0) => break InputEnding::Closed,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // Some hosts hand on a pipe that does not wait.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                platform::wait_readable(descriptor);
                continue;
            }
            Err(_) => break InputEnding::Closed,
        }
        deadline::note_read(bytes.len());
        if object.ends_in(&bytes[start..]) {
            break InputEnding::Complete;
        }
        if bytes.len() > SIZE_MAX {
            break InputEnding::TooLarge;
        }
    };
    Input { bytes, ending }
}

/// Scans for the end of a JSON value by its brackets and strings, without parsing it.
#[derive(Default)]
struct Object {
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Object {
    /// Scans the next piece of input; true if the value ends in it.
    fn ends_in(&mut self, piece: &[u8]) -> bool {
        // Not `memchr2`: it queries the features of the processor, and under a hypervisor each
        // query costs some microseconds (measured: 8, for ten queries).
        let quote_or_escape = memchr::arch::all::memchr::Two::new(b'"', b'\\');
        let mut at = 0;
        while at < piece.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.in_string {
                let Some(next) = quote_or_escape.find(&piece[at..]) else {
                    return false;
                };
                at += next;
                match piece[at] {
                    b'"' => self.in_string = false,
                    _ => self.escaped = true,
                }
            } else {
                match piece[at] {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return true;
                        }
                    }
                    _ => {}
                }
            }
            at += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Object;

    #[test]
    fn an_object_ends_at_its_last_bracket_however_it_is_split() {
        let text = br#" {"a":"}\"]\\","b":[{"c":1}]} trailing"#;
        let end = text.iter().rposition(|&byte| byte == b'}').unwrap();
        for cut in 0..=end {
            let mut object = Object::default();
            let (first, second) = text.split_at(cut);
            assert!(!object.ends_in(first), "cut at {cut}");
            assert!(object.ends_in(second), "cut at {cut}");
        }
    }
}
