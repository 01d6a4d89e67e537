//! The data directory: `$FOREWORD_HOME`, else `~/.foreword`.

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
    /// The data directory that the environment names; none if neither `FOREWORD_HOME` nor `HOME` is
    /// set.
    pub fn from_env() -> Option<Home> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dir = match set("FOREWORD_HOME") {
            Some(dir) => std::path::absolute(PathBuf::from(dir)).ok()?,
            None => PathBuf::from(set("HOME")?).join(".foreword"),
        };
        Some(Home { dir })
    }

    /// A data directory at a given path, for tests and temporary homes.
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

    /// The folder of the sentence model. It exists only if the model is installed.
    pub fn model(&self) -> PathBuf {
        self.models().join(SENTENCE_MODEL)
    }

    pub fn backups(&self) -> PathBuf {
        self.dir.join("backups")
    }

    /// Records of what `foreword install` changed, one file for each settings file.
    pub fn installs(&self) -> PathBuf {
        self.dir.join("installs")
    }

    /// A file with the name of the provider that was chosen at install.
    pub fn chosen_provider(&self) -> PathBuf {
        self.dir.join("provider")
    }

    /// The empty folder that the memory agent runs in, which belongs to no project.
    pub fn agent(&self) -> PathBuf {
        self.dir.join("agent")
    }

    /// Prompts by which the user replaces the built-in ones.
    pub fn prompts(&self) -> PathBuf {
        self.dir.join("prompts")
    }

    /// The key by which exports of this data directory are recognised.
    pub fn export_key(&self) -> PathBuf {
        self.dir.join("export.key")
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

    /// A file that counts how often in a row hooks started a worker that did not come up, with the
    /// time of the last start.
    pub fn start_stamp(&self) -> PathBuf {
        self.dir.join("worker.starting")
    }

    pub fn socket(&self) -> PathBuf {
        self.socket_called("worker.sock")
    }

    /// The socket on which the worker searches by meaning.
    pub fn embed_socket(&self) -> PathBuf {
        self.socket_called("embed.sock")
    }

    /// The path of a socket of the worker; if it would be too long, a hashed name in the runtime
    /// directory.
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

/// The rules by which a directory is assigned to a project, for this user's environment.
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
