//! Problems with the files themselves: missing, busy, foreign, damaged,
//! newer, read-only, full. Hooks still succeed, no event is lost that can be kept, and
//! `status` shows the problem in one line.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::audit::{Audit, audit, marked};
use crate::support::{Host, Sandbox, signal, wait_until};

const SAVED: &str = r#"{"continue":true,"suppressOutput":true}"#;

/// A home with both databases and three events in them, where hooks start no worker.
fn settled() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    send(&sandbox, 0..3);
    sandbox.drain();
    sandbox.keep_workers_away();
    sandbox
}

/// Sends events with these marks; each hook must succeed.
fn send(sandbox: &Sandbox, marks: std::ops::Range<u32>) {
    let project = sandbox.project("app");
    let host = Host::new(&format!("s{}", marks.start), &project);
    for mark in marks {
        let (hook, input) = marked(&host, mark);
        let answer = if hook == "save" { SAVED } else { "" };
        assert_eq!(sandbox.run_hook(hook, &project, &input), answer);
    }
}

/// The lines of `status` that name problems.
fn problems(sandbox: &Sandbox) -> Vec<String> {
    let status = sandbox.run(&["status"]);
    let problems = status
        .lines()
        .filter_map(|line| line.strip_prefix("problem "));
    problems.map(|line| line.trim().to_owned()).collect()
}

/// The error of a command that fails, which is one line.
fn failure(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.command(arguments).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

/// Replaces a database and its log by something else.
fn replace(sandbox: &Sandbox, name: &str, bytes: &[u8]) {
    let path = |suffix: &str| sandbox.home().join(format!("{name}{suffix}"));
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(path(suffix));
    }
    std::fs::write(path(""), bytes).unwrap();
}

#[test]
fn a_missing_queue_is_made_anew_and_the_spool_bridges_the_gap() {
    let sandbox = settled();
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(sandbox.home().join(format!("queue.db{suffix}")));
    }
    send(&sandbox, 3..6);
    assert_eq!(sandbox.spooled(), 3);
    assert_eq!(
        (sandbox.log("hook.log").as_str(), problems(&sandbox)),
        ("", vec![])
    );
    assert_eq!(sandbox.status()["pending"], 3);
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..6), Audit::default());
}

#[test]
fn a_queue_that_another_keeps_locked_costs_a_moment_and_no_event() {
    let sandbox = settled();
    let other = sandbox.database("queue.db");
    other.execute_batch("begin exclusive").unwrap();
    send(&sandbox, 3..5);
    assert_eq!(sandbox.spooled(), 2);
    let log = sandbox.log("hook.log");
    assert!(
        log.lines()
            .all(|line| line.contains("queue.db: database is locked; the event was spooled")),
        "{log}"
    );
    assert_eq!(log.lines().count(), 2);
    other.execute_batch("commit").unwrap();
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..5), Audit::default());
}

#[test]
fn a_queue_full_of_garbage_keeps_nobody_from_working() {
    let sandbox = settled();
    replace(&sandbox, "queue.db", &[0x5a; 8192]);
    send(&sandbox, 3..6);
    assert_eq!(sandbox.spooled(), 3);
    let problems_found = problems(&sandbox);
    assert_eq!(problems_found.len(), 1, "{problems_found:?}");
    assert!(
        problems_found[0].starts_with("queue.db: ") && problems_found[0].contains("not a database"),
        "{problems_found:?}"
    );
    assert_eq!(sandbox.status()["pending"], 3);
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..6), Audit::default());
    let problems_found = problems(&sandbox);
    assert_eq!(problems_found.len(), 1, "{problems_found:?}");
    assert!(
        problems_found[0].contains("queue.db was damaged ("),
        "{problems_found:?}"
    );
}

