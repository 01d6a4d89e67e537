//! `foreword bench hooks`: what a hook costs the session that waits for it.
//!
//! A scenario is a hook, its input and the state that the worker is in. In each
//! round `/bin/true` and the hook are spawned in turn, with the same input on
//! their standard input; a round gives one ratio per percentile, and the median
//! over the rounds is what is reported. So a busy moment of the machine spoils one
//! round, for both sides, and not the result.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use foreword_core::capture::Hook;

use super::burst::{self, Burst};
use super::host::Host;
use super::machine::{self, Linkage, Machine, Program};
use super::report;
use super::spawn::{Sample, spawn};
use super::world::World;
use super::{memories, spawn};
use crate::home;
use crate::platform;

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

/// Everything that was measured.
pub struct Results {
    pub at: i64,
    pub machine: Machine,
    pub program: Program,
    pub rounds: u32,
    pub samples: u32,
    pub scenarios: Vec<Measured>,
    pub burst: Option<Burst>,
}

pub struct Measured {
    pub key: &'static str,
    pub goal: Goal,
    pub rounds: Vec<Round>,
    /// What a reader must know to trust the numbers.
    pub note: Option<String>,
}

#[derive(Default)]
pub struct Round {
    pub reference: Vec<Sample>,
    pub hook: Vec<Sample>,
}

/// The most that each percentile may be, as a multiple of `/bin/true`.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    pub p50: f64,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// What the worker does while the hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worker {
    Idle,
    Draining,
    /// There is none: the hook starts one.
    Gone,
}

struct Scenario {
    key: &'static str,
    hook: Hook,
    worker: Worker,
    /// So many are made before it, in the project whose index `context` makes.
    observations: u32,
    /// Takes only one out of so many samples.
    slow: u32,
    goal: Goal,
    input: fn(&mut Host) -> String,
    /// What the hook's answer begins with.
    answer: &'static str,
}

/// So many events keep the worker busy for a round.
const BACKLOG_PER_SAMPLE: u32 = 20;

/// So many observations take a minute to make, and a home of their own.
const LARGE: u32 = 100_000;

/// What `context` answers, when it has something to say, begins so.
const INDEX: &str = r#"{"hookSpecificOutput":{"additionalContext":"<foreword-memory"#;

/// What `save` answers.
pub const SAVED: &str = r#"{"continue":true,"suppressOutput":true}"#;

pub fn run(args: &Args) -> anyhow::Result<()> {
    platform::note_interrupts();
    platform::make_files_private();
    let program = match &args.program {
        Some(path) => std::fs::canonicalize(path)
            .with_context(|| format!("there is no program at {}", path.display()))?,
        None => std::env::current_exe()?,
    };
    let mut results = Results {
        at: home::now(),
        machine: machine::this(),
        program: machine::program(&program)?,
        rounds: args.rounds,
        samples: args.samples,
        scenarios: Vec::new(),
        burst: None,
    };
    let wanted = |key: &str| args.only.as_ref().is_none_or(|only| key.contains(only));
    let mut world = World::new(&program)?;
    for scenario in scenarios(results.program.linkage) {
        if wanted(scenario.key) && (args.large || scenario.observations < LARGE) {
            eprintln!("measuring {} …", scenario.key);
            if scenario.observations >= LARGE {
                world = World::new(&program)?;
            }
            results
                .scenarios
                .push(measure(&mut world, &scenario, args)?);
        }
    }
    drop(world);
    if wanted("burst") {
        eprintln!("measuring burst …");
        results.burst = Some(burst::run(&mut World::new(&program)?)?);
    }
    if args.json {
        println!("{}", report::json(&results));
    } else {
        print!("{}", report::table(&results));
    }
    let lossless = results.burst.as_ref().is_none_or(Burst::met);
    ensure!(lossless, "the burst lost, doubled or failed something");
    Ok(())
}

