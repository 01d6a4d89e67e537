//! `foreword retry [NUMBER]`: processes skipped events again and ends the pause of a provider, now.

use anyhow::Context as _;
use foreword_core::queue::Queue;
use foreword_core::text::{count, one_line};

use super::worker;
use crate::agent::leash::{is_for_a_person, pause};
use crate::config::Config;
use crate::config::provider::{self};
use crate::home::{self, Home};
use crate::service;
use crate::start::end_running;

#[derive(clap::Args)]
pub struct Args {
    /// Only this skipped event, by its number in `foreword status`; else all of them
    number: Option<usize>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let config = Config::load(&home)?;
    // Check the number before anything is changed.
    let only = args.number.map(|it| id_of(&home, it)).transpose()?;
    let lifted = lift_pause(&home, &config)?;
    let skipped = take_up_skipped(&home, only.as_deref())?;
    let waiting = crate::start::anything_waits(&home);
    if !lifted && !waiting {
        println!("nothing to retry: no event was skipped, and nothing waits");
        return Ok(());
    }
    if skipped > 0 {
        let events = count(skipped as u64, "skipped event is", "skipped events are");
        println!("{events} tried again");
    }
    if !waiting {
        println!("no event waits for it");
        return Ok(());
    }
    let left = worker::drain_all(&home, &config)?;
    worker::report(&home, left);
    let pause = match service::memory(&home)? {
        Some(store) => pause(&store, provider::choose(&config, &home).name, home::now())?,
        None => None,
    };
    if let Some(pause) = pause {
        println!("the provider failed again: {}", one_line(&pause.reason));
    }
    let queue = Queue::look(&home.queue())?.context("queue.db is gone")?;
    let skipped = queue.skipped()?;
    if let Some(first) = skipped.first() {
        let events = count(skipped.len() as u64, "event was", "events were");
        let why = first.last_error.as_deref().unwrap_or("unknown");
        println!("{events} skipped again: {}", one_line(why));
    }
    Ok(())
}

/// Ends the provider's pause. Returns whether there was one, or a streak of failures.
fn lift_pause(home: &Home, config: &Config) -> anyhow::Result<bool> {
    let provider = provider::choose(config, home).name;
    if !home.memory().exists() {
        return Ok(false);
    }
    let store = service::memory_to_write(home)?;
    if store.streak(provider.as_str())?.failures == 0 {
        return Ok(false);
    }
    let pause = pause(&store, provider, home::now())?;
    store.forgive(provider.as_str(), home::now())?;
    if let Some(pause) = pause {
        let (name, why) = (provider.as_str(), one_line(&pause.reason));
        println!("{name} was paused ({why}); the pause is over, and the next events go to it");
        // A running worker does not know a key that was set since it started.
        if is_for_a_person(pause.kind) {
            end_running(home)?;
        }
    } else {
        let name = provider.as_str();
        println!("earlier failures of {name} no longer count; the next events go to it");
    }
    Ok(true)
}

/// The id of a skipped event by its number in `foreword status`, which counts from 1.
fn id_of(home: &Home, number: usize) -> anyhow::Result<String> {
    let skipped = match Queue::look(&home.queue())? {
        Some(queue) => queue.skipped()?,
        None => Vec::new(),
    };
    let event = number.checked_sub(1).and_then(|at| skipped.get(at));
    let event = event.with_context(|| match skipped.len() {
        0 => "no event was skipped".to_owned(),
        skipped => format!(
            "there is no skipped event {number}; `foreword status` numbers them from 1 to {skipped}"
        ),
    })?;
    Ok(event.id.clone())
}

fn take_up_skipped(home: &Home, only: Option<&str>) -> anyhow::Result<usize> {
    if !home.queue().exists() {
        return Ok(0);
    }
    let queue = service::queue_to_write(home)?;
    queue
        .retry_skipped(only)
        .context("could not queue the skipped events again")
}
