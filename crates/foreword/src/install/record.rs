//! What an install did, remembered in the data directory until it is taken back.
//!
//! One file per settings file, so that the user's and several projects' installs
//! stand side by side. The file is also the mark by which a hook of the plugin sees
//! that hooks of the settings run for the same session: it then does nothing. The
//! hook only looks at names; what is inside is for `uninstall`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::home::Home;

/// Whose settings an install went into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    User,
    Project,
}

/// A settings file of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub scope: Scope,
    pub settings: PathBuf,
}

/// What one install did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub settings: PathBuf,
    /// The file as install left it: if it still is, uninstall puts the copy back.
    pub written: String,
    /// A copy of the file as it was without us; none if there was no file.
    pub backup: Option<PathBuf>,
    /// Folders that were made for it, the innermost first.
    pub folders: Vec<PathBuf>,
}

impl Place {
    fn record(&self, home: &Home) -> PathBuf {
        home.installs().join(match self.scope {
            Scope::User => format!("{USER}{}.json", hash(&self.settings)),
            Scope::Project => project_mark(&self.settings),
        })
    }
}

const USER: &str = "user-";

fn project_mark(settings: &Path) -> String {
    format!("project-{}.json", hash(settings))
}

fn hash(path: &Path) -> String {
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
    hash[..16].to_owned()
}

impl Record {
    /// One that cannot be read is none: taking out our entries needs no record.
    pub fn load(home: &Home, place: &Place) -> Option<Record> {
        let text = std::fs::read(place.record(home)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub fn save(&self, home: &Home, place: &Place) -> anyhow::Result<()> {
        let write = || {
            std::fs::create_dir_all(home.installs())?;
            let mut file = tempfile::NamedTempFile::new_in(home.installs())?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.persist(place.record(home))?;
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
pub fn forget(home: &Home, place: &Place) -> anyhow::Result<()> {
    match std::fs::remove_file(place.record(home)) {
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

/// Whether hooks from settings run in a session of this project: those of the user,
/// or the project's own. Looks at names only.
pub fn stands(home: &Home, project_dir: Option<&Path>) -> bool {
    let Ok(records) = std::fs::read_dir(home.installs()) else {
        return false;
    };
    let project = project_dir.map(|dir| project_mark(&project_settings(dir)));
    records.flatten().any(|record| {
        let name = record.file_name();
        let name = name.as_encoded_bytes();
        name.starts_with(USER.as_bytes())
            || project.as_ref().is_some_and(|mark| name == mark.as_bytes())
    })
}

/// The settings file of a project whose top is `root`.
pub fn project_settings(root: &Path) -> PathBuf {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    root.join(".claude/settings.json")
}
