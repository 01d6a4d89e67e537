//! Two versions of the program in one home: after an upgrade, after going back, and while a
//! session runs.
//!
//! `testdata/databases/unreleased` has the databases of the last program before the first release.
//! Core's `db.rs` and `store.rs` test migrations and kills during one, `storage.rs` a newer queue
//! and a worker that must wait.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::audit::{Audit, audit, marked};
use crate::support::{Host, Sandbox, tree, wait_until};

/// A home as the last program before the first release left it: two sessions in the memory, two
/// events of a third in the queue and one in the spool.
fn unreleased() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    std::fs::create_dir_all(sandbox.home().join("spool")).unwrap();
    let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/databases/unreleased");
    for name in ["memory", "queue"] {
        let sql = std::fs::read_to_string(saved.join(format!("{name}.sql"))).unwrap();
        let database = sandbox.database(&format!("{name}.db"));
        database.pragma_update(None, "journal_mode", "wal").unwrap();
        database.execute_batch(&sql).unwrap();
    }
    let event = std::fs::read(saved.join("spool.json")).unwrap();
    let id = serde_json::from_slice::<Value>(&event).unwrap()["id"].clone();
    let name = format!("spool/{}.json", id.as_str().unwrap());
    std::fs::write(sandbox.home().join(name), event).unwrap();
    sandbox
}

/// The names of the files that were set aside, each with its rows of a table.
fn set_aside(sandbox: &Sandbox) -> Vec<(String, i64)> {
    let entries = std::fs::read_dir(sandbox.home()).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    // A write-ahead log is moved with its database.
    let is_one = |it: &String| it.contains(".unreleased-") && it.ends_with('Z');
    let mut names: Vec<_> = names.filter(is_one).collect();
    names.sort();
    let rows = |name: &String| {
        let table = if name.starts_with("memory") {
            "items"
        } else {
            "events"
        };
        sandbox.count(name, &format!("select count(*) from {table}"))
    };
    names.iter().map(|it| (it.clone(), rows(it))).collect()
}

/// Both databases are kept whole under their new names, without other files.
fn assert_both_are_kept(sandbox: &Sandbox) {
    let aside = set_aside(sandbox);
    let [(memory, items), (queue, events)] = aside.as_slice() else {
        panic!("{aside:?}");
    };
    assert!(memory.starts_with("memory.db.unreleased-20"), "{memory}");
    assert!(queue.starts_with("queue.db.unreleased-20"), "{queue}");
    assert_eq!((*items, *events), (6, 2));
}

fn schema_of(sandbox: &Sandbox, database: &str) -> i64 {
    sandbox.count(database, "select user_version from pragma_user_version")
}

/// The schema of the present program.
fn present() -> i64 {
    let sandbox = Sandbox::new();
    sandbox.drain();
    schema_of(&sandbox, "memory.db")
}

fn copy_of_the_program(sandbox: &Sandbox, name: &str) -> PathBuf {
    let copy = sandbox.user_home().join(name);
    std::fs::copy(env!("CARGO_BIN_EXE_foreword"), &copy).unwrap();
    copy
}

#[test]
fn what_an_unreleased_program_wrote_is_set_aside_and_said_once() {
    let sandbox = unreleased();
    let project = sandbox.project("app");
    let host = Host::new("fourth", &project);
    let (hook, input) = marked(&host, 1);
    sandbox.run_hook(hook, &project, &input);
    assert_eq!(
        schema_of(&sandbox, "memory.db"),
        6,
        "a hook sets nothing aside"
    );
    assert_eq!(sandbox.spooled(), 2);

    sandbox.drain();
    assert_eq!(schema_of(&sandbox, "memory.db"), present());
    assert_both_are_kept(&sandbox);
    // An event in the spool is taken in, whichever program wrote it.
    assert_eq!(audit(&sandbox, [1]), Audit::default());
    let taken = "select count(*) from events where event like '%persimmon%'";
    assert_eq!(sandbox.count("memory.db", taken), 1);

    let [(memory, _), (queue, _)] = set_aside(&sandbox).try_into().unwrap();
    let problems = sandbox.status()["problems"].to_string();
    assert!(
        problems.contains(&memory) && problems.contains(&queue),
        "{problems}"
    );
    let start = |session| {
        let start = Host::new(session, &project).start("startup");
        sandbox.run_hook("context", &project, &start)
    };
    let first = start("fifth");
    assert!(
        first.contains("before the first release") && first.contains(&memory),
        "{first}"
    );
    assert!(!start("sixth").contains("before the first release"));
}

