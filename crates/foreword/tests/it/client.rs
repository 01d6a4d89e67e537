//! End to end with the real host: Claude Code runs our hooks, only its model is
//! replaced. The text that an agent got is read from the requests to the model alone.
//!
//! The main test is also run with one part removed at a time,
//! and must then fail for the right reason.
//! The client comes from `scripts/client`, or from `FOREWORD_TEST_CLAUDE`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod claude;
mod conversation;
mod fill;
mod memory;
pub mod model;
mod notes;
mod recall;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Host;
use claude::Claude;
use model::Request;

const PROMPT: &str = "Make the check pass";
const REPLY: &str = "The kumquat limit in `limit.toml` is 7 now, which is what `check.sh` compares it with.\n\n\
                     Next steps:\n- cover the burst case";
/// The observation that the offline provider makes of it.
const LINE: &str = ": The kumquat limit in `limit.toml` is 7 now";

/// The model's turns in a session that breaks something and repairs it.
fn repair(app: &Path) -> Value {
    let limit = app.join("limit.toml");
    let edit = |old: &str, new: &str| json!({"tool": "Edit", "input": {"file_path": limit, "old_string": old, "new_string": new}});
    json!([
        {"tool": "Write", "input": {"file_path": limit, "content": "5\n"}},
        edit("5", "6"),
        {"tool": "Bash", "input": {"command": "sh check.sh"}},
        edit("6", "7"),
        {"tool": "Bash", "input": {"command": "sh check.sh"}},
        REPLY,
    ])
}

/// A model that always answers "OK.".
fn nothing(_app: &Path) -> Value {
    json!([])
}

/// Whether a session's first request carries the index of what `repair` did.
fn remembers(requests: &[Request]) -> Result<(), String> {
    let first = requests.first().ok_or("the model was not asked")?;
    let contexts = first.contexts();
    let index = contexts.last().ok_or("nothing was added")?;
    if !index.starts_with("<foreword-memory project=\"app\">\n") {
        return Err(format!("not an index: {index}"));
    }
    if !index.lines().any(|line| line.contains(LINE)) {
        return Err("the observation is not in the index".to_owned());
    }
    let last = index.lines().last().unwrap_or_default();
    if last != format!("Foreword session id: {}", first.session()) {
        return Err(format!("the last line is not the session id: {last}"));
    }
    Ok(())
}

/// Whether a session's first request shows nothing of Foreword or of what `repair` did.
fn knows_nothing(requests: &[Request]) -> bool {
    let traces = [
        "<foreword-memory",
        "Foreword session id",
        "kumquat",
        "burst case",
    ];
    requests.first().is_some_and(|first| {
        first.contexts().is_empty() && !traces.iter().any(|words| first.contains(words))
    })
}

#[test]
fn what_a_session_did_opens_the_next_one_there_and_nowhere_else() {
    let claude = Claude::new(repair);
    claude.ask(&claude.app, PROMPT);
    claude.sandbox.drain();
    let next = claude.ask(&claude.app, "What now?");
    assert_eq!(remembers(&next.requests), Ok(()));
    let elsewhere = claude.ask(&claude.other_app, "What now?");
    assert!(
        knows_nothing(&elsewhere.requests),
        "{:?}",
        elsewhere.requests
    );
}

#[test]
fn without_the_save_hooks_the_main_test_fails() {
    let claude = Claude::new(repair);
    claude.unhook("save");
    claude.sandbox.keep_workers_away();
    claude.ask(&claude.app, PROMPT);
    // Else the missing events would be taken from the transcript.
    std::fs::remove_dir_all(claude.config_dir().join("projects")).unwrap();
    claude.sandbox.drain();
    let next = claude.ask(&claude.app, "What now?");
    assert_eq!(
        remembers(&next.requests),
        Err("nothing was added".to_owned())
    );
}

#[test]
fn without_the_drain_the_main_test_fails() {
    let claude = Claude::new(repair);
    // Hooks start a worker, which would do the drain's work at the end of the turn.
    // They start none while one holds the lock: so one is started before the session
    // and stopped (SIGSTOP). Accepted events then wait, as behind a busy worker.
    let worker = HaltedWorker::new(&claude);
    claude.ask(&claude.app, PROMPT);
    let next = claude.ask(&claude.app, "What now?");
    assert_eq!(
        remembers(&next.requests),
        Err("nothing was added".to_owned())
    );

    // Nothing else was missing.
    drop(worker);
    claude.sandbox.drain();
    let next = claude.ask(&claude.app, "What now?");
    assert_eq!(remembers(&next.requests), Ok(()));
}

#[test]
fn without_the_context_hook_the_main_test_fails() {
    let claude = Claude::new(repair);
    claude.unhook("context");
    claude.ask(&claude.app, PROMPT);
    claude.sandbox.drain();
    let next = claude.ask(&claude.app, "What now?");
    assert_eq!(
        remembers(&next.requests),
        Err("nothing was added".to_owned())
    );
    assert_eq!(claude.sandbox.status()["observations"], 1);
}

