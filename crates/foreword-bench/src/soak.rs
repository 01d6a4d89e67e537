//! `foreword-bench soak`: fifty sessions come and go for some minutes, hooks and workers are
//! killed at random moments, and the model has outages.
//!
//! The model is a server of this process (`agent/model`); hooks and workers are real processes.
//! The home is sampled all the time (`census`). In the end the model is back,
//! everything is processed and audited (`trial`), and no process may be left.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;

use super::agent::model::CountingModel;
use super::census::Census;
use super::machine;
use super::process::{self, sleep};
use super::random::Random;
use super::report::{self, with};
use super::system;
use super::trial::{Trial, was_killed};
use foreword::home;
use foreword::platform::{self, Lock};

#[derive(clap::Args)]
pub struct Args {
    /// How long
    #[arg(long, default_value_t = 20.0)]
    minutes: f64,
    /// Sessions at once
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// Decides which processes are killed, and when
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Draw processes, memory and files over time, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Bytes of a tool's output.
const OUTPUT: usize = 1_000;
/// Seconds from one event of a session to the next.
const SECONDS_PER_EVENT: f64 = 1.5;
/// One of this many hooks is killed.
const HOOKS_PER_KILL: u32 = 20;
/// The time within which a hook is killed.
const HOOK_TAKES: Duration = Duration::from_millis(10);
/// The number of outages of the model; each lasts a quarter of its share of the time.
const OUTAGES: u32 = 8;
/// The mean number of workers that are killed in an outage's share of the time.
const KILLS_PER_OUTAGE: f64 = 6.0;
/// The time that processes have to end after the run.
const PATIENCE: Duration = Duration::from_secs(15);

pub fn run(args: &Args) -> anyhow::Result<()> {
    system::note_interrupts();
    platform::make_files_private();
    let seed = args.seed;
    let model = CountingModel::start()?;
    let mut trial = Trial::new(&machine::beside()?, args.sessions, OUTPUT)?;
    trial.sandbox.environment = environment(&model);
    let mut disturbances = Disturbances::new(&model, args.minutes, Random::new(seed));
    let mut census = Census::new();
    let rate = f64::from(args.sessions) / SECONDS_PER_EVENT;
    let ended = trial.live(
        args.minutes,
        rate,
        |mark| send(&trial, mark, seed),
        |sent| {
            disturbances.apply(&trial.sandbox.home)?;
            census.take(&trial.sandbox, sent)
        },
    )?;
    model.set_down(false);
    let accepted = ended.iter().filter(|(_, status)| status.success());
    trial.accepted.extend(accepted.map(|(mark, _)| mark));
    let killed = ended.iter().filter(|(_, status)| was_killed(*status));
    trial.sandbox.run(&["worker", "drain"])?;
    let audit = trial.audit()?;
    trial.sandbox.end_worker()?;
    let left_over = process::left_over(trial.sandbox.home.dir(), PATIENCE);
    if let Some(path) = &args.plot {
        let sessions = args.sessions;
        let title = format!("{sessions} sessions, kills, and outages of the model (grey)");
        census.plot(path, &title, &disturbances.outages)?;
    }
    let report = json!({
        "seed": seed,
        "minutes": args.minutes,
        "sessions": args.sessions,
        "accepted": trial.accepted.len(),
        "hooks_killed": killed.count(),
        "workers_killed": disturbances.killed,
        "outages": disturbances.outages,
        "calls": model.counted().calls,
        "audit": audit,
        "processes_left": left_over,
    });
    report::print("soak", with(report, census.json()), args.json);
    ensure!(left_over == 0, "{left_over} processes are left");
    ensure!(
        audit.is_clean(),
        "the audit found lost, doubled, stuck or damaged events"
    );
    Ok(())
}

/// The worker asks the model, without any limit on cost.
fn environment(model: &CountingModel) -> Vec<(&'static str, String)> {
    let budgets = [
        ("FOREWORD_BUDGET_DAILY_USD", "1000000.0"),
        ("FOREWORD_BUDGET_SESSION_USD", "1000000.0"),
        ("FOREWORD_BUDGET_DAILY_TOKENS", "1000000000000"),
        ("FOREWORD_BUDGET_SESSION_TOKENS", "1000000000000"),
    ];
    let budgets = budgets.map(|(name, value)| (name, value.to_owned()));
    model.environment().into_iter().chain(budgets).collect()
}

/// Sends a mark; if it is the first of its session, the session before ends and this one begins.
fn send(trial: &Trial, mark: u32, seed: u64) -> anyhow::Result<(u32, ExitStatus)> {
    if trial.is_first_of_session(mark) {
        if let Some(last) = mark.checked_sub(trial.sessions) {
            trial.start_unmarked("cleanup", last)?.end()?;
        }
        trial.start_unmarked("context", mark)?.end()?;
    }
    let mut hook = trial.start_marked(mark, None)?;
    let mut random = Random::new(seed.wrapping_mul(u64::from(mark) + 3));
    if random.below(HOOKS_PER_KILL) == 0 {
        sleep(random.moment(HOOK_TAKES));
        hook.kill();
    }
    Ok((mark, hook.end()?))
}

/// Kills workers and interrupts the model while the sessions run.
struct Disturbances<'a> {
    model: &'a CountingModel,
    random: Random,
    began: Instant,
    /// The start and the end of each outage, in seconds since the beginning.
    outages: Vec<(f64, f64)>,
    kill_within: Duration,
    next_kill: Instant,
    killed: u32,
}

impl Disturbances<'_> {
    fn new(model: &CountingModel, minutes: f64, random: Random) -> Disturbances<'_> {
        let share = minutes * 60.0 / f64::from(OUTAGES);
        let outages = (0..OUTAGES).map(f64::from);
        Disturbances {
            model,
            random,
            began: Instant::now(),
            outages: outages
                .map(|number| (share * (number + 0.5), share * (number + 0.75)))
                .collect(),
            kill_within: Duration::from_secs_f64(share * 2.0 / KILLS_PER_OUTAGE),
            next_kill: Instant::now(),
            killed: 0,
        }
    }

    fn apply(&mut self, home: &home::Home) -> anyhow::Result<()> {
        let now = self.began.elapsed().as_secs_f64();
        let down = |&(from, to): &(f64, f64)| (from..to).contains(&now);
        self.model.set_down(self.outages.iter().any(down));
        if Instant::now() >= self.next_kill {
            // The kernel names the lock's holder; every worker leads a group of its own.
            if let Some(worker) = Lock::holder(&home.lock())? {
                platform::kill_group(worker);
                self.killed += 1;
            }
            self.next_kill = Instant::now() + self.random.moment(self.kill_within);
        }
        Ok(())
    }
}
