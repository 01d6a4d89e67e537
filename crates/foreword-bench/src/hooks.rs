//! `foreword-bench hooks`: how long a session waits for a hook.
//!
//! A scenario is a hook, its input and the state that the worker is in. In each
//! round `/bin/true` and the hook are spawned in turn, with the same input on
//! their standard input; a round gives one ratio per percentile, and the median
//! over the rounds is what is reported. So a busy moment of the machine spoils one
//! round, for both sides, and not the result.

use std::path::PathBuf;

use anyhow::ensure;
use foreword_core::capture::Hook;
use serde_json::{Map, Value, json};

use super::host::{FakeHost, INDEX, SAVED};
use super::machine::{self, Linkage};
use super::sandbox::BenchSandbox;
use super::spawn::{REFERENCE, Spawned, spawn};
use super::statistics::{PERCENTILES, Rounds, by_percentile, percentile};
use super::system;
use super::{burst, memories, report};
use foreword::platform;
use foreword::service;

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON, with every sample
    #[arg(long)]
    json: bool,
    /// How often each scenario is repeated
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Spawns of each side in a round; slow scenarios take a fraction of it
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    /// Measure another build of Foreword than the one that runs
    #[arg(long)]
    program: Option<PathBuf>,
    /// Only the scenarios whose key contains this
    #[arg(long)]
    only: Option<String>,
    /// Also `context` with 100,000 observations, which take a minute to make
    #[arg(long)]
    large: bool,
}

/// The worker's state while the hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    Idle,
    Draining,
    /// No worker runs: the hook starts one.
    Gone,
}

struct Scenario {
    key: &'static str,
    hook: Hook,
    worker: WorkerState,
    /// Observations that are made before the scenario, in the project that the hooks run in.
    observations: u32,
    /// Divides the number of samples, for slow scenarios.
    slow: u32,
    /// Upper limits of the percentiles, as multiples of `/bin/true`. Rare and large events have a
    /// limit for the median only.
    goal: &'static [f64],
    input: fn(&mut FakeHost) -> String,
    /// The beginning of the right answer; empty if the hook answers nothing.
    answer: &'static str,
}

/// Events queued for each sample, enough to keep the worker busy for a round.
const BACKLOG_PER_SAMPLE: u32 = 20;

/// From this many observations on, a scenario has a home of its own and runs only with `--large`.
const LARGE: u32 = 100_000;

pub fn run(args: &Args) -> anyhow::Result<()> {
    system::note_interrupts();
    platform::make_files_private();
    let program = machine::program(args.program.as_deref())?;
    let wanted = |key: &str| args.only.as_ref().is_none_or(|only| key.contains(only));
    let mut measured = Map::new();
    let mut sandbox = BenchSandbox::new(&program.path)?;
    for scenario in scenarios(program.linkage) {
        let large = scenario.observations >= LARGE;
        if wanted(scenario.key) && (args.large || !large) {
            eprintln!("measuring {} …", scenario.key);
            if large {
                sandbox = BenchSandbox::new(&program.path)?;
            }
            let figures = measure(&mut sandbox, &scenario, args)?;
            measured.insert(scenario.key.to_owned(), figures);
        }
    }
    drop(sandbox);
    let mut lossless = true;
    if wanted("burst") {
        eprintln!("measuring burst …");
        let burst = burst::run(&mut BenchSandbox::new(&program.path)?)?;
        lossless = burst["met"] == true;
        measured.insert("burst".to_owned(), burst);
    }
    let report = json!({
        "program": program,
        "reference": REFERENCE,
        "rounds": args.rounds,
        "samples": args.samples,
        "scenarios": measured,
    });
    report::print("hooks", report, args.json);
    ensure!(
        lossless,
        "in the burst an event was lost or stored twice, or a hook failed"
    );
    Ok(())
}

fn scenarios(linkage: Linkage) -> Vec<Scenario> {
    let save: &[f64] = match linkage {
        Linkage::Static => &[2.2, 3.5, 10.0],
        Linkage::Dynamic => &[3.0, 4.5, 10.0],
    };
    let scenario = |key, hook, worker, slow, goal, input, answer| Scenario {
        key,
        hook,
        worker,
        observations: 0,
        slow,
        goal,
        input,
        answer,
    };
    let context = |key, observations, goal| Scenario {
        observations,
        ..scenario(
            key,
            Hook::Context,
            WorkerState::Idle,
            1,
            goal,
            FakeHost::start,
            INDEX,
        )
    };
    // Hooks that search the memory for a reminder.
    let reminding: &[f64] = &[8.0];
    use Hook::{Cleanup, FileContext, New, Save, Summary};
    use WorkerState::{Draining, Gone, Idle};
    #[rustfmt::skip]
    let scenarios = vec![
        scenario("save_5k_worker_idle", Save, Idle, 1, save, |host| host.bash(5_000), SAVED),
        scenario("save_5k_worker_busy", Save, Draining, 1, save, |host| host.bash(5_000), SAVED),
        scenario("save_5k_no_worker", Save, Gone, 10, &[6.0], |host| host.bash(5_000), SAVED),
        scenario("save_200k", Save, Idle, 3, &[5.0], |host| host.bash(200_000), SAVED),
        scenario("save_5m", Save, Idle, 15, &[40.0], |host| host.bash(5_000_000), SAVED),
        scenario("new", New, Idle, 1, reminding, FakeHost::prompt, ""),
        scenario("file_context", FileContext, Idle, 1, reminding, FakeHost::read, ""),
        scenario("summary", Summary, Idle, 1, save, FakeHost::stop, ""),
        scenario("cleanup", Cleanup, Idle, 1, save, FakeHost::end, ""),
        context("context_10k", 10_000, &[8.0]),
        context("context_100k", LARGE, &[10.0]),
    ];
    scenarios
}

