//! The off switch: everywhere, in a project, or for one session.
//!
//! The file `off` in the data directory has one line for each scope that is switched off. Usually
//! there is no such file, so the check costs a hook one failed `open`. Where Foreword is off,
//! nothing is stored and nothing is added to the session.

use std::path::PathBuf;

use foreword_core::model::Millis;
use foreword_core::text::if_there;

use crate::home::Home;

/// A scope that can be switched off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchScope {
    Everywhere,
    Project(String),
    Session(String),
}

impl SwitchScope {
    fn line(&self) -> String {
        match self {
            SwitchScope::Everywhere => "everywhere".to_owned(),
            // Quoted as JSON, because the name of a folder may contain anything, even a line break.
            SwitchScope::Project(key) => {
                format!("project {}", serde_json::Value::from(key.as_str()))
            }
            SwitchScope::Session(id) => format!("session {}", serde_json::Value::from(id.as_str())),
        }
    }

    fn parse(line: &str) -> Option<SwitchScope> {
        let quoted = |text| serde_json::from_str(text).ok();
        match line.split_once(' ') {
            None if line == "everywhere" => Some(SwitchScope::Everywhere),
            Some(("project", key)) => quoted(key).map(SwitchScope::Project),
            Some(("session", id)) => quoted(id).map(SwitchScope::Session),
            _ => None,
        }
    }
}

/// All scopes that are switched off.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Switches(Vec<SwitchScope>);

impl Switches {
    pub fn read(home: &Home) -> Switches {
        let text = std::fs::read_to_string(path(home)).unwrap_or_default();
        Switches(text.lines().filter_map(SwitchScope::parse).collect())
    }

    pub fn everywhere(&self) -> bool {
        self.0.contains(&SwitchScope::Everywhere)
    }

    /// Whether Foreword is off for this session in this project.
    pub fn covers(&self, project: Option<&str>, session: &str) -> bool {
        self.0.iter().any(|scope| match scope {
            SwitchScope::Everywhere => true,
            SwitchScope::Project(key) => Some(key.as_str()) == project,
            SwitchScope::Session(id) => id == session,
        })
    }

    /// One line for each scope, as `status` shows them and the file holds them.
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(SwitchScope::line).collect()
    }

    pub fn set_off(&mut self, scope: SwitchScope) -> bool {
        let new = !self.0.contains(&scope);
        if new {
            self.0.push(scope);
        }
        new
    }

    pub fn set_on(&mut self, scope: &SwitchScope) -> bool {
        let before = self.0.len();
        self.0.retain(|it| it != scope);
        self.0.len() < before
    }

    /// Replaces the file atomically, or removes it if nothing is switched off.
    pub fn write(&self, home: &Home) -> std::io::Result<()> {
        let path = path(home);
        if self.0.is_empty() {
            return if_there(std::fs::remove_file(path)).map(drop);
        }
        let partial = path.with_extension("partial");
        std::fs::write(&partial, self.lines().join("\n") + "\n")?;
        std::fs::rename(partial, path)
    }
}

fn path(home: &Home) -> PathBuf {
    home.dir().join("off")
}

/// Records the time at which a scope was switched on again. Nothing that happened before is taken
/// from the host's transcripts later.
pub fn record_on(home: &Home, now: Millis) -> std::io::Result<()> {
    std::fs::write(home.dir().join("on"), now.to_string())
}

/// The time at which a scope was last switched on again; 0 if never.
pub fn on_since(home: &Home) -> Millis {
    let text = std::fs::read_to_string(home.dir().join("on")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Marks a session of which a hook may not store something, for a reason that only this hook may
/// know: then nothing is taken from the session's transcript either. The mark is an empty file named
/// by a hash of the session. It is only written if there is a data directory.
pub fn withhold(home: &Home, session: &str) {
    let path = withheld(home, session);
    if home.dir().exists() && !path.exists() {
        let _ = std::fs::create_dir_all(home.withheld());
        let _ = std::fs::write(path, "");
    }
}

pub fn is_withheld(home: &Home, session: &str) -> bool {
    withheld(home, session).exists()
}

fn withheld(home: &Home, session: &str) -> PathBuf {
    let hash = blake3::hash(session.as_bytes()).to_hex();
    home.withheld().join(&hash[..32])
}

/// Whether `FOREWORD_OFF` switches Foreword off for this process and its children.
pub fn off_in_environment() -> bool {
    is_set("FOREWORD_OFF")
}

/// Whether this process belongs to a run of Foreword's own memory agent, which must not be stored.
pub fn own_child() -> bool {
    is_set("FOREWORD_AGENT")
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_there_until_it_is_turned_again() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let mut switches = Switches::read(&home);
        assert!(!switches.covers(Some("p"), "s"));
        assert!(switches.set_off(SwitchScope::Project("a project/with\nspaces".into())));
        assert!(switches.set_off(SwitchScope::Session("s".into())));
        assert!(!switches.set_off(SwitchScope::Session("s".into())));
        switches.write(&home).unwrap();

        let mut again = Switches::read(&home);
        assert_eq!(again, switches);
        assert!(again.covers(Some("a project/with\nspaces"), "other"));
        assert!(again.covers(None, "s"));
        assert!(!again.covers(Some("b"), "other"));
        again.set_on(&SwitchScope::Session("s".into()));
        again.set_on(&SwitchScope::Project("a project/with\nspaces".into()));
        again.write(&home).unwrap();
        assert!(!path(&home).exists());
    }
}
