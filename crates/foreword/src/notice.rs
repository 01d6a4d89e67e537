//! Notices: lines that the user sees once, when the next session starts. The host shows them to
//! the user and not to the model.
//!
//! Each notice is a small file. The worker writes it, and withdraws it when it no longer applies.
//! The hook that shows it renames the file, so that no other hook shows it again.

use std::path::{Path, PathBuf};

use crate::home::Home;
use foreword_core::files::{self, SMALL_MAX};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The provider cannot be used.
    Provider,
    /// A damaged database was recovered, as far as that was possible.
    Recovered,
    /// Databases from before the first release were set aside.
    Unreleased,
}

impl Notice {
    const ALL: [Notice; 3] = [Notice::Provider, Notice::Recovered, Notice::Unreleased];

    fn path(self, home: &Home) -> PathBuf {
        home.dir().join("notices").join(match self {
            Notice::Provider => "provider",
            Notice::Recovered => "recovered",
            Notice::Unreleased => "unreleased",
        })
    }

    /// Has the next session show this line, unless it is waiting or was shown already. Errors are
    /// ignored: a notice is not worth failing for.
    pub fn post(self, home: &Home, line: &str) {
        let path = self.path(home);
        let is_known = |path: &Path| files::read_text(path, SMALL_MAX).is_ok_and(|it| it == line);
        if is_known(&path) || is_known(&shown(&path)) {
            return;
        }
        let _ = std::fs::create_dir_all(home.dir().join("notices"));
        let _ = std::fs::write(&path, line);
    }

    /// Removes the notice, so that the same line would be shown again.
    pub fn withdraw(self, home: &Home) {
        let path = self.path(home);
        let _ = std::fs::remove_file(shown(&path));
        let _ = std::fs::remove_file(path);
    }
}

/// The notices that wait, and marks them as shown; none if there are none.
pub fn take(home: &Home) -> Option<String> {
    let lines = Notice::ALL.iter().filter_map(|notice| {
        let path = notice.path(home);
        let line = files::read_text(&path, SMALL_MAX).ok()?;
        std::fs::rename(&path, shown(&path)).ok()?;
        Some(format!("Foreword: {line}"))
    });
    let lines: Vec<_> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The file of a notice that was shown.
fn shown(path: &Path) -> PathBuf {
    path.with_extension("told")
}
