//! The off switch: everywhere, in a project, or for one session.
//!
//! The file `off` in the data directory has one line for each scope that is switched off. Usually
//! there is no such file, so the check costs a hook one failed `open`. Where Foreword is off,
//! nothing is stored and nothing is added to the session. The file `switched` has a line for each
//! switch and its time, so that nothing that happened while a scope was off is taken from the host's
//! transcripts later.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::PathBuf;

use foreword_core::files::{self, SMALL_MAX};
use foreword_core::model::{Event, Millis};
use foreword_core::text::if_there;

use crate::config::policy::{Policy, ProjectPolicy};
use crate::home::Home;

/// A scope that can be switched off.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SwitchScope {
    Everywhere,
    Project(String),
    Session(String),
}

impl SwitchScope {
    fn covers(&self, project: Option<&str>, session: &str) -> bool {
        match self {
            SwitchScope::Everywhere => true,
            SwitchScope::Project(key) => Some(key.as_str()) == project,
            SwitchScope::Session(id) => id == session,
        }
    }

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
        let text = files::read_text(&path(home), SMALL_MAX).unwrap_or_default();
        Switches(text.lines().filter_map(SwitchScope::parse).collect())
    }

    pub fn everywhere(&self) -> bool {
        self.0.contains(&SwitchScope::Everywhere)
    }

    /// Whether Foreword is off for this session in this project.
    pub fn covers(&self, project: Option<&str>, session: &str) -> bool {
        self.0.iter().any(|scope| scope.covers(project, session))
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
    pub fn write(&self, home: &Home) -> io::Result<()> {
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

/// Records that a scope was switched off or on.
pub fn record(home: &Home, scope: &SwitchScope, turned: Turned, now: Millis) -> io::Result<()> {
    let turned = match turned {
        Turned::Off => "off",
        Turned::On => "on",
    };
    let line = format!("{now} {turned} {}\n", scope.line());
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.append(true).create(true).open(switched(home))?;
    // In one write, so that two switches at the same time do not mix their lines.
    file.write_all(line.as_bytes())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turned {
    Off,
    On,
}

/// The times during which scopes were switched off.
#[derive(Debug, Default)]
pub struct OffTimes(Vec<(SwitchScope, Range<Millis>)>);

impl OffTimes {
    pub fn read(home: &Home) -> OffTimes {
        let text = files::read_text(&switched(home), SMALL_MAX).unwrap_or_default();
        let mut times = Vec::new();
        let mut off_since = HashMap::new();
        for (at, turned, scope) in text.lines().filter_map(parse_switch) {
            match turned {
                Turned::Off => drop(off_since.entry(scope).or_insert(at)),
                // It may have been switched off by a version that recorded no time.
                Turned::On => {
                    let since = off_since.remove(&scope).unwrap_or(0);
                    times.push((scope, since..at));
                }
            }
        }
        let still_off = off_since.into_iter();
        times.extend(still_off.map(|(scope, since)| (scope, since..Millis::MAX)));
        // Earlier versions recorded only the last time at which any scope was switched on.
        let on = files::read_text(&home.dir().join("on"), SMALL_MAX).unwrap_or_default();
        if let Ok(on) = on.trim().parse() {
            times.push((SwitchScope::Everywhere, 0..on));
        }
        OffTimes(times)
    }

    /// Whether Foreword was off for this session in this project at this time.
    pub fn cover(&self, project: Option<&str>, session: &str, at: Millis) -> bool {
        let mut times = self.0.iter();
        times.any(|(scope, time)| time.contains(&at) && scope.covers(project, session))
    }
}

/// Decides whether events that come from a session's transcript may be used: neither from times
/// when Foreword was off, nor while it is, nor against the policy of their project.
pub struct TranscriptGate<'a> {
    switches: Switches,
    off_times: OffTimes,
    session: &'a str,
    projects: &'a BTreeMap<String, Policy>,
}

impl<'a> TranscriptGate<'a> {
    pub fn new(
        home: &Home,
        session: &'a str,
        projects: &'a BTreeMap<String, Policy>,
    ) -> TranscriptGate<'a> {
        TranscriptGate {
            switches: Switches::read(home),
            off_times: OffTimes::read(home),
            session,
            projects,
        }
    }

    pub fn bars(&self, event: &Event) -> bool {
        let project = event.project.as_deref();
        let policy = ProjectPolicy::of_event(event, self.projects);
        self.switches.covers(project, self.session)
            || self.off_times.cover(project, self.session, event.at)
            || policy.off().is_some()
            || policy.excludes(event)
    }
}

/// `1763459000000 off project "KEY"`
fn parse_switch(line: &str) -> Option<(Millis, Turned, SwitchScope)> {
    let (at, rest) = line.split_once(' ')?;
    let (turned, scope) = rest.split_once(' ')?;
    let turned = match turned {
        "off" => Turned::Off,
        "on" => Turned::On,
        _ => return None,
    };
    Some((at.parse().ok()?, turned, SwitchScope::parse(scope)?))
}

fn switched(home: &Home) -> PathBuf {
    home.dir().join("switched")
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
    #[test]
    fn a_switch_covers_its_own_scope_for_its_own_time() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let project = |key: &str| SwitchScope::Project(key.to_owned());
        for (scope, turned, at) in [
            (project("a"), Turned::Off, 10),
            (project("b"), Turned::Off, 15),
            (project("a"), Turned::On, 20),
            (SwitchScope::Session("s 1".into()), Turned::Off, 30),
            (SwitchScope::Session("s 1".into()), Turned::On, 40),
            (project("old"), Turned::On, 50),
        ] {
            record(&home, &scope, turned, at).unwrap();
        }
        let times = OffTimes::read(&home);
        let off = |project, session, at| times.cover(Some(project), session, at);
        assert_eq!(
            [9, 10, 19, 20].map(|at| off("a", "s", at)),
            [false, true, true, false]
        );
        assert!(!off("b", "s", 14) && off("b", "s", 1_000), "still off");
        assert!(off("c", "s 1", 35) && !off("c", "s 1", 40) && !off("c", "s", 35));
        assert!(off("old", "s", 0) && !off("old", "s", 50));

        std::fs::write(home.dir().join("on"), "5").unwrap();
        assert!(
            OffTimes::read(&home).cover(Some("c"), "s", 4),
            "as recorded earlier"
        );
    }
}
