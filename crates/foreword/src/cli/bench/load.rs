//! `foreword bench load`: many events a second, for a while.
//!
//! Each session is a thread that runs real hooks, one after the other as a host does, at its
//! share of the rate; the worker that they start works beside them. `/bin/true` is spawned in the
//! same minutes, as the yardstick. In the end everything is processed and audited (`trial`),
//! and it shows what the home took over time (`census`). Of an event only a number and its time
//! are kept.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use foreword_core::text;
use serde_json::{Value, json};

use super::census::Census;
use super::spawn::{REFERENCE, spawn};
use super::statistics::{PERCENTILES, percentile};
use super::trial::{Pace, Trial, join};
use super::{machine, plot};
use crate::{home, platform, show};

#[derive(clap::Args)]
pub struct Args {
    /// How long
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Events a second, of all sessions together
    #[arg(long, default_value_t = 100.0)]
    rate: f64,
    /// Sessions at once
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// Draw what the home took over time, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const OUTPUT: usize = 4_000;
const YARDSTICK_EVERY: Duration = Duration::from_millis(500);

/// What one session came to: the marks that were accepted, and what each hook took.
#[derive(Default)]
struct Told {
    accepted: Vec<u32>,
    micros: Vec<u32>,
    failed: u32,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    platform::note_interrupts();
    platform::make_files_private();
    let mut trial = Trial::new(args.sessions, OUTPUT)?;
    let mut census = Census::new();
    let pace = Pace::new(args.minutes, args.rate);
    let told = AtomicU32::new(0);
    let (all, yardstick) = std::thread::scope(|scope| {
        let (trial, pace, told) = (&trial, &pace, &told);
        let sessions: Vec<_> = (0..args.sessions)
            .map(|place| scope.spawn(move || tell(trial, place, pace, told)))
            .collect();
        let yardstick = scope.spawn(|| measure_yardstick(trial, pace));
        let watched = pace.watch(|| census.take(&trial.world, told.load(Ordering::Relaxed)));
        let mut all = Told::default();
        for session in sessions {
            let one = join(session)?;
            all.accepted.extend(one.accepted);
            all.micros.extend(one.micros);
            all.failed += one.failed;
        }
        let yardstick = join(yardstick)?;
        watched?;
        anyhow::Ok((all, yardstick))
    })?;
    ensure!(!platform::interrupted(), "interrupted");
    let sent = all.accepted.len() + all.failed as usize;
    let rate = sent as f64 / pace.began.elapsed().as_secs_f64();
    trial.accepted.extend(&all.accepted);
    trial.world.run(&["worker", "drain"])?;
    let audit = trial.audit()?;
    if let Some(path) = &args.plot {
        let title = format!("{rate:.0} events a second of {} sessions", args.sessions);
        std::fs::write(path, plot::over_time(&title, &census.series, &[]))
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    if args.json {
        let machine = machine::this();
        let report = json!({
            "bench": "load",
            "at": text::rfc3339(home::now()),
            "machine": {"cores": machine.cores, "cpu": machine.cpu, "kernel": machine.kernel},
            "minutes": args.minutes,
            "sessions": args.sessions,
            "rate": (rate * 10.0).round() / 10.0,
            "sent": sent,
            "failed": all.failed,
            "hook_ms": times(&all.micros),
            "reference": REFERENCE,
            "reference_ms": times(&yardstick),
            "audit": audit.json(),
            "flat": census.is_flat(),
            "series": census.json(),
        });
        println!("{}", show::json(&report));
    } else {
        println!(
            "{sent} events, {rate:.1} a second; {} hooks failed",
            all.failed
        );
        println!("hooks: ms {}", times(&all.micros));
        println!("{REFERENCE}: ms {}", times(&yardstick));
        println!("{}", audit.in_words());
        print!("{}", census.table());
    }
    ensure!(all.failed == 0, "{} hooks failed", all.failed);
    ensure!(audit.is_clean(), "the memory cannot be relied on");
    Ok(())
}

fn tell(trial: &Trial, place: u32, pace: &Pace, all: &AtomicU32) -> anyhow::Result<Told> {
    let mut told = Told::default();
    let mut mark = place;
    while pace.wait_for(mark) {
        let (hook, input) = trial.event(mark);
        let command = trial.world.command(&trial.world.program, &[hook]);
        let spawned = spawn(command, input.as_bytes())?;
        told.micros.push(spawned.sample.took.as_micros() as u32);
        if spawned.success {
            told.accepted.push(mark);
        } else {
            told.failed += 1;
        }
        all.fetch_add(1, Ordering::Relaxed);
        mark += trial.sessions;
    }
    Ok(told)
}

/// Microseconds of `/bin/true` with a hook's input, now and then.
fn measure_yardstick(trial: &Trial, pace: &Pace) -> anyhow::Result<Vec<u32>> {
    let mut micros = Vec::new();
    let (hook, input) = trial.event(1);
    while pace.wait_until(pace.began + YARDSTICK_EVERY * micros.len() as u32) {
        let command = trial.world.command(REFERENCE.as_ref(), &[hook]);
        let spawned = spawn(command, input.as_bytes())?;
        micros.push(spawned.sample.took.as_micros() as u32);
    }
    Ok(micros)
}

fn times(micros: &[u32]) -> Value {
    let milliseconds = |micros: Option<u32>| micros.map(|it| f64::from(it) / 1000.0);
    let mut times: serde_json::Map<_, _> = PERCENTILES
        .iter()
        .map(|&percent| {
            let time = milliseconds(percentile(micros, percent));
            (format!("p{percent}"), json!(time))
        })
        .collect();
    times.insert(
        "max".to_owned(),
        json!(milliseconds(percentile(micros, 100))),
    );
    times.insert("count".to_owned(), micros.len().into());
    times.into()
}
