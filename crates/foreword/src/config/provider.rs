//! Which provider writes the memory, and why: what the settings name, else what was chosen at
//! install, else none (`offline`). `agent/provider.rs` is how each of them is asked.

use super::Config;
use crate::home::Home;

/// Which provider is used, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub name: Name,
    pub reason: &'static str,
}

/// The providers by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Claude,
    Anthropic,
    OpenAi,
    Offline,
}

impl Name {
    pub const ALL: &[Name] = &[Name::Claude, Name::Anthropic, Name::OpenAi, Name::Offline];

    pub fn as_str(self) -> &'static str {
        match self {
            Name::Claude => "claude",
            Name::Anthropic => "anthropic",
            Name::OpenAi => "openai",
            Name::Offline => "offline",
        }
    }

    pub fn parse(word: &str) -> Option<Name> {
        Name::ALL.iter().copied().find(|name| name.as_str() == word)
    }
}

/// What the settings name, else what was chosen at install, else none at all. A key that
/// happens to be in the environment never chooses.
pub fn choose(config: &Config, home: &Home) -> Choice {
    if let Some(name) = Name::parse(&config.provider) {
        let reason = match name {
            Name::Claude => "set by provider = \"claude\"",
            Name::Anthropic => "set by provider = \"anthropic\"",
            Name::OpenAi => "set by provider = \"openai\"",
            Name::Offline => "set by provider = \"offline\"",
        };
        return Choice { name, reason };
    }
    match chosen_at_install(home) {
        Some(name) => Choice {
            name,
            reason: "chosen at install",
        },
        None => Choice {
            name: Name::Offline,
            reason: "no model was chosen; offline needs none",
        },
    }
}

/// The word of consent that `install` asked for.
pub fn chosen_at_install(home: &Home) -> Option<Name> {
    let word = std::fs::read_to_string(home.chosen_provider()).ok()?;
    Name::parse(word.trim())
}

/// The files that decide which provider is used and how, as they are at a time.
#[derive(Debug, PartialEq, Eq)]
pub struct Settings([Option<Vec<u8>>; 2]);

impl Settings {
    pub fn read(home: &Home) -> Settings {
        Settings([home.config(), home.chosen_provider()].map(|path| std::fs::read(path).ok()))
    }
}
