//! `foreword-bench agent`: calls and tokens that a model needs to remember a working day.
//!
//! A recorded session (`recording`) is replayed through the real hooks; the real worker asks a
//! model that is a server in this process (`model`), which answers in the right form
//! (`answer`) and counts. There are two runs: the worker processes the session turn by turn, as
//! in daily use, or all at once after its end. These are counts, not times:
//! from run to run and from machine to machine they differ by some tokens,
//! since questions hold paths and hashes. Only the worker's memory is measured (`process`).

mod answer;
pub mod live;
pub mod model;
mod recording;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use foreword_core::search::{Filter, Query, Sort, search};
use foreword_core::store::{ItemBody, Store};
use serde_json::{Value, json};

use super::sandbox::BenchSandbox;
use super::spawn::spawn;
use super::system;
use super::{database, machine, process, report};
use foreword::platform::{self, Lock};
use foreword::start::control::wait_for_lock;
use model::CountingModel;
use recording::Recording;

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// A session that `scripts/record` recorded
    #[arg(long, default_value = "testdata/sessions/long.jsonl")]
    session: PathBuf,
    /// Measure another build of Foreword than the one that runs
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Goals for both runs: the name, the key in a run's report, the allowed range, and the range as text.
const GOALS: [(&str, &str, RangeInclusive<f64>, &str); 7] = [
    ("calls", "calls", 1.0..=15.0, "≤ 15"),
    ("input / kept", "input_per_kept", 0.01..=1.5, "≤ 1.5"),
    ("sent / memory", "sent_per_memory", 10.0..=f64::MAX, "≥ 10"),
    ("ledger = server", "ledger_differs_by", 0.0..=0.0, "same"),
    ("worker's peak, MB", "worker_peak_mb", 0.01..=60.0, "≤ 60"),
    ("processes left over", "processes_left_over", 0.0..=0.0, "0"),
    ("calls when idle", "calls_when_idle", 0.0..=0.0, "0"),
];

/// When the worker processes the session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerTiming {
    EachTurn,
    AtTheEnd,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    system::note_interrupts();
    platform::make_files_private();
    let program = machine::program(args.program.as_deref())?;
    let recording = Recording::read(&args.session)?;
    let one_run = |timing| -> anyhow::Result<Value> {
        let model = CountingModel::start()?;
        let mut sandbox = BenchSandbox::new(&program.path)?;
        sandbox.environment = model.environment().into();
        // The worker ends after a second without work, so that the bench can wait for its end.
        sandbox
            .environment
            .push(("FOREWORD_WORKER_IDLE_SECONDS", "1".to_owned()));
        replay(&sandbox, &recording, &model, timing)
    };
    eprintln!("turn by turn …");
    let turn_by_turn = one_run(WorkerTiming::EachTurn)?;
    eprintln!("all at once …");
    let at_once = one_run(WorkerTiming::AtTheEnd)?;
    let met = |run: &Value, key, goal: &RangeInclusive<f64>| {
        let number: Option<f64> = Value::as_f64(&run[key]);
        number.is_some_and(|it| goal.contains(&it))
    };
    let goals = GOALS.iter().map(|(name, key, goal, text)| {
        let met = met(&turn_by_turn, *key, goal) && met(&at_once, *key, goal);
        ((*name).to_owned(), json!({"goal": text, "met": met}))
    });
    let report = json!({
        "program": program,
        "turns": recording.count("new"),
        "tool_uses": recording.count("save"),
        "sent_tokens": recording.sent_tokens(),
        "kept_tokens": recording.kept_tokens()?,
        "goals": goals.collect::<Value>(),
        "turn_by_turn": turn_by_turn,
        "at_once": at_once,
    });
    report::print("agent", report, args.json);
    Ok(())
}

