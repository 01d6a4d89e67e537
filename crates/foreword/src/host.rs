//! The program's side of each host: its settings, its answers, its variables and its client.
//!
//! `CLIENTS` has one row for each host of core's `HOSTS`: data and plain functions. All that is
//! particular to one host stands in its own file or folder, here `claude_code`; `json` changes
//! JSON files of the user's without touching a byte that is theirs. `install` and `doctor` use the
//! rows; hooks use the answers and variables.

pub mod claude_code;
mod json;

use std::path::{Path, PathBuf};

use foreword_core::host::{Hook, Host};

use crate::home::Home;
pub use json::is_empty;
#[cfg(test)]
pub use json::value;

pub static CLIENTS: &[Client] = &[claude_code::CLIENT];

/// How this program and a host's client work together.
#[derive(Debug)]
pub struct Client {
    pub host: &'static Host,

    /// The user's settings file.
    pub user_settings: fn() -> anyhow::Result<PathBuf>,
    /// The settings file of a project, below the top of its working tree.
    pub project_settings: &'static str,
    /// Adds our hooks to settings that hold none of ours.
    pub insert_hooks: fn(&str, &Path) -> anyhow::Result<String>,
    /// Removes our hooks, and the brackets that only held them.
    pub remove_hooks: fn(&str) -> anyhow::Result<String>,
    /// For each event of ours, the programs that our entries run.
    pub programs: fn(&str) -> anyhow::Result<Programs>,
    /// The setting by which all hooks are switched off, if they are.
    pub hooks_off: fn(&str) -> anyhow::Result<Option<&'static str>>,
    /// Commands of other hooks, and plugins that are on.
    pub others: fn(&str) -> anyhow::Result<Vec<String>>,
    /// The name of our own plugin among `others`, up to its source.
    pub plugin: &'static str,

    /// The file that lists MCP servers beside a settings file.
    pub servers: fn(&SettingsPlace) -> anyhow::Result<PathBuf>,
    /// Which server is listed under our name.
    pub listed: fn(&str) -> anyhow::Result<Listed>,
    /// Lists our server once, as this program.
    pub insert_server: fn(&str, &Path) -> anyhow::Result<String>,
    /// Takes our server out.
    pub remove_server: fn(&str) -> anyhow::Result<String>,

    /// Skills and agents: path below the folder of the settings, text.
    pub skills: &'static [(&'static str, &'static str)],
    /// The file of a project whose content every session loads.
    pub instructions: &'static str,

    /// The answer of a hook that adds something: a text for the agent, a notice for the user.
    pub answer: fn(Hook, Option<&str>, Option<String>) -> Option<String>,
    /// The longest answer that the host takes whole, in characters.
    pub answer_max: usize,
    /// The answer of a hook that adds nothing.
    pub plain_answer: fn(Hook) -> &'static str,

    /// Variables that the client sets for the programs it runs: the session, the project's folder,
    /// and one that only the hooks of a plugin have.
    pub session_variable: &'static str,
    pub project_variable: &'static str,
    pub plugin_variable: &'static str,

    /// The transcript of a session, or the newest one of a project.
    pub find_transcript: fn(Option<&str>, &Path) -> anyhow::Result<PathBuf>,

    /// The client's command, and a function that finds its program.
    pub command: &'static str,
    pub find_program: fn() -> Option<PathBuf>,
    /// The shell command that installs the client, and the argument with which it updates itself.
    pub get: &'static str,
    pub update: &'static str,
    /// The oldest client that was tested.
    pub tested: [u32; 3],
}

/// For each event that a hook of ours is connected to, the programs that our entries run.
pub type Programs = Vec<(&'static str, Vec<String>)>;

impl PartialEq for Client {
    fn eq(&self, other: &Client) -> bool {
        self.host.name == other.host.name
    }
}

impl Eq for Client {}

/// Whose settings an install changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallScope {
    User,
    Project,
}

/// A settings file of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsPlace {
    pub client: &'static Client,
    pub scope: InstallScope,
    pub settings: PathBuf,
}

/// The server that is listed under our name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    Nobody,
    /// This program of ours.
    Ours(String),
    Another,
}

/// The client of the host that has this name.
pub fn named(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.host.name == name)
}

/// The client that runs this process, and the session it is for.
pub fn session_here() -> Option<(&'static Client, String)> {
    CLIENTS.iter().find_map(|client| {
        let session = std::env::var(client.session_variable).ok();
        Some((client, session.filter(|it| !it.is_empty())?))
    })
}

/// The project's folder, as the client that runs this process names it.
pub fn project_dir() -> Option<PathBuf> {
    let mut dirs = CLIENTS.iter().map(|it| set(it.project_variable));
    dirs.find_map(|dir| dir)
}

/// A variable that is set and not empty, as a path.
pub fn set(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

impl Client {
    pub fn of(host: &Host) -> &'static Client {
        named(host.name).unwrap_or(&CLIENTS[0])
    }

    pub fn user_place(&'static self) -> anyhow::Result<SettingsPlace> {
        Ok(SettingsPlace {
            client: self,
            scope: InstallScope::User,
            settings: std::path::absolute((self.user_settings)()?)?,
        })
    }

    /// The settings file of the project whose top is `root`.
    pub fn settings_of(&self, root: &Path) -> PathBuf {
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        root.join(self.project_settings)
    }

    /// Whether this is a hook of the plugin beside hooks from settings, which do the same work:
    /// those of the user, or the project's own. Only a plugin's hook pays for the look, and it
    /// looks only at the names of install's records.
    pub fn is_second(&self, home: &Home, project_dir: Option<&Path>) -> bool {
        if std::env::var_os(self.plugin_variable).is_none() {
            return false;
        }
        let Ok(records) = std::fs::read_dir(home.installs()) else {
            return false;
        };
        let project = project_dir.map(|dir| project_mark(&self.settings_of(dir)));
        records.flatten().any(|record| {
            let name = record.file_name();
            let name = name.as_encoded_bytes();
            name.starts_with(USER_MARK.as_bytes())
                || project.as_ref().is_some_and(|mark| name == mark.as_bytes())
        })
    }
}

impl SettingsPlace {
    /// The name of the file in which install records what it did here.
    pub fn mark(&self) -> String {
        match self.scope {
            InstallScope::User => format!("{USER_MARK}{}.json", hash(&self.settings)),
            InstallScope::Project => project_mark(&self.settings),
        }
    }
}

const USER_MARK: &str = "user-";

fn project_mark(settings: &Path) -> String {
    format!("project-{}.json", hash(settings))
}

fn hash(path: &Path) -> String {
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
    hash[..16].to_owned()
}

pub fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
}

/// Entries of ours are recognised by the name of the program that they run.
pub fn is_called_foreword(program: &Path) -> bool {
    program.file_stem().is_some_and(|name| name == "foreword")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_a_client() {
        let hosts = foreword_core::host::HOSTS.iter().map(|it| it.name);
        let clients = CLIENTS.iter().map(|it| it.host.name);
        assert!(hosts.eq(clients));
    }
}
