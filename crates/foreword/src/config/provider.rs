//! The providers: one row for each, with all that commands, worker and doctor have to know about
//! it. `choose` picks the one that writes the memory; `agent/provider.rs` sends the questions.

use super::Config;
use crate::home::Home;
use crate::host::CLIENTS;
use crate::host::claude_code::environment::{BACK_ENDS, LOGIN};
use crate::platform;
use foreword_core::files::{self, SMALL_MAX};

/// The providers by name, in the order of `ROWS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Claude,
    Anthropic,
    OpenAi,
    /// The coding agent itself, by our tool `remember`.
    Agent,
    Offline,
}

/// The facts about a provider that differ from others'.
pub struct Row {
    pub name: Name,
    /// The name in the settings and for `install --provider`.
    pub text: &'static str,
    /// The variables that a worker inherits for this provider; `*` stands for any end.
    pub inherits: &'static [&'static str],
    /// Variables that are inherited only if the variable before them is set, and not to 0.
    pub inherits_if: &'static [(&'static str, &'static [&'static str])],
    /// The variable that holds the key, if the provider cannot be used without one.
    pub required_key: Option<&'static str>,
    /// Why the provider cannot be used, as far as the settings and the PATH show it.
    pub problem: fn(&Config, &Home) -> Option<ProviderProblem>,
    /// The name of the model in the settings.
    pub model: fn(&Config) -> &str,
    /// Completes the sentence "The memory is written …".
    pub writer: fn(&Config) -> String,
    /// The user's next step after a login or a key was refused.
    pub after_auth_failure: &'static str,
}

/// A reason why a provider cannot be used, and how to remove it.
pub struct ProviderProblem {
    pub reason: String,
    pub cure: Cure,
}

pub enum Cure {
    /// A command for a shell.
    Command(String),
    /// A sentence for the user, where no command is right for everybody.
    Advice(String),
}

const ROWS: &[Row] = &[
    Row {
        name: Name::Claude,
        text: "claude",
        inherits: LOGIN,
        inherits_if: BACK_ENDS,
        required_key: None,
        problem: claude_problem,
        model: |config| &config.claude.model,
        writer: |config| format!("by your claude CLI with the model {}", config.claude.model),
        after_auth_failure: "start `claude` and log in",
    },
    Row {
        name: Name::Anthropic,
        text: "anthropic",
        inherits: &["ANTHROPIC_API_KEY"],
        inherits_if: &[],
        required_key: Some("ANTHROPIC_API_KEY"),
        problem: |_, _| None,
        model: |config| &config.anthropic.model,
        writer: |config| {
            let model = &config.anthropic.model;
            format!("by Anthropic's API with the model {model}")
        },
        after_auth_failure: CHECK_KEY,
    },
    Row {
        name: Name::OpenAi,
        text: "openai",
        inherits: &["OPENAI_API_KEY"],
        inherits_if: &[],
        required_key: None,
        problem: |config, home| {
            let settings = [
                ("base_url", &config.openai.base_url),
                ("model", &config.openai.model),
            ];
            let example = "\"http://127.0.0.1:11434/v1\" and \"qwen3:8b\"";
            unset("openai", &settings, example, home)
        },
        model: |config| &config.openai.model,
        writer: |_| "by the model that [openai] in config.toml names".to_owned(),
        after_auth_failure: CHECK_KEY,
    },
    Row {
        name: Name::Agent,
        text: "agent",
        inherits: &[],
        inherits_if: &[],
        required_key: None,
        problem: |_, _| None,
        model: |_| "",
        writer: |_| {
            "by the coding agent itself, with `remember`; turns in which it does not call that \
             are written offline"
                .to_owned()
        },
        after_auth_failure: "",
    },
    Row {
        name: Name::Offline,
        text: "offline",
        inherits: &[],
        inherits_if: &[],
        required_key: None,
        problem: |_, _| None,
        model: |_| "",
        writer: |_| "offline, without a model".to_owned(),
        after_auth_failure: "",
    },
];

const CHECK_KEY: &str = "check that the key is right";

