//! Two versions at work in one home: after an upgrade, after going back, and while a
//! session runs.
//!
//! `testdata/databases` has what the program of each schema wrote. A kill during a migration
//! is met in core's `db.rs`, a newer queue and a worker that must wait in `storage.rs`.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::audit::{Audit, audit, marked};
use crate::support::{Host, Sandbox, tree, wait_until};

/// What is said in every saved memory, by a word that finds it.
const SAID: [(&str, &str, &str); 6] = [
    ("expiry", "prompt", "Fix the expiry test of tokens"),
    ("assertion", "observation", "now <= expires"),
    ("refunds", "summary", "Fix the expiry test of tokens"),
    ("kumquat", "prompt", "Raise the kumquat limit"),
    ("limit.rs", "observation", "limit"),
    ("seven", "summary", "limit"),
];

fn saved() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/databases")
}

/// The schemas that there is a saved database of, oldest first.
fn schemas() -> Vec<i64> {
    let names = std::fs::read_dir(saved())
        .unwrap()
        .map(|it| it.unwrap().file_name());
    let mut schemas: Vec<_> = names.filter_map(|it| it.to_str()?.parse().ok()).collect();
    schemas.sort_unstable();
    schemas
}

/// A home as the program with this schema left it.
fn left_by(schema: i64) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    std::fs::create_dir_all(sandbox.home().join("spool")).unwrap();
    let file = |name: &str| saved().join(schema.to_string()).join(name);
    for name in ["memory", "queue"] {
        let sql = std::fs::read_to_string(file(&format!("{name}.sql"))).unwrap();
        let database = sandbox.database(&format!("{name}.db"));
        database.execute_batch(&sql).unwrap();
        database.pragma_update(None, "journal_mode", "wal").unwrap();
    }
    let event = std::fs::read(file("spool.json")).unwrap();
    let id = serde_json::from_slice::<Value>(&event).unwrap()["id"].clone();
    let name = format!("spool/{}.json", id.as_str().unwrap());
    std::fs::write(sandbox.home().join(name), event).unwrap();
    sandbox
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

