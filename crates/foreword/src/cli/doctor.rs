//! `foreword doctor`: what is wrong, by what one sees it, and what cures it.
//!
//! A check only looks. It answers for one id, which stays what it is from version to
//! version; its cure is a line for a shell wherever there is one, and the tests run
//! exactly that line. `host` looks at Claude Code and its settings, `server` at what its agent can call, `data` at the
//! directory, `work` at what is in it, `model` at who writes the memory.

mod data;
mod host;
mod model;
mod server;
mod work;

use std::path::PathBuf;

use anyhow::bail;
use serde_json::json;

use crate::home::{self, Home};
use crate::install::record::Place;
use crate::install::{self, SettingsFile};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How bad it is: an error keeps Foreword from doing its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// What a check found.
pub struct Finding {
    pub id: &'static str,
    pub severity: Severity,
    pub evidence: String,
    pub cure: Cure,
}

pub enum Cure {
    /// For a shell, as it stands.
    Command(String),
    /// For a person: there is no command that would be right for everybody.
    Advice(String),
}

/// One thing to look at.
struct Check {
    id: &'static str,
    severity: Severity,
    look: fn(&World) -> Option<Trouble>,
}

/// What is wrong, and what helps.
struct Trouble {
    evidence: String,
    cure: Cure,
}

impl Trouble {
    fn cured_by(command: String, evidence: String) -> Option<Trouble> {
        let cure = Cure::Command(command);
        Some(Trouble { evidence, cure })
    }
}

const CHECKS: &[Check] = &[
    error("settings-broken", host::settings_broken),
    error("hooks-missing", host::hooks_missing),
    error("hooks-binary-gone", host::hooks_binary_gone),
    warning("hooks-other-binary", host::hooks_other_binary),
    warning("server-missing", server::missing),
    warning("server-silent", server::silent),
    warning("other-memory-tool", host::other_memory_tool),
    warning("client-missing", host::client_missing),
    warning("client-old", host::client_old),
    error("data-permissions", data::permissions),
    error("data-filesystem", data::filesystem),
    error("disk-full", data::disk_full),
    error("config-broken", work::config_broken),
    error("queue-damaged", work::queue_damaged),
    error("queue-newer", work::queue_newer),
    error("memory-damaged", work::memory_damaged),
    error("memory-newer", work::memory_newer),
    error("worker-not-starting", work::worker_not_starting),
    error("worker-halted", work::worker_halted),
    warning("recovered", work::recovered),
    warning("queue-old", work::queue_old),
    warning("events-skipped", work::events_skipped),
    warning("events-lost", work::events_lost),
    warning("payloads-unexpected", work::payloads_unexpected),
    warning("spool-unreadable", work::spool_unreadable),
    warning("provider-missing", model::provider_missing),
    warning("provider-paused", model::provider_paused),
    warning("budget-used-up", model::budget_used_up),
    warning("model-damaged", model::sentence_model_damaged),
];

const fn error(id: &'static str, look: fn(&World) -> Option<Trouble>) -> Check {
    let severity = Severity::Error;
    Check { id, severity, look }
}

const fn warning(id: &'static str, look: fn(&World) -> Option<Trouble>) -> Check {
    let severity = Severity::Warning;
    Check { id, severity, look }
}

/// What checks look at.
struct World {
    home: Home,
    now: i64,
    program: PathBuf,
    /// The user's settings, and those of the project that we are in.
    settings: Vec<(Place, Result<String, String>)>,
}

impl World {
    fn gather() -> anyhow::Result<World> {
        let mut places = vec![install::user_place()?, install::project_place()?];
        places.dedup();
        let read = |place: Place| {
            let text = SettingsFile::read(&place)
                .map(|file| file.text.unwrap_or_default())
                .and_then(|text| install::programs(&text).map(|_| text))
                .map_err(|error| format!("{error:#}"));
            (place, text)
        };
        Ok(World {
            home: super::home_to_look_at()?,
            now: home::now(),
            program: install::program().or_else(|_| std::env::current_exe())?,
            settings: places.into_iter().map(read).collect(),
        })
    }

    /// A command of this very program, for a shell.
    fn foreword(&self, arguments: &str) -> String {
        format!("{} {arguments}", show::shell_word(&self.program))
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let world = World::gather()?;
    let findings: Vec<_> = CHECKS
        .iter()
        .filter_map(|check| {
            let Trouble { evidence, cure } = (check.look)(&world)?;
            Some(Finding {
                id: check.id,
                severity: check.severity,
                evidence,
                cure,
            })
        })
        .collect();
    // Not a finding: a newer host may well say more than we listen to.
    let unknown = work::unknown_fields(&world);
    if args.json {
        println!("{}", show::json(&as_json(&findings, &unknown)));
    } else {
        print!("{}", show::findings(&findings, CHECKS.len()));
        print!("{}", show::unknown_fields(&unknown));
    }
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    match findings.iter().filter(is_error).count() {
        0 => Ok(()),
        1 => bail!("an error was found"),
        errors => bail!("{errors} errors were found"),
    }
}

pub(super) fn finding_json(finding: &Finding) -> serde_json::Value {
    let (cure, is_command) = match &finding.cure {
        Cure::Command(cure) => (cure, true),
        Cure::Advice(cure) => (cure, false),
    };
    json!({
        "id": finding.id,
        "severity": finding.severity.as_str(),
        "evidence": finding.evidence,
        "cure": cure,
        "cure_is_command": is_command,
    })
}

fn as_json(findings: &[Finding], unknown: &[(String, u64)]) -> serde_json::Value {
    json!({
        "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
        "unknown_fields": unknown.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "checked": CHECKS.iter().map(|check| check.id).collect::<Vec<_>>(),
    })
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}
