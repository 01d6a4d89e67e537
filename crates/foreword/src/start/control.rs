//! What commands do with the running worker: end it, wait for its lock, or work while none runs.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use foreword_core::queue::Queue;
use foreword_core::spool;

use super::wake_worker;
use crate::home::Home;
use crate::platform::{self, Lock};

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
