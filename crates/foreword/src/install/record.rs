//! Install records: what an install did, kept in the data directory until the uninstall.
//!
//! There is one file for each settings file, since the user's settings and those of several projects
//! can all be connected. By the name of the file, a hook of the plugin also sees that hooks from the
//! settings run for the same session, and then does nothing. Only `uninstall` reads the content.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::host::SettingsPlace;

/// The changes that one install made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallRecord {
    pub settings: PathBuf,
    /// The text of the settings after the install. If it is still the same, uninstall restores the
    /// backup.
    pub written: String,
    /// A copy of the settings without our entries; none if there was no file.
    pub backup: Option<PathBuf>,
    /// Folders that the install created, the innermost first.
    pub folders: Vec<PathBuf>,
}

fn path(home: &Home, place: &SettingsPlace) -> PathBuf {
    home.installs().join(place.mark())
}

impl InstallRecord {
    /// Reads the record; none if it cannot be read, since our entries can be removed without it.
    pub fn load(home: &Home, place: &SettingsPlace) -> Option<InstallRecord> {
        let text = std::fs::read(path(home, place)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub fn save(&self, home: &Home, place: &SettingsPlace) -> anyhow::Result<()> {
        let write = || {
            std::fs::create_dir_all(home.installs())?;
            let mut file = tempfile::NamedTempFile::new_in(home.installs())?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.persist(path(home, place))?;
            Ok::<_, anyhow::Error>(())
        };
        write().context("could not write the record of the install")
    }

    /// The settings before the install: `Some(None)` if there was no file, none if the backup is
    /// lost.
    pub fn original(&self) -> Option<Option<String>> {
        match &self.backup {
            Some(backup) => std::fs::read_to_string(backup).ok().map(Some),
            None => Some(None),
        }
    }
}

/// Removes the record. From then on, hooks of the plugin do their work.
pub fn forget(home: &Home, place: &SettingsPlace) -> anyhow::Result<()> {
    match std::fs::remove_file(path(home, place)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("could not remove the record of the install")
        }
        _ => {
            // This succeeds only if it was the last record.
            let _ = std::fs::remove_dir(home.installs());
            Ok(())
        }
    }
}
