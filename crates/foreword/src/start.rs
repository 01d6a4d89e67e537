//! Wakes the worker, or starts one: the last step of a hook. Commands also end the running worker, wait
//! for its lock, or work while none runs.
//!
//! A worker is running if its lock is held. A worker that dies at its start must not be started again
//! by every hook, so a hook writes a stamp before it starts one, and the pause until the next start
//! grows each time; a worker that has started removes the stamp. Commands ignore the stamp.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use foreword_core::files::{self, SMALL_MAX};
use foreword_core::model::Millis;
use foreword_core::queue::Queue;
use foreword_core::spool;

use crate::config::Config;
use crate::config::provider;
use crate::home::{self, Home};
use crate::platform::{self, Lock};

/// The message that wakes a worker.
pub const WAKE: &[u8] = b"wake";

/// Wakes the worker, or starts one if none is running.
pub fn wake_worker(home: &Home) {
    match Lock::holder(&home.lock()) {
        Ok(Some(_)) => {
            // A lost message does no harm: a worker looks at the queue before it ends.
            let _ = send(&home.socket());
        }
        _ => {
            if stamp(home) {
                let _ = start_worker(home);
            }
        }
    }
}

fn send(socket: &Path) -> io::Result<()> {
    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    sender.send_to(WAKE, socket)?;
    Ok(())
}

/// Starts a worker, detached from this process and from the host. Returns its process id.
pub fn start_worker(home: &Home) -> io::Result<u32> {
    let (program, _) = platform::program()?;
    let choice = provider::choose(&Config::tolerant(home).0, home);
    let mut environment = environment_for(choice.name);
    environment.retain(|(name, _)| name != "FOREWORD_HOME");
    environment.push(("FOREWORD_HOME".into(), home.dir().into()));
    platform::spawn_detached(&program, &["worker", "run", "--detached"], &environment)
}

/// The variables of our environment that a worker with this provider inherits: the common ones and
/// those of the provider. It gets neither the host's session id, messaging socket and token nor the
/// keys of other providers.
pub fn environment_for(provider: provider::Name) -> Vec<(OsString, OsString)> {
    allowed(provider, std::env::vars_os().collect())
}

/// The variables that every worker inherits; `*` stands for any end.
#[rustfmt::skip] // A list is read in a line.
const FOR_ALL: &[&str] = &[
    "PATH", "HOME", "USER", "SHELL", "TMPDIR", "LANG", "LC_*", "XDG_*", "http_proxy", "https_proxy",
    "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "FOREWORD_*",
];

fn allowed(
    provider: provider::Name,
    mut environment: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let row = provider.row();
    let is_on = |switch: &str| {
        environment
            .iter()
            .any(|(name, value)| name == switch && !value.is_empty() && value != "0")
    };
    let mut patterns = [FOR_ALL, row.inherits].concat();
    for (switch, names) in row.inherits_if {
        if is_on(switch) {
            patterns.extend(*names);
        }
    }
    let wanted = |name: &str| {
        patterns
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == *pattern,
            })
    };
    environment.retain(|(name, _)| name.to_str().is_some_and(wanted));
    environment
}

/// Writes the stamp. Returns whether a hook may start a worker now.
fn stamp(home: &Home) -> bool {
    let path = home.start_stamp();
    let now = home::now();
    let last = files::read_text(&path, SMALL_MAX)
        .ok()
        .and_then(|text| Stamp::parse(&text));
    if let Some(last) = &last
        && (last.at..last.at + last.pause()).contains(&now)
    {
        return false;
    }
    let stamp = Stamp {
        tries: last.map_or(0, |last| last.tries) + 1,
        at: now,
    };
    std::fs::write(path, format!("{} {}", stamp.tries, stamp.at)).is_ok()
}

/// Whether a worker was started that may still come up: the first try of a series, not one of several
/// that failed.
pub fn may_be_starting(home: &Home) -> bool {
    failed_starts(home) <= 1
}

/// How many times in a row hooks started a worker that failed to start.
pub fn failed_starts(home: &Home) -> u32 {
    let stamp = files::read_text(&home.start_stamp(), SMALL_MAX).ok();
    let stamp = stamp.and_then(|text| Stamp::parse(&text));
    stamp.map_or(0, |stamp| stamp.tries)
}

/// Removes the stamp after a worker has started, so that the next one may be started at once.
pub fn clear_stamp(home: &Home) {
    let _ = std::fs::remove_file(home.start_stamp());
}

#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    tries: u32,
    at: Millis,
}

impl Stamp {
    fn parse(text: &str) -> Option<Stamp> {
        let (tries, at) = text.split_once(' ')?;
        Some(Stamp {
            tries: tries.parse().ok()?,
            at: at.parse().ok()?,
        })
    }

    /// The pause until the next start: one second, doubled by each failed start, at most ten minutes.
    fn pause(&self) -> Millis {
        (1000 << self.tries.saturating_sub(1).min(10)).min(600_000)
    }
}

/// How long `start` and `stop` wait for the lock to be taken or released.
const PATIENCE: Duration = Duration::from_secs(15);

/// Whether there are events in the queue or the spool that are still to be processed.
pub fn anything_waits(home: &Home) -> bool {
    let spooled = spool::waiting(&home.spool()).is_ok_and(|files| !files.is_empty());
    let queued = Queue::look(&home.queue())
        .ok()
        .flatten()
        .and_then(|queue| queue.counts().ok())
        .is_some_and(|counts| counts.pending > 0);
    spooled || queued
}