#[test]
fn a_damaged_queue_loses_no_new_event() {
    let sandbox = settled();
    // The first page, with the header, stays; the tables behind it are overwritten.
    sandbox
        .database("queue.db")
        .execute_batch("pragma wal_checkpoint(truncate)")
        .unwrap();
    let mut bytes = std::fs::read(sandbox.home().join("queue.db")).unwrap();
    bytes[4096..].fill(0xa5);
    replace(&sandbox, "queue.db", &bytes);
    send(&sandbox, 3..6);
    assert_eq!(sandbox.spooled(), 3);
    assert!(
        sandbox
            .log("hook.log")
            .contains("queue.db: database disk image is malformed")
    );
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..6), Audit::default());
}

#[test]
fn a_queue_of_a_newer_program_is_left_alone() {
    let sandbox = settled();
    send(&sandbox, 3..4);
    sandbox
        .database("queue.db")
        .execute_batch("pragma user_version = 999")
        .unwrap();
    send(&sandbox, 4..6);
    assert_eq!(sandbox.spooled(), 2);
    let problems_found = problems(&sandbox);
    assert_eq!(problems_found.len(), 1, "{problems_found:?}");
    assert!(
        problems_found[0].starts_with("queue.db: ")
            && problems_found[0].contains("schema 999, this program knows "),
        "{problems_found:?}"
    );
    assert!(failure(&sandbox, &["worker", "run"]).contains("schema 999"));

    sandbox
        .database("queue.db")
        .execute_batch("pragma user_version = 100")
        .unwrap();
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..6), Audit::default());
}

#[test]
fn a_memory_of_a_newer_program_is_not_read_and_events_wait() {
    let sandbox = settled();
    let project = sandbox.project("app");
    let host = Host::new("earlier", &project);
    sandbox.run_hook("new", &project, &host.prompt("Raise the limit of parcels"));
    let edit = host.edit("src/limit.rs", "PARCELS: u8 = 6", "PARCELS: u8 = 7");
    sandbox.run_hook("save", &project, &edit);
    let reply = "`PARCELS` in `src/limit.rs` is seven, since a van holds seven. `Van::load` refuses the eighth.";
    sandbox.run_hook("summary", &project, &host.stop(reply));
    sandbox.drain();
    sandbox.keep_workers_away();
    let start = Host::new("later", &project).start("startup");
    assert_ne!(sandbox.run_hook("context", &project, &start), "");
    sandbox
        .database("memory.db")
        .execute_batch("pragma user_version = 999")
        .unwrap();
    sandbox.keep_workers_away();
    let before = sandbox.status()["pending"].as_i64().unwrap();
    assert_eq!(
        sandbox.run_hook(
            "context",
            &project,
            &Host::new("later still", &project).start("startup")
        ),
        ""
    );
    send(&sandbox, 3..6);
    assert_eq!(
        sandbox.status()["pending"],
        before + 4,
        "hooks keep queueing"
    );
    assert_eq!(sandbox.spooled(), 0);
    let problems_found = problems(&sandbox);
    assert_eq!(problems_found.len(), 1, "{problems_found:?}");
    assert!(
        problems_found[0].starts_with("memory.db: ")
            && problems_found[0].contains("schema 999, this program knows "),
        "{problems_found:?}"
    );
    assert_ne!(sandbox.status()["prompts"], 0, "what is there is counted");
    // Reading goes on: see `skew.rs`.
    for arguments in [&["worker", "run"], &["worker", "drain"]] {
        assert!(failure(&sandbox, arguments).contains("schema 999"));
    }
    let version = "select user_version from pragma_user_version";
    assert_eq!(sandbox.count("memory.db", version), 999);

    sandbox
        .database("memory.db")
        .execute_batch("pragma user_version = 5")
        .unwrap();
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..6), Audit::default());
}

