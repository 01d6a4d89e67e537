//! Classifies the failures of the claude CLI.
//!
//! The client reports an error in several places, not always in all of them: its own name for the
//! error, the status of the answer, the reason why the turn ended, a text for people. The first row
//! of the table that fits decides.

use std::io;

use foreword_core::model::FailureKind;

use super::stream::Outcome;
use crate::agent::provider::Failure;
use crate::config;

/// A place in the output, and the value there.
enum Sign {
    /// `error` of the assistant's message, or `api_error` of the result.
    Error(&'static str),
    Status(u16),
    Ended(&'static str),
    Stopped(&'static str),
    Text(&'static str),
}

const SIGNS: &[(Sign, FailureKind)] = &[
    (Sign::Stopped("refusal"), FailureKind::Refusal),
    (Sign::Error("max_output_tokens"), FailureKind::CutOff),
    (Sign::Error("billing_error"), FailureKind::Billing),
    (Sign::Error("account_on_hold"), FailureKind::Billing),
    (Sign::Ended("prompt_too_long"), FailureKind::TooLong),
    (Sign::Text("Prompt is too long"), FailureKind::TooLong),
    (Sign::Status(413), FailureKind::TooLong),
    (Sign::Error("model_not_found"), FailureKind::Model),
    (Sign::Error("authentication_failed"), FailureKind::Auth),
    (Sign::Error("oauth_org_not_allowed"), FailureKind::Auth),
    (Sign::Error("verification_required"), FailureKind::Auth),
    (Sign::Error("cloud_credential_error"), FailureKind::Auth),
    (Sign::Status(401), FailureKind::Auth),
    (Sign::Status(403), FailureKind::Auth),
    (Sign::Text("Please run /login"), FailureKind::Auth),
    (Sign::Error("rate_limit"), FailureKind::RateLimit),
    (Sign::Status(429), FailureKind::RateLimit),
    // The answer had begun: "Server error mid-response. The response above may be …".
    (Sign::Text("may be incomplete"), FailureKind::Broken),
    (Sign::Text("ECONNRESET"), FailureKind::Broken),
    (Sign::Error("server_error"), FailureKind::Outage),
    (Sign::Error("overloaded"), FailureKind::Outage),
    (Sign::Error("connection_failed"), FailureKind::Outage),
    (Sign::Status(404), FailureKind::Model),
];

/// The kind of failure, from the client's own name for the error and from the result.
pub fn kind(error: Option<&str>, outcome: &Outcome) -> FailureKind {
    let text = outcome.result.as_deref().unwrap_or_default();
    let fits = |sign: &Sign| match *sign {
        Sign::Error(name) => [error, outcome.api_error.as_deref()].contains(&Some(name)),
        Sign::Status(status) => outcome.api_error_status == Some(status),
        Sign::Ended(reason) => outcome.terminal_reason.as_deref() == Some(reason),
        Sign::Stopped(reason) => outcome.stop_reason.as_deref() == Some(reason),
        Sign::Text(part) => text.contains(part),
    };
    let known = SIGNS.iter().find(|(sign, _)| fits(sign));
    match (known, outcome.api_error_status) {
        (Some((_, kind)), _) => *kind,
        (None, Some(..500)) => FailureKind::Request,
        (None, _) => FailureKind::Outage,
    }
}

/// The failure for a client that could not be started.
pub fn of_start(error: &io::Error, settings: &config::ClaudeSection) -> Failure {
    let command = &settings.command;
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Failure::new(
            FailureKind::Missing,
            format!(
                "the claude CLI could not be started ({command}: {error}); install it, or say where it is with command = \"…\" under [claude] in config.toml"
            ),
        ),
        io::ErrorKind::ArgumentListTooLong => Failure::new(
            FailureKind::TooLong,
            "the instructions are longer than the claude CLI can be given",
        ),
        _ => Failure::new(
            FailureKind::Broken,
            format!("the claude CLI could not be started ({command}: {error})"),
        ),
    }
}
