//! The word of consent: which provider writes the memory, chosen at install.
//!
//! Nothing goes to a model, and nothing is spent, before somebody said so here or in the
//! settings. On a terminal it is asked once; a no is kept as well as a yes.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Context as _;

use crate::config::Config;
use crate::home::Home;
use crate::platform;
use crate::provider::{self, Name};
use crate::show;

pub const NAMES: [&str; 4] = ["claude", "anthropic", "openai", "offline"];

/// Keeps what was chosen, by option or by answer, and tells who writes the memory.
pub fn settle(home: &Home, wanted: Option<Name>) -> anyhow::Result<()> {
    let (config, _) = Config::tolerant(home);
    let chosen = match wanted {
        Some(name) => Some(name),
        None if may_ask(home, &config) => Some(ask(&config)?),
        None => None,
    };
    if let Some(name) = chosen {
        keep(home, name)?;
    }
    print!("{}", show::provider_chosen(&config, home, chosen));
    Ok(())
}

/// Takes the word back.
pub fn withdraw(home: &Home) -> anyhow::Result<()> {
    match std::fs::remove_file(home.chosen_provider()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("could not forget which provider was chosen")
        }
        _ => Ok(()),
    }
}

/// Only of somebody who is there, about something that is there, and once.
fn may_ask(home: &Home, config: &Config) -> bool {
    std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
        && config.provider == "auto"
        && provider::chosen_at_install(home).is_none()
        && platform::find_program(&config.claude.command).is_some()
}

fn ask(config: &Config) -> anyhow::Result<Name> {
    print!("{}", show::consent(config));
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .context("could not read the answer")?;
    let yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    Ok(if yes { Name::Claude } else { Name::Offline })
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
