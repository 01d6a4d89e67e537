//! `foreword bench soak`: fifty sessions come and go for a while, hooks and workers are
//! killed at random moments, and the model is out of order again and again.
//!
//! The model is a server of this process (`agent/model`); hooks and workers are real processes.
//! What the home takes is looked at all the while (`census`). In the end the model is back,
//! everything is processed and audited (`trial`), and no process may be left.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use foreword_core::text;
use serde_json::json;

use super::agent::model::Model;
use super::census::Census;
use super::trial::{Pace, Random, Trial, join, pass, was_killed};
use super::{machine, plot};
use crate::platform::{self, Lock};
use crate::{home, show};

#[derive(clap::Args)]
pub struct Args {
    /// How long
    #[arg(long, default_value_t = 20.0)]
    minutes: f64,
    /// Sessions at once
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// Repeats the choices of a run that had this seed
    #[arg(long)]
    seed: Option<u64>,
    /// Draw what the home took over time, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const OUTPUT: usize = 1_000;
/// A session does something every so many seconds.
const SECONDS_PER_EVENT: f64 = 1.5;
/// Of so many hooks one is killed, within this time.
const HOOKS_PER_KILL: u32 = 20;
const HOOK_TAKES: Duration = Duration::from_millis(10);
/// So many outages there are, each for a quarter of its share of the time;
const OUTAGES: f64 = 8.0;
/// and so many workers are killed in the time of one.
const KILLS_PER_OUTAGE: f64 = 6.0;
/// After the end a process has this long to go.
const PATIENCE: Duration = Duration::from_secs(15);

/// What one session came to.
#[derive(Default)]
struct Lived {
    accepted: Vec<u32>,
    killed: u32,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    platform::note_interrupts();
    platform::make_files_private();
    let seed = args.seed.unwrap_or_else(|| home::now().unsigned_abs());
    let model = Model::start()?;
    let mut trial = Trial::new(args.sessions, OUTPUT)?;
    trial.world.environment = environment(&model);
    let mut weather = Weather::new(&model, args.minutes, Random::new(seed));
    let mut census = Census::new();
    let pace = Pace::new(args.minutes, f64::from(args.sessions) / SECONDS_PER_EVENT);
    let told = AtomicU32::new(0);
    let lived = std::thread::scope(|scope| {
        let (trial, pace, told) = (&trial, &pace, &told);
        let sessions: Vec<_> = (0..args.sessions)
            .map(|place| {
                let random = Random::new(seed.wrapping_mul(u64::from(place) + 3));
                scope.spawn(move || live(trial, place, pace, random, told))
            })
            .collect();
        let watched = pace.watch(|| {
            weather.change(&trial.world.home)?;
            census.take(&trial.world, told.load(Ordering::Relaxed))
        });
        let mut all = Lived::default();
        for session in sessions {
            let one = join(session)?;
            all.accepted.extend(one.accepted);
            all.killed += one.killed;
        }
        watched?;
        anyhow::Ok(all)
    })?;
    ensure!(!platform::interrupted(), "interrupted");
    weather.clear();
    trial.accepted.extend(&lived.accepted);
    trial.world.run(&["worker", "drain"])?;
    let audit = trial.audit()?;
    trial.world.end_worker()?;
    let left_over = trial.wait_for_none(PATIENCE);
    let calls = model.counted().calls;
    if let Some(path) = &args.plot {
        let title = format!(
            "{} sessions, kills, and outages of the model (grey)",
            args.sessions
        );
        std::fs::write(
            path,
            plot::over_time(&title, &census.series, &weather.outages),
        )
        .with_context(|| format!("could not write {}", path.display()))?;
    }
    if args.json {
        let machine = machine::this();
        let report = json!({
            "bench": "soak",
            "at": text::rfc3339(home::now()),
            "machine": {"cores": machine.cores, "cpu": machine.cpu, "kernel": machine.kernel},
            "seed": seed,
            "minutes": args.minutes,
            "sessions": args.sessions,
            "accepted": trial.accepted.len(),
            "hooks_killed": lived.killed,
            "workers_killed": weather.killed,
            "outages": weather.outages,
            "calls": calls,
            "audit": audit.json(),
            "processes_left": left_over,
            "flat": census.is_flat(),
            "series": census.json(),
        });
        println!("{}", show::json(&report));
    } else {
        println!(
            "{} events accepted; {} hooks and {} workers killed, {} outages, {calls} calls, seed {seed}",
            trial.accepted.len(),
            lived.killed,
            weather.killed,
            weather.outages.len(),
        );
        println!("{}; {left_over} processes left", audit.in_words());
        print!("{}", census.table());
    }
    ensure!(left_over == 0, "{left_over} processes are left");
    ensure!(audit.is_clean(), "the memory cannot be relied on");
    Ok(())
}

/// The model may cost whatever it likes.
fn environment(model: &Model) -> Vec<(&'static str, String)> {
    let budgets = [
        ("FOREWORD_BUDGET_DAILY_USD", "1000000.0"),
        ("FOREWORD_BUDGET_SESSION_USD", "1000000.0"),
        ("FOREWORD_BUDGET_DAILY_TOKENS", "1000000000000"),
        ("FOREWORD_BUDGET_SESSION_TOKENS", "1000000000000"),
    ];
    let budgets = budgets.map(|(name, value)| (name, value.to_owned()));
    model.environment().into_iter().chain(budgets).collect()
}

/// One session after the other, at one place.
fn live(
    trial: &Trial,
    place: u32,
    pace: &Pace,
    mut random: Random,
    told: &AtomicU32,
) -> anyhow::Result<Lived> {
    let mut lived = Lived::default();
    let mut mark = place;
    while pace.wait_for(mark) {
        if trial.is_first_of_session(mark) {
            if let Some(last) = mark.checked_sub(trial.sessions) {
                trial.border("cleanup", last)?.end()?;
            }
            trial.border("context", mark)?.end()?;
        }
        let mut hook = trial.tell(mark, None)?;
        if random.below(HOOKS_PER_KILL) == 0 {
            pass(random.moment(HOOK_TAKES));
            hook.kill();
        }
        let status = hook.end()?;
        lived.killed += u32::from(was_killed(status));
        if status.success() {
            lived.accepted.push(mark);
        }
        told.fetch_add(1, Ordering::Relaxed);
        mark += trial.sessions;
    }
    Ok(lived)
}

/// What comes over the worker.
struct Weather<'a> {
    model: &'a Model,
    random: Random,
    began: Instant,
    /// From one outage to the next.
    cycle: Duration,
    next_kill: Instant,
    killed: u32,
    /// In seconds.
    outages: Vec<(f64, f64)>,
    down: bool,
}

