//! What this program knows about each host: its settings, its answers, its variables and its client.
//!
//! `CLIENTS` has one row for each host of core's `HOSTS`, with data and plain functions. Everything
//! that is specific to one host is in its own file or folder, here `claude_code`. `json` adds text to
//! the user's JSON files without changing what is there. `install` and `doctor` use the rows; hooks
//! use the answers and variables.

pub mod claude_code;
mod json;

use std::path::{Path, PathBuf};

use foreword_core::files::{self, SMALL_MAX};
use foreword_core::host::{DEFAULT_HOST, Hook, Host};

use crate::home::Home;
pub use json::is_empty;
#[cfg(test)]
pub use json::value;

pub static CLIENTS: &[Client] = &[claude_code::CLIENT];

/// The functions and names by which this program works with a host's client.
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
    /// The name of the setting that switches off all hooks, if it is set.
    pub hooks_off: fn(&str) -> anyhow::Result<Option<&'static str>>,
    /// Commands of other hooks, and plugins that are on.
    pub others: fn(&str) -> anyhow::Result<Vec<String>>,
    /// The start of the name of our own plugin among `others`; its source follows.
    pub plugin: &'static str,

    /// Why the host does not read a settings file with this text, though we can; none if it does.
    pub unread: fn(&str) -> Option<String>,
    /// The file with a user's own settings for one project, below the top of its working tree.
    pub local_settings: &'static str,
    /// The rule that allows a tool of ours; its name differs if the server is the plugin's.
    pub rule: fn(&str, bool) -> String,
    /// Adds rules that allow something.
    pub insert_rules: fn(&str, &[String]) -> anyhow::Result<String>,
    /// Removes rules, and the brackets that only held them.
    pub remove_rules: fn(&str, &[String]) -> anyhow::Result<String>,
    /// What the rules of one settings file say about the tool of a rule; none if nothing.
    pub permission: fn(&str, &str) -> anyhow::Result<Option<Permission>>,

    /// The file that lists MCP servers beside a settings file.
    pub servers: fn(&SettingsPlace) -> anyhow::Result<PathBuf>,
    /// The server that is listed under our name.
    pub listed: fn(&str) -> anyhow::Result<Listed>,
    /// Adds our server to the list, or replaces it by one that runs this program.
    pub insert_server: fn(&str, &Path) -> anyhow::Result<String>,
    /// Removes our server from the list.
    pub remove_server: fn(&str) -> anyhow::Result<String>,

    /// Skills and agents, each with its path below the folder of the settings and its text.
    pub skills: &'static [(&'static str, &'static str)],
    /// The file of a project whose content every session loads.
    pub instructions: &'static str,

    /// Builds the answer of a hook that adds a text for the agent, a notice for the user, or both.
    pub answer: fn(Hook, Option<&str>, Option<String>) -> Option<String>,
    /// The longest answer that the host does not cut, in characters.
    pub answer_max: usize,
    /// The answer of a hook that adds nothing.
    pub plain_answer: fn(Hook) -> &'static str,

    /// The variable with the id of the session, for programs that the client runs.
    pub session_variable: &'static str,
    /// A variable that the client sets for every program that its agent runs.
    pub agent_variable: &'static str,
    /// The variable with the project's folder, for programs that the client runs.
    pub project_variable: &'static str,
    /// A variable that the client sets only for the hooks of a plugin.
    pub plugin_variable: &'static str,

    /// The transcripts of all sessions.
    pub transcripts: fn() -> Vec<PathBuf>,
    /// Finds the transcript of a session, or the newest one of a project.
    pub find_transcript: fn(Option<&str>, &Path) -> anyhow::Result<PathBuf>,

    /// The name of the client's program.
    pub command: &'static str,
    /// Finds the client's program.
    pub find_program: fn() -> Option<PathBuf>,
    /// The shell command that installs the client.
    pub get: &'static str,
    /// The argument with which the client updates itself.
    pub update: &'static str,
    /// The oldest version of the client that was tested.
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

