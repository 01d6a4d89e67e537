//! How large the data directory gets in a year, computed from measured rows.
//!
//! A heavy day is eight sessions with ten observations each and a thousand tool uses of
//! 5 KB. Observations, summaries and prompts grow with the years; events, the ids of
//! processed events and backups are kept for a time, so their number stays the same. Three small
//! memories are made, with housekeeping; the differences of their sizes give the bytes of one observation
//! and of one tool use a day.

use foreword_core::model::{EventKind, Millis, Payload};
use foreword_core::store::{Batch, Replaces, Store};

use super::memories::{self, MadeSession};
use foreword::config::Config;
use foreword::home::{self, Home};
use foreword::service;
use foreword_core::text::size;

#[derive(clap::Args)]
pub struct Args {
    /// Observations in a year: 250 days of work with 80 each
    #[arg(long, default_value_t = 20_000)]
    observations: u32,
    /// Tool uses on a day
    #[arg(long, default_value_t = 1000)]
    events: u32,
}

const DAY: Millis = 24 * 3_600_000;
/// The days that are made: the ids of processed events, kept longest of all that expires, are kept
/// this long.
const DAYS: u32 = 30;
/// Observations in the smallest memory.
const OBSERVATIONS: u32 = 500;
/// Tool uses a day in the smallest memory.
const EVENTS: u32 = 20;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let base = measured(OBSERVATIONS, EVENTS)?;
    let more_observations = measured(2 * OBSERVATIONS, EVENTS)?;
    let more_events = measured(OBSERVATIONS, 5 * EVENTS)?;
    let [memory, backup] = [0, 1].map(|file| {
        let of_observation = (more_observations[file] - base[file]) / f64::from(OBSERVATIONS);
        let of_event = (more_events[file] - base[file]) / f64::from(4 * EVENTS);
        of_observation * f64::from(args.observations) + of_event * f64::from(args.events)
    });
    let kept = Config::load(&service::home_to_look_at()?)?.backup.kept();
    let backups = kept.daily + kept.weekly;
    let size = |bytes: f64| size(bytes as u64);
    println!(
        "a year of heavy use: {} observations, {} tool uses of 5 KB a day",
        args.observations, args.events
    );
    println!("memory.db   {}", size(memory));
    println!("backups     {} each, {backups} are kept", size(backup));
    println!("in all      {}", size(memory + backups as f64 * backup));
    Ok(())
}

/// Bytes of a made-up memory, and of a backup of it.
fn measured(observations: u32, events: u32) -> anyhow::Result<[f64; 2]> {
    let dir = tempfile::tempdir()?;
    let home = Home::at(dir.path());
    let project = "github.com/acme/pay";
    memories::fill(&home, project, observations, memories::WORK)?;
    let mut store = Store::open(&home.memory(), &home.backups())?;
    let now = home::now();
    let events_kept = Millis::from(Config::load(&home)?.retention.events_days) * DAY;
    let payload = Payload {
        error: Some("a line of what a tool said\n".repeat(190)),
        ..Payload::default()
    };
    for day in (0..DAYS).rev() {
        let (number, at) = (1_000_000 + day, now - Millis::from(day) * DAY);
        let session = MadeSession {
            number,
            project,
            at,
        };
        let event = |number| {
            let id = format!("use-{day}-{number}");
            session.event(EventKind::ToolUse, &id, 0, payload.clone())
        };
        let events: Vec<_> = (0..events).map(event).collect();
        store.commit(&Batch {
            events: &events,
            turns: &[],
            replaces: Replaces::Turns,
            digest: None,
            provider: "offline",
            now: at,
        })?;
        store.keep_house(at, events_kept, 30 * 24 * 3_600_000)?;
    }
    let backup = store.back_up(&home.backups(), now)?;
    let memory = std::fs::metadata(home.memory())?.len();
    Ok([memory as f64, backup.size as f64])
}
