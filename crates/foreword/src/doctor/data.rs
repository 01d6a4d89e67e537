//! Checks of the data directory: permissions, file system and free space.

use std::path::{Path, PathBuf};

use super::{Diagnosis, Examination};
use crate::home::{self, Home};
use crate::platform;
use foreword_core::text::shell_word;

pub fn permissions(exam: &Examination) -> Option<Diagnosis> {
    let dir = exam.home.dir();
    let mut wrong = exam.home.wrong_modes();
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

pub fn filesystem(exam: &Examination) -> Option<Diagnosis> {
    let dir = exam.home.dir();
    let kind = platform::unsafe_filesystem(dir)?;
    let path = dir.display();
    let evidence = format!("{path} is on {kind}, where SQLite's log is not safe");
    cured_by_moving(dir, "to a local disk", evidence)
}

pub fn path_too_long(exam: &Examination) -> Option<Diagnosis> {
    cured_by_moving(exam.home.dir(), "to a shorter path", too_long(&exam.home)?)
}

/// One line about a data directory whose path is too long for SQLite; none if it is not.
pub fn too_long(home: &Home) -> Option<String> {
    let length = home.too_long()?;
    Some(format!(
        "the path of {} has {length} bytes, and SQLite cannot use more than {}; events wait in the spool, where \
         they are safe if you move the directory",
        home.dir().display(),
        home::PATH_MAX
    ))
}

/// Advises to move the data directory, by a command if the usual place is free.
fn cured_by_moving(dir: &Path, where_to: &str, evidence: String) -> Option<Diagnosis> {
    let word = shell_word(dir);
    let usual = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".foreword"));
    let usual = usual.filter(|usual| {
        let parent = usual.parent().unwrap_or(usual);
        !usual.exists() && platform::unsafe_filesystem(parent).is_none()
    });
    match usual {
        Some(usual) => {
            let usual = shell_word(&usual);
            Diagnosis::cured_by(
                format!("mv {word} {usual} && unset FOREWORD_HOME"),
                evidence,
            )
        }
        None => Diagnosis::advised(
            format!("move {word} {where_to} and set FOREWORD_HOME to where it is then"),
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
