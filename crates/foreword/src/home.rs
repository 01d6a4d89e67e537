//! Where Foreword's data lives: `$FOREWORD_HOME`, else `~/.foreword`.

use std::path::{Path, PathBuf};

use foreword_core::model::Millis;
use foreword_core::project::Rules;

/// The data directory and the names inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    dir: PathBuf,
}

/// The folder name of the sentence model below `models/`.
pub const SENTENCE_MODEL: &str = "all-MiniLM-L6-v2";

/// A Unix socket's path is at most 107 bytes on Linux, 103 on macOS.
const SOCKET_PATH_MAX: usize = 100;

impl Home {
    /// None when the environment names no home at all.
    pub fn from_env() -> Option<Home> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dir = match set("FOREWORD_HOME") {
            Some(dir) => std::path::absolute(PathBuf::from(dir)).ok()?,
            None => PathBuf::from(set("HOME")?).join(".foreword"),
        };
        Some(Home { dir })
    }

    /// A home that the environment does not name: a test's, or a throw-away one.
    pub fn at(dir: impl Into<PathBuf>) -> Home {
        Home { dir: dir.into() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn queue(&self) -> PathBuf {
        self.dir.join("queue.db")
    }

    pub fn memory(&self) -> PathBuf {
        self.dir.join("memory.db")
    }

    pub fn spool(&self) -> PathBuf {
        self.dir.join("spool")
    }

    pub fn models(&self) -> PathBuf {
        self.dir.join("models")
    }

    /// The sentence model, if it is installed.
    pub fn model(&self) -> PathBuf {
        self.models().join(SENTENCE_MODEL)
    }

    pub fn backups(&self) -> PathBuf {
        self.dir.join("backups")
    }

    /// What installs did, and the marks that they stand.
    pub fn installs(&self) -> PathBuf {
        self.dir.join("installs")
    }

    /// Which provider was chosen at install: one word.
    pub fn chosen_provider(&self) -> PathBuf {
        self.dir.join("provider")
    }

    /// Where the memory agent runs: no project, and nothing to read.
    pub fn agent(&self) -> PathBuf {
        self.dir.join("agent")
    }

    /// Prompts that the user put in place of ours.
    pub fn prompts(&self) -> PathBuf {
        self.dir.join("prompts")
    }

    pub fn withheld(&self) -> PathBuf {
        self.dir.join("withheld")
    }

    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    pub fn config(&self) -> PathBuf {
        self.dir.join("config.toml")
    }

    pub fn lock(&self) -> PathBuf {
        self.dir.join("worker.lock")
    }

    /// Says when hooks last started a worker that has not come up yet.
    pub fn start_stamp(&self) -> PathBuf {
        self.dir.join("worker.starting")
    }

    pub fn socket(&self) -> PathBuf {
        self.socket_called("worker.sock")
    }

    /// Where the worker is asked for the vector of a question.
    pub fn embed_socket(&self) -> PathBuf {
        self.socket_called("embed.sock")
    }

    /// A socket of the worker's; under a hashed name elsewhere if the path would be too long.
    fn socket_called(&self, name: &str) -> PathBuf {
        let path = self.dir.join(name);
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.len() <= SOCKET_PATH_MAX {
            return path;
        }
        let hash = blake3::hash(bytes).to_hex();
        let runtime =
            std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        runtime.join(format!("foreword-{}.sock", &hash[..16]))
    }
}

/// Milliseconds since 1970.
pub fn now() -> Millis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |age| {
        Millis::try_from(age.as_millis()).unwrap_or(Millis::MAX)
    })
}

/// How projects are told apart, in this user's environment.
pub fn project_rules(separate_worktrees: bool) -> Rules {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let temporary = [
        std::env::temp_dir(),
        PathBuf::from("/tmp"),
        PathBuf::from("/var/tmp"),
    ];
    Rules {
        not_projects: home.into_iter().chain(temporary).collect(),
        separate_worktrees,
    }
}
