//! `foreword bench agent`: what it costs to have a model remember a working day.
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
mod report;

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use foreword_core::store::{ItemBody, Store};
use foreword_core::text;
use serde_json::Value;

use super::super::worker::wait_for_lock;
use super::machine::{self, Machine, Program};
use super::process;
use super::spawn::spawn;
use super::world::World;
use crate::home;
use crate::platform::{self, Lock};
use model::{Counted, Model};
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

/// Everything that was measured.
struct Results {
    at: i64,
    machine: Machine,
    program: Program,
    turns: usize,
    tool_uses: usize,
    /// Tokens of the tools' input and output, as the host sent them,
    sent: u64,
    /// and without what capture leaves out or cuts.
    kept: u64,
    turn_by_turn: Run,
    at_once: Run,
}

/// One session, from its first event until the worker is gone.
#[derive(Default)]
struct Run {
    events: u64,
    stored: u64,
    counted: Counted,
    memory: Memory,
    /// None as long as `foreword cost` does not say.
    ledger: Option<Ledger>,
    peak_kilobytes: u64,
    /// Processes of ours beside the worker after the last event, or after its end.
    left_over: usize,
    calls_when_idle: u64,
}

/// What is stored in the end.
#[derive(Default)]
struct Memory {
    observations: u64,
    by_the_model: u64,
    summaries: u64,
    tokens: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Ledger {
    calls: u64,
    input: u64,
    output: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Worker {
    FollowsTheTurns,
    ComesAtTheEnd,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    platform::note_interrupts();
    platform::make_files_private();
    let program = match &args.program {
        Some(path) => std::fs::canonicalize(path)
            .with_context(|| format!("there is no program at {}", path.display()))?,
        None => std::env::current_exe()?,
    };
    let recording = Recording::read(&args.session)?;
    let one = |worker| -> anyhow::Result<Run> {
        let model = Model::start()?;
        let mut world = World::new(&program)?;
        world.environment = model.environment().into();
        // It ends soon when idle, so that its end can be waited for.
        world
            .environment
            .push(("FOREWORD_WORKER_IDLE_SECONDS", "1".to_owned()));
        live_through(&world, &recording, &model, worker)
    };
    eprintln!("turn by turn …");
    let turn_by_turn = one(Worker::FollowsTheTurns)?;
    eprintln!("all at once …");
    let at_once = one(Worker::ComesAtTheEnd)?;
    let results = Results {
        at: home::now(),
        machine: machine::this(),
        program: machine::program(&program)?,
        turns: recording.count("new"),
        tool_uses: recording.count("save"),
        sent: recording.sent_tokens(),
        kept: recording.kept_tokens()?,
        turn_by_turn,
        at_once,
    };
    if args.json {
        println!("{}", report::json(&results));
    } else {
        print!("{}", report::table(&results));
    }
    Ok(())
}

fn live_through(
    world: &World,
    recording: &Recording,
    model: &Model,
    worker: Worker,
) -> anyhow::Result<Run> {
    let mut run = Run::default();
    if worker == Worker::ComesAtTheEnd {
        world.keep_workers_away()?;
    }
    for line in recording.lines(world) {
        ensure!(!platform::interrupted(), "interrupted");
        let (hook, input) = line?;
        let told = spawn(world.command(&world.program, &[&hook]), input.as_bytes())?;
        ensure!(told.success, "the hook {hook} failed");
        run.events += 1;
        if hook == "summary" && worker == Worker::FollowsTheTurns {
            work_off(world, &mut run)?;
        }
    }
    work_off(world, &mut run)?;

    run.counted = model.counted();
    wait_for_its_end(world)?;
    // Nothing to do: neither a worker that waits nor one that comes up has a question.
    world.start_worker()?;
    wait_for_its_end(world)?;
    run.calls_when_idle = model.counted().calls - run.counted.calls;
    run.left_over = run
        .left_over
        .max(process::that_know(world.home.dir()).len());

    let store = Store::look(&world.home.memory())?.context("there is no memory of the session")?;
    run.stored = store.taken_in()?.processed;
    run.memory = memory(&store)?;
    run.ledger = ledger(world);
    Ok(run)
}

/// Has the worker do all that waits, and looks at it before it ends.
fn work_off(world: &World, run: &mut Run) -> anyhow::Result<()> {
    world.drain()?;
    if let Some(pid) = Lock::holder(&world.home.lock())? {
        run.peak_kilobytes = run.peak_kilobytes.max(process::peak_kilobytes(pid));
        run.left_over = run.left_over.max(process::children(pid));
    }
    Ok(())
}

fn wait_for_its_end(world: &World) -> anyhow::Result<()> {
    wait_for_lock(&world.home, |holder| holder.is_none())?;
    let holder = Lock::holder(&world.home.lock())?;
    ensure!(holder.is_none(), "the idle worker does not end");
    Ok(())
}

/// Numbers are given in a row, with gaps where something was derived again.
fn memory(store: &Store) -> anyhow::Result<Memory> {
    const NUMBERS: i64 = 100_000;
    let totals = store.totals()?;
    let mut left = totals.observations + totals.summaries;
    let mut memory = Memory::default();
    for id in 1..NUMBERS {
        if left == 0 {
            break;
        }
        let Some(item) = store.item(id)? else {
            continue;
        };
        let texts = match item.body {
            ItemBody::Prompt { .. } | ItemBody::Note { .. } => continue,
            ItemBody::Observation {
                title,
                subtitle,
                facts,
                narrative,
                provider,
                ..
            } => {
                memory.observations += 1;
                memory.by_the_model += u64::from(provider == "anthropic");
                [vec![title, subtitle, narrative], facts].concat()
            }
            ItemBody::Summary {
                request,
                investigated,
                learned,
                completed,
                next_steps,
                notes,
                ..
            } => {
                memory.summaries += 1;
                vec![request, investigated, learned, completed, next_steps, notes]
            }
        };
        left -= 1;
        memory.tokens += texts.iter().map(|it| text::tokens(it) as u64).sum::<u64>();
    }
    Ok(memory)
}

fn ledger(world: &World) -> Option<Ledger> {
    let said = world.run(&["cost", "--json"]).ok()?;
    let said: Value = serde_json::from_str(&said).ok()?;
    let number = |name: &str| said[name].as_u64();
    Some(Ledger {
        calls: number("calls")?,
        input: number("input_tokens")?,
        output: number("output_tokens")?,
    })
}
