//! `foreword-bench agent`: calls and tokens that a model needs to remember a working day.
//!
//! A recorded session (`recording`) is replayed through the real hooks; the real worker asks a
//! model that is a server in this process (`model`), which answers in the right form
//! (`answer`) and counts. There are two runs in which each question stands alone: the worker
//! processes the session turn by turn, as in daily use, or all at once after its end. Further runs
//! compare that with one conversation for the session, for each provider, with pauses between the
//! turns in which the provider's cache expires or not (`cache`). These are counts, not times:
//! from run to run and from machine to machine they differ by some tokens,
//! since questions hold paths and hashes. Only the worker's memory is measured (`process`).

mod answer;
mod cache;
pub mod model;
mod recording;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use foreword_core::search::{Filter, Query, Sort, search};
use foreword_core::store::{ItemBody, Store};
use serde_json::{Value, json};

use super::sandbox::BenchSandbox;
use super::spawn::spawn;
use super::system;
use super::{database, machine, process, report};
use foreword::platform::{self, Lock};
use foreword::start::wait_for_lock;
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
    /// Also compare with this claude CLI
    #[arg(long)]
    client: Option<String>,
}

/// Pauses between turns, in minutes, and how much more than single questions a conversation may cost.
const PAUSES: [(u64, f64); 2] = [(2, 1.5), (10, 2.0)];

/// Goals for both runs: the name, the key in a run's report, the allowed range, and the range as text.
const GOALS: [(&str, &str, RangeInclusive<f64>, &str); 9] = [
    ("calls", "calls", 1.0..=15.0, "≤ 15"),
    ("input / kept", "input_per_kept", 0.01..=1.5, "≤ 1.5"),
    ("input / raw", "input_per_raw", 0.01..=1.3, "≤ 1.3"),
    ("sent / memory", "sent_per_memory", 10.0..=f64::MAX, "≥ 10"),
    ("ledger = server", "ledger_differs_by", 0.0..=0.0, "same"),
    ("worker's peak, MB", "worker_peak_mb", 0.01..=60.0, "≤ 60"),
    (
        "children after a batch",
        "children_after_a_batch",
        0.0..=0.0,
        "0",
    ),
    ("processes left over", "processes_left_over", 0.0..=0.0, "0"),
    ("calls when idle", "calls_when_idle", 0.0..=0.0, "0"),
];

