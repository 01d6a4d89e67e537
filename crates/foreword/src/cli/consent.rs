//! The user's consent to a provider, at install.
//!
//! Nothing is sent to a model, and nothing is spent, before the user has agreed here or in the
//! settings. The question is asked on a terminal, and repeated until it is answered with `claude`,
//! `agent` or `offline`; the answer is stored, so it is asked once.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Context as _;
use foreword_core::text::if_there;

use crate::config::Config;
use crate::config::provider::{self, Name};
use crate::home::Home;
use crate::host::Client;
use crate::install::local_models;
use crate::platform;
use crate::show;

/// The provider of the option, else of the user's answer; none if there is neither.
pub fn choose_provider(home: &Home, wanted: Option<Name>) -> anyhow::Result<Option<Name>> {
    let (config, _) = Config::tolerant(home);
    match wanted {
        Some(name) => Ok(Some(name)),
        None => ask(home, &config),
    }
}

/// Stores the chosen provider, and prints who writes the memory.
pub fn settle(home: &Home, wanted: Option<Name>, chosen: Option<Name>) -> anyhow::Result<()> {
    let (config, _) = Config::tolerant(home);
    if let Some(name) = chosen {
        keep(home, name)?;
    }
    if wanted == Some(Name::OpenAi) {
        offer_local_models(home, &config)?;
    }
    let (config, _) = Config::tolerant(home);
    print!("{}", show::provider_chosen(&config, home, chosen));
    Ok(())
}

/// Removes the stored choice.
pub fn withdraw(home: &Home) -> anyhow::Result<()> {
    let removed = if_there(std::fs::remove_file(home.chosen_provider()));
    removed.context("could not remove the stored choice of a provider")?;
    Ok(())
}

/// Asks once, on a terminal, and only if the claude CLI is installed.
fn ask(home: &Home, config: &Config) -> anyhow::Result<Option<Name>> {
    let open = config.provider == "auto"
        && provider::chosen_at_install(home).is_none()
        && platform::find_program(&config.claude.command).is_some();
    if !open {
        return Ok(None);
    }
    print_if_terminal(&show::consent(config));
    let names = [Name::Claude, Name::Agent, Name::Offline];
    let answer = choose("claude, agent or offline?", &names.map(Name::as_str));
    Ok(answer?.map(|at| names[at]))
}

/// Asks on a terminal whether the agent may use the tools that only read the memory.
pub fn ask_about_tools(client: &Client) -> anyhow::Result<Option<bool>> {
    print_if_terminal(&show::consent_to_tools(client));
    let answer = choose("yes or no?", &["yes", "no", "y", "n"]);
    Ok(answer?.map(|at| at % 2 == 0))
}

/// Looks for local models and offers those that are found, unless the settings have one already.
fn offer_local_models(home: &Home, config: &Config) -> anyhow::Result<()> {
    let set = [
        ("base_url", &config.openai.base_url),
        ("model", &config.openai.model),
    ];
    if let Some((key, value)) = set.iter().find(|(_, value)| !value.is_empty()) {
        println!("{}", show::local_models_not_looked_for(key, value));
        return Ok(());
    }
    let found = local_models::look(&local_models::SERVERS)?;
    print!("{}", show::local_models(&found));
    let numbers: Vec<String> = (1..=found.len()).map(|it| it.to_string()).collect();
    let mut answers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    answers.push("none");
    if found.is_empty() {
        return Ok(());
    }
    let chosen = choose("Which one (a number, or none)?", &answers)?;
    let Some(model) = chosen.and_then(|at| found.get(at)) else {
        return Ok(());
    };
    if !model.choose(home)? {
        let file = home.config();
        println!(
            "  {} has a section [openai] already; set there:",
            file.display()
        );
        print!("{}", model.settings());
    }
    Ok(())
}

fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

fn print_if_terminal(text: &str) {
    if is_terminal() {
        print!("{text}");
    }
}

/// Asks on a terminal until one of the answers is typed, and returns its position. None if there is no
/// terminal, or if its input ends.
fn choose(question: &str, answers: &[&str]) -> anyhow::Result<Option<usize>> {
    while is_terminal() {
        print!("{question} ");
        std::io::stdout().flush()?;
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        if read.context("could not read the answer")? == 0 {
            break;
        }
        let typed = answer.trim().to_lowercase();
        if let Some(at) = answers.iter().position(|it| *it == typed) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn keep(home: &Home, name: Name) -> anyhow::Result<()> {
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(home.dir())?;
        writeln!(file, "{}", name.as_str())?;
        file.persist(home.chosen_provider())?;
        Ok::<_, anyhow::Error>(())
    };
    write().context("could not write down which provider was chosen")
}