#[test]
fn several_who_come_first_after_the_first_release_set_it_aside_once() {
    let sandbox = unreleased();
    let everywhere = ["search", "the", "--all-projects"];
    let at_once: Vec<_> = (0..4)
        .map(|_| sandbox.command(&everywhere).spawn().unwrap())
        .chain([sandbox.command(&["worker", "drain"]).spawn().unwrap()])
        .collect();
    for one in at_once {
        let output = one.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_both_are_kept(&sandbox);
    sandbox.drain();
    assert_eq!(audit(&sandbox, []), Audit::default());
    for (path, (mode, _)) in tree(&sandbox.home()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "unreleased.json" {
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}

#[test]
fn a_kill_while_files_are_set_aside_costs_nothing() {
    let sandbox = unreleased();
    for passing in ["unreleased:after-record", "unreleased:after-record:2"] {
        let mut drain = sandbox.command(&["worker", "drain"]);
        let killed = drain.env("FOREWORD_FAULT", passing).status().unwrap();
        assert_eq!(killed.signal(), Some(9), "{passing}");
    }
    sandbox.drain();
    assert_both_are_kept(&sandbox);
    let problems = sandbox.status()["problems"].to_string();
    assert_eq!(problems.matches(".unreleased-").count(), 2, "{problems}");
}

/// A process that holds the worker's lock, and finishes its work when it gets SIGTERM.
const OLDER_WORKER: &str = "
import fcntl, signal, sqlite3, sys
lock = open('worker.lock', 'w')
fcntl.lockf(lock, fcntl.LOCK_EX)
def end(*_):
    memory = sqlite3.connect('memory.db')
    memory.execute(\"insert into projects (name, created_at) values ('finished', 1)\")
    memory.commit()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
while True:
    signal.pause()
";

#[test]
fn a_worker_of_the_older_program_finishes_before_its_files_are_set_aside() {
    let sandbox = unreleased();
    let mut worker = Command::new("python3")
        .args(["-c", OLDER_WORKER])
        .current_dir(sandbox.home())
        .spawn()
        .unwrap();
    wait_until("it has the lock", || {
        sandbox.worker_pid() == Some(worker.id())
    });
    sandbox.run(&["search", "the", "--all-projects"]);
    assert!(worker.wait().unwrap().success());
    assert_both_are_kept(&sandbox);
    let finished = "select count(*) from projects where name = 'finished'";
    assert_eq!(sandbox.count(&set_aside(&sandbox)[0].0, finished), 1);
}

#[test]
fn a_newer_memory_is_only_read_and_each_command_says_so_in_one_line() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("first", &project);
    sandbox.keep_workers_away();
    sandbox.run_hook("new", &project, &host.prompt("Raise the kumquat limit"));
    sandbox.run_hook(
        "save",
        &project,
        &host.edit(
            "src/limit.rs",
            "MAX_KUMQUATS: u8 = 6",
            "MAX_KUMQUATS: u8 = 7",
        ),
    );
    let reply = "`MAX_KUMQUATS` in `src/limit.rs` is seven, since a crate holds seven. `Crate::fill` \
                 refuses the eighth.";
    sandbox.run_hook("summary", &project, &host.stop(reply));
    sandbox.drain();
    // A newer program may leave columns and tables that this one does not know.
    let newer = present() + 1;
    sandbox
        .database("memory.db")
        .execute_batch(&format!(
            "alter table observations add column colour text not null default 'white';
             create table colours (name text);
             pragma user_version = {newer}"
        ))
        .unwrap();
    for (words, kind) in [
        ("kumquat", "prompt"),
        ("limit.rs", "observation"),
        ("kumquat", "summary"),
    ] {
        let search = ["search", words, "--all-projects", "--format", "json"];
        let found = sandbox.run(&[&search[..], &["--kind", kind]].concat());
        let found: Vec<Value> = serde_json::from_str(&found).unwrap();
        sandbox.run(&["show", &found[0]["id"].to_string(), "--format", "json"]);
    }
    let output = sandbox
        .command(&["search", "kumquat", "--all-projects"])
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    let home = sandbox.home();
    assert_eq!(
        printed,
        format!(
            "foreword: {} has schema {newer}, this program knows {}: a newer Foreword wrote it; update this one; \
             until then it is only read\n",
            home.join("memory.db").display(),
            present()
        )
    );

    // Hooks accept events, which wait; a command that would write fails.
    sandbox.keep_workers_away();
    let host = Host::new("s0", &project);
    for mark in 0..4 {
        let (hook, input) = marked(&host, mark);
        sandbox.run_hook(hook, &project, &input);
    }
    for arguments in [
        &["worker", "drain"][..],
        &["vacuum"],
        &["projects", "rename", "app", "till"],
    ] {
        let output = sandbox.command(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), error.lines().count()),
            (Some(1), 1),
            "{arguments:?}: {error}"
        );
        assert!(
            error.contains("a newer Foreword wrote it; update this one"),
            "{error}"
        );
    }
    assert_eq!(sandbox.status()["pending"], 4);
    assert_eq!(schema_of(&sandbox, "memory.db"), newer);

    // Stands for the newer program's return: the schema's number is set back, and this program goes on.
    sandbox
        .database("memory.db")
        .pragma_update(None, "user_version", present())
        .unwrap();
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..4), Audit::default());
}

