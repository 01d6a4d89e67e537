//! Everything that `foreword status` shows: what was captured, what is pending and what failed.

use std::fmt::Display;

use anyhow::Context as _;
use foreword_core::db::OpenError;
use foreword_core::files::{self, SMALL_MAX};
use foreword_core::model::Millis;
use foreword_core::queue::{Counts, Queue, Skipped};
use foreword_core::safety;
use foreword_core::spool;
use foreword_core::store::{Store, Totals};

use super::agent::AgentStatus;
use super::data;
use super::work;
use crate::config::Config;
use crate::config::policy::{FILE, ProjectPolicy};
use crate::home::{self, Home};
use crate::host::{self, CLIENTS, Client, Listed, Permission, READING_TOOLS, SettingsPlace};
use crate::install::{self, Connection};
use crate::log::{Fact, Log};
use crate::not_kept::{self, NotKept};
use crate::platform::{self, Lock};
use crate::service::{Reader, embed_client, recover};
use crate::switch::{self, Switches};

/// The content of the screen.
pub struct Status {
    pub home: Home,
    /// The scopes in which Foreword is switched off.
    pub off: Vec<String>,
    /// What the current project's repository restricts; empty if nothing.
    pub repository: String,
    /// The coding agent that is connected, or could be.
    pub client: &'static Client,
    pub connection: Result<Connection, String>,
    /// Whether our MCP server is listed; none if the host is not connected.
    pub server: Option<bool>,
    /// Whether the agent may call the tools that only read.
    pub permission: Permission,
    pub totals: Totals,
    pub queue: Counts,
    pub skipped: Vec<Skipped>,
    /// The last error of an event that will be tried again.
    pub last_error: Option<String>,
    pub spooled: u64,
    /// The time of the newest event, whether it is stored or waits.
    pub last_event_at: Option<Millis>,
    /// The share of the memory that is indexed by meaning; none without the sentence model.
    pub embedded: Option<f64>,
    pub unreadable: u64,
    pub worker_pid: Option<u32>,
    /// The state of the provider, or the error in the settings.
    pub agent: Result<AgentStatus, String>,
    pub problems: Vec<String>,
    pub not_kept: NotKept,
    pub hook_log: Vec<String>,
    pub worker_log: Vec<String>,
    pub now: i64,
}

/// Whether Foreword is switched off in this directory.
pub fn is_off_here() -> bool {
    let here = Reader::here();
    here.map_or(switch::off_in_environment(), |here| here.is_off())
}

