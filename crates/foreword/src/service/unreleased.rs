//! Sets databases aside that were written before the first release, for the worker and for the
//! first command that finds one. The work itself is done by `foreword_core::safety::unreleased`.

use anyhow::Context as _;
use foreword_core::safety::unreleased::{self, SetAside};

use crate::home::{self, Home};
use crate::log::Log;
use crate::notice::Notice;
use crate::platform::{self, Lock};
use crate::start;
use crate::start::control::{anything_waits, end_running, wait_for_lock};

/// For a caller that holds the worker's lock.
pub fn set_aside(home: &Home) -> anyhow::Result<()> {
    let set = unreleased::set_aside(home.dir(), home::now())
        .context("could not set aside the databases from before the first release")?;
    if let Some(set) = set {
        Log::Worker.line(home, &line(&set));
        Notice::Unreleased.post(home, &line(&set));
    }
    Ok(())
}

/// For a command, which does not hold the lock. A worker of the older program is ended first.
pub fn set_aside_alone(home: &Home) -> anyhow::Result<()> {
    let mut ended = false;
    while unreleased::is_there(home.dir()) {
        let lock = Lock::acquire(&home.lock()).context("could not take the worker's lock")?;
        match lock {
            Ok(_lock) => set_aside(home)?,
            // A worker of this program sets them aside itself.
            Err(holder) if platform::runs_this_program(holder) => {
                wait_for_lock(home, |now| now != Some(holder))?;
            }
            Err(_) => {
                end_running(home)?;
                ended = true;
            }
        }
    }
    if ended && anything_waits(home) {
        start::wake_worker(home);
    }
    Ok(())
}

/// The line that `status`, `doctor` and the notice at the start of a session show.
pub fn line(set: &SetAside) -> String {
    let files = set.files.iter().map(|file| file.display().to_string());
    format!(
        "a Foreword from before the first release wrote files that this one cannot read; the memory begins empty, \
         and they are kept as {}",
        files.collect::<Vec<_>>().join(" and ")
    )
}
