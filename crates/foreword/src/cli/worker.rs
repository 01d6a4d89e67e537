//! `foreword worker run|start|stop|status|drain`

use anyhow::{Context as _, bail};
use clap::Subcommand;
use foreword_core::queue::Queue;
use foreword_core::text;
use serde_json::json;

use super::JsonArgs;
use crate::config::Config;
use crate::config::provider;
use crate::home::Home;
use crate::local_time;
use crate::log::Log;
use crate::platform::{self, Lock};
use crate::service;
use crate::show;
use crate::start;
use crate::start::{Ended, anything_waits, end_running, wait_for_lock, wait_until};
use crate::worker::{self, Until, WorkerEnd, request};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: WorkerAction,
}

#[derive(Subcommand)]
enum WorkerAction {
    /// Run a worker in the foreground until it is idle
    Run {
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Start a worker in the background
    Start,
    /// End the running worker after its current batch
    Stop,
    /// Show whether a worker is running
    Status(JsonArgs),
    /// Process everything that is queued, now
    Drain {
        /// Also events that were skipped after failing too often, like `foreword retry`
        #[arg(long, hide = true)]
        skipped: bool,
    },
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    if let WorkerAction::Run { detached: true } = args.action {
        platform::settle_detached();
    }
    let home = service::home_to_write()?;
    match &args.action {
        WorkerAction::Run { detached } => run_here(&home, *detached),
        WorkerAction::Start => start(&home),
        WorkerAction::Stop => stop(&home),
        WorkerAction::Status(args) => status(&home, args),
        WorkerAction::Drain { skipped } => drain(&home, *skipped),
    }
}

fn run_here(home: &Home, detached: bool) -> anyhow::Result<()> {
    let config = if detached {
        // Nobody watches a detached worker, so a mistake in the settings does not stop it.
        let (config, mistake) = Config::tolerant(home);
        if let Some(mistake) = mistake {
            Log::Worker.line(home, &format!("{mistake}; the other settings hold"));
        }
        config
    } else {
        Config::load(home)?
    };
    let ended = worker::run(home, &config, Until::Idle);
    // Nobody reads a detached worker's stderr, so its error goes to the log.
    if detached && let Err(error) = &ended {
        Log::Worker.line(home, &format!("the worker could not go on: {error:#}"));
    }
    match ended? {
        WorkerEnd::Other(pid) => println!("another worker is running (pid {pid})"),
        WorkerEnd::Done { left: 0 } => println!("nothing left to do"),
        WorkerEnd::Done { left } => {
            let events = text::count(left, "event waits", "events wait");
            println!("{events}; `foreword status` says why");
        }
        WorkerEnd::Outdated => {
            println!("the settings have changed");
            // A worker without a model needs no key from a hook's environment, so it can be started
            // here.
            let (config, _) = Config::tolerant(home);
            if !provider::choose(&config, home).name.has_model() {
                start_another(home)?;
            }
        }
        WorkerEnd::Replaced => {
            println!("the program was replaced");
            start_another(home)?;
        }
        WorkerEnd::Asked => println!("ended as asked"),
    }
    Ok(())
}

fn start_another(home: &Home) -> anyhow::Result<()> {
    if anything_waits(home) {
        start::start_worker(home).context("could not start a worker")?;
    }
    Ok(())
}

fn start(home: &Home) -> anyhow::Result<()> {
    if let Some(pid) = Lock::holder(&home.lock())? {
        println!("a worker is running already (pid {pid})");
        return Ok(());
    }
    Config::load(home)?;
    let child = start::start_worker(home).context("could not start a worker")?;
    // A worker that holds the lock may still fail to open a database.
    let mut ended = None;
    let up = wait_until(|| {
        ended = ended.or_else(|| platform::child_ended(child));
        let holder = Lock::holder(&home.lock())?;
        Ok(match holder {
            Some(pid) if request::is_listening(home) => Some(Some(pid)),
            None if ended.is_some() => Some(None),
            _ => None,
        })
    })?;
    match (up.flatten(), ended) {
        (Some(pid), _) => println!("started (pid {pid})"),
        (None, Some(true)) => println!("started, and ended again: there was nothing to do"),
        (None, _) => {
            let last = Log::Worker.tail(home, 1).pop().unwrap_or_default();
            let last = local_time::log_line(&last);
            bail!("the worker did not start; its last log line: {last}");
        }
    }
    Ok(())
}

fn stop(home: &Home) -> anyhow::Result<()> {
    match end_running(home)? {
        Ended::Nobody => println!("no worker is running"),
        Ended::Gone => println!("stopped"),
        Ended::Replaced(pid) => println!("stopped; another worker took over (pid {pid})"),
    }
    Ok(())
}

fn status(home: &Home, args: &JsonArgs) -> anyhow::Result<()> {
    let pid = Lock::holder(&home.lock())?;
    let words = || match pid {
        Some(0) => "running, where this process cannot see it\n".to_owned(),
        Some(pid) => format!("running (pid {pid})\n"),
        None => "not running; the next hook starts it\n".to_owned(),
    };
    let to_json = || json!({"running": pid.is_some(), "pid": pid});
    show::print(args.json(), to_json, words);
    Ok(())
}

fn drain(home: &Home, skipped: bool) -> anyhow::Result<()> {
    let config = Config::load(home)?;
    if skipped {
        let queue = service::queue_to_write(home)?;
        queue
            .retry_skipped(None)
            .context("could not queue the skipped events again")?;
    }
    report(home, drain_all(home, &config)?);
    Ok(())
}

/// Has the running worker, or this process, do everything now. Returns the number of events left.
pub(super) fn drain_all(home: &Home, config: &Config) -> anyhow::Result<u64> {
    loop {
        // Either the running worker does it, or we are the worker.
        if Lock::holder(&home.lock())?.is_some()
            && let Some(left) =
                request::ask_to_drain(home, || eprintln!("waiting for the running worker …"))?
        {
            return Ok(left);
        }
        match worker::run(home, config, Until::Drained)? {
            WorkerEnd::Done { left } => {
                // A later retry, or an event that a hook queued while we held the lock, needs a worker.
                if anything_waits(home) {
                    start::wake_worker(home);
                }
                return Ok(left);
            }
            WorkerEnd::Asked => bail!("ended by a signal before everything was done"),
            WorkerEnd::Outdated | WorkerEnd::Replaced => {}
            // It has not opened its socket yet, or is a `redo`, which has none.
            WorkerEnd::Other(_) => drop(wait_for_lock(home, |holder| {
                holder.is_none() || request::is_listening(home)
            })?),
        }
    }
}

pub(super) fn report(home: &Home, left: u64) {
    let queue = Queue::look(&home.queue()).ok().flatten();
    let skipped = queue
        .and_then(|queue| queue.counts().ok())
        .map_or(0, |it| it.skipped);
    let done = match (left, skipped) {
        (0, 0) => "everything is processed".to_owned(),
        (0, skipped) => {
            let events = text::count(skipped, "event was", "events were");
            format!(
                "everything else is processed, but {events} skipped; `foreword status` says why"
            )
        }
        (left, _) => {
            let events = text::count(left, "event is", "events are");
            format!("{events} left; `foreword status` says why")
        }
    };
    println!("{done}");
}