/// When the worker processes the session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerTiming {
    EachTurn,
    /// After each turn so many minutes pass, for the worker and for the provider's cache.
    WithPauses(u64),
    AtTheEnd,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    system::note_interrupts();
    platform::make_files_private();
    let program = machine::program(args.program.as_deref())?;
    let recording = Recording::read(&args.session)?;
    let one_run = |provider: &str, conversation: &str, timing| -> anyhow::Result<Value> {
        let model = CountingModel::start()?;
        let mut sandbox = BenchSandbox::new(&program.path)?;
        sandbox.environment = match (provider, &args.client) {
            ("claude", Some(client)) => model.claude_environment(client).into(),
            ("openai" | "local", _) => model.openai_environment(provider == "local").into(),
            _ => model.environment().into(),
        };
        let conversation = ("FOREWORD_MODEL_CONVERSATION", conversation.to_owned());
        sandbox.environment.push(conversation);
        // The worker ends after a second without work, so that the bench can wait for its end.
        sandbox
            .environment
            .push(("FOREWORD_WORKER_IDLE_SECONDS", "1".to_owned()));
        replay(&sandbox, &recording, &model, timing)
    };
    eprintln!("turn by turn …");
    let turn_by_turn = one_run("anthropic", "question", WorkerTiming::EachTurn)?;
    eprintln!("all at once …");
    let at_once = one_run("anthropic", "question", WorkerTiming::AtTheEnd)?;
    let mut providers = vec!["anthropic", "openai", "local"];
    providers.extend(args.client.as_ref().map(|_| "claude"));
    let mut conversations = serde_json::Map::new();
    let mut waits = serde_json::Map::new();
    for provider in &providers {
        eprintln!("{provider}, without pauses …");
        let run = one_run(provider, "session", WorkerTiming::EachTurn)?;
        // The first turn begins the conversation.
        let turns = run["milliseconds_by_turn"].as_array();
        let turns = turns
            .into_iter()
            .flatten()
            .skip(1)
            .filter_map(Value::as_u64);
        let mut turns: Vec<u64> = turns.collect();
        turns.sort_unstable();
        let median = turns.get(turns.len() / 2).copied().unwrap_or(u64::MAX);
        let wait = json!({
            "median_ms": median, "slowest_ms": turns.last(), "goal": "≤ 1000", "met": median <= 1_000,
        });
        waits.insert((*provider).to_owned(), wait);
    }
    let compared = providers
        .iter()
        .flat_map(|it| PAUSES.map(|pause| (it, pause)));
    for (provider, (pause, most)) in compared {
        eprintln!("{provider}, pauses of {pause} minutes …");
        let timing = WorkerTiming::WithPauses(pause);
        let question = one_run(provider, "question", timing)?;
        let session = one_run(provider, "session", timing)?;
        // A local model has no price.
        let cost = |run: &Value| {
            let tokens = run["input_tokens"].as_f64();
            run["usd"].as_f64().or(tokens).unwrap_or(f64::NAN)
        };
        let ratio = cost(&session) / cost(&question);
        let of = |run: &Value| {
            let keys = [
                "calls",
                "input_tokens",
                "cache_read",
                "cache_written",
                "output_tokens",
                "usd",
                "ledger_differs_by",
                "processes_left_over",
                "input_tokens_by_call",
            ];
            keys.map(|key| (key.to_owned(), run[key].clone()))
                .into_iter()
                .collect::<Value>()
        };
        let compared = json!({
            "question": of(&question),
            "session": of(&session),
            "cost": {"session_per_question": ratio, "goal": format!("≤ {most}"), "met": ratio <= most},
        });
        conversations.insert(format!("{provider}, {pause} minutes"), compared);
    }
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
        "conversations": conversations,
        "from_stop_to_stored": waits,
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
        if hook == "summary" && timing != WorkerTiming::AtTheEnd {
            peak.process_all(sandbox)?;
        }
        if let WorkerTiming::WithPauses(minutes) = timing
            && hook == "summary"
        {
            wait_for_workers_end(sandbox)?;
            model.let_pass(minutes);
            database::age_conversations(&sandbox.home.memory(), minutes)?;
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
    let [calls, input, output, cache_read] = [
        "calls",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
    ]
    .map(number);
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
            + output.abs_diff(counted.output)
            + cache_read.abs_diff(counted.cache_read),
        "cache_read": counted.cache_read,
        "cache_written": counted.cache_written,
        "usd": ledger["cost_usd"],
        "input_per_raw": part(counted.input, number("raw_tokens")),
        "worker_peak_kilobytes": peak.kilobytes,
        "worker_peak_mb": part(peak.kilobytes * 1024, 1_000_000),
        "milliseconds_by_turn": peak.milliseconds,
        "children_after_a_batch": peak.children,
        "processes_left_over": left_over,
        "calls_when_idle": model.counted().calls - counted.calls,
    }))
}

/// The most memory and child processes that a worker had after any of its batches, and its times.
#[derive(Default)]
struct WorkerPeak {
    kilobytes: u64,
    children: usize,
    /// The time that each batch took, with the start of our own commands.
    milliseconds: Vec<u64>,
}

impl WorkerPeak {
    /// Has the worker process all waiting events, and measures it before it ends.
    fn process_all(&mut self, sandbox: &BenchSandbox) -> anyhow::Result<()> {
        let begun = Instant::now();
        sandbox.drain()?;
        let milliseconds = begun.elapsed().as_millis();
        self.milliseconds.push(u64::try_from(milliseconds)?);
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
        let by_a_model =
            |body: &ItemBody| matches!(body, ItemBody::Observation(it) if it.provider != "offline");
        found += usize::from(item.as_ref().is_some_and(by_a_model));
    }
    Ok(found)
}
