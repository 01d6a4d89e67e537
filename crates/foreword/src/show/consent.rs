//! What `install` says about models: the question, and who writes the memory from now on.

use std::fmt::Write as _;

use super::usd;
use crate::agent::status::{has_key, problem};
use crate::config::Config;
use crate::config::provider::{self, Name};
use crate::home::Home;

pub fn consent(config: &Config) -> String {
    format!(
        "
Foreword can have your own claude CLI write the memory, with the small model `{}`.
What your sessions do, with secrets taken out, is then sent to it in the background. That
counts against your plan or key; the budget is {} a day, and `foreword cost` shows what it
came to. Without it the memory is plainer, and costs nothing. You can change this at any
time with `foreword install --provider claude` or `--provider offline`.
Have claude write the memory?",
        config.claude.model,
        usd(config.budget.daily_usd)
    )
}

pub fn provider_chosen(config: &Config, home: &Home, chosen: Option<Name>) -> String {
    let choice = provider::choose(config, home);
    let mut out = match choice.name {
        Name::Claude => format!(
            "The memory is written by your claude CLI with the model {}, for at most {} a day.\n",
            config.claude.model,
            usd(config.budget.daily_usd)
        ),
        Name::Anthropic => format!(
            "The memory is written by Anthropic's API with the model {}, for at most {} a day.\n",
            config.anthropic.model,
            usd(config.budget.daily_usd)
        ),
        Name::OpenAi => "The memory is written by the model that [openai] in config.toml names.\n".to_owned(),
        Name::Offline if provider::chosen_at_install(home).is_some() || config.provider != "auto" => {
            "The memory is written offline, without a model.\n".to_owned()
        }
        Name::Offline => "The memory is written offline, without a model; `foreword install --provider claude` has your claude CLI write it.\n".to_owned(),
    };
    if let Some(chosen) = chosen.filter(|it| *it != choice.name) {
        let _ = writeln!(
            out,
            "  {} was chosen, but the settings go over it: {}",
            chosen.as_str(),
            choice.reason
        );
    }
    out + &needs(config, home, chosen.unwrap_or(choice.name))
}

/// What a provider still needs, as far as one can tell from here.
fn needs(config: &Config, home: &Home, name: Name) -> String {
    match (name, problem(name, config)) {
        (Name::Claude, Some(problem)) => {
            format!("  {problem} yet; until it is, everything waits, then goes on offline\n")
        }
        (Name::OpenAi, Some(_)) => format!(
            "  set base_url and model under [openai] in {}, for instance \"http://127.0.0.1:11434/v1\" and \"qwen3:8b\"\n",
            home.config().display()
        ),
        (Name::Anthropic, _) if !has_key() => {
            "  ANTHROPIC_API_KEY is not set here; it is needed by whatever starts Claude Code\n"
                .to_owned()
        }
        _ => String::new(),
    }
}
