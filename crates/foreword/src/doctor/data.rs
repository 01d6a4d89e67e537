//! Checks of the data directory: permissions, file system and free space.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Diagnosis, Examination};
use crate::platform;
use foreword_core::text::shell_word;

pub fn permissions(exam: &Examination) -> Option<Diagnosis> {
    let dir = exam.home.dir();
    let mut wrong = wrong_modes(dir);
    // A person makes the settings, usually open to others. Nobody reaches them in a closed folder, and
    // the next command that writes closes them, too (`service::home_to_write`).
    if wrong.first().is_some_and(|(path, _)| path != dir) {
        let config = exam.home.config();
        wrong.retain(|(path, mode)| *path != config || mode & 0o600 != 0o600);
    }
    let (path, mode) = wrong.first()?;
    let what = if mode & 0o077 == 0 {
        "is closed to its owner"
    } else {
        "is open to others"
    };
    let more = match wrong.len() - 1 {
        0 => String::new(),
        more => format!(", and so are {more} more"),
    };
    Diagnosis::cured_by(
        format!("chmod -R u+rwX,go= {}", shell_word(dir)),
        format!("{} {what} (mode {mode:03o}){more}", path.display()),
    )
}

/// Files that others may read, or that we ourselves may not.
fn wrong_modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut wrong = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_symlink() {
            continue;
        }
        let mode = metadata.permissions().mode() & 0o777;
        let needed = if metadata.is_dir() { 0o700 } else { 0o600 };
        if mode & 0o077 != 0 || mode & needed != needed {
            wrong.push((path.clone(), mode));
        }
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        waiting.extend(entries.map(|entry| entry.path()));
    }
    wrong.sort();
    wrong
}

pub fn filesystem(exam: &Examination) -> Option<Diagnosis> {
    let dir = exam.home.dir();
    let kind = platform::unsafe_filesystem(dir)?;
    let word = shell_word(dir);
    let usual = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".foreword"));
    let usual = usual.filter(|usual| {
        let parent = usual.parent().unwrap_or(usual);
        !usual.exists() && platform::unsafe_filesystem(parent).is_none()
    });
    let path = dir.display();
    let evidence = format!("{path} is on {kind}, where SQLite's log is not safe");
    match usual {
        Some(usual) => {
            let usual = shell_word(&usual);
            Diagnosis::cured_by(
                format!("mv {word} {usual} && unset FOREWORD_HOME"),
                evidence,
            )
        }
        None => Diagnosis::advised(
            format!("move {word} to a local disk and set FOREWORD_HOME to where it is then"),
            evidence,
        ),
    }
}

/// The least free space; a busy day may need more than that.
const FREE_MIN: u64 = 100 << 20;

pub fn disk_full(exam: &Examination) -> Option<Diagnosis> {
    let dir = exam.home.dir();
    too_little(platform::free_bytes(dir)?, dir)
}

fn too_little(free: u64, dir: &Path) -> Option<Diagnosis> {
    if free >= FREE_MIN {
        return None;
    }
    Diagnosis::advised(
        format!(
            "free some space; {} MB are enough. Hooks go on, but what they cannot write is lost",
            FREE_MIN >> 20
        ),
        format!("{} MB are free where {} is", free >> 20, dir.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_before_it_is_full() {
        let evidence = |free| too_little(free, Path::new("/data")).map(|it| it.evidence);
        assert_eq!(
            evidence((100 << 20) - 1).as_deref(),
            Some("99 MB are free where /data is")
        );
        assert_eq!(evidence(100 << 20), None);
    }
}
