//! The data directory: `$FOREWORD_HOME`, else `~/.foreword`.

mod trust;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use foreword_core::model::Millis;
use foreword_core::project::Rules;
use foreword_core::text;

use crate::platform;

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

    /// A file with the path of a working tree whose notes a search could not all copy.
    pub fn notes_left(&self) -> PathBuf {
        self.dir.join("notes-left")
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

    /// The path of a socket of the worker, which is always in the data directory: elsewhere another
    /// user could take its name. If the path is too long for a socket, a short one leads there.
    fn socket_called(&self, name: &str) -> PathBuf {
        let path = self.dir.join(name);
        if path.as_os_str().len() <= SOCKET_PATH_MAX {
            return path;
        }
        platform::short_path(&self.dir).map_or(path, |dir| dir.join(name))
    }

    /// Why nothing in the data directory may be used: another user may have written it. One line with
    /// what to do; none if it can be trusted.
    pub fn distrust(&self) -> Option<String> {
        trust::distrust(&self.dir)
    }

    /// The files and folders that others may read, or that we ourselves may not, with their modes.
    pub fn wrong_modes(&self) -> Vec<(PathBuf, u32)> {
        trust::wrong_modes(&self.dir)
    }

    /// Takes the rights of others from files and folders. Returns a line about it; none if nobody else
    /// had any.
    pub fn make_private(&self) -> Option<String> {
        let mut wrong = self.wrong_modes();
        wrong.retain(|(path, mode)| {
            let private = Permissions::from_mode(mode & 0o700);
            mode & 0o077 != 0 && std::fs::set_permissions(path, private).is_ok()
        });
        let (path, mode) = wrong.first()?;
        let files = text::count(wrong.len() as u64, "file or folder", "files and folders");
        Some(format!(
            "other users could read {files} of the data directory ({}, mode {mode:03o}); now only you can",
            path.display()
        ))
    }

    /// Creates the data directory if there is none; false if it cannot be used.
    pub fn make(&self) -> bool {
        let exists = self.dir.exists() || std::fs::create_dir_all(&self.dir).is_ok();
        exists && self.distrust().is_none()
    }

    /// Closes the data directory to others, once it is known that they could not write to it.
    pub fn close_to_others(&self) {
        let is_open = |it: std::fs::Metadata| it.permissions().mode() & 0o077 != 0;
        if std::fs::metadata(&self.dir).is_ok_and(is_open) {
            let _ = std::fs::set_permissions(&self.dir, Permissions::from_mode(0o700));
        }
    }

    /// The length of the path with its links resolved, if it is longer than `PATH_MAX`.
    pub fn too_long(&self) -> Option<usize> {
        let resolved = self.dir.canonicalize();
        let length = resolved.as_ref().unwrap_or(&self.dir).as_os_str().len();
        (length > PATH_MAX).then_some(length)
    }
}

/// The longest path of a data directory, in bytes: SQLite opens files with paths of up to 504 bytes,
/// and the longest name below the directory, of a backup that is being made, has 90.
pub const PATH_MAX: usize = 410;

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
