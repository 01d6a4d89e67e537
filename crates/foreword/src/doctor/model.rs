//! The memory agent: whether it can be asked, and whether it may.

use foreword_core::model::FailureKind;
use foreword_core::store::Store;
use foreword_core::text;

use super::{Trouble, World};
use crate::agent::status::{AgentStatus, has_key};
use crate::config::Config;
use crate::config::provider::Name;
use crate::host::CLIENTS;
use crate::service::sentence_model::{self, Files};
use foreword_core::text::shell_word;

pub fn provider_missing(world: &World) -> Option<Trouble> {
    let (agent, config) = agent(world)?;
    let name = agent.choice.name;
    // Here one only hears that a call failed for want of a key; the hooks may have another
    // environment.
    let no_key = name == Name::Anthropic
        && !has_key()
        && agent
            .pause
            .as_ref()
            .is_some_and(|it| it.kind == FailureKind::Auth);
    let problem = match agent.problem {
        Some(problem) => problem,
        None if no_key => {
            "ANTHROPIC_API_KEY is not set, neither here nor for the worker".to_owned()
        }
        None => return None,
    };
    let evidence = format!("{} cannot be used: {problem}", name.as_str());
    let custom = std::env::var_os("FOREWORD_CLAUDE_COMMAND").is_some();
    let (file, retry) = (world.home.config(), world.foreword("retry"));
    let file = file.display();
    let advice = match name {
        Name::Claude if config.claude.command == "claude" => {
            return Trouble::cured_by(CLIENTS[0].get.to_owned(), evidence);
        }
        Name::Claude if custom => {
            return Trouble::cured_by("unset FOREWORD_CLAUDE_COMMAND".to_owned(), evidence);
        }
        Name::Claude => format!("set command under [claude] in {file} to where the claude CLI is"),
        Name::Anthropic => format!(
            "set ANTHROPIC_API_KEY where the coding agent is started, and here; then run `{retry}`"
        ),
        Name::OpenAi | Name::Offline => {
            format!("set base_url and model under [openai] in {file}, then run `{retry}`")
        }
    };
    Trouble::advised(advice, evidence)
}

/// The files that search by meaning needs.
pub fn sentence_model_damaged(world: &World) -> Option<Trouble> {
    match sentence_model::check(&world.home.model()) {
        Files::Good | Files::None => None,
        Files::Bad(wrong) => Trouble::cured_by(
            world.foreword("model install"),
            format!("search goes by words alone: {wrong}"),
        ),
    }
}

pub fn provider_paused(world: &World) -> Option<Trouble> {
    let (agent, _) = agent(world)?;
    // One trouble, one finding.
    if provider_missing(world).is_some() {
        return None;
    }
    let pause = agent.pause?;
    let name = agent.choice.name;
    Trouble::cured_by(
        world.foreword("retry"),
        format!(
            "{} is paused until {}: {}; {}, then ask it again",
            name.as_str(),
            text::rfc3339(pause.until),
            pause.reason,
            first(name, pause.kind)
        ),
    )
}

/// What is to be done before the provider is asked again.
fn first(provider: Name, kind: FailureKind) -> &'static str {
    match (kind, provider) {
        (FailureKind::Auth, Name::Claude) => "start `claude` and log in",
        (FailureKind::Auth, _) => "see to it that the key is right",
        (FailureKind::Billing, _) => "see to it that there is credit",
        (FailureKind::RateLimit, _) => "wait until the limit is reset",
        (FailureKind::Model, _) => "set a model that there is",
        (FailureKind::Missing, _) => "see to it that it is there",
        (FailureKind::Outage | FailureKind::Timeout | FailureKind::Broken, _) => {
            "wait until it answers"
        }
        _ => "try another model if it goes on so",
    }
}

/// A budget of nothing is a decision; one that was reached is news.
pub fn budget_used_up(world: &World) -> Option<Trouble> {
    let (agent, config) = agent(world)?;
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
        "today's budget of {limit} is used up; memory goes on offline until midnight (UTC), or with a larger budget"
    );
    let variable = format!("FOREWORD_BUDGET_{}", key.to_uppercase());
    let file = world.home.config();
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    if std::env::var_os(&variable).is_some() {
        Trouble::cured_by(format!("export {variable}={more}"), evidence)
    } else if written.contains("budget") {
        let advice = format!("raise {key} under [budget] in {}", file.display());
        Trouble::advised(advice, evidence)
    } else {
        let file = shell_word(&file);
        Trouble::cured_by(
            format!("(umask 077 && printf '\\n[budget]\\n{key} = {more}\\n' >> {file})"),
            evidence,
        )
    }
}

fn agent(world: &World) -> Option<(AgentStatus, Config)> {
    let config = Config::load(&world.home).ok()?;
    let store = Store::inspect(&world.home.memory()).ok().flatten();
    let agent = AgentStatus::look(&world.home, &config, store.as_ref(), world.now).ok()?;
    Some((agent, config))
}
