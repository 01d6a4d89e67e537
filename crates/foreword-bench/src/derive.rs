//! `foreword-bench derive`: what one more event costs the worker when its turn is long.
//!
//! A turn of edits and commands is put into the queue and processed. Then the worker is given one
//! more tool use at a time. The time of `worker drain` with that event, less the time of one with
//! an empty queue, is the time that deriving and storing it takes.

use std::time::Instant;

use foreword_core::queue::Queue;
use serde_json::json;

use super::host;
use super::machine;
use super::report;
use super::sandbox::{BenchSandbox, captured};
use super::spawn::spawn;
use super::statistics::{milliseconds, percentile};
use foreword::platform;

#[derive(clap::Args)]
pub struct Args {
    /// Tool uses of the turn
    #[arg(long, default_value_t = 20_000)]
    events: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const SESSION: &str = "687d8424-9948-4ccb-a944-000000000001";
const TURN: &str = "1d3bc9f6-1a0a-444e-ba69-000000000001";

/// Tool uses that are processed at once while the turn is filled.
const FILLED_AT_ONCE: u32 = 1_000;
const ROUNDS: u32 = 15;
/// Bytes of a command's output.
const OUTPUT: usize = 1_000;

pub fn run(args: &Args) -> anyhow::Result<()> {
    platform::make_files_private();
    let sandbox = BenchSandbox::new(&machine::beside()?)?;
    let prompt = host::prompt_sent("Find out why refunds are paid twice, and fix it");
    let prompt = host::input(&sandbox.host.project, SESSION, TURN, prompt);
    spawn(sandbox.command(&sandbox.program, &["new"]), &prompt)?;
    let began = Instant::now();
    let mut sent = 0;
    while sent < args.events {
        let next = (sent + FILLED_AT_ONCE).min(args.events);
        push(&sandbox, sent..next)?;
        sandbox.drain()?;
        sent = next;
    }
    let filled_ms = milliseconds(began.elapsed());

    let drained = || -> anyhow::Result<f64> {
        let began = Instant::now();
        sandbox.run(&["worker", "drain"])?;
        Ok(milliseconds(began.elapsed()))
    };
    let (mut with_event, mut empty) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        push(&sandbox, sent + round..sent + round + 1)?;
        with_event.push(drained()?);
        empty.push(drained()?);
    }
    let median = |times: &[f64]| percentile(times, 50).unwrap_or_default();
    let event_ms = median(&with_event) - median(&empty);
    let report = json!({
        "events": args.events,
        "filled_ms": filled_ms.round(),
        "drain_with_event_ms": median(&with_event),
        "drain_empty_ms": median(&empty),
        "event_ms": (event_ms * 10.0).round() / 10.0,
        "samples": with_event,
    });
    report::print("derive", report, args.json);
    Ok(())
}

/// Queues tool uses with these numbers: each third is an edit, the others run tests.
fn push(sandbox: &BenchSandbox, numbers: std::ops::Range<u32>) -> anyhow::Result<()> {
    let queue = Queue::open(&sandbox.home.queue(), &sandbox.home.backups())?;
    for number in numbers {
        let file = sandbox
            .host
            .project
            .join(format!("src/part{}.rs", number % 50));
        let id = format!("toolu_{number:010}");
        let event = match number % 3 {
            0 => {
                let limit = |number| format!("fn limit() -> u32 {{ {number} }}");
                host::file_edited(&id, &file, &limit(number), &limit(number + 1))
            }
            _ => {
                let command = format!("cargo test -p pay part{}", number % 50);
                host::command_ran(&id, &command, &host::code(OUTPUT))
            }
        };
        let input = host::input(&sandbox.host.project, SESSION, TURN, event);
        queue.push(&captured(&input, Some(&sandbox.host.project))?)?;
    }
    Ok(())
}
