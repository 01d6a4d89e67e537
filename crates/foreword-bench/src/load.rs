//! `foreword-bench load`: many events a second, for a while.
//!
//! Each session is a thread that runs real hooks, one after the other as a host does, at its
//! share of the rate; the worker that they start works beside them. `/bin/true` is spawned in the
//! same minutes, for comparison. In the end everything is processed and audited (`trial`),
//! and the report has samples of the home over time (`census`). The bench keeps only the number
//! and the time of each event.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::ensure;
use serde_json::{Value, json};

use super::census::Census;
use super::machine;
use super::report::{self, with};
use super::spawn::{REFERENCE, spawn};
use super::statistics::{by_percentile, percentile};
use super::system;
use super::trial::Trial;
use foreword::platform;

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
    /// Draw processes, memory and files over time, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Bytes of a tool's output.
const OUTPUT: usize = 4_000;
/// Spawns of `/bin/true` at each sample of the home.
const REFERENCES: u32 = 5;

/// The event that one hook sent, and how the hook ended.
struct SentEvent {
    mark: u32,
    accepted: bool,
    milliseconds: f64,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    system::note_interrupts();
    platform::make_files_private();
    let mut trial = Trial::new(&machine::beside()?, args.sessions, OUTPUT)?;
    let mut census = Census::new();
    let mut references = Vec::new();
    let spawned = |program: &Path, mark: u32| -> anyhow::Result<SentEvent> {
        let (hook, input) = trial.event(mark);
        let spawned = spawn(trial.sandbox.command(program, &[hook]), &input)?;
        Ok(SentEvent {
            mark,
            accepted: spawned.success,
            milliseconds: spawned.milliseconds,
        })
    };
    let began = Instant::now();
    let all = trial.live(
        args.minutes,
        args.rate,
        |mark| spawned(&trial.sandbox.program, mark),
        |sent| {
            for mark in 0..REFERENCES {
                references.push(spawned(REFERENCE.as_ref(), mark)?);
            }
            census.take(&trial.sandbox, sent)
        },
    )?;
    let rate = all.len() as f64 / began.elapsed().as_secs_f64();
    let accepted = all.iter().filter(|it| it.accepted).map(|it| it.mark);
    trial.accepted.extend(accepted);
    let failed = all.len() - trial.accepted.len();
    trial.sandbox.run(&["worker", "drain"])?;
    let audit = trial.audit()?;
    if let Some(path) = &args.plot {
        let title = format!("{rate:.0} events a second of {} sessions", args.sessions);
        census.plot(path, &title, &[])?;
    }
    let report = json!({
        "minutes": args.minutes,
        "sessions": args.sessions,
        "rate": (rate * 10.0).round() / 10.0,
        "sent": all.len(),
        "failed": failed,
        "hook_ms": times(&all),
        "reference": REFERENCE,
        "reference_ms": times(&references),
        "audit": audit,
    });
    report::print("load", with(report, census.json()), args.json);
    ensure!(failed == 0, "{failed} hooks failed");
    ensure!(
        audit.is_clean(),
        "the audit found lost, doubled, stuck or damaged events"
    );
    Ok(())
}

fn times(sent: &[SentEvent]) -> Value {
    let all: Vec<f64> = sent.iter().map(|it| it.milliseconds).collect();
    let mut times = by_percentile(|percent| percentile(&all, percent));
    times.insert("max".to_owned(), json!(percentile(&all, 100)));
    times.insert("count".to_owned(), all.len().into());
    times.into()
}
