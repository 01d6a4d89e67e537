//! What the kernel knows of a worker and of those around it: for `agent`, `crash`, `load` and `soak`.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The most memory that a process ever had.
pub fn peak_kilobytes(pid: u32) -> u64 {
    noted(pid, "VmHWM:").unwrap_or(0)
}

/// The memory that a process has; none if it is gone.
pub fn kilobytes(pid: u32) -> Option<u64> {
    noted(pid, "VmRSS:")
}

fn noted(pid: u32, what: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let noted = status.lines().find_map(|line| line.strip_prefix(what))?;
    noted.trim().trim_end_matches(" kB").parse().ok()
}

/// How many files a process has open; none if it is gone.
pub fn open_files(pid: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

pub fn children(pid: u32) -> usize {
    all().filter(|&other| parent(other) == Some(pid)).count()
}

/// None if the process is gone.
pub fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // A program's name stands in brackets and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Processes that were started for a home: its path is in their environment.
pub fn that_know(home: &Path) -> Vec<u32> {
    let home = home.as_os_str().as_bytes();
    let knows = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        memchr::memmem::find(&environment, home).is_some()
    };
    all().filter(knows).collect()
}

/// Waits until no process of a home is left; says how many still are after that time.
pub fn left_over(home: &Path, patience: Duration) -> usize {
    let deadline = Instant::now() + patience;
    loop {
        let left = that_know(home).len();
        if left == 0 || Instant::now() > deadline {
            return left;
        }
        pass(Duration::from_millis(5));
    }
}

/// The one place where a bench waits for time to pass.
#[expect(
    clippy::disallowed_methods,
    reason = "a random moment is nothing that could be waited on"
)]
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_was_started_for_a_home_is_seen_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("60")
            .env("FOREWORD_HOME", dir.path())
            .spawn()
            .unwrap();
        // Other tests of this process may have children, too.
        assert!(children(std::process::id()) > 0);
        assert_eq!(that_know(dir.path()), [child.id()]);
        assert!(peak_kilobytes(child.id()) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(that_know(dir.path()), [0; 0]);
    }
}
