//! Reads the memory, files, parents and environments of processes from /proc, for `agent`, `crash`,
//! `load` and `soak`.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The most memory that a process had since its start.
pub fn peak_kilobytes(pid: u32) -> u64 {
    status_field(pid, "VmHWM:").unwrap_or(0)
}

/// The memory that a process has now; none if it has ended.
pub fn kilobytes(pid: u32) -> Option<u64> {
    status_field(pid, "VmRSS:")
}

fn status_field(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().trim_end_matches(" kB").parse().ok()
}

/// How many files a process has open; none if it has ended.
pub fn open_files(pid: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

pub fn children(pid: u32) -> usize {
    all().filter(|&other| parent(other) == Some(pid)).count()
}

/// The process that started it; none if it has ended.
pub fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in brackets and may hold any character.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// The processes that have the path of a home in their environment.
pub fn started_for(home: &Path) -> Vec<u32> {
    let home = home.as_os_str().as_bytes();
    let has_path = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        memchr::memmem::find(&environment, home).is_some()
    };
    all().filter(has_path).collect()
}

/// Waits until no process of a home is left, at most for `patience`; returns how many are left.
pub fn left_over(home: &Path, patience: Duration) -> usize {
    let deadline = Instant::now() + patience;
    loop {
        let left = started_for(home).len();
        if left == 0 || Instant::now() > deadline {
            return left;
        }
        sleep(Duration::from_millis(5));
    }
}

/// The only sleep of the benches.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no event to wait for at a random moment"
)]
pub fn sleep(time: Duration) {
    std::thread::sleep(time);
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_child_that_was_started_for_a_home_is_seen_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("cat")
            .env("FOREWORD_HOME", dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Its environment can be read once it runs.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        // Other tests of this process may have children too.
        assert!(children(std::process::id()) > 0);
        assert_eq!(started_for(dir.path()), [child.id()]);
        assert!(peak_kilobytes(child.id()) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(started_for(dir.path()), [0; 0]);
    }
}
