//! `foreword doctor`: finds what is wrong, with the evidence and a cure.
//!
//! A check changes nothing. It has one id, which is the same in all versions. Its cure is a shell
//! command wherever possible, and the tests run exactly that command. `host` checks the coding agent,
//! its settings and the MCP server, `permissions` what the agent may do with it,
//! `sessions` whether hooks deliver anything, `data` the data directory, `work` the files in it,
//! `model` the provider.

pub mod agent;
pub mod ask;
pub mod bill;
mod data;
mod host;
mod model;
mod permissions;
mod sessions;
pub mod status;
mod work;

use std::path::PathBuf;

use serde::Serialize;

use crate::home::{self, Home};
use crate::host::{CLIENTS, SettingsPlace};
use crate::install::{self, SettingsFile};
use crate::service;
use foreword_core::text::shell_word;

/// An error keeps Foreword from doing its work; a warning does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

use Severity::{Error, Warning};

/// A problem that a check found.
#[derive(Serialize)]
pub struct Finding {
    pub id: &'static str,
    pub severity: Severity,
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// The evidence of a problem, and its cure.
#[derive(Serialize)]
pub struct Diagnosis {
    pub evidence: String,
    pub cure: String,
    /// Whether the cure is a shell command; else it is advice for the user.
    pub cure_is_command: bool,
}

impl Diagnosis {
    fn cured_by(command: String, evidence: String) -> Option<Diagnosis> {
        Some(Diagnosis {
            evidence,
            cure: command,
            cure_is_command: true,
        })
    }

    fn advised(advice: String, evidence: String) -> Option<Diagnosis> {
        Some(Diagnosis {
            evidence,
            cure: advice,
            cure_is_command: false,
        })
    }
}

/// The severity, the id and the function of a check.
type Check = (
    Severity,
    &'static str,
    fn(&Examination) -> Option<Diagnosis>,
);

const CHECKS: &[Check] = &[
    (Error, "settings-broken", host::settings_broken),
    (Error, "settings-unread", host::settings_unread),
    (Error, "hooks-missing", host::hooks_missing),
    (Error, "hooks-binary-gone", host::hooks_binary_gone),
    (Warning, "hooks-other-binary", host::hooks_other_binary),
    (Warning, "server-missing", host::server_missing),
    (Warning, "server-silent", host::server_silent),
    (Warning, "tools-not-allowed", permissions::tools_not_allowed),
    (Warning, "agent-not-asked", permissions::agent_not_asked),
    (Warning, "sessions-unseen", sessions::sessions_unseen),
    (Warning, "other-memory-tool", host::other_memory_tool),
    (Warning, "client-missing", host::client_missing),
    (Warning, "client-old", host::client_old),
    (Error, "data-permissions", data::permissions),
    (Error, "data-filesystem", data::filesystem),
    (Error, "data-path-long", data::path_too_long),
    (Error, "disk-full", data::disk_full),
    (Error, "config-broken", work::config_broken),
    (Error, "queue-damaged", work::queue_damaged),
    (Error, "queue-newer", work::queue_newer),
    (Error, "memory-damaged", work::memory_damaged),
    (Error, "memory-newer", work::memory_newer),
    (Error, "worker-not-starting", work::worker_not_starting),
    (Error, "worker-halted", work::worker_halted),
    (Warning, "recovered", work::recovered),
    (Warning, "unreleased-set-aside", work::unreleased_set_aside),
    (Warning, "queue-old", work::queue_old),
    (Warning, "events-skipped", work::events_skipped),
    (Warning, "events-lost", work::events_lost),
    (Warning, "payloads-unexpected", work::payloads_unexpected),
    (Warning, "spool-unreadable", work::spool_unreadable),
    (Warning, "provider-missing", model::provider_missing),
    (Warning, "provider-paused", model::provider_paused),
    (Warning, "model-unfit", model::model_unfit),
    (Warning, "budget-used-up", model::budget_used_up),
    (Warning, "model-damaged", model::sentence_model_damaged),
];

/// The input of all checks.
struct Examination {
    home: Home,
    now: i64,
    program: PathBuf,
    /// The host's settings files of the user and of the current project, with their text.
    settings: Vec<(SettingsPlace, Result<String, String>)>,
}

impl Examination {
    fn gather() -> anyhow::Result<Examination> {
        let mut places = Vec::new();
        for client in CLIENTS {
            places.extend([client.user_place()?, install::project_place(client)?]);
        }
        places.dedup();
        let read = |place: SettingsPlace| {
            let text = SettingsFile::read(&place.settings, place.scope)
                .map(|file| file.text.unwrap_or_default())
                .and_then(|text| (place.client.programs)(&text).map(|_| text))
                .map_err(|error| format!("{error:#}"));
            (place, text)
        };
        Ok(Examination {
            home: service::home_to_look_at()?,
            now: home::now(),
            program: install::program().or_else(|_| std::env::current_exe())?,
            settings: places.into_iter().map(read).collect(),
        })
    }

    /// A command of this program, quoted for a shell.
    fn foreword(&self, arguments: &str) -> String {
        format!("{} {arguments}", shell_word(&self.program))
    }
}

/// The findings of all checks, and the names of fields that the host sends and Foreword does not know.
pub struct Examined {
    pub findings: Vec<Finding>,
    /// These are not findings: a newer host may send more fields than we read.
    pub unknown_fields: Vec<(String, u64)>,
    /// These are not findings either: the user wants it so.
    pub notes: Vec<String>,
}

/// The ids of all checks, in order.
pub fn check_ids() -> impl ExactSizeIterator<Item = &'static str> {
    CHECKS.iter().map(|(_, id, _)| *id)
}

pub fn examine() -> anyhow::Result<Examined> {
    let exam = Examination::gather()?;
    let findings = CHECKS.iter().filter_map(|&(severity, id, look)| {
        let diagnosis = look(&exam)?;
        Some(Finding {
            id,
            severity,
            diagnosis,
        })
    });
    Ok(Examined {
        findings: findings.collect(),
        unknown_fields: work::unknown_fields(&exam),
        notes: permissions::tools_refused(&exam)
            .into_iter()
            .chain(work::repository_notes())
            .collect(),
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
