//! `foreword status`: one screen on what was captured, what is pending and what failed.

use anyhow::Context as _;
use foreword_core::queue::{Counts, Queue, Skipped};
use foreword_core::spool;
use foreword_core::store::{Store, Totals};
use serde_json::json;

use crate::config::Config;
use crate::home::{self, Home};
use crate::install::record::Place;
use crate::install::{self, Connection};
use crate::log::Log;
use crate::platform::Lock;
use crate::provider::{self, Choice};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Everything that the screen says.
pub struct Status {
    pub home: Home,
    pub off: bool,
    pub connection: Result<Connection, String>,
    pub totals: Totals,
    pub queue: Counts,
    pub skipped: Vec<Skipped>,
    pub spooled: u64,
    pub unreadable: u64,
    pub worker_pid: Option<u32>,
    pub provider: Result<Choice, String>,
    pub problems: Vec<String>,
    pub hook_log: Vec<String>,
    pub worker_log: Vec<String>,
    pub now: i64,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let status = gather(super::home()?)?;
    if args.json {
        println!("{:#}", as_json(&status));
    } else {
        print!("{}", show::status(&status));
    }
    Ok(())
}

fn gather(home: Home) -> anyhow::Result<Status> {
    let mut problems = Vec::new();
    let queue = Queue::look(&home.queue()).unwrap_or_else(|error| {
        problems.push(format!("queue.db: {error}"));
        None
    });
    let store = Store::look(&home.memory()).unwrap_or_else(|error| {
        problems.push(format!("memory.db: {error}"));
        None
    });
    let totals = store.map_or(Ok(Totals::default()), |store| store.totals());
    let counts = queue.as_ref().map_or(Ok(Counts::default()), Queue::counts);
    let skipped = queue.as_ref().map_or(Ok(Vec::new()), Queue::skipped);
    let mut keep = |what: &str, error: rusqlite::Error| problems.push(format!("{what}: {error}"));
    Ok(Status {
        totals: totals.unwrap_or_else(|error| {
            keep("memory.db", error);
            Totals::default()
        }),
        queue: counts.unwrap_or_else(|error| {
            keep("queue.db", error);
            Counts::default()
        }),
        skipped: skipped.unwrap_or_default(),
        spooled: spool::waiting(&home.spool())
            .context("could not read the spool")?
            .len() as u64,
        unreadable: spool::unreadable(&home.spool()).context("could not read the spool")? as u64,
        worker_pid: Lock::holder(&home.lock()).context("could not look at the worker's lock")?,
        provider: Config::load(&home)
            .map(|config| provider::choose(&config))
            .map_err(|error| format!("{error:#}")),
        connection: connection().map_err(|error| format!("{error:#}")),
        off: std::env::var_os("FOREWORD_OFF")
            .is_some_and(|value| !value.is_empty() && value != "0"),
        hook_log: Log::Hook.tail(&home, 3),
        worker_log: Log::Worker.tail(&home, 3),
        problems,
        now: home::now(),
        home,
    })
}

/// By the user's settings, else by those of the project that we are in.
fn connection() -> anyhow::Result<Connection> {
    let program = std::env::current_exe()?;
    let look = |place: Place| {
        let settings = std::fs::read_to_string(place.settings).unwrap_or_default();
        install::connection(&settings, &program)
    };
    match look(install::user_place()?)? {
        Connection::None => look(install::project_place()?),
        connection => Ok(connection),
    }
}

fn as_json(status: &Status) -> serde_json::Value {
    let (provider, reason) = match &status.provider {
        Ok(choice) => (Some(choice.name), choice.reason.to_owned()),
        Err(error) => (None, error.clone()),
    };
    json!({
        "pending": status.queue.pending + status.spooled,
        "skipped": status.queue.skipped,
        "observations": status.totals.observations,
        "summaries": status.totals.summaries,
        "prompts": status.totals.prompts,
        "sessions": status.totals.sessions,
        "projects": status.totals.projects,
        "worker": {"running": status.worker_pid.is_some(), "pid": status.worker_pid},
        "provider": provider,
        "provider_reason": reason,
        "off": status.off,
        "home": status.home.dir(),
        "problems": status.problems,
    })
}
