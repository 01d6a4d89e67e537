//! `foreword-bench crash`: kills hooks and workers, and looks whether anything is lost,
//! doubled or stuck.
//!
//! In each round some hooks and a worker run at once and are killed at random moments; in a
//! build with failure points also at a point, each in its turn. Then everything is
//! processed and audited (`trial`). Only events of hooks that ended well count as accepted: a hook
//! that was killed may have written its event or not, but never twice. A planted defect shows that
//! the audit would notice. The seed is fixed unless one is given.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use foreword_core::fault::{self, POINTS};
use serde_json::json;

use super::agent::model::CountingModel;
use super::machine;
use super::process::pass;
use super::random::Random;
use super::report::{self, with};
use super::system;
use super::trial::{Audit, ChildGuard, Trial, was_killed};
use foreword::platform;

#[derive(clap::Args)]
pub struct Args {
    /// How many rounds
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Decides which processes are killed, and when
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plant a defect, which must be found: nobody remembers which events were taken in, or
    /// events leave the queue before what came of them is stored
    #[arg(long, value_parser = ["processed-events-off", "ack-before-commit"])]
    plant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A new home now and then, so that the spool and the first start are met too.
const ROUNDS_PER_HOME: u32 = 20;
const HOOKS_AT_ONCE: u32 = 3;

pub fn run(args: &Args) -> anyhow::Result<()> {
    system::note_interrupts();
    platform::make_files_private();
    ensure!(
        args.plant.is_none() || fault::BUILT_IN,
        "this build has no planted defects; build it with `--features faults`"
    );
    let points: &[&str] = if fault::BUILT_IN { POINTS } else { &[] };
    let seed = args.seed;
    let program = machine::beside()?;
    let began = Instant::now();
    let mut crash = Crash {
        random: Random::new(seed),
        plant: args.plant.clone(),
        model: CountingModel::start()?,
        trial: Trial::with_kills(&program, args.plant.as_deref())?,
        program,
        hook_takes: Duration::from_millis(20),
        worker_takes: Duration::from_millis(100),
        kills: 0,
        points: points.iter().map(|&point| (point, 0)).collect(),
        audit: Audit::default(),
    };
    let mut points = points.iter().filter(|it| can_be_visited(it)).cycle();
    for round in 0..args.rounds {
        ensure!(!system::interrupted(), "interrupted");
        crash
            .round(round, points.next().copied())
            .with_context(|| format!("round {round} with seed {seed}"))?;
    }
    crash.trial.add_to(&mut crash.audit)?;
    let audit = &crash.audit;
    let report = json!({
        "seed": seed,
        "rounds": args.rounds,
        "seconds": began.elapsed().as_secs_f64().round(),
        "kills": crash.kills,
        "points": crash.points,
        "named_points": fault::BUILT_IN,
    });
    report::print("crash", with(report, json!(audit)), args.json);
    if !fault::BUILT_IN {
        eprintln!("at random moments only: named points need a build with `--features faults`");
    }
    ensure!(audit.is_clean(), "the memory cannot be relied on");
    Ok(())
}

struct Crash {
    random: Random,
    plant: Option<String>,
    model: CountingModel,
    trial: Trial,
    program: PathBuf,
    /// How long the last hook and the last worker took: random moments lie within.
    hook_takes: Duration,
    worker_takes: Duration,
    kills: u32,
    /// How often a process died at each.
    points: BTreeMap<&'static str, u32>,
    /// Of all homes.
    audit: Audit,
}

/// A process, and when it is killed if it lives so long.
struct Victim {
    process: ChildGuard,
    mark: Option<u32>,
    dies_after: Option<Duration>,
}

/// There is no second migration of a database that the bench could make.
fn can_be_visited(point: &str) -> bool {
    point != "migration:after-backup"
}

/// Points that only a home without databases has.
fn is_at_the_start(point: &str) -> bool {
    ["spool", "intake", "migration"]
        .iter()
        .any(|road| point.starts_with(road))
}

impl Crash {
    fn round(&mut self, round: u32, point: Option<&'static str>) -> anyhow::Result<()> {
        let stale = round > 0 && round.is_multiple_of(ROUNDS_PER_HOME);
        if stale || point.is_some_and(is_at_the_start) {
            self.close()?;
        }
        self.trial.sandbox.keep_workers_away()?;
        if let Some(point) = point {
            self.visit(point)?;
        }
        self.scuffle()?;
        self.drain()?;
        // One that was only about to start when the others were killed is in the way later.
        self.kills += self.trial.kill_workers();
        if !self.trial.audit()?.is_clean() {
            self.close()?;
        }
        Ok(())
    }