#[test]
fn a_memory_full_of_garbage_says_nothing_and_loses_nothing() {
    let sandbox = settled();
    let project = sandbox.project("app");
    sandbox.run(&["backup"]);
    replace(&sandbox, "memory.db", &[0x5a; 8192]);
    let start = Host::new("later", &project).start("startup");
    assert_eq!(sandbox.run_hook("context", &project, &start), "");
    send(&sandbox, 3..6);
    assert!(problems(&sandbox)[0].starts_with("memory.db: "));
    sandbox.drain();
    let problems_found = problems(&sandbox);
    assert!(
        problems_found[0].contains("restored from backups/memory."),
        "{problems_found:?}"
    );
    assert_eq!(audit(&sandbox, 0..6), Audit::default());
}

#[test]
fn spool_files_that_cannot_be_read_are_set_aside_and_counted() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    let spool = sandbox.home().join("spool");
    send(&sandbox, 0..4);
    std::fs::write(spool.join("torn.json"), "{\"id\":\"01").unwrap();
    std::fs::write(spool.join("binary.json"), [0xff; 100]).unwrap();
    std::fs::create_dir(spool.join("folder.json")).unwrap();
    let pipe = spool.join("pipe.json");
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    std::fs::write(spool.join(".unfinished.partial"), "{").unwrap();
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..4), Audit::default());
    let mut kept: Vec<_> = std::fs::read_dir(spool.join("unreadable"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    kept.sort();
    assert_eq!(
        kept,
        ["binary.json", "folder.json", "pipe.json", "torn.json"]
    );
    let status = sandbox.run(&["status"]);
    assert!(
        status.contains("4 unreadable files in spool/unreadable"),
        "{status}"
    );
}

#[test]
fn a_spool_that_nobody_takes_in_is_full_one_day_and_a_line_says_so() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    send(&sandbox, 0..2);
    let spool = sandbox.home().join("spool");
    for number in sandbox.spooled()..foreword_core::spool::FILES_MAX {
        std::fs::File::create(spool.join(format!("old-{number}.json"))).unwrap();
    }
    send(&sandbox, 2..4);
    let log = sandbox.log("hook.log");
    assert_eq!(log.matches("20000 events are waiting").count(), 2, "{log}");
    assert_eq!(sandbox.spooled(), foreword_core::spool::FILES_MAX);
    for number in 2..foreword_core::spool::FILES_MAX {
        std::fs::remove_file(spool.join(format!("old-{number}.json"))).unwrap();
    }
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..2), Audit::default());
}

/// Makes files and folders read-only, until it is dropped.
struct ReadOnly(Vec<(PathBuf, u32)>);

impl ReadOnly {
    fn new(paths: &[PathBuf]) -> ReadOnly {
        let set = |path: &PathBuf| {
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o555)).unwrap();
            (path.clone(), mode)
        };
        ReadOnly(paths.iter().map(set).collect())
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        for (path, mode) in &self.0 {
            let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode));
        }
    }
}

fn feed(mut command: Command, project: &Path, input: &serde_json::Value) -> Output {
    command
        .env("CLAUDE_PROJECT_DIR", project)
        .stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    serde_json::to_writer(child.stdin.take().unwrap(), input).unwrap();
    child.wait_with_output().unwrap()
}

fn expect_saved(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stderr, b"", "{output:?}");
    assert_eq!(output.stdout, SAVED.as_bytes());
}

#[test]
fn a_queue_that_is_read_only_sends_events_to_the_spool() {
    let sandbox = settled();
    let project = sandbox.project("app");
    let (_, input) = marked(&Host::new("s3", &project), 3);
    let read_only = ReadOnly::new(&[sandbox.home().join("queue.db")]);
    expect_saved(&feed(sandbox.as_anyone(&["save"]), &project, &input));
    assert_eq!(sandbox.spooled(), 1);
    assert!(sandbox.log("hook.log").contains("queue.db: "));
    drop(read_only);
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..4), Audit::default());
}