/// Samples of one of the two programs that are compared, round by round.
#[derive(Default)]
struct SpawnSamples {
    times: Rounds,
    minor_faults: Vec<u64>,
}

impl SpawnSamples {
    fn add_round(&mut self, samples: &[Spawned]) {
        let times = samples.iter().map(|it| it.milliseconds);
        self.times.0.push(times.collect());
        let faults = samples.iter().map(|it| it.minor_faults);
        self.minor_faults.extend(faults);
    }

    /// Microseconds of a round, in the order in which they were taken.
    fn raw(&self, round: usize) -> Vec<f64> {
        let times = self.times.0[round].iter();
        times.map(|it| (it * 1000.0).round()).collect()
    }
}

fn measure(sandbox: &mut BenchSandbox, scenario: &Scenario, args: &Args) -> anyhow::Result<Value> {
    if scenario.observations > 0 {
        sandbox.end_worker()?;
        let project = sandbox.project_key();
        memories::fill(
            &sandbox.home,
            &project,
            scenario.observations,
            memories::WORK,
        )?;
    }
    let samples = (args.samples / scenario.slow).max(1);
    let (mut reference, mut hook) = (SpawnSamples::default(), SpawnSamples::default());
    let mut note = None;
    for _ in 0..args.rounds {
        prepare(sandbox, scenario.worker, samples)?;
        let (references, hooks) = one_round(sandbox, scenario, samples)?;
        reference.add_round(&references);
        hook.add_round(&hooks);
        // The backlog was queued before this round's events. If fewer events are left than this
        // round sent, the worker finished the backlog and was idle for a while.
        if scenario.worker == WorkerState::Draining
            && service::waiting(&sandbox.home) <= u64::from(samples)
        {
            note = Some("the worker finished its backlog before the round ended");
        }
    }
    let ratio = |percent| hook.times.ratio(percent, &reference.times, percent);
    let goal = |percent| {
        let at = PERCENTILES.iter().position(|it| *it == percent)?;
        scenario.goal.get(at).copied()
    };
    let met = |&percent: &u32| {
        let ratio = ratio(percent).unwrap_or(f64::INFINITY);
        goal(percent).is_none_or(|goal| ratio <= goal)
    };
    let rounds = 0..args.rounds as usize;
    Ok(json!({
        "hook_ms": hook.times.percentiles(),
        "reference_ms": reference.times.percentiles(),
        "ratio": by_percentile(ratio),
        // Ratio to the reference's median: unlike `ratio`, a slow reference cannot hide a slow hook.
        "ratio_to_reference_p50": by_percentile(|it| hook.times.ratio(it, &reference.times, 50)),
        "minor_faults": percentile(&hook.minor_faults, 50),
        "minor_faults_least": hook.minor_faults.iter().min(),
        "reference_minor_faults": percentile(&reference.minor_faults, 50),
        "goal": by_percentile(goal),
        "met": PERCENTILES.iter().all(met),
        // A reason to doubt the numbers, if there is one.
        "note": note,
        "raw": rounds
            .map(|it| json!({"reference_us": reference.raw(it), "hook_us": hook.raw(it)}))
            .collect::<Value>(),
    }))
}

fn prepare(sandbox: &mut BenchSandbox, worker: WorkerState, samples: u32) -> anyhow::Result<()> {
    sandbox.drain()?;
    match worker {
        WorkerState::Idle => Ok(()),
        WorkerState::Draining => sandbox.pile_up(samples * BACKLOG_PER_SAMPLE),
        WorkerState::Gone => sandbox.end_worker(),
    }
}

fn one_round(
    sandbox: &mut BenchSandbox,
    scenario: &Scenario,
    samples: u32,
) -> anyhow::Result<(Vec<Spawned>, Vec<Spawned>)> {
    let (mut references, mut hooks) = (Vec::new(), Vec::new());
    for number in 0..samples {
        ensure!(!system::interrupted(), "interrupted");
        let input = (scenario.input)(&mut sandbox.host);
        let arguments = &[scenario.hook.name()];
        let reference = || spawn(sandbox.command(REFERENCE.as_ref(), arguments), &input);
        // Work that the last hook caused (a worker reading the queue) must not always
        // slow down the same side, so the two take turns at going first.
        let first = number % 2 == 0;
        references.extend(first.then(reference).transpose()?);
        hooks.push(hook(sandbox, scenario, &input)?);
        references.extend((!first).then(reference).transpose()?);
    }
    Ok((references, hooks))
}

fn hook(sandbox: &BenchSandbox, scenario: &Scenario, input: &str) -> anyhow::Result<Spawned> {
    let command = sandbox.command(&sandbox.program, &[scenario.hook.name()]);
    let spawned = spawn(command, input)?;
    let answer = &spawned.answer;
    let right =
        answer.starts_with(scenario.answer) && answer.is_empty() == scenario.answer.is_empty();
    ensure!(
        spawned.success && right,
        "{}: a hook gave a wrong answer: “{answer}”",
        scenario.key
    );
    if scenario.worker == WorkerState::Gone {
        sandbox.end_started_worker()?;
    }
    Ok(spawned)
}
