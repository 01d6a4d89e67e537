//! What the user ought to know without asking: a line beside the start of a session, told
//! once. The host shows it to the user and not to the model.
//!
//! A notice is a small file by the name of its matter. A worker writes it, and takes it back
//! when the matter is over; the hook that tells it renames it, so that one hook tells it.

use std::path::{Path, PathBuf};

use crate::home::Home;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matter {
    /// The model cannot be asked.
    Provider,
    /// A database was damaged, and what could be saved of it was.
    Recovered,
    /// Databases from before the first release were set aside.
    Unreleased,
}

impl Matter {
    const ALL: [Matter; 3] = [Matter::Provider, Matter::Recovered, Matter::Unreleased];

    fn path(self, home: &Home) -> PathBuf {
        home.dir().join("notices").join(match self {
            Matter::Provider => "provider",
            Matter::Recovered => "recovered",
            Matter::Unreleased => "unreleased",
        })
    }

    /// Has the user told, unless that was done. What goes wrong here is no trouble of its own.
    pub fn tell(self, home: &Home, line: &str) {
        let path = self.path(home);
        let is_known = |path: &Path| std::fs::read_to_string(path).is_ok_and(|it| it == line);
        if is_known(&path) || is_known(&told(&path)) {
            return;
        }
        let _ = std::fs::create_dir_all(home.dir().join("notices"));
        let _ = std::fs::write(&path, line);
    }

    /// It is over.
    pub fn take_back(self, home: &Home) {
        let path = self.path(home);
        let _ = std::fs::remove_file(told(&path));
        let _ = std::fs::remove_file(path);
    }
}

/// What there is to tell now; whoever asks tells it.
pub fn take(home: &Home) -> Option<String> {
    let lines = Matter::ALL.iter().filter_map(|matter| {
        let path = matter.path(home);
        let line = std::fs::read_to_string(&path).ok()?;
        std::fs::rename(&path, told(&path)).ok()?;
        Some(format!("Foreword: {line}"))
    });
    let lines: Vec<_> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn told(path: &Path) -> PathBuf {
    path.with_extension("told")
}