    /// Audits a home for the last time, and goes on in another.
    fn close(&mut self) -> anyhow::Result<()> {
        self.trial.add_to(&mut self.audit)?;
        self.trial = Trial::with_kills(&self.program, self.plant.as_deref())?;
        Ok(())
    }

    /// Has the process die at a point that passes it.
    fn visit(&mut self, point: &'static str) -> anyhow::Result<()> {
        let road = point.split(':').next().unwrap_or(point);
        let mut victim = if matches!(road, "hook" | "spool") {
            let mark = self.trial.next_mark();
            self.trial.tell(mark, Some(point))?
        } else {
            self.tell()?;
            self.prepare(road)?;
            let arguments: &[&str] = match road {
                "backup" => &["backup"],
                _ => &["worker", "drain"],
            };
            let mut command = self.trial.command(arguments, Some(point));
            if road == "provider" {
                command.envs(self.model.environment());
            }
            ChildGuard::start(command)?
        };
        if was_killed(victim.end()?) {
            self.kills += 1;
            *self.points.entry(point).or_default() += 1;
        }
        Ok(())
    }

    /// Has what some points need.
    fn prepare(&mut self, road: &str) -> anyhow::Result<()> {
        if matches!(road, "backup" | "recover") {
            self.drain()?;
        }
        if road == "recover" {
            self.trial.sandbox.run(&["backup"])?;
            self.trial.sandbox.keep_workers_away()?;
            self.tell()?;
            self.trial.damage()?;
        }
        Ok(())
    }

    /// Three hooks and a worker at once; each may be killed.
    fn scuffle(&mut self) -> anyhow::Result<()> {
        // Mostly this worker is the only one; else hooks start another.
        if self.random.below(4) > 0 {
            self.trial.sandbox.keep_workers_away()?;
        }
        let action = ["run", "drain"][self.random.below(2) as usize];
        let roads = [
            "intake",
            "claim",
            "store",
            "queue",
            "migration:before-commit",
        ];
        let (fault, dies_after) = self.fate(&roads, self.worker_takes);
        let command = self.trial.command(&["worker", action], fault.as_deref());
        let mut victims = vec![Victim {
            process: ChildGuard::start(command)?,
            mark: None,
            dies_after: dies_after.or(Some(self.worker_takes * 2)),
        }];
        for _ in 0..HOOKS_AT_ONCE {
            // Now and then the host tells something again.
            let mark = match self.random.below(5) {
                0 => self.random.below(self.trial.marks),
                _ => self.trial.next_mark(),
            };
            let (fault, dies_after) = self.fate(&["hook", "spool"], self.hook_takes);
            victims.push(Victim {
                process: self.trial.tell(mark, fault.as_deref())?,
                mark: Some(mark),
                dies_after,
            });
        }
        let began = Instant::now();
        while !victims.is_empty() {
            let mut alive = Vec::new();
            for mut victim in victims {
                if let Some(status) = victim.process.ended()? {
                    self.kills += u32::from(was_killed(status));
                    self.trial
                        .accepted
                        .extend(victim.mark.filter(|_| status.success()));
                    continue;
                }
                if victim.dies_after.is_some_and(|it| began.elapsed() >= it) {
                    victim.process.kill();
                }
                alive.push(victim);
            }
            victims = alive;
            pass(Duration::from_micros(100));
        }
        self.kills += self.trial.kill_workers();
        Ok(())
    }

    /// The point at which a process dies, or after which time; neither if it lives.
    fn fate(&mut self, roads: &[&str], takes: Duration) -> (Option<String>, Option<Duration>) {
        let points: Vec<_> = POINTS
            .iter()
            .filter(|point| roads.iter().any(|road| point.starts_with(road)))
            .collect();
        match self.random.below(3) {
            0 => (None, None),
            1 if fault::BUILT_IN => {
                let point = points[self.random.below(points.len() as u32) as usize];
                let passing = 1 + self.random.below(3);
                (Some(format!("{point}:{passing}")), None)
            }
            _ => (None, Some(self.random.moment(takes))),
        }
    }

    /// A hook that nobody kills.
    fn tell(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        let (_, status) = self.trial.send(None)?;
        self.hook_takes = began.elapsed();
        ensure!(status.success(), "a hook failed: {status}");
        Ok(())
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        self.trial.drain()?;
        self.worker_takes = began.elapsed();
        Ok(())
    }
}
