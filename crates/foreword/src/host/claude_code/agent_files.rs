//! Deletes the files that the client writes into the user's configuration folder when it runs as the
//! memory agent.
//!
//! It has one folder of transcripts for each folder that it was started in. The memory agent's folder is
//! used for nothing else, so all transcripts there are ours. While it runs it has files in `sessions`,
//! which stay if it is killed; these name its folder.

use std::path::{Path, PathBuf};

use foreword_core::files::{self, SMALL_MAX};
use serde_json::Value;

use super::{transcripts, user_settings};
use crate::home::Home;
use crate::platform;

/// Whether the client has transcripts of our conversations.
pub fn has_transcripts(home: &Home) -> bool {
    transcripts(&home.agent()).is_some_and(|folder| folder.exists())
}

/// Deletes the client's transcripts of our conversations, except those with an id in `kept`, and what
/// clients that were killed have left.
pub fn sweep(home: &Home, kept: &[&str]) {
    remove_transcripts(home, |id| !kept.contains(&id));
    remove_sessions(home);
}

/// Deletes the transcripts whose id is selected.
pub fn remove_transcripts(home: &Home, is_selected: impl Fn(&str) -> bool) {
    let Some(folder) = transcripts(&home.agent()) else {
        return;
    };
    for path in entries(&folder) {
        let id = path.file_stem().and_then(|it| it.to_str());
        if id.is_some_and(&is_selected) {
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }
    // This succeeds only if the folder is empty.
    let _ = std::fs::remove_dir(folder);
}

/// Deletes `PID.json` and `PID.*.key` of memory agents that no longer run.
pub fn remove_sessions(home: &Home) {
    let (Ok(agent), Ok(settings)) = (home.agent().canonicalize(), user_settings()) else {
        return;
    };
    remove_sessions_in(&settings.with_file_name("sessions"), &agent);
}

fn remove_sessions_in(folder: &Path, agent: &Path) {
    let is_over = |path: &PathBuf| {
        let text = files::read_text(path, SMALL_MAX).unwrap_or_default();
        let session: Value = serde_json::from_str(&text).unwrap_or_default();
        let pid = session["pid"]
            .as_u64()
            .and_then(|it| u32::try_from(it).ok());
        let is_ours = session["cwd"]
            .as_str()
            .is_some_and(|it| Path::new(it) == agent);
        is_ours && pid.is_some_and(|pid| !platform::is_running(pid))
    };
    let all = entries(folder);
    let of_sessions = all
        .iter()
        .filter(|it| it.extension().is_some_and(|it| it == "json"));
    for over in of_sessions.filter(|it| is_over(it)) {
        let prefix = over.with_extension("");
        let prefix = format!("{}.", prefix.display());
        let its_own = |it: &&PathBuf| it.to_string_lossy().starts_with(&prefix);
        for path in all.iter().filter(its_own) {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|it| it.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn only_what_memory_agents_that_are_gone_left_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let (gone, alive) = (gone.id(), std::process::id());
        let agent = Path::new("/home/me/.foreword/agent");
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let session = |pid: u32, folder: &str| {
            let text = format!(r#"{{"pid":{pid},"cwd":"{folder}"}}"#);
            write(&format!("{pid}.json"), &text);
            write(&format!("{pid}.b262c6.key"), "key");
        };
        session(gone, "/home/me/.foreword/agent");
        session(alive, "/home/me/.foreword/agent");
        session(u32::MAX - 7, "/home/me/.foreword/agent/below");
        write("9.json", "not JSON");
        remove_sessions_in(dir.path(), agent);
        let left: BTreeSet<_> = entries(dir.path()).into_iter().collect();
        let user = u32::MAX - 7;
        let expected = [
            format!("{alive}.json"),
            format!("{alive}.b262c6.key"),
            format!("{user}.json"),
            format!("{user}.b262c6.key"),
            "9.json".to_owned(),
        ];
        let expected: BTreeSet<_> = expected.iter().map(|it| dir.path().join(it)).collect();
        assert_eq!(left, expected);
    }
}
