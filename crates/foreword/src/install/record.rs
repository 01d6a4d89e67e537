//! What an install did, remembered in the data directory until it is taken back.
//!
//! One file per settings file, so that the user's and several projects' installs
//! stand side by side. The file is also the mark by which a hook of the plugin sees
//! that hooks of the settings run for the same session: it then does nothing. The
//! hook only looks at names; what is inside is for `uninstall`.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::host::SettingsPlace;

/// What one install did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallRecord {
    pub settings: PathBuf,
    /// The file as install left it: if it still is, uninstall puts the copy back.
    pub written: String,
    /// A copy of the file as it was without us; none if there was no file.
    pub backup: Option<PathBuf>,
    /// Folders that were made for it, the innermost first.
    pub folders: Vec<PathBuf>,
}

fn path(home: &Home, place: &SettingsPlace) -> PathBuf {
    home.installs().join(place.mark())
}

impl InstallRecord {
    /// One that cannot be read is none: taking out our entries needs no record.
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
        write().context("could not write down what was done")
    }

    /// The file as it was: `Some(None)` if there was none, nothing if the copy is lost.
    pub fn original(&self) -> Option<Option<String>> {
        match &self.backup {
            Some(backup) => std::fs::read_to_string(backup).ok().map(Some),
            None => Some(None),
        }
    }
}

/// Removes the record, and with it the mark.
pub fn forget(home: &Home, place: &SettingsPlace) -> anyhow::Result<()> {
    match std::fs::remove_file(path(home, place)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("could not remove the record of the install")
        }
        _ => {
            // The folder goes with the last record.
            let _ = std::fs::remove_dir(home.installs());
            Ok(())
        }
    }
}
