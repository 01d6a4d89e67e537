//! Many hooks at once, on a home where nothing exists yet: none may fail, and
//! every event must be stored exactly once.
//!
//! This goes down every road: the first hooks spool and start the worker, later
//! ones queue, and all of them meet the worker taking in and deriving.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use foreword_core::store::{Store, TakenIn};

use super::hooks::SAVED;
use super::spawn::spawn;
use super::world::World;
use crate::platform;

pub const AT_ONCE: usize = 32;
pub const EVENTS: u64 = 10_000;

pub struct Burst {
    pub failed: u64,
    /// Until the last hook had left.
    pub took: Duration,
    /// Until the last event was stored.
    pub drained: Duration,
    pub stored: TakenIn,
    pub spawns: Vec<Duration>,
}

impl Burst {
    pub fn met(&self) -> bool {
        let all = TakenIn {
            processed: EVENTS,
            events: EVENTS,
            keys: EVENTS,
        };
        self.failed == 0 && self.stored == all
    }
}

pub fn run(world: &mut World) -> anyhow::Result<Burst> {
    let inputs: Vec<String> = (0..EVENTS).map(|_| world.host.bash(5_000)).collect();
    let world = &*world;
    let next = AtomicU64::new(0);
    let failed = AtomicU64::new(0);
    let start = Instant::now();
    let hooks = || -> Vec<Duration> {
        let mut spawns = Vec::new();
        while !platform::interrupted() {
            let Some(input) = usize::try_from(next.fetch_add(1, Ordering::Relaxed))
                .ok()
                .and_then(|number| inputs.get(number))
            else {
                break;
            };
            let spawned = spawn(world.command(&world.program, &["save"]), input.as_bytes());
            match spawned {
                Ok(spawned) if spawned.success && spawned.answer == SAVED => {
                    spawns.push(spawned.sample.took);
                }
                _ => {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        spawns
    };
    let spawns = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(hooks)).collect();
        threads
            .into_iter()
            .flat_map(|it| it.join().unwrap_or_default())
            .collect()
    });
    let took = start.elapsed();
    anyhow::ensure!(!platform::interrupted(), "interrupted");
    world.drain()?;
    let drained = start.elapsed();
    let store = Store::look(&world.home.memory())?.context("there is no memory after the burst")?;
    Ok(Burst {
        failed: failed.into_inner(),
        took,
        drained,
        stored: store.taken_in()?,
        spawns,
    })
}