/// Replays one session, from its first event until the worker has ended.
fn replay(
    sandbox: &BenchSandbox,
    recording: &Recording,
    model: &CountingModel,
    timing: WorkerTiming,
) -> anyhow::Result<Value> {
    if timing == WorkerTiming::AtTheEnd {
        sandbox.keep_workers_away()?;
    }
    let mut peak = WorkerPeak::default();
    let mut events = 0;
    for (hook, input) in recording.lines(sandbox) {
        ensure!(!system::interrupted(), "interrupted");
        let spawned = spawn(sandbox.command(&sandbox.program, &[hook]), &input)?;
        ensure!(spawned.success, "the hook {hook} failed");
        events += 1;
        if hook == "summary" && timing == WorkerTiming::EachTurn {
            peak.process_all(sandbox)?;
        }
    }
    peak.process_all(sandbox)?;

    let counted = model.counted();
    wait_for_workers_end(sandbox)?;
    // Without new events, neither an idle worker nor a starting one may ask the model.
    sandbox.start_worker()?;
    wait_for_workers_end(sandbox)?;
    let left_over = process::left_over(sandbox.home.dir(), Duration::from_secs(1));

    let store =
        Store::look(&sandbox.home.memory())?.context("there is no memory of the session")?;
    let totals = store.totals()?;
    let ledger: Value = serde_json::from_str(&sandbox.run(&["cost", "--json"])?)?;
    let number = |name: &str| ledger[name].as_u64().unwrap_or_default();
    let [calls, input, output] = ["calls", "input_tokens", "output_tokens"].map(number);
    let part = |number: u64, of: u64| (number as f64 / of as f64 * 100.0).round() / 100.0;
    Ok(json!({
        "events": events,
        "stored": database::processed(&database::look(&sandbox.home.memory())?)?.processed,
        "calls": counted.calls,
        "input_tokens": counted.input,
        "instruction_tokens": counted.instructions,
        "input_tokens_by_call": counted.inputs,
        "input_per_kept": part(counted.input, recording.kept_tokens()?),
        "output_tokens": counted.output,
        "strange_requests": counted.strange,
        "observations": totals.observations,
        "observations_by_the_model": by_a_model(&store)?,
        "observations_answered": counted.observations,
        "summaries": totals.summaries,
        "summaries_answered": counted.summaries,
        "memory_tokens": ledger["memory_tokens"],
        "sent_per_memory": part(recording.sent_tokens(), number("memory_tokens")),
        "ledger": {"calls": calls, "input_tokens": input, "output_tokens": output},
        "ledger_differs_by": calls.abs_diff(counted.calls)
            + input.abs_diff(counted.input)
            + output.abs_diff(counted.output),
        "worker_peak_kilobytes": peak.kilobytes,
        "worker_peak_mb": part(peak.kilobytes * 1024, 1_000_000),
        "processes_left_over": left_over.max(peak.children),
        "calls_when_idle": model.counted().calls - counted.calls,
    }))
}

/// The most memory and child processes that a worker had after any of its batches.
#[derive(Default)]
struct WorkerPeak {
    kilobytes: u64,
    children: usize,
}

impl WorkerPeak {
    /// Has the worker process all waiting events, and measures it before it ends.
    fn process_all(&mut self, sandbox: &BenchSandbox) -> anyhow::Result<()> {
        sandbox.drain()?;
        if let Some(pid) = Lock::holder(&sandbox.home.lock())? {
            self.kilobytes = self.kilobytes.max(process::peak_kilobytes(pid));
            self.children = self.children.max(process::children(pid));
        }
        Ok(())
    }
}

fn wait_for_workers_end(sandbox: &BenchSandbox) -> anyhow::Result<()> {
    wait_for_lock(&sandbox.home, |holder| holder.is_none())?;
    let holder = Lock::holder(&sandbox.home.lock())?;
    ensure!(holder.is_none(), "the idle worker does not end");
    Ok(())
}

/// The number of observations that a model derived.
fn by_a_model(store: &Store) -> anyhow::Result<usize> {
    let everything = Query {
        words: "",
        filter: Filter::default(),
        sort: Sort::Date,
        limit: u32::MAX,
    };
    let mut found = 0;
    for hit in search(store, &everything)?.hits {
        let item = store.item(hit.id)?.map(|item| item.body);
        let by_a_model = |body: &ItemBody| matches!(body, ItemBody::Observation { provider, .. } if provider != "offline");
        found += usize::from(item.as_ref().is_some_and(by_a_model));
    }
    Ok(found)
}