/// Everything that is in every saved memory is found, and shown whole.
fn assert_all_is_found(sandbox: &Sandbox) {
    for (words, kind, title) in SAID {
        let found = sandbox.run(&["search", words, "--all-projects", "--format", "json"]);
        let found: Vec<Value> = serde_json::from_str(&found).unwrap();
        let is_it =
            |hit: &&Value| hit["kind"] == kind && hit["title"].as_str().unwrap().contains(title);
        let hit = found
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{words}, {kind}: {found:#?}"));
        assert_eq!(hit["project"], "pay");
        let shown = sandbox.run(&["show", &hit["id"].to_string(), "--format", "json"]);
        assert!(shown.contains(title), "{shown}");
    }
}

fn copy_of_the_program(sandbox: &Sandbox, name: &str) -> PathBuf {
    let copy = sandbox.user_home().join(name);
    std::fs::copy(env!("CARGO_BIN_EXE_foreword"), &copy).unwrap();
    copy
}

#[test]
fn several_who_come_first_after_an_upgrade_all_find_everything() {
    let sandbox = left_by(1);
    let everywhere = ["search", "the", "--all-projects"];
    let at_once: Vec<_> = (0..4)
        .map(|_| sandbox.command(&everywhere).spawn().unwrap())
        .chain([sandbox.command(&["worker", "drain"]).spawn().unwrap()])
        .collect();
    for one in at_once {
        let output = one.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(schema_of(&sandbox, "memory.db"), present());
    sandbox.drain();
    assert_all_is_found(&sandbox);
}

#[test]
fn a_kill_in_the_middle_of_any_migration_costs_nothing() {
    for schema in schemas().into_iter().filter(|it| *it < present()) {
        for point in ["migration:after-backup", "migration:before-commit"] {
            let sandbox = left_by(schema);
            sandbox.keep_workers_away();
            let mut drain = sandbox.command(&["worker", "drain"]);
            let killed = drain.env("FOREWORD_FAULT", point).status().unwrap();
            assert_eq!(killed.signal(), Some(9), "{schema} {point}");
            assert_eq!(schema_of(&sandbox, "memory.db"), schema);
            sandbox.drain();
            assert_eq!(schema_of(&sandbox, "memory.db"), present());
            assert_all_is_found(&sandbox);
            let check = sandbox.run(&["check"]);
            assert!(check.contains("nothing found"), "{schema} {point}: {check}");
        }
    }
}

#[test]
fn there_is_a_saved_database_of_every_schema() {
    assert_eq!(schemas(), (1..=present()).collect::<Vec<_>>());
}

#[test]
fn what_an_older_program_left_is_brought_up_to_date_and_finished() {
    let present = present();
    for schema in schemas() {
        let sandbox = left_by(schema);
        let before = sandbox.count("memory.db", "select count(*) from items");
        let waiting = sandbox.status()["pending"].clone();
        assert_eq!(waiting, 3, "two in the queue, one in the spool");

        sandbox.drain();
        assert_eq!(schema_of(&sandbox, "memory.db"), present);
        assert_all_is_found(&sandbox);
        let check = sandbox.run(&["check"]);
        assert!(check.contains("nothing found"), "{schema}: {check}");
        assert_eq!(audit(&sandbox, []), Audit::default(), "{schema}");
        let third = "select count(*) from events where host_session_id = 'third'";
        assert_eq!(sandbox.count("memory.db", third), 3, "{schema}");
        let items = sandbox.count("memory.db", "select count(*) from items");
        assert!(
            items > before,
            "{schema}: the question in the queue is an item too"
        );

        // The first copy is the memory as the older program had it.
        let copies = (schema + 1..=present).map(|it| format!("backups/memory.before-{it}.db"));
        for (copy, version) in copies.zip(schema..) {
            assert_eq!(schema_of(&sandbox, &copy), version, "{schema}: {copy}");
            let items = sandbox.count(&copy, "select count(*) from items");
            assert_eq!(items, before, "{schema}: {copy}");
        }
    }
}

#[test]
fn a_person_who_looks_first_after_an_upgrade_finds_everything_too() {
    for schema in schemas() {
        let sandbox = left_by(schema);
        std::fs::create_dir_all(sandbox.home().join("backups")).unwrap();
        // One that otherwise only looks.
        sandbox.run(&["receipts", "--all-projects"]);
        assert_all_is_found(&sandbox);
        assert_eq!(sandbox.status()["pending"], 3, "looking derives nothing");
        for (path, (mode, _)) in tree(&sandbox.home().join("backups")) {
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
    }
}

#[test]
fn a_session_that_starts_on_an_older_memory_gets_nothing_and_its_events_are_kept() {
    let oldest = schemas()[0];
    let sandbox = left_by(oldest);
    let project = sandbox.project("app");
    let host = Host::new("fourth", &project);
    assert_eq!(
        sandbox.told("context", &project, &host.start("startup")),
        ""
    );
    let (hook, input) = marked(&host, 1);
    sandbox.told(hook, &project, &input);
    assert_eq!(
        schema_of(&sandbox, "memory.db"),
        oldest,
        "a hook never migrates"
    );
    sandbox.drain();
    assert_eq!(audit(&sandbox, [1]), Audit::default());
}

#[test]
fn a_newer_memory_is_only_read_and_each_command_says_so_in_one_line() {
    let sandbox = left_by(present());
    sandbox.drain();
    let project = sandbox.project("app");
    // As a newer program might leave it: with more in it than we know.
    let newer = present() + 1;
    sandbox
        .database("memory.db")
        .execute_batch(&format!(
            "alter table observations add column colour text not null default 'white';
             create table colours (name text);
             pragma user_version = {newer}"
        ))
        .unwrap();
    assert_all_is_found(&sandbox);
    let output = sandbox
        .command(&["search", "kumquat", "--all-projects"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let home = sandbox.home();
    assert_eq!(
        said,
        format!(
            "foreword: {} has schema {newer}, this program knows {}: a newer Foreword wrote it; update this one; \
             until then it is only read\n",
            home.join("memory.db").display(),
            present()
        )
    );

    // Hooks go on and wait; whoever would write is refused.
    sandbox.keep_workers_away();
    let host = Host::new("s0", &project);
    for mark in 0..4 {
        let (hook, input) = marked(&host, mark);
        sandbox.told(hook, &project, &input);
    }
    for arguments in [
        &["worker", "drain"][..],
        &["vacuum"],
        &["projects", "rename", "pay", "till"],
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

    // The newer program is back. (It is this one, told that it knows the schema.)
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
    let tell = |marks: std::ops::Range<u32>| {
        for mark in marks {
            let (hook, input) = marked(&host, mark);
            sandbox.told(hook, &project, &input);
        }
    };
    tell(0..1);
    wait_until("the first has failed", || failed() == 1);
    // Nine starts later the pause is minutes long.
    sandbox.keep_workers_away();
    tell(1..30);
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
    let tell = |mark| {
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
    tell(0);
    wait_until("a worker is up", || {
        sandbox.worker_pid().is_some() && !sandbox.home().join("worker.starting").exists()
    });
    let old = sandbox.worker_pid();
    assert!(runs(old));

    std::fs::rename(copy_of_the_program(&sandbox, "foreword.new"), &program).unwrap();
    // It is woken, ends, and starts the new one for what waits.
    tell(1);
    wait_until("the new one is up", || {
        sandbox.worker_pid() != old && runs(sandbox.worker_pid())
    });
    let new = sandbox.worker_pid();
    for mark in 2..12 {
        tell(mark);
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
        sandbox.told(hook, &project, &input);
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
