//! The user's consent to a provider, at install.
//!
//! Nothing is sent to a model, and nothing is spent, before the user has agreed here or in the
//! settings. The question is asked once, on a terminal; both answers are stored.

use std::io::Write as _;

use anyhow::Context as _;
use foreword_core::text::if_there;

use super::notes::confirm;
use crate::config::Config;
use crate::config::provider::{self, Name};
use crate::home::Home;
use crate::platform;
use crate::show;

/// Stores the provider chosen by option or by answer, and prints who writes the memory.
pub fn settle(home: &Home, wanted: Option<Name>) -> anyhow::Result<()> {
    let (config, _) = Config::tolerant(home);
    let chosen = match wanted {
        Some(name) => Some(name),
        None => ask(home, &config)?,
    };
    if let Some(name) = chosen {
        keep(home, name)?;
    }
    print!("{}", show::provider_chosen(&config, home, chosen));
    Ok(())
}

/// Removes the stored choice.
pub fn withdraw(home: &Home) -> anyhow::Result<()> {
    let removed = if_there(std::fs::remove_file(home.chosen_provider()));
    removed.context("could not forget which provider was chosen")?;
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
    let answer = confirm(&show::consent(config)).context("could not read the answer")?;
    Ok(answer.map(|yes| if yes { Name::Claude } else { Name::Offline }))
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