#[test]
fn the_hooks_at_the_end_of_a_turn_and_of_a_session_add_nothing() {
    let claude = Claude::new(repair);
    let turns = repair(&claude.app);
    let run = claude.ask(&claude.app, PROMPT);
    // A Stop hook that prints is answered with another request to the model.
    assert_eq!(run.requests.len(), turns.as_array().unwrap().len());
    assert_eq!(run.reply, REPLY);
    claude.sandbox.drain();
    // The hooks did run.
    let completed = "select count(*) from sessions where state = 'completed'";
    assert_eq!(claude.sandbox.count("memory.db", completed), 1);
    assert_eq!(claude.sandbox.status()["summaries"], 1);
}

#[test]
fn a_resumed_session_is_told_of_itself_and_a_fork_only_its_id() {
    let claude = Claude::new(repair);
    let first = claude.ask(&claude.app, PROMPT);
    claude.ask(&claude.app, "Name the colours");
    claude.sandbox.drain();

    let resume = ["--resume", &first.session, "Go on"];
    let resumed = claude.run(&mut claude.command(&claude.app, &resume));
    assert_eq!(resumed.session, first.session);
    assert_eq!(remembers(&resumed.requests), Ok(()));
    assert!(!resumed.requests[0].contains("Name the colours"));

    let fork = ["--resume", &first.session, "--fork-session", "Go elsewhere"];
    let forked = claude.run(&mut claude.command(&claude.app, &fork));
    assert_ne!(forked.session, first.session);
    assert_eq!(
        forked.requests[0].contexts().last().unwrap(),
        &format!("Foreword session id: {}", forked.session)
    );
}

#[test]
fn a_cleared_session_is_told_what_came_before() {
    let claude = Claude::new(repair);
    let mut talk = claude.talk(&claude.app);
    let before = talk.say(PROMPT);
    claude.sandbox.drain();
    talk.say("/clear");
    let after = talk.say("What now?");
    talk.end();
    assert_ne!(after[0].session(), before[0].session());
    assert_eq!(remembers(&after), Ok(()));
}

#[test]
fn a_compacted_session_is_told_of_itself() {
    let claude = Claude::new(repair);
    let mut talk = claude.talk(&claude.app);
    let before = talk.say(PROMPT);
    claude.sandbox.drain();
    talk.say("/compact");
    let after = talk.say("What now?");
    talk.end();
    assert_eq!(after[0].session(), before[0].session());
    assert_eq!(remembers(&after), Ok(()));
}

#[test]
fn switched_off_it_writes_nothing_and_adds_nothing() {
    let claude = Claude::new(nothing);
    remember(&claude);
    // Only the count of what was not kept changes.
    let files = || {
        let mut files = files(&claude.sandbox.home());
        files.retain(|path, _| !path.ends_with("not-kept"));
        files
    };
    let before = files();
    let mut off = claude.command(&claude.app, &["What now?"]);
    let run = claude.run(off.env("FOREWORD_OFF", "1"));
    assert!(knows_nothing(&run.requests), "{:?}", run.requests);
    assert!(files() == before);

    // Switched on again, the same prompt gets the index.
    let run = claude.ask(&claude.app, "What now?");
    assert_eq!(remembers(&run.requests), Ok(()));
}

#[test]
fn a_data_directory_that_cannot_be_written_costs_the_session_nothing() {
    let claude = Claude::new(repair);
    let turns = repair(&claude.app);
    // Permissions do not stop root; a file in place of the folder does.
    let file = claude.sandbox.user_home().join("file");
    std::fs::write(&file, "mine").unwrap();
    let before = files(&claude.sandbox.home());
    let mut command = claude.command(&claude.app, &[PROMPT]);
    let run = claude.run(command.env("FOREWORD_HOME", file.join("home")));
    assert_eq!(run.requests.len(), turns.as_array().unwrap().len());
    assert_eq!(run.reply, REPLY);
    assert!(knows_nothing(&run.requests), "{:?}", run.requests);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
    // The default data directory is not used instead.
    assert_eq!(files(&claude.sandbox.home()), before);
}

/// Stores the events of `repair` through the hooks, without the client.
fn remember(claude: &Claude) {
    let host = Host::new("s1", &claude.app);
    let send = |hook, input: &Value| claude.sandbox.run_hook(hook, &claude.app, input);
    send("new", &host.prompt(PROMPT));
    let error = "Exit code 3\nerror: the kumquat limit is 6, not 7";
    send("save", &host.bash_failed("sh check.sh", error));
    send("save", &host.edit("limit.toml", "6", "7"));
    send("save", &host.bash("sh check.sh", ""));
    send("summary", &host.stop(REPLY));
    send("cleanup", &host.end());
    claude.sandbox.drain();
    claude.sandbox.run(&["worker", "stop"]);
}

/// The names and contents of all files in a folder; a socket has no content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
        }
    }
    found
}

/// A worker that is stopped (SIGSTOP) after its start, until this is dropped.
struct HaltedWorker {
    pid: u64,
}

impl HaltedWorker {
    fn new(claude: &Claude) -> HaltedWorker {
        claude.sandbox.run(&["worker", "start"]);
        // It has the lock; once it answers, it has opened its databases too.
        claude.sandbox.drain();
        let pid = claude.sandbox.status()["worker"]["pid"].as_u64().unwrap();
        let worker = HaltedWorker { pid };
        worker.signal("STOP");
        worker
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.pid);
        let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(status.success(), "{kill}");
    }
}

impl Drop for HaltedWorker {
    fn drop(&mut self) {
        self.signal("CONT");
    }
}
