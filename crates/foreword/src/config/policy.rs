//! What Foreword must not do in one project: a policy, which can only restrict.
//!
//! It comes from `.foreword.toml` at the top of the repository, and from `[projects."KEY"]` in the
//! user's own config.toml, with the same keys. The repository's file was written by somebody else:
//! it can switch Foreword off, exclude paths, and keep events from models and teams, from now on. It
//! deletes nothing, switches nothing on and names no address. A file that cannot be read or has a
//! wrong value may want to restrict something, so Foreword is off then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use foreword_core::capture;
use foreword_core::files;
use foreword_core::host;
use foreword_core::model::Event;
use foreword_core::text::{one_line, shorten};
use serde::Deserialize;
use toml::Table;

/// The name of the file at the top of a repository.
pub const FILE: &str = ".foreword.toml";
/// The largest file that is read, in bytes.
const SIZE_MAX: u64 = 8 << 10;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Nothing is stored and nothing shown.
    pub off: bool,
    /// Patterns of files below the project's top; a tool use on such a file is not stored.
    pub exclude_paths: Vec<String>,
    /// Nothing is sent to a model.
    pub no_model: bool,
    /// Nothing is shared with a team.
    pub no_team: bool,
}

impl Policy {
    /// The restrictions in a few words; empty if there are none.
    pub fn words(&self) -> String {
        let paths = self.exclude_paths.join(", ");
        let paths = format!("not stored: {}", shorten(&one_line(&paths), 200));
        let words = [
            (self.off, "off"),
            (!self.exclude_paths.is_empty(), paths.as_str()),
            (self.no_model, "no model"),
            (self.no_team, "no team"),
        ];
        let words = words.iter().filter(|(holds, _)| *holds);
        let words: Vec<&str> = words.map(|(_, words)| *words).collect();
        words.join("; ")
    }
}

/// The policy of a repository, as its file has it.
#[derive(Debug, Default)]
pub struct RepositoryPolicy {
    pub policy: Policy,
    /// Keys that Foreword does not know.
    pub ignored: Vec<String>,
    /// Why the file cannot be used.
    pub problem: Option<String>,
}

impl RepositoryPolicy {
    /// Reads the file at the top of a working tree. If there is none, this costs one system call.
    pub fn read(root: &Path) -> RepositoryPolicy {
        let path = root.join(FILE);
        let policy = match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::default(),
            Err(error) => Err(error.into()),
            Ok(_) => read_file(root, &path).and_then(|it| parse(&it)),
        };
        policy.unwrap_or_else(|error| RepositoryPolicy {
            policy: Policy {
                off: true,
                ..Policy::default()
            },
            ignored: Vec::new(),
            problem: Some(one_line(&format!("{error:#}"))),
        })
    }
}

fn read_file(root: &Path, path: &Path) -> anyhow::Result<String> {
    let root = root.canonicalize()?;
    Ok(files::text(files::read_in(&root, path, SIZE_MAX)?)?)
}

fn parse(text: &str) -> anyhow::Result<RepositoryPolicy> {
    let Ok(table) = text.parse::<Table>() else {
        bail!("it is not valid TOML");
    };
    let known = ["off", "exclude_paths", "no_model", "no_team"];
    let (known, ignored): (Table, Table) = table
        .into_iter()
        .partition(|(key, _)| known.contains(&key.as_str()));
    let Ok(policy) = known.try_into() else {
        bail!(
            "off, no_model and no_team have to be true or false, exclude_paths a list of strings"
        );
    };
    let name = |key: String| shorten(&one_line(&key), 40).into_owned();
    Ok(RepositoryPolicy {
        policy,
        ignored: ignored.into_iter().map(|(key, _)| name(key)).collect(),
        problem: None,
    })
}

/// The policies of one project together: the repository's and the user's.
#[derive(Debug, Default)]
pub struct ProjectPolicy {
    root: Option<PathBuf>,
    pub repository: RepositoryPolicy,
    /// The user's, from config.toml.
    pub user: Policy,
}

impl ProjectPolicy {
    pub fn of(
        root: Option<&Path>,
        project: Option<&str>,
        of_user: &BTreeMap<String, Policy>,
    ) -> ProjectPolicy {
        ProjectPolicy {
            root: root.map(Path::to_owned),
            repository: root.map_or_else(RepositoryPolicy::default, RepositoryPolicy::read),
            user: project
                .and_then(|key| of_user.get(key))
                .cloned()
                .unwrap_or_default(),
        }
    }

    pub fn of_event(event: &Event, of_user: &BTreeMap<String, Policy>) -> ProjectPolicy {
        let root = event.root.as_deref().map(Path::new);
        ProjectPolicy::of(root, event.project.as_deref(), of_user)
    }

    /// Why Foreword is off, if it is: the end of the sentence "Foreword is off here: …".
    pub fn off(&self) -> Option<String> {
        if let Some(problem) = &self.repository.problem {
            Some(format!(
                "{FILE} cannot be used ({problem}), and may restrict what is stored"
            ))
        } else if self.repository.policy.off {
            Some(format!("{FILE} of this project switches it off"))
        } else if self.user.off {
            Some("[projects] in config.toml switches it off for this project".to_owned())
        } else {
            None
        }
    }

    pub fn forbids_models(&self) -> bool {
        self.repository.policy.no_model || self.user.no_model || self.off().is_some()
    }

    /// Whether an event is about a file that is excluded.
    pub fn excludes(&self, event: &Event) -> bool {
        let of_repository = self.repository.policy.exclude_paths.iter();
        let patterns = of_repository.chain(&self.user.exclude_paths);
        let patterns: Vec<String> = patterns.filter_map(|it| self.below_root(it)).collect();
        if patterns.is_empty() {
            return false;
        }
        let used = host::tool_use(event);
        let paths = event.files.iter().map(|it| it.path.as_str());
        let mut paths = paths.chain(used.path);
        paths.any(|path| capture::is_path_covered(&patterns, path))
    }

    fn below_root(&self, pattern: &str) -> Option<String> {
        let root = self.root.as_ref()?.to_str()?;
        let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
        Some(format!("{root}/{pattern}"))
    }
}
