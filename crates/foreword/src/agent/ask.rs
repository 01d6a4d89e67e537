//! One question to the model that was chosen, on behalf of a command that a person ran.
//!
//! The same limits hold as for the worker's questions: the daily budget, pauses, and an entry in
//! the ledger before the question is sent. Secrets are redacted in both directions. If there is no
//! answer, the error gives the reason and the caller goes on offline.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use foreword_core::ledger::{Entry, Failed};
use foreword_core::redact::thorough;
use foreword_core::store::Store;
use foreword_core::text;

use crate::agent::budget::Budget;
use crate::agent::leash::{Leash, pause};
use crate::agent::provider::{Model, Provider as _, Question};
use crate::config::Config;
use crate::config::provider::{self};
use crate::home::{self, Home};
use crate::progress::Progress;

const NO_LEDGER: &str = "the ledger cannot be written";

/// What happens to a question while the provider is paused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WhilePaused {
    /// It is not asked.
    Fail,
    /// It is asked all the same: a person wants to know whether the provider answers.
    Ask,
}

/// Returns the model's answer, which is untrusted text. `what` is the command's name for the ledger.
pub fn ask(
    home: &Home,
    config: &Config,
    what: &'static str,
    while_paused: WhilePaused,
    system: &str,
    text: &str,
    schema: Option<&'static str>,
) -> anyhow::Result<String> {
    let name = provider::choose(config, home).name;
    let mut model = Model::new(name, config, home).context("no model is chosen")?;
    let store = Store::open(&home.memory(), &home.backups()).context(NO_LEDGER)?;
    let (leash, now) = (Leash::new(name, config), home::now());
    let provider = name.as_str();
    let budget = Budget::new(name, config);
    if let Some(limit) = budget.used_up_today(&store, now).context(NO_LEDGER)? {
        bail!("the daily budget of {limit} is used up");
    }
    let paused = pause(&store, name, now).context(NO_LEDGER)?;
    if let Some(pause) = paused.filter(|_| while_paused == WhilePaused::Fail) {
        let why = &pause.reason;
        bail!("{provider} is paused: {why}; `foreword retry` ends the pause");
    }
    // No session asks. The ledger has no column for a command, so its name stands in place of the id.
    let entry = Entry {
        at: now,
        provider,
        model: name.model(config),
        host_session_id: what,
        turn: None,
        events: 0,
        raw_tokens: 0,
    };
    let question = Question {
        system,
        text: &thorough(text).text,
        patience: Duration::from_secs(config.model.timeout_seconds.into()),
        answer_max: config.model.answer_max_tokens,
        schema,
        now,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the runtime")?;
    let open = budget
        .reserve(&store, &entry, &question, None, false)
        .context(NO_LEDGER)?
        .map_err(|why| anyhow!(why))?;
    let clock = Progress::clock(&format!("{provider} is asked"));
    let mut call = runtime.block_on(model.ask(&question, None));
    drop(clock);
    budget.estimate(&mut call, &question, None);
    let failed = call.answer.as_ref().err().map(|failure| Failed {
        kind: failure.kind,
        note: text::shorten(&failure.text, 300).into_owned(),
        retry_at: leash.pause_after(&store, failure, home::now()),
    });
    // The answer was paid for, so it is used even if the ledger cannot be written.
    let _ = store.answered(open, &call.answered(failed));
    let answer = call.answer;
    let answer = answer.map_err(|it| anyhow!("{provider} did not answer: {}", it.text))?;
    Ok(thorough(&answer).text.into_owned())
}
