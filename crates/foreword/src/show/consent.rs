//! The texts of `install` about providers and permissions: the questions, which provider writes the
//! memory, and whether the agent may use its tools.

use std::fmt::Write as _;

use foreword_core::text::one_line;

use super::usd;
use crate::agent::provider::prices;
use crate::config::Config;
use crate::config::provider::{self, Cure, Name, ProviderProblem};
use crate::home::Home;
use crate::host::{self, Client, Permission, READING_TOOLS, SettingsPlace};
use crate::install::local_models::{LocalModel, SERVERS};

pub fn consent(config: &Config) -> String {
    format!(
        "
Who shall write the memory?

claude   Your own claude CLI, with its login and the small model `{}`. It explains: why something
         was decided or broken, in its own words, and what no longer holds. What your sessions do,
         with secrets taken out, is sent to it in the background, and counts against your plan or
         key. A recorded day of 150 tool uses came to {} at list prices; the budget is {}
         a day, and `foreword cost` shows what it came to.
agent    The coding agent itself: it is asked to call Foreword's tool `remember` at the end of a turn
         that decided, learned or finished something, which costs it some tokens a turn. That tool is
         allowed for it. Turns without a call are written as with `offline`.
offline  No model: what commands, edits and words of a session prove. It costs nothing and sends
         nothing.

You can change this at any time with `foreword install --provider NAME`.
",
        config.claude.model,
        usd(prices::recorded_day(&config.claude.model)),
        usd(config.budget.daily_usd)
    )
}

/// Asks whether the agent may use the tools that only read.
pub fn consent_to_tools(client: &Client) -> String {
    format!(
        "
May the agent read its memory without asking you?

{} asks before it calls a tool of an MCP server, and refuses it where nobody can be asked.
yes      Four tools are allowed, which only read the memory: {}.
         `remember` and `forget`, which change it, are still asked for.
no       You are asked each time.

You can change this at any time with `foreword install --allow-tools` or `--no-allow-tools`.
",
        client.host.title,
        READING_TOOLS.join(", ")
    )
}

/// The hooks are in a settings file that the host does not read.
pub fn unread(place: &SettingsPlace, why: &str) -> String {
    let (title, path) = (place.client.host.title, place.settings.display());
    format!(
        "{title} is not connected yet. Foreword's hooks are in {path}, but {title} ignores that whole file, since {why}. Correct that, and it is connected."
    )
}

/// Whether the agent may use the tools that only read, and how to allow them.
pub fn permission(permission: Permission, client: &Client) -> String {
    let line = client.permission_line(permission);
    match permission {
        Permission::Allowed | Permission::Denied => line,
        Permission::Asked => format!("{line}; `foreword install --allow-tools` allows them"),
    }
}

/// Why no local models are offered: a setting chooses one already.
pub fn local_models_not_looked_for(key: &str, value: &str) -> String {
    let value = one_line(value);
    format!(
        "Local models were not looked for, because openai.{key} is set to {value:?}. To have them offered, \
         remove base_url and model under [openai] in config.toml, and install again."
    )
}

/// The models that were found on this machine.
pub fn local_models(found: &[LocalModel]) -> String {
    let mut out = String::new();
    if found.is_empty() {
        let names = SERVERS.map(|(name, _)| name).join(", ");
        let _ = writeln!(out, "No local model answers on the usual ports ({names}).");
    }
    for (number, it) in (1..).zip(found) {
        let _ = writeln!(
            out,
            "{number}  {} ({}, {})",
            it.model, it.server, it.base_url
        );
    }
    out
}

pub fn provider_chosen(config: &Config, home: &Home, chosen: Option<Name>) -> String {
    let choice = provider::choose(config, home);
    let writer = (choice.name.row().writer)(config);
    let more = if choice.name.has_model() {
        format!(", for at most {} a day", usd(config.budget.daily_usd))
    } else if provider::chosen_at_install(home).is_none() && config.provider == "auto" {
        "; `foreword install --provider claude` has your claude CLI write it".to_owned()
    } else {
        String::new()
    };
    let mut out = format!("The memory is written {writer}{more}.\n");
    if let Some(chosen) = chosen.filter(|it| *it != choice.name) {
        let _ = writeln!(
            out,
            "  {} was chosen, but the settings override it: {}",
            chosen.as_str(),
            choice.reason
        );
    }
    out + &needs(config, home, chosen.unwrap_or(choice.name))
}

/// The step that is missing before the provider can be used, as far as it shows from here.
fn needs(config: &Config, home: &Home, name: Name) -> String {
    if let Some(ProviderProblem { reason, cure }) = (name.row().problem)(config, home) {
        let step = match cure {
            Cure::Command(command) => format!("run `{command}`"),
            Cure::Advice(advice) => advice,
        };
        format!("  {reason}: {step}; until then events wait, and later go on offline\n")
    } else if let Some(key) = name.missing_key() {
        let host = host::client_here().host.title;
        format!("  {key} is not set here; it is needed by whatever starts {host}\n")
    } else {
        String::new()
    }
}
