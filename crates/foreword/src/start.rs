//! Wakes the worker, or starts one: the last thing a hook does.
//!
//! The lock alone says whether a worker lives. A worker that dies at start must
//! not be started again by every hook, so hooks leave a stamp before they start
//! one and wait longer each time; a worker that came up removes it. Commands that
//! a person typed ignore the stamp.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use foreword_core::model::Millis;

use crate::home::{self, Home};
use crate::platform::{self, Lock};

/// The word that wakes a worker.
pub const WAKE: &[u8] = b"wake";

/// Tells the worker that there is work; starts one if none lives.
pub fn wake_worker(home: &Home) {
    match Lock::holder(&home.lock()) {
        Ok(Some(_)) => {
            // A lost wake-up is no loss: a worker looks at the queue before it ends.
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

/// Starts a worker, detached from this process and from the host. Gives its process id.
pub fn start_worker(home: &Home) -> io::Result<u32> {
    let program = std::env::current_exe()?;
    let mut environment = inherited();
    environment.push(("FOREWORD_HOME".into(), home.dir().into()));
    platform::spawn_detached(&program, &["worker", "run", "--detached"], &environment)
}

/// What a worker may know of our environment. The host's session id, its messaging
/// socket and token, and everybody's keys stay behind.
fn inherited() -> Vec<(OsString, OsString)> {
    const NAMES: &[&str] = &[
        "PATH",
        "HOME",
        "USER",
        "SHELL",
        "TMPDIR",
        "LANG",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    const PREFIXES: &[&str] = &["LC_", "XDG_", "FOREWORD_"];
    let wanted = |name: &str| {
        name != "FOREWORD_HOME"
            && (NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
    };
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(wanted))
        .collect()
}

/// Leaves a stamp and says whether a hook may start a worker now.
fn stamp(home: &Home) -> bool {
    let path = home.start_stamp();
    let now = home::now();
    let last = std::fs::read_to_string(&path)
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

/// How often in a row hooks started a worker that did not come up.
pub fn failed_starts(home: &Home) -> u32 {
    let stamp = std::fs::read_to_string(home.start_stamp()).ok();
    let stamp = stamp.and_then(|text| Stamp::parse(&text));
    stamp.map_or(0, |stamp| stamp.tries)
}

/// A worker has come up: the next one may be started at once.
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

    /// One second at first, doubled by each start that failed, up to ten minutes.
    fn pause(&self) -> Millis {
        (1000 << self.tries.saturating_sub(1).min(10)).min(600_000)
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
    fn a_stamp_from_the_future_does_not_stop_the_worker() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        std::fs::write(home.start_stamp(), format!("9 {}", home::now() + 1_000_000)).unwrap();
        assert!(stamp(&home));
    }
}
