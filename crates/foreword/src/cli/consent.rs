//! The word of consent: which provider writes the memory, chosen at install.
//!
//! Nothing goes to a model, and nothing is spent, before somebody said so here or in the
//! settings. On a terminal it is asked once; a no is kept as well as a yes.

use std::io::Write as _;

use anyhow::Context as _;

use super::notes::confirm;
use crate::config::Config;
use crate::config::provider::{self, Name};
use crate::home::Home;
use crate::platform;
use crate::show;

/// Keeps what was chosen, by option or by answer, and tells who writes the memory.
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

/// Takes the word back.
pub fn withdraw(home: &Home) -> anyhow::Result<()> {
    match std::fs::remove_file(home.chosen_provider()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("could not forget which provider was chosen")
        }
        _ => Ok(()),
    }
}

/// Only somebody who is there, about something that is there, and once.
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
