//! `foreword-bench agent`: what it costs to have a model remember a working day.
//!
//! A recorded session (`recording`) is told to the real hooks; the real worker asks a
//! model that is a server in this process (`model`), which answers in the right form
//! (`answer`) and counts. Once the worker follows the session turn by turn, as in
//! life, and once it comes when everything has happened. These are counts, not times:
//! from run to run and from machine to machine they differ by a word here and there,
//! since questions hold paths and hashes. Only the worker's memory is measured (`process`).

mod answer;
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
    /// A session that `scripts/record` wrote down
    #[arg(long, default_value = "testdata/sessions/long.jsonl")]
    session: PathBuf,
    /// Measure another build of Foreword than the one that runs
    #[arg(long)]
    program: Option<PathBuf>,
}

/// What both runs should come to: its name, where a run has it, from where to where, and in words.
const GOALS: [(&str, &str, RangeInclusive<f64>, &str); 7] = [
    ("calls", "calls", 1.0..=15.0, "≤ 15"),
    ("input / kept", "input_per_kept", 0.01..=1.5, "≤ 1.5"),
    ("sent / memory", "sent_per_memory", 10.0..=f64::MAX, "≥ 10"),
    ("ledger = server", "ledger_differs_by", 0.0..=0.0, "same"),
    ("worker's peak, MB", "worker_peak_mb", 0.01..=60.0, "≤ 60"),
    ("processes left over", "processes_left_over", 0.0..=0.0, "0"),
    ("calls when idle", "calls_when_idle", 0.0..=0.0, "0"),
];

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
    let one = |worker| -> anyhow::Result<Value> {
        let model = CountingModel::start()?;
        let mut sandbox = BenchSandbox::new(&program.path)?;
        sandbox.environment = model.environment().into();
        // It ends soon when idle, so that its end can be waited for.
        sandbox
            .environment
            .push(("FOREWORD_WORKER_IDLE_SECONDS", "1".to_owned()));
        live_through(&sandbox, &recording, &model, worker)
    };
    eprintln!("turn by turn …");
    let turn_by_turn = one(WorkerTiming::EachTurn)?;
    eprintln!("all at once …");
    let at_once = one(WorkerTiming::AtTheEnd)?;
    let met = |run: &Value, key, goal: &RangeInclusive<f64>| {
        let number: Option<f64> = Value::as_f64(&run[key]);
        number.is_some_and(|it| goal.contains(&it))
    };
    let goals = GOALS.iter().map(|(name, key, goal, words)| {
        let met = met(&turn_by_turn, *key, goal) && met(&at_once, *key, goal);
        ((*name).to_owned(), json!({"goal": words, "met": met}))
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

/// One session, from its first event until the worker is gone.
fn live_through(
    sandbox: &BenchSandbox,
    recording: &Recording,
    model: &CountingModel,
    worker: WorkerTiming,
) -> anyhow::Result<Value> {
    if worker == WorkerTiming::AtTheEnd {
        sandbox.keep_workers_away()?;
    }
    let mut seen = WorkerPeak::default();
    let mut events = 0;
    for (hook, input) in recording.lines(sandbox) {
        ensure!(!system::interrupted(), "interrupted");
        let told = spawn(sandbox.command(&sandbox.program, &[hook]), &input)?;
        ensure!(told.success, "the hook {hook} failed");
        events += 1;
        if hook == "summary" && worker == WorkerTiming::EachTurn {
            seen.work_off(sandbox)?;
        }
    }
    seen.work_off(sandbox)?;

    let counted = model.counted();
    wait_for_its_end(sandbox)?;
    // Nothing to do: neither a worker that waits nor one that comes up has a question.
    sandbox.start_worker()?;
    wait_for_its_end(sandbox)?;
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
        "worker_peak_kilobytes": seen.peak_kilobytes,
        "worker_peak_mb": part(seen.peak_kilobytes * 1024, 1_000_000),
        "processes_left_over": left_over.max(seen.children),
        "calls_when_idle": model.counted().calls - counted.calls,
    }))
}

/// The most that a worker had, after any of its batches.
#[derive(Default)]
struct WorkerPeak {
    peak_kilobytes: u64,
    children: usize,
}

impl WorkerPeak {
    /// Has the worker do all that waits, and looks at it before it ends.
    fn work_off(&mut self, sandbox: &BenchSandbox) -> anyhow::Result<()> {
        sandbox.drain()?;
        if let Some(pid) = Lock::holder(&sandbox.home.lock())? {
            self.peak_kilobytes = self.peak_kilobytes.max(process::peak_kilobytes(pid));
            self.children = self.children.max(process::children(pid));
        }
        Ok(())
    }
}

fn wait_for_its_end(sandbox: &BenchSandbox) -> anyhow::Result<()> {
    wait_for_lock(&sandbox.home, |holder| holder.is_none())?;
    let holder = Lock::holder(&sandbox.home.lock())?;
    ensure!(holder.is_none(), "the idle worker does not end");
    Ok(())
}

/// How many observations are a model's.
fn by_a_model(store: &Store) -> anyhow::Result<usize> {
    let everything = Query {
        words: "",
        filter: Filter::default(),
        sort: Sort::Date,
        limit: u32::MAX,
        offset: 0,
    };
    let mut found = 0;
    for hit in search(store, &everything)?.hits {
        let item = store.item(hit.id)?.map(|item| item.body);
        let by_a_model = |body: &ItemBody| matches!(body, ItemBody::Observation { provider, .. } if provider != "offline");
        found += usize::from(item.as_ref().is_some_and(by_a_model));
    }
    Ok(found)
}