fn scenarios(linkage: Linkage) -> Vec<Scenario> {
    let save = match linkage {
        Linkage::Static => Goal::all(2.2, 3.5, 10.0),
        Linkage::Dynamic => Goal::all(3.0, 4.5, 10.0),
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
            Worker::Idle,
            1,
            Goal::half(goal),
            Host::start,
            INDEX,
        )
    };
    // They look into the memory.
    let reminding = Goal::half(8.0);
    use Hook::{Cleanup, FileContext, New, Save, Summary};
    use Worker::{Draining, Gone, Idle};
    #[rustfmt::skip]
    let scenarios = vec![
        scenario("save_5k_worker_idle", Save, Idle, 1, save, |host| host.bash(5_000), SAVED),
        scenario("save_5k_worker_busy", Save, Draining, 1, save, |host| host.bash(5_000), SAVED),
        scenario("save_5k_no_worker", Save, Gone, 10, Goal::half(6.0), |host| host.bash(5_000), SAVED),
        scenario("save_200k", Save, Idle, 3, Goal::half(5.0), |host| host.bash(200_000), SAVED),
        scenario("save_5m", Save, Idle, 15, Goal::half(40.0), |host| host.bash(5_000_000), SAVED),
        scenario("new", New, Idle, 1, reminding, Host::prompt, ""),
        scenario("file_context", FileContext, Idle, 1, reminding, Host::read, ""),
        scenario("summary", Summary, Idle, 1, save, Host::stop, ""),
        scenario("cleanup", Cleanup, Idle, 1, save, Host::end, ""),
        context("context_10k", 10_000, 8.0),
        context("context_100k", LARGE, 10.0),
    ];
    scenarios
}

impl Goal {
    fn all(p50: f64, p95: f64, p99: f64) -> Goal {
        Goal {
            p50,
            p95: Some(p95),
            p99: Some(p99),
        }
    }

    /// For what happens seldom, or is as large as it is: only the median.
    fn half(p50: f64) -> Goal {
        Goal {
            p50,
            p95: None,
            p99: None,
        }
    }
}

fn measure(world: &mut World, scenario: &Scenario, args: &Args) -> anyhow::Result<Measured> {
    if scenario.observations > 0 {
        world.end_worker()?;
        memories::fill(&world.home, &world.project_key(), scenario.observations)?;
    }
    let samples = (args.samples / scenario.slow).max(1);
    let mut rounds = Vec::new();
    let mut note = None;
    for _ in 0..args.rounds {
        prepare(world, scenario.worker, samples)?;
        rounds.push(one_round(world, scenario, samples)?);
        // The backlog came before this round's events: if less is left than
        // they are, the worker had nothing else to do at some time.
        if scenario.worker == Worker::Draining && world.pending()? <= u64::from(samples) {
            note = Some("the worker was done before the round was".to_owned());
        }
    }
    Ok(Measured {
        key: scenario.key,
        goal: scenario.goal,
        rounds,
        note,
    })
}

fn prepare(world: &mut World, worker: Worker, samples: u32) -> anyhow::Result<()> {
    match worker {
        Worker::Idle => world.drain(),
        Worker::Draining => {
            world.drain()?;
            world.pile_up(samples * BACKLOG_PER_SAMPLE)
        }
        Worker::Gone => {
            world.drain()?;
            world.end_worker()
        }
    }
}

fn one_round(world: &mut World, scenario: &Scenario, samples: u32) -> anyhow::Result<Round> {
    let mut round = Round::default();
    for number in 0..samples {
        ensure!(!platform::interrupted(), "interrupted");
        let input = (scenario.input)(&mut world.host);
        // Whatever the last hook left running (a worker that looks at the queue)
        // must not always fall on the same side.
        if number % 2 == 0 {
            round.reference.push(reference(world, scenario, &input)?);
            round.hook.push(hook(world, scenario, &input)?);
        } else {
            round.hook.push(hook(world, scenario, &input)?);
            round.reference.push(reference(world, scenario, &input)?);
        }
    }
    Ok(round)
}

fn reference(world: &World, scenario: &Scenario, input: &str) -> anyhow::Result<Sample> {
    let command = world.command(spawn::REFERENCE.as_ref(), &[scenario.hook.name()]);
    Ok(spawn(command, input.as_bytes())?.sample)
}

fn hook(world: &World, scenario: &Scenario, input: &str) -> anyhow::Result<Sample> {
    let command = world.command(&world.program, &[scenario.hook.name()]);
    let spawned = spawn(command, input.as_bytes())?;
    let answer = &spawned.answer;
    let right =
        answer.starts_with(scenario.answer) && answer.is_empty() == scenario.answer.is_empty();
    ensure!(
        spawned.success && right,
        "{}: a hook answered wrongly: “{answer}”",
        scenario.key
    );
    if scenario.worker == Worker::Gone {
        world.end_started_worker()?;
    }
    Ok(spawned.sample)
}