/// The tools of our MCP server that only read the memory.
pub const READING_TOOLS: &[&str] = &["search", "get_observations", "timeline", "recall"];

/// The tool by which the agent writes into the memory.
pub const REMEMBER: &str = "remember";

/// Whether the agent may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    Allowed,
    /// The host asks the user first, or refuses the call if nobody can be asked.
    Asked,
    Denied,
}

/// The server that is listed under our name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    Nobody,
    /// A program of ours, by its path.
    Ours(String),
    Another,
}

/// The client of the host that has this name.
pub fn named(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.host.name == name)
}

/// The client of the default host.
pub fn default_client() -> &'static Client {
    Client::of(DEFAULT_HOST)
}

/// The client that runs this process, or else the default one.
pub fn client_here() -> &'static Client {
    session_here().map_or_else(default_client, |(client, _)| client)
}

/// The client that runs this process, and the id of its session.
pub fn session_here() -> Option<(&'static Client, String)> {
    CLIENTS.iter().find_map(|client| {
        let session = std::env::var(client.session_variable).ok();
        Some((client, session.filter(|it| !it.is_empty())?))
    })
}

/// Whether an agent runs this process, and reads what it prints.
pub fn is_agent_here() -> bool {
    CLIENTS.iter().any(|client| {
        let mut variables = [client.agent_variable, client.session_variable].into_iter();
        variables.any(|it| set(it).is_some())
    })
}

/// The project's folder, as the client that runs this process names it.
pub fn project_dir() -> Option<PathBuf> {
    let mut dirs = CLIENTS.iter().map(|it| set(it.project_variable));
    dirs.find_map(|dir| dir)
}

/// The value of a variable as a path; none if it is empty or not set.
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

    /// Whether the agent may call these tools of ours in the project whose top is `root`: the least
    /// that the user's settings and the project's allow.
    pub fn tool_permission(
        &self,
        root: Option<&Path>,
        tools: &[&str],
        of_plugin: bool,
    ) -> Permission {
        let of_project = root.into_iter().flat_map(|root| {
            [self.project_settings, self.local_settings].map(|file| root.join(file))
        });
        let files = (self.user_settings)().into_iter().chain(of_project);
        let texts = files.filter_map(|file| files::read_text(&file, SMALL_MAX).ok());
        let texts: Vec<String> = texts.filter(|it| (self.unread)(it).is_none()).collect();
        let permission = |tool: &&str| {
            let rule = (self.rule)(tool, of_plugin);
            let rules = texts.iter();
            let found = rules.filter_map(|text| (self.permission)(text, &rule).ok().flatten());
            found.max().unwrap_or(Permission::Asked)
        };
        let least = tools.iter().map(permission).max();
        least.unwrap_or(Permission::Asked)
    }

    /// A sentence on whether the agent may use the tools that only read.
    pub fn permission_line(&self, permission: Permission) -> String {
        let (title, tools) = (self.host.title, READING_TOOLS.join(", "));
        match permission {
            Permission::Allowed => format!("the agent may use {tools} without asking"),
            Permission::Asked => format!(
                "{title} asks before the agent may use {tools}, and refuses them where nobody can be asked"
            ),
            Permission::Denied => {
                format!("the permission rules of {title} deny the agent {tools}, or one of them")
            }
        }
    }

    /// The settings file of the project whose top is `root`.
    pub fn settings_of(&self, root: &Path) -> PathBuf {
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        root.join(self.project_settings)
    }

    /// Whether this is a hook of the plugin while hooks in the settings of the user or the project do
    /// the same work. Only a plugin's hook checks this, and it reads only the names of the install
    /// records.
    pub fn is_duplicate(&self, home: &Home, project_dir: Option<&Path>) -> bool {
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
    /// The name of the install record for this settings file.
    pub fn mark(&self) -> String {
        match self.scope {
            InstallScope::User => format!("{USER_MARK}{}.json", hash(&self.settings)),
            InstallScope::Project => project_mark(&self.settings),
        }
    }
}

/// The start of the names of install records for the user's settings.
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

/// Whether a program is ours, by its file name. Our entries in settings are recognised by it.
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