impl Name {
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    pub fn as_str(self) -> &'static str {
        self.row().text
    }

    /// The name of the model in the settings; empty for `offline`.
    pub fn model(self, config: &Config) -> &str {
        (self.row().model)(config)
    }

    /// Whether Foreword asks a model.
    pub fn has_model(self) -> bool {
        !matches!(self, Name::Agent | Name::Offline)
    }

    pub fn parse(text: &str) -> Option<Name> {
        ROWS.iter().find(|row| row.text == text).map(|row| row.name)
    }

    /// The variable that should hold the provider's key and does not, in our own environment.
    pub fn missing_key(self) -> Option<&'static str> {
        self.row()
            .required_key
            .filter(|key| std::env::var_os(key).is_none_or(|value| value.is_empty()))
    }
}

/// The names of all providers, as a user writes them.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.text)
}

fn claude_problem(config: &Config, home: &Home) -> Option<ProviderProblem> {
    let command = &config.claude.command;
    if platform::find_program(command).is_some() {
        return None;
    }
    let client = CLIENTS.iter().find(|client| client.command == command);
    let cure = if let Some(client) = client {
        Cure::Command(client.get.to_owned())
    } else if std::env::var_os("FOREWORD_CLAUDE_COMMAND").is_some() {
        Cure::Command("unset FOREWORD_CLAUDE_COMMAND".to_owned())
    } else {
        let file = home.config();
        Cure::Advice(format!(
            "set command under [claude] in {} to where the claude CLI is",
            file.display()
        ))
    };
    Some(ProviderProblem {
        reason: format!("`{command}` is not on the PATH"),
        cure,
    })
}

/// The settings of a section that have no value and no default.
fn unset(
    section: &str,
    settings: &[(&str, &String)],
    example: &str,
    home: &Home,
) -> Option<ProviderProblem> {
    let unset: Vec<_> = settings
        .iter()
        .filter(|(_, value)| value.trim().is_empty())
        .map(|(key, _)| format!("{section}.{key}"))
        .collect();
    let verb = match unset.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let keys: Vec<_> = settings.iter().map(|(key, _)| *key).collect();
    Some(ProviderProblem {
        reason: format!("{} {verb} not set", unset.join(" and ")),
        cure: Cure::Advice(format!(
            "set {} under [{section}] in {}, for instance {example}",
            keys.join(" and "),
            home.config().display()
        )),
    })
}

/// The provider that is used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub name: Name,
    pub reason: String,
}

/// The provider of the settings, else the one chosen at install, else `offline`. A key that
/// happens to be in the environment does not choose a provider.
pub fn choose(config: &Config, home: &Home) -> Choice {
    let (name, reason) = if let Some(name) = Name::parse(&config.provider) {
        (name, format!("set by provider = \"{}\"", name.as_str()))
    } else if let Some(name) = chosen_at_install(home) {
        (name, "chosen at install".to_owned())
    } else {
        let reason = "no model was chosen; offline needs none";
        (Name::Offline, reason.to_owned())
    };
    Choice { name, reason }
}

/// Whether the coding agent itself writes the memory. Hooks ask this: settings are read only if there
/// are any.
pub fn is_agent(home: &Home) -> bool {
    if home.config().exists() || std::env::var_os("FOREWORD_PROVIDER").is_some() {
        let (config, _) = Config::tolerant(home);
        return choose(&config, home).name == Name::Agent;
    }
    chosen_at_install(home) == Some(Name::Agent)
}

/// The provider that the user agreed to at `install`.
pub fn chosen_at_install(home: &Home) -> Option<Name> {
    let name = files::read_text(&home.chosen_provider(), SMALL_MAX).ok()?;
    Name::parse(name.trim())
}

/// The content of the files that decide which provider is used and how. The worker compares it
/// with an earlier one to notice a change.
#[derive(Debug, PartialEq, Eq)]
pub struct ProviderFiles([Option<Vec<u8>>; 2]);

impl ProviderFiles {
    pub fn read(home: &Home) -> ProviderFiles {
        ProviderFiles(
            [home.config(), home.chosen_provider()].map(|path| files::read(&path, SMALL_MAX).ok()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_finds_its_own_row() {
        for row in ROWS {
            assert_eq!(row.name.row().text, row.text);
            assert_eq!(Name::parse(row.text), Some(row.name));
        }
    }
}
