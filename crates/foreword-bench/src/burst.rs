//! Many hooks at once, in an empty home: none may fail, and
//! every event must be stored exactly once.
//!
//! The first hooks write to the spool and start the worker, later
//! ones write to the queue, all while the worker takes events in and derives.

use std::time::Instant;

use anyhow::ensure;
use serde_json::{Value, json};

use super::database::{self, Processed};
use super::host::SAVED;
use super::sandbox::BenchSandbox;
use super::spawn::spawn;
use super::statistics::{by_percentile, milliseconds, percentile};
use super::system;

const AT_ONCE: usize = 32;
const EVENTS: usize = 10_000;

pub fn run(sandbox: &mut BenchSandbox) -> anyhow::Result<Value> {
    let inputs: Vec<String> = (0..EVENTS).map(|_| sandbox.host.bash(5_000)).collect();
    let sandbox = &*sandbox;
    let start = Instant::now();
    let send = |inputs: &[String]| -> Vec<f64> {
        let inputs = inputs.iter().take_while(|_| !system::interrupted());
        let spawned =
            inputs.filter_map(|it| spawn(sandbox.command(&sandbox.program, &["save"]), it).ok());
        let good = spawned.filter(|it| it.success && it.answer == SAVED);
        good.map(|it| it.milliseconds).collect()
    };
    let times: Vec<f64> = std::thread::scope(|scope| {
        let shares = inputs.chunks(EVENTS.div_ceil(AT_ONCE));
        let threads: Vec<_> = shares.map(|it| scope.spawn(move || send(it))).collect();
        let times = threads.into_iter().map(|it| it.join().unwrap_or_default());
        times.flatten().collect()
    });
    let hooks_done = start.elapsed();
    ensure!(!system::interrupted(), "interrupted");
    sandbox.drain()?;
    let drained = start.elapsed();
    let stored = database::processed(&database::look(&sandbox.home.memory())?)?;
    let all = Processed {
        processed: EVENTS as u64,
        events: EVENTS as u64,
        keys: EVENTS as u64,
    };
    Ok(json!({
        "events": EVENTS,
        "at_once": AT_ONCE,
        "failed": EVENTS - times.len(),
        "processed_events": stored.processed,
        "stored_events": stored.events,
        "distinct_keys": stored.keys,
        "hooks_done_ms": milliseconds(hooks_done).round(),
        "drained_ms": milliseconds(drained).round(),
        "hook_ms": by_percentile(|percent| percentile(&times, percent)),
        "met": times.len() == EVENTS && stored == all,
    }))
}