#[test]
fn a_home_that_is_read_only_does_not_break_the_session() {
    let sandbox = settled();
    let project = sandbox.project("app");
    let host = Host::new("s3", &project);
    let (_, input) = marked(&host, 3);
    let mut paths = vec![sandbox.home()];
    paths.extend(sandbox.files().into_iter().map(|(path, _)| path));
    paths.push(sandbox.home().join("spool"));
    paths.retain(|path| path.exists());
    let read_only = ReadOnly::new(&paths);
    expect_saved(&feed(sandbox.as_anyone(&["save"]), &project, &input));
    let output = feed(
        sandbox.as_anyone(&["context"]),
        &project,
        &host.start("startup"),
    );
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
    drop(read_only);

    // And a data directory that cannot be made.
    let nowhere = ReadOnly::new(&[sandbox.user_home()]);
    let mut command = sandbox.as_anyone(&["save"]);
    command.env("FOREWORD_HOME", sandbox.user_home().join("not/there"));
    expect_saved(&feed(command, &project, &input));
    drop(nowhere);
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..3), Audit::default());
}

/// The program with a limit on the size of files: acts like a full disk, without a mount.
fn on_a_full_disk(sandbox: &Sandbox, blocks: u32, arguments: &[&str]) -> Command {
    sandbox.shell(
        &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""),
        arguments,
    )
}

#[test]
fn a_full_disk_breaks_no_session_and_what_was_accepted_before_is_safe() {
    let sandbox = settled();
    let project = sandbox.project("app");
    let host = Host::new("s3", &project);
    send(&sandbox, 3..5);
    let (_, input) = marked(&host, 5);
    let long = host.bash("make", &"no room for this ".repeat(500));
    for input in [&input, &long] {
        expect_saved(&feed(
            on_a_full_disk(&sandbox, 1, &["save"]),
            &project,
            input,
        ));
    }
    let log = sandbox.log("hook.log");
    assert_eq!(
        log.lines()
            .filter(|line| line.contains("an event was lost"))
            .count(),
        2,
        "{log}"
    );
    assert!(sandbox.run(&["status"]).contains("an event was lost"));
    assert_eq!(sandbox.spooled(), 0, "no half a file");

    sandbox.keep_workers_away();
    send(&sandbox, 8..10);
    sandbox.drain();
    assert_eq!(audit(&sandbox, (0..5).chain(8..10)), Audit::default());
}

#[test]
fn a_worker_that_cannot_come_up_on_a_full_disk_says_so_and_loses_nothing() {
    let sandbox = settled();
    send(&sandbox, 3..8);
    let worker = on_a_full_disk(&sandbox, 1, &["worker", "run"])
        .output()
        .unwrap();
    assert_eq!(worker.status.code(), Some(1), "{worker:?}");
    assert_eq!(sandbox.status()["pending"], 5);
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..8), Audit::default());
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn a_worker_waits_while_the_disk_is_full_and_no_event_is_blamed() {
    let sandbox = settled();
    // Ignoring SIGXFSZ makes a write fail with an error, as on a full disk.
    let mut worker = sandbox
        .shell("trap '' XFSZ; exec \"$0\" \"$@\"", &["worker", "run"])
        .spawn()
        .unwrap();
    wait_until("the worker is up", || {
        !sandbox.home().join("worker.starting").exists()
    });
    let limit = |bytes: &str| {
        let mut prlimit = Command::new("prlimit");
        prlimit.args([
            "--pid",
            &worker.id().to_string(),
            &format!("--fsize={bytes}:unlimited"),
        ]);
        assert!(prlimit.status().unwrap().success());
    };
    // Enough for its log, too little for any database.
    limit("4096");
    // With a stop among them, the worker processes them at once.
    send(&sandbox, 3..8);
    wait_until("the worker waits", || {
        sandbox.run(&["status"]).contains("; waiting 5 s")
    });
    let blamed =
        "select count(*) from events where attempts > 0 or crashes > 0 or state = 'skipped'";
    assert_eq!(sandbox.count("queue.db", blamed), 0);

    limit("unlimited");
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..8), Audit::default());
    assert_eq!(sandbox.worker_pid(), Some(worker.id()));
    signal(worker.id(), "TERM");
    assert!(worker.wait().unwrap().success());
}
