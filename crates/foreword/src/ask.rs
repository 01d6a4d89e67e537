//! One question to the model that was chosen, on behalf of a command that a person ran.
//!
//! It is on the same leash as the worker's questions: the daily budget, a pause, and a
//! line in the ledger before it goes out. No secret goes out and none comes in. Whoever gets no
//! answer is told why in words, and goes on offline.

use std::fmt;
use std::time::Duration;

use foreword_core::redact::redact;
use foreword_core::store::Store;
use foreword_core::store::ledger::{Entry, Failed};
use foreword_core::text;

use crate::cli;
use crate::config::Config;
use crate::home::{self, Home};
use crate::provider::{self, Model, Provider as _, Question};
use crate::worker::leash::{Leash, used_up_today};

/// What a model said, as untrusted as ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub provider: &'static str,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// Offline was chosen, or nothing: nobody was to be asked.
    NoModel,
    /// Nobody was asked: the budget, a pause, a ledger that cannot be written.
    NotAsked(String),
    Failed(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::NoModel => f.write_str("no model is chosen"),
            NoAnswer::NotAsked(why) | NoAnswer::Failed(why) => f.write_str(why),
        }
    }
}

impl NoAnswer {
    fn storage(error: impl fmt::Display) -> NoAnswer {
        NoAnswer::NotAsked(format!("the ledger cannot be written: {error}"))
    }
}

/// `what` is the command, as it stands in the ledger.
pub async fn ask(
    home: &Home,
    config: &Config,
    what: &'static str,
    system: &str,
    text: &str,
) -> Result<Answer, NoAnswer> {
    let name = provider::choose(config, home).name;
    let mut model = Model::new(name, config, home).ok_or(NoAnswer::NoModel)?;
    let store = Store::open(&home.memory(), &home.backups()).map_err(NoAnswer::storage)?;
    let (leash, now) = (Leash::new(name, config), home::now());
    let provider = name.as_str();
    if let Some(limit) = used_up_today(&store, &config.budget, now).map_err(NoAnswer::storage)? {
        let why = format!("the daily budget of {limit} is used up");
        return Err(NoAnswer::NotAsked(why));
    }
    if let Some(pause) = cli::pause(&store, name, now).map_err(NoAnswer::storage)? {
        let why = &pause.reason;
        let why = format!("{provider} is paused: {why}; `foreword retry` asks it again");
        return Err(NoAnswer::NotAsked(why));
    }
    let entry = Entry {
        at: now,
        provider,
        host_session_id: what,
        events: 0,
        raw_tokens: 0,
    };
    let open = store.ask(&entry).map_err(NoAnswer::storage)?;
    let question = Question {
        system,
        text: &redact(text).text,
        patience: Duration::from_secs(config.model.timeout_seconds.into()),
        answer_max: config.model.answer_max_tokens,
        now,
    };
    let call = model.ask(&question).await;
    let failed = call.answer.as_ref().err().map(|failure| Failed {
        kind: failure.kind,
        note: text::shorten(&failure.text, 300).into_owned(),
        retry_at: leash.pause_after(&store, failure, home::now()),
    });
    // An answer that was paid for is of use, also where this cannot be written any more.
    let _ = store.answered(open, &call.answered(failed));
    match call.answer {
        Ok(answer) => Ok(Answer {
            text: redact(&answer).text.into_owned(),
            provider,
        }),
        Err(failure) => Err(NoAnswer::Failed(format!(
            "{provider} did not answer: {}",
            failure.text
        ))),
    }
}