pub fn gather(home: Home) -> anyhow::Result<Status> {
    let mut problems = Vec::new();
    if !platform::may_write(home.dir()) {
        let dir = home.dir().display();
        problems.push(format!("{dir} cannot be written, so events are lost"));
    }
    problems.extend(data::too_long(&home));
    let not_kept = NotKept::read(&home);
    problems.extend(not_kept::lost_line(&not_kept));
    let queue = or_problem(Queue::look(&home.queue()), "queue.db", &mut problems);
    let spooled = or_problem(spool::waiting(&home.spool()), "spool", &mut problems);
    // A memory with the schema of a newer program can still be counted.
    let looked = match Store::look(&home.memory()) {
        Err(error @ OpenError::OtherSchema { found, .. }) => {
            problems.push(format!("memory.db: {error}"));
            Store::look_at(&home.memory(), found)
        }
        looked => looked,
    };
    let store = or_problem(looked, "memory.db", &mut problems);
    let worker_pid = Lock::holder(&home.lock()).context("could not look at the worker's lock")?;
    if let Some(pid) = worker_pid.filter(|pid| platform::is_halted(*pid)) {
        problems.push(format!(
            "the worker is halted (SIGSTOP), so events wait; `kill -CONT {pid}` continues it"
        ));
    }
    let now = home::now();
    problems.extend(Fact::Recovered.since(&home, now - 24 * 3_600_000).pop());
    let aside = safety::recover::unreleased_aside(home.dir());
    problems.extend(aside.map(|it| recover::unreleased_line(&it)));
    let agent = Config::load(&home)
        .and_then(|config| Ok(AgentStatus::look(&home, &config, store.as_ref(), now)?))
        .map_err(|error| format!("{error:#}"));
    let embedded = store.as_ref().and_then(|it| embed_client::share(&home, it));
    let totals = store.map_or(Ok(Totals::default()), |store| store.totals());
    let queue = queue.as_ref();
    let counts = queue.map_or(Ok(Counts::default()), Queue::counts);
    let connection = connection().map_err(|error| format!("{error:#}"));
    let totals = or_problem(totals, "memory.db", &mut problems);
    let counts = or_problem(counts, "queue.db", &mut problems);
    let newest_spooled = spooled.last().and_then(|file| work::spooled_at(file));
    let client = connection
        .as_ref()
        .map_or_else(|_| host::default_client(), |it| it.0);
    let here = Reader::here()?;
    let (root, policy) = (here.place.root.clone(), here.policy());
    Ok(Status {
        last_event_at: [totals.last_event_at, counts.newest_at, newest_spooled]
            .into_iter()
            .max()
            .flatten(),
        totals,
        queue: counts,
        skipped: queue.and_then(|it| it.skipped().ok()).unwrap_or_default(),
        last_error: queue.and_then(|it| it.last_error().ok()?),
        spooled: spooled.len() as u64,
        embedded,
        unreadable: spool::unreadable(&home.spool()).unwrap_or_default() as u64,
        worker_pid,
        agent,
        permission: client.tool_permission(root.as_deref(), READING_TOOLS, false),
        client,
        server: connection.as_ref().ok().and_then(|it| it.2),
        connection: connection.map(|it| it.1),
        off: off(&home, &policy),
        repository: repository(&policy),
        hook_log: Log::Hook.tail(&home, 3),
        worker_log: Log::Worker.tail(&home, 3),
        problems,
        not_kept,
        now,
        home,
    })
}

/// The value, or an empty one after adding the error to the problems.
fn or_problem<T: Default, E: Display>(
    looked: Result<T, E>,
    what: &str,
    problems: &mut Vec<String>,
) -> T {
    looked.unwrap_or_else(|error| {
        problems.push(format!("{what}: {error}"));
        T::default()
    })
}

/// The restrictions of the repository, and why its file cannot be used.
fn repository(policy: &ProjectPolicy) -> String {
    match &policy.repository.problem {
        Some(problem) => format!("{FILE} cannot be used: {problem}"),
        None => {
            let words = policy.repository.policy.words();
            let file = if words.is_empty() { "" } else { FILE };
            [file, &words].join(" ").trim().to_owned()
        }
    }
}

fn off(home: &Home, policy: &ProjectPolicy) -> Vec<String> {
    let environment = switch::off_in_environment().then(|| "everywhere (FOREWORD_OFF)".to_owned());
    environment
        .into_iter()
        .chain(Switches::read(home).lines())
        .chain(policy.off().map(|why| format!("here: {why}")))
        .collect()
}

/// The client that is connected in the user's settings, else in the current project's; and whether
/// our MCP server is listed there.
fn connection() -> anyhow::Result<(&'static Client, Connection, Option<bool>)> {
    let program = std::env::current_exe()?;
    let look = |place: &SettingsPlace| {
        let settings = files::read_text(&place.settings, SMALL_MAX).unwrap_or_default();
        install::connection(place.client, &settings, &program)
    };
    for client in CLIENTS {
        for place in [client.user_place()?, install::project_place(client)?] {
            let connection = look(&place)?;
            if connection != Connection::None {
                let is_listed = matches!(install::listed(&place), Ok(Listed::Ours(_)));
                return Ok((client, connection, Some(is_listed)));
            }
        }
    }
    Ok((host::default_client(), Connection::None, None))
}