#[test]
fn hooks_start_no_worker_again_and_again_on_a_newer_memory() {
    let sandbox = Sandbox::new();
    sandbox.drain();
    sandbox
        .database("memory.db")
        .pragma_update(None, "user_version", present() + 1)
        .unwrap();
    let project = sandbox.project("app");
    let host = Host::new("s0", &project);
    let failed = || {
        sandbox
            .log("worker.log")
            .matches("the worker could not go on")
            .count()
    };
    let send = |marks: std::ops::Range<u32>| {
        for mark in marks {
            let (hook, input) = marked(&host, mark);
            sandbox.run_hook(hook, &project, &input);
        }
    };
    send(0..1);
    wait_until("the first has failed", || failed() == 1);
    // Nine starts later the pause is minutes long.
    sandbox.keep_workers_away();
    send(1..30);
    wait_until("none is left", || sandbox.background_workers().is_empty());
    assert_eq!(failed(), 1);

    sandbox
        .database("memory.db")
        .pragma_update(None, "user_version", present())
        .unwrap();
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..30), Audit::default());
}

#[test]
fn a_worker_gives_way_when_its_program_is_replaced_and_the_next_stays() {
    let sandbox = Sandbox::new();
    let program = copy_of_the_program(&sandbox, "foreword");
    let project = sandbox.project("app");
    let host = Host::new("s0", &project);
    let send = |mark| {
        let (hook, input) = marked(&host, mark);
        let mut command = Command::new(&program);
        sandbox.isolate(&mut command);
        command
            .arg(hook)
            .env("CLAUDE_PROJECT_DIR", &project)
            .stdin(std::process::Stdio::piped());
        let output = crate::support::feed(command, input.to_string().as_bytes());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    let runs = |pid: Option<u32>| {
        let exe = pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).ok());
        exe.is_some_and(|exe| exe == program)
    };
    send(0);
    wait_until("a worker is up", || {
        sandbox.worker_pid().is_some() && !sandbox.home().join("worker.starting").exists()
    });
    let old = sandbox.worker_pid();
    assert!(runs(old));

    std::fs::rename(copy_of_the_program(&sandbox, "foreword.new"), &program).unwrap();
    // The old worker is woken, ends, and starts the new one for the waiting events.
    send(1);
    wait_until("the new one is up", || {
        sandbox.worker_pid() != old && runs(sandbox.worker_pid())
    });
    let new = sandbox.worker_pid();
    for mark in 2..12 {
        send(mark);
    }
    let drained = Command::new(&program)
        .args(["worker", "drain"])
        .env_clear()
        .env("FOREWORD_HOME", sandbox.home())
        .output()
        .unwrap();
    assert!(drained.status.success(), "{drained:?}");
    assert_eq!(audit(&sandbox, 0..12), Audit::default());
    assert_eq!(
        (sandbox.worker_pid(), sandbox.background_workers()),
        (new, new.into_iter().collect())
    );
}

#[test]
fn a_worker_whose_program_was_removed_finishes_its_work() {
    let sandbox = Sandbox::new();
    let program = copy_of_the_program(&sandbox, "foreword");
    let project = sandbox.project("app");
    sandbox.keep_workers_away();
    let host = Host::new("s0", &project);
    for mark in 0..3 {
        let (hook, input) = marked(&host, mark);
        sandbox.run_hook(hook, &project, &input);
    }
    let mut worker = Command::new(&program);
    sandbox.isolate(&mut worker);
    worker
        .args(["worker", "run"])
        .env("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "0")
        .env("FOREWORD_WORKER_IDLE_SECONDS", "1");
    let worker = worker.spawn().unwrap();
    std::fs::remove_file(&program).unwrap();
    let output = worker.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "nothing left to do\n"
    );
    assert_eq!(audit(&sandbox, 0..3), Audit::default());
}