/// The result of ending the running worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// No worker was running.
    Nobody,
    /// The worker has ended.
    Gone,
    /// The worker has ended, and this process has taken its place.
    Replaced(u32),
}

/// Ends the running worker and waits until it is gone.
pub fn end_running(home: &Home) -> anyhow::Result<Ended> {
    let Some(pid) = Lock::holder(&home.lock())? else {
        return Ok(Ended::Nobody);
    };
    ensure!(
        pid != 0,
        "a worker runs where this process cannot see it, such as in a container; end it there"
    );
    // The kernel reports the holder of the lock, so this process id is neither stale nor reused.
    platform::terminate(pid).with_context(|| format!("could not end process {pid}"))?;
    if let Some(pid) = wait_for_lock(home, |holder| holder != Some(pid))? {
        Ok(Ended::Replaced(pid))
    } else if Lock::holder(&home.lock())?.is_some() {
        bail!("process {pid} does not end; end it with `kill -9 {pid}`, nothing will be lost");
    } else {
        Ok(Ended::Gone)
    }
}

/// Runs `work` while no worker runs: ends a running worker first and holds its lock meanwhile. Wakes
/// a worker afterwards if events wait.
pub fn alone<T>(home: &Home, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let lock = take_lock(home)?;
    let result = work();
    drop(lock);
    if anything_waits(home) {
        wake_worker(home);
    }
    result
}

/// How often a worker is ended before giving up. A hook may start another one before this process
/// takes the lock.
const TRIES: u32 = 5;

fn take_lock(home: &Home) -> anyhow::Result<Lock> {
    for _ in 0..TRIES {
        end_running(home)?;
        if let Ok(lock) = Lock::acquire(&home.lock()).context("could not take the worker's lock")? {
            return Ok(lock);
        }
    }
    bail!("workers are started again and again; try once more when no session runs")
}

/// Waits until the holder of the lock is as wanted, and returns it.
pub fn wait_for_lock(
    home: &Home,
    wanted: impl Fn(Option<u32>) -> bool,
) -> anyhow::Result<Option<u32>> {
    let holder = wait_until(|| {
        let holder = Lock::holder(&home.lock())?;
        Ok(wanted(holder).then_some(holder))
    })?;
    Ok(holder.flatten())
}

/// Calls `look` again and again until it returns something or `PATIENCE` is over.
pub fn wait_until<T>(
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = look()?;
        if found.is_some() || Instant::now() > deadline {
            return Ok(found);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a lock cannot be waited on without taking it"
        )]
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_does_not_come_up_is_started_less_and_less() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        assert!(stamp(&home));
        assert!(
            !stamp(&home),
            "a second hook right after does not start another"
        );

        std::fs::write(home.start_stamp(), format!("4 {}", home::now() - 7_000)).unwrap();
        assert!(
            !stamp(&home),
            "after four tries, seven seconds are too soon"
        );
        std::fs::write(home.start_stamp(), format!("4 {}", home::now() - 9_000)).unwrap();
        assert!(stamp(&home));
        let text = std::fs::read_to_string(home.start_stamp()).unwrap();
        assert_eq!(Stamp::parse(&text).unwrap().tries, 5);

        clear_stamp(&home);
        assert!(stamp(&home));
    }

    #[test]
    fn a_worker_knows_the_keys_of_its_own_provider_only() {
        let names = [
            "PATH",
            "LC_ALL",
            "FOREWORD_PROVIDER",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "OPENAI_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "AWS_SECRET_ACCESS_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_MESSAGING_SOCKET",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "GITHUB_TOKEN",
        ];
        let kept = |provider, bedrock: &str| -> Vec<String> {
            let value = |name: &str| match name {
                "CLAUDE_CODE_USE_BEDROCK" => bedrock.to_owned(),
                _ => "x".to_owned(),
            };
            let environment = names
                .iter()
                .map(|name| (name.into(), value(name).into()))
                .collect();
            allowed(provider, environment)
                .into_iter()
                .map(|(name, _)| name.into_string().unwrap())
                .collect()
        };
        let common = ["PATH", "LC_ALL", "FOREWORD_PROVIDER"];
        let with = |more: &[&'static str]| [&common[..], more].concat();
        assert_eq!(kept(provider::Name::Offline, "1"), common);
        assert_eq!(
            kept(provider::Name::Anthropic, "1"),
            with(&["ANTHROPIC_API_KEY"])
        );
        assert_eq!(kept(provider::Name::OpenAi, "1"), with(&["OPENAI_API_KEY"]));
        let login = [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CONFIG_DIR",
        ];
        assert_eq!(
            kept(provider::Name::Claude, "0"),
            with(&[&login[..], &["CLAUDE_CODE_USE_BEDROCK"]].concat())
        );
        assert_eq!(
            kept(provider::Name::Claude, "1"),
            with(
                &[
                    &login[..],
                    &["AWS_SECRET_ACCESS_KEY", "CLAUDE_CODE_USE_BEDROCK"]
                ]
                .concat()
            )
        );
    }

    #[test]
    fn a_stamp_from_the_future_does_not_stop_the_worker() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        std::fs::write(home.start_stamp(), format!("9 {}", home::now() + 1_000_000)).unwrap();
        assert!(stamp(&home));
    }
}
