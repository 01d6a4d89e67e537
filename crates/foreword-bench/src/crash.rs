//! `foreword-bench crash`: kills hooks and workers, then checks that no event is lost,
//! stored twice or stuck.
//!
//! In each round some hooks and a worker run at once and are killed at random moments; in a
//! build with failure points also at a named point, each in its turn. Then everything is
//! processed and audited (`trial`). Only events of hooks that ended well count as accepted: a hook
//! that was killed may have written its event or not, but never twice. A planted defect shows that
//! the audit notices losses and duplicates. The seed is fixed unless one is given.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use foreword_core::fault::{self, POINTS};
use serde_json::json;

use super::agent::model::CountingModel;
use super::machine;
use super::process::sleep;
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
    /// Plant a defect, which must be found: the ids of processed events are not recorded, or
    /// events leave the queue before their results are stored
    #[arg(long, value_parser = ["processed-events-off", "ack-before-commit"])]
    plant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Rounds after which a new home begins, so that the spool and the first start are tested too.
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
    ensure!(
        audit.is_clean(),
        "the audit found lost, doubled, stuck or damaged events"
    );
    Ok(())
}

struct Crash {
    random: Random,
    plant: Option<String>,
    model: CountingModel,
    trial: Trial,
    program: PathBuf,
    /// How long the last hook took; hooks are killed within this time.
    hook_takes: Duration,
    /// How long the last worker took; workers are killed within this time.
    worker_takes: Duration,
    kills: u32,
    /// How often a process died at each point.
    points: BTreeMap<&'static str, u32>,
    /// Findings of all homes.
    audit: Audit,
}

/// A process, the mark of its event if it is a hook, and the time after which it is killed.
struct Victim {
    process: ChildGuard,
    mark: Option<u32>,
    dies_after: Option<Duration>,
}

/// Whether the bench can reach a point. It cannot make a database of an older schema, so there
/// is nothing to migrate after a backup.
fn can_be_visited(point: &str) -> bool {
    point != "migration:after-backup"
}

/// Whether only a home without databases passes a point.
fn is_at_the_start(point: &str) -> bool {
    ["spool", "intake", "migration"]
        .iter()
        .any(|area| point.starts_with(area))
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
        self.kill_at_random()?;
        self.drain()?;
        // A worker that was still starting when the others were killed would disturb the next round.
        self.kills += self.trial.kill_workers();
        if !self.trial.audit()?.is_clean() {
            self.close()?;
        }
        Ok(())
    }

    /// Audits the home for the last time and makes a new one.
    fn close(&mut self) -> anyhow::Result<()> {
        self.trial.add_to(&mut self.audit)?;
        self.trial = Trial::with_kills(&self.program, self.plant.as_deref())?;
        Ok(())
    }

    /// Starts the process that passes a point and has it die there.
    fn visit(&mut self, point: &'static str) -> anyhow::Result<()> {
        let area = point.split(':').next().unwrap_or(point);
        let mut victim = if matches!(area, "hook" | "spool") {
            let mark = self.trial.next_mark();
            self.trial.start_marked(mark, Some(point))?
        } else {
            self.send()?;
            self.prepare(area)?;
            let arguments: &[&str] = match area {
                "backup" => &["backup"],
                _ => &["worker", "drain"],
            };
            let mut command = self.trial.command(arguments, Some(point));
            if area == "provider" {
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

    /// Makes the state that some points need: a backup, damaged databases.
    fn prepare(&mut self, area: &str) -> anyhow::Result<()> {
        if matches!(area, "backup" | "recover") {
            self.drain()?;
        }
        if area == "recover" {
            self.trial.sandbox.run(&["backup"])?;
            self.trial.sandbox.keep_workers_away()?;
            self.send()?;
            self.trial.damage()?;
        }
        Ok(())
    }

    /// Runs three hooks and a worker at once; each may be killed.
    fn kill_at_random(&mut self) -> anyhow::Result<()> {
        // In three of four rounds this worker is the only one; else hooks may start another.
        if self.random.below(4) > 0 {
            self.trial.sandbox.keep_workers_away()?;
        }
        let action = ["run", "drain"][self.random.below(2) as usize];
        let areas = [
            "intake",
            "claim",
            "store",
            "queue",
            "migration:before-commit",
        ];
        let (fault, dies_after) = self.fate(&areas, self.worker_takes);
        let command = self.trial.command(&["worker", action], fault.as_deref());
        let mut victims = vec![Victim {
            process: ChildGuard::start(command)?,
            mark: None,
            dies_after: dies_after.or(Some(self.worker_takes * 2)),
        }];
        for _ in 0..HOOKS_AT_ONCE {
            // One in five events was sent before: a host may send an event again.
            let mark = match self.random.below(5) {
                0 => self.random.below(self.trial.marks),
                _ => self.trial.next_mark(),
            };
            let (fault, dies_after) = self.fate(&["hook", "spool"], self.hook_takes);
            victims.push(Victim {
                process: self.trial.start_marked(mark, fault.as_deref())?,
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
            sleep(Duration::from_micros(100));
        }
        self.kills += self.trial.kill_workers();
        Ok(())
    }

    /// Draws the point or the time at which a process dies; neither if it is not killed.
    fn fate(&mut self, areas: &[&str], takes: Duration) -> (Option<String>, Option<Duration>) {
        let points: Vec<_> = POINTS
            .iter()
            .filter(|point| areas.iter().any(|area| point.starts_with(area)))
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

    /// Sends one event through a hook that is not killed.
    fn send(&mut self) -> anyhow::Result<()> {
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