impl Weather<'_> {
    fn new(model: &Model, minutes: f64, random: Random) -> Weather<'_> {
        Weather {
            model,
            random,
            began: Instant::now(),
            cycle: Duration::from_secs_f64(minutes * 60.0 / OUTAGES),
            next_kill: Instant::now(),
            killed: 0,
            outages: Vec::new(),
            down: false,
        }
    }

    fn change(&mut self, home: &home::Home) -> anyhow::Result<()> {
        let seconds = self.began.elapsed().as_secs_f64();
        let cycles = seconds / self.cycle.as_secs_f64();
        let down = cycles.fract() >= 0.5 && cycles.fract() < 0.75;
        if down && !self.down {
            self.outages.push((seconds, seconds));
        }
        if let Some(last) = self.outages.last_mut().filter(|_| self.down) {
            last.1 = seconds;
        }
        self.down = down;
        self.model.set_down(down);
        if Instant::now() >= self.next_kill {
            // The kernel names the lock's holder; every worker leads a group of its own.
            if let Some(worker) = Lock::holder(&home.lock())? {
                platform::kill_group(worker);
                self.killed += 1;
            }
            let within = self.cycle.mul_f64(2.0 / KILLS_PER_OUTAGE);
            self.next_kill = Instant::now() + self.random.moment(within);
        }
        Ok(())
    }

    fn clear(&self) {
        self.model.set_down(false);
    }
}
