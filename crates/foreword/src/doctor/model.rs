//! Checks of the provider: whether it can be used, is paused, or has used up its budget.

use foreword_core::files::{self, SMALL_MAX};
use foreword_core::model::FailureKind;
use foreword_core::store::Store;

use super::agent::AgentStatus;
use super::{Diagnosis, Examination};
use crate::agent::budget;
use crate::config::Config;
use crate::config::provider::{Cure, Name, ProviderProblem};
use crate::local_time;
use crate::service::sentence_model::{self, Files};
use foreword_core::text::shell_word;

pub fn provider_missing(exam: &Examination) -> Option<Diagnosis> {
    let (agent, _) = agent(exam)?;
    let name = agent.choice.name;
    let retry = exam.foreword("retry");
    // The worker may have a key that this process has not: a missing one is a finding only if a
    // call was refused.
    let refused = agent
        .pause
        .as_ref()
        .is_some_and(|pause| pause.kind == FailureKind::Auth);
    let problem = match (agent.problem, name.missing_key()) {
        (Some(problem), _) => problem,
        (None, Some(key)) if refused => ProviderProblem {
            reason: format!("{key} is not set, neither here nor for the worker"),
            cure: Cure::Advice(format!(
                "set {key} where the coding agent is started, and here"
            )),
        },
        _ => return None,
    };
    let evidence = format!("{} cannot be used: {}", name.as_str(), problem.reason);
    match problem.cure {
        Cure::Command(command) => Diagnosis::cured_by(command, evidence),
        Cure::Advice(advice) => {
            Diagnosis::advised(format!("{advice}; then run `{retry}`"), evidence)
        }
    }
}

/// The files of the sentence model, which search by meaning needs.
pub fn sentence_model_damaged(exam: &Examination) -> Option<Diagnosis> {
    match sentence_model::check(&exam.home.model()) {
        Files::Good | Files::None => None,
        Files::Bad(wrong) => Diagnosis::cured_by(
            exam.foreword("model install"),
            format!("search uses words only, not meaning: {wrong}"),
        ),
    }
}

pub fn provider_paused(exam: &Examination) -> Option<Diagnosis> {
    let (agent, _) = agent(exam)?;
    // A missing provider is reported once, not also as paused.
    if provider_missing(exam).is_some() {
        return None;
    }
    let pause = agent.pause?;
    let name = agent.choice.name;
    Diagnosis::cured_by(
        exam.foreword("retry"),
        format!(
            "{} is paused until {}: {}; {}, then ask it again",
            name.as_str(),
            local_time::minute(pause.until),
            pause.reason,
            first(name, pause.kind)
        ),
    )
}

/// The model gave few usable answers.
pub fn model_unfit(exam: &Examination) -> Option<Diagnosis> {
    let (agent, _) = agent(exam)?;
    let unfit = agent.unfit?;
    Diagnosis::cured_by(
        exam.foreword("retry"),
        format!(
            "{}, so memory is made offline until {}; choose a larger model, then ask it again",
            unfit.line(),
            local_time::minute(unfit.until)
        ),
    )
}

/// The user's step before the provider is asked again.
fn first(provider: Name, kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Auth => provider.row().after_auth_failure,
        FailureKind::Billing => "add credit",
        FailureKind::RateLimit => "wait until the limit is reset",
        FailureKind::Model => "set the name of an existing model",
        FailureKind::Missing => "make sure that it is installed and running",
        FailureKind::Outage | FailureKind::Timeout | FailureKind::Broken => "wait until it answers",
        _ => "try another model if this goes on",
    }
}

/// Reports a budget that was used up today; a budget of 0 is the user's decision.
pub fn budget_used_up(exam: &Examination) -> Option<Diagnosis> {
    let (agent, config) = agent(exam)?;
    let limit = agent.used_up.as_ref()?;
    if !agent.has_model() || config.budget.daily_usd <= 0.0 || config.budget.daily_tokens == 0 {
        return None;
    }
    let (key, more) = if limit.ends_with("tokens") {
        ("daily_tokens", (config.budget.daily_tokens * 2).to_string())
    } else {
        let spent = agent.today.usd.unwrap_or(0.0).max(config.budget.daily_usd);
        ("daily_usd", format!("{:.1}", (spent * 2.0).ceil()))
    };
    let evidence = format!(
        "today's budget of {limit} is used up; memory goes on offline until {}, or with a larger budget",
        local_time::minute(budget::day(exam.now) + budget::DAY)
    );
    let variable = format!("FOREWORD_BUDGET_{}", key.to_uppercase());
    let file = exam.home.config();
    let written = files::read_text(&file, SMALL_MAX).unwrap_or_default();
    if std::env::var_os(&variable).is_some() {
        Diagnosis::cured_by(format!("export {variable}={more}"), evidence)
    } else if written.contains("budget") {
        let advice = format!("raise {key} under [budget] in {}", file.display());
        Diagnosis::advised(advice, evidence)
    } else {
        let file = shell_word(&file);
        Diagnosis::cured_by(
            format!("(umask 077 && printf '\\n[budget]\\n{key} = {more}\\n' >> {file})"),
            evidence,
        )
    }
}

fn agent(exam: &Examination) -> Option<(AgentStatus, Config)> {
    let config = Config::load(&exam.home).ok()?;
    let store = Store::inspect(&exam.home.memory()).ok().flatten();
    let agent = AgentStatus::look(&exam.home, &config, store.as_ref(), exam.now).ok()?;
    Some((agent, config))
}
