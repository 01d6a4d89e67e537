//! Backups, and databases that are damaged while Foreword runs: hooks still succeed, a worker
//! recovers the data, and one line reports what was lost.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::audit::{Audit, audit, counts_of_marks, marked};
use crate::support::{Host, Sandbox, signal, wait_until};

/// Sends events with these marks, with output enough that they fill some pages.
fn send(sandbox: &Sandbox, marks: std::ops::Range<u32>) {
    sandbox.keep_workers_away();
    let project = sandbox.project("app");
    let host = Host::new(&format!("s{}", marks.start), &project);
    for mark in marks {
        let (hook, mut input) = marked(&host, mark);
        if hook == "save" {
            let output = format!("mark-{mark}- {}", "more ".repeat(400));
            input["tool_response"]["stdout"] = output.into();
        }
        sandbox.run_hook(hook, &project, &input);
    }
}

/// Some events in a backup and some that came after it.
fn with_backup() -> Sandbox {
    let sandbox = Sandbox::new();
    send(&sandbox, 0..24);
    sandbox.drain();
    sandbox.run(&["backup"]);
    send(&sandbox, 24..48);
    sandbox.drain();
    sandbox.keep_workers_away();
    sandbox
}

fn backups(sandbox: &Sandbox) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(sandbox.home().join("backups")) else {
        return Vec::new();
    };
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Changes the bytes of a database that no process has open.
fn change(sandbox: &Sandbox, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let sql = "pragma wal_checkpoint(truncate)";
    let database = sandbox.database(name);
    database.query_row(sql, [], |_| Ok(())).unwrap();
    drop(database);
    let path = sandbox.home().join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// The page on which a mark's event is.
fn page_of(bytes: &[u8], mark: u32) -> usize {
    page_with(bytes, &format!("mark-{mark}- more"))
}

fn page_with(bytes: &[u8], words: &str) -> usize {
    let at = bytes
        .windows(words.len())
        .position(|it| it == words.as_bytes());
    at.unwrap() / 4096
}

fn worker_log(sandbox: &Sandbox) -> String {
    let log = sandbox.log("worker.log");
    let mut lines = log.lines().filter(|line| line.contains(" was damaged ("));
    let line = lines.next().unwrap_or_default().to_owned();
    assert_eq!(lines.next(), None, "one line: {log}");
    line
}

/// The number that stands before a phrase in a text.
fn number(line: &str, words: &str) -> u64 {
    let line = line.replace(" 1 row ", " 1 rows ");
    let (before, _) = line.split_once(words).unwrap_or_else(|| panic!("{line}"));
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn an_overwritten_page_costs_the_events_on_it_and_a_line_counts_them() {
    let sandbox = with_backup();
    let before = counts_of_marks(&sandbox.database("memory.db"));
    assert_eq!(before.len(), 48);
    change(&sandbox, "memory.db", |bytes| {
        let page = page_of(bytes, 35);
        bytes[page * 4096..][..4096].fill(0xa5);
    });
    let check = sandbox.command(&["check", "--json"]).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(found["findings"][0]["id"], "memory-damaged");
    assert_eq!(found["findings"][0]["cure"], "foreword restore");

    // Only the events on the damaged page are lost.
    let printed = sandbox.run(&["restore"]);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    let after = counts_of_marks(&sandbox.database("memory.db"));
    let lost = before.len() - after.len();
    assert!((1..=3).contains(&lost), "{lost}: {printed}");
    assert_eq!(number(&printed, " rows known to be lost"), lost as u64);
    assert!(number(&printed, " rows recovered") > 24, "{printed}");
    assert_eq!(sandbox.run(&["check"]), "11 checks, nothing found\n");

    send(&sandbox, 48..56);
    sandbox.drain();
    let marks = after.into_keys().chain(48..56);
    assert_eq!(audit(&sandbox, marks).lost, [0; 0]);
}

#[test]
fn a_worker_recovers_a_truncated_memory_by_itself() {
    let sandbox = with_backup();
    change(&sandbox, "memory.db", |bytes| {
        bytes.truncate(bytes.len() / 8192 * 4096);
    });
    // Hooks succeed.
    send(&sandbox, 48..52);
    sandbox.drain();
    let line = worker_log(&sandbox);
    let kept = counts_of_marks(&sandbox.database("memory.db"));
    let lost = (0..52).filter(|mark| !kept.contains_key(mark)).count();
    assert!((0..24).chain(48..52).all(|mark| kept.contains_key(&mark)));
    assert!(
        lost as u64 <= number(&line, " rows known to be lost"),
        "{lost}: {line}"
    );
    assert_eq!(sandbox.run(&["check"]), "11 checks, nothing found\n");
    let status = sandbox.run(&["status"]);
    assert!(status.contains("memory.db was damaged ("), "{status}");
    // The next session shows a notice, the one after does not.
    let project = sandbox.project("app");
    let start = |session| {
        let start = Host::new(session, &project).start("startup");
        sandbox.run_hook("context", &project, &start)
    };
    assert!(start("next").contains(r#""systemMessage":"Foreword: memory.db was damaged ("#));
    assert!(!start("after").contains("systemMessage"));
}

#[test]
fn a_log_that_is_gone_costs_what_was_in_it_and_nothing_else() {
    let sandbox = with_backup();
    // A reader that stays keeps the log from being moved into the file.
    let reader = sandbox.database("memory.db");
    reader
        .execute_batch("begin; select count(*) from items")
        .unwrap();
    send(&sandbox, 48..56);
    sandbox.drain();
    let log = sandbox.home().join("memory.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    // The database without its log, as if the log had been deleted by hand.
    let copies: Vec<_> = ["memory.db"]
        .map(|name| {
            let path = sandbox.home().join(name);
            (path.clone(), std::fs::read(path).unwrap())
        })
        .into();
    drop(reader);
    for (path, bytes) in copies {
        std::fs::write(path, bytes).unwrap();
    }
    let _ = std::fs::remove_file(&log);
    let _ = std::fs::remove_file(sandbox.home().join("memory.db-shm"));

    send(&sandbox, 56..60);
    sandbox.drain();
    let kept: BTreeSet<u32> = counts_of_marks(&sandbox.database("memory.db"))
        .into_keys()
        .collect();
    assert!(
        (0..48).chain(56..60).all(|mark| kept.contains(&mark)),
        "{kept:?}"
    );
    assert_eq!(sandbox.run(&["check"]), "11 checks, nothing found\n");
}

#[test]
fn a_damaged_queue_gives_up_what_can_be_read_of_it() {
    let sandbox = with_backup();
    send(&sandbox, 48..72);
    let queue = sandbox.database("queue.db");
    let sql = "select '{\"id\":\"' || id from events where event like '%mark-60-%'";
    let begin: String = queue.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(queue);
    change(&sandbox, "queue.db", |bytes| {
        let page = page_with(bytes, &begin);
        bytes[page * 4096..][..4096].fill(0xa5);
    });
    sandbox.drain();
    let line = worker_log(&sandbox);
    let kept = counts_of_marks(&sandbox.database("memory.db"));
    let lost = (0..72).filter(|mark| !kept.contains_key(mark)).count();
    assert!((1..=8).contains(&lost), "{lost}: {line}");
    assert_eq!(number(&line, " rows known"), lost as u64, "{line}");
}

#[test]
fn an_idle_worker_makes_one_backup_and_none_while_nothing_changes() {
    let mut sandbox = Sandbox::new();
    sandbox.set("FOREWORD_WORKER_IDLE_SECONDS", "0");
    send(&sandbox, 0..4);
    sandbox.drain();
    assert_eq!(backups(&sandbox), [""; 0], "a drain is in a hurry");
    sandbox.run(&["worker", "run"]);
    let made = backups(&sandbox);
    assert_eq!(made.len(), 1, "{made:?}");
    // An old one, and nothing new: there is nothing to copy.
    let folder = sandbox.home().join("backups");
    let old = folder.join("memory.2020-01-02T000000Z.db");
    std::fs::rename(folder.join(&made[0]), &old).unwrap();
    sandbox.run(&["worker", "run"]);
    assert_eq!(backups(&sandbox), ["memory.2020-01-02T000000Z.db"]);
    send(&sandbox, 4..8);
    sandbox.drain();
    sandbox.run(&["worker", "run"]);
    assert_eq!(backups(&sandbox).len(), 2);

    // Switched off.
    sandbox.set("FOREWORD_BACKUP_DAILY", "0");
    sandbox.set("FOREWORD_BACKUP_WEEKLY", "0");
    std::fs::remove_dir_all(&folder).unwrap();
    sandbox.run(&["worker", "run"]);
    assert_eq!(backups(&sandbox), [""; 0]);
}

#[test]
fn an_idle_worker_that_finds_damage_recovers_it() {
    let mut sandbox = with_backup();
    sandbox.set("FOREWORD_WORKER_IDLE_SECONDS", "0");
    std::fs::remove_dir_all(sandbox.home().join("backups")).unwrap();
    change(&sandbox, "memory.db", |bytes| {
        let page = page_of(bytes, 35);
        bytes[page * 4096..][..4096].fill(0xa5);
    });
    sandbox.run(&["worker", "run"]);
    assert!(worker_log(&sandbox).starts_with("20"));
    assert_eq!(sandbox.run(&["check"]), "11 checks, nothing found\n");
    assert_eq!(backups(&sandbox).len(), 1);
}

#[test]
fn a_restore_keeps_the_present_aside_and_can_be_taken_back() {
    let sandbox = with_backup();
    let before = sandbox.status();
    // A dry run counts what would change; without a yes nothing changes.
    let planned = sandbox.run(&["restore", "--dry-run"]);
    assert!(
        planned.ends_with(" that came after it would be gone\n"),
        "{planned}"
    );
    let asked = sandbox.command(&["restore"]).output().unwrap();
    assert_eq!(asked.status.code(), Some(1));
    let error = String::from_utf8_lossy(&asked.stderr);
    assert!(error.contains("--yes goes back without asking"), "{error}");
    assert_eq!(sandbox.status()["prompts"], before["prompts"]);
    let printed = sandbox.run(&["restore", "--yes"]);
    let (plan, printed) = printed.split_once('\n').unwrap();
    assert_eq!(plan, planned.trim_end());
    let number = |text: &str| {
        text.split(", ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(number(plan), number(printed));
    assert!(printed.contains(" gone that came after it\n"), "{printed}");
    assert_ne!(sandbox.status()["prompts"], before["prompts"]);
    let aside = printed.trim_end().rsplit(' ').next().unwrap();
    let aside: PathBuf = sandbox.home().join(aside);
    sandbox.run(&["restore", "--yes", aside.to_str().unwrap()]);
    assert_eq!(sandbox.status()["prompts"], before["prompts"]);
    assert_eq!(audit(&sandbox, 0..48), Audit::default());

    std::fs::write(sandbox.home().join("junk.db"), [7; 5000]).unwrap();
    // The queue has a number of its schema that a memory once had, too.
    for other in ["junk.db", "queue.db"] {
        let other = sandbox.home().join(other);
        let mut restore = sandbox.command(&["restore", other.to_str().unwrap()]);
        let refused = restore.output().unwrap();
        assert_eq!(refused.status.code(), Some(1));
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(error.contains("is not a sound backup"), "{error}");
        assert_eq!(audit(&sandbox, 0..48), Audit::default());
    }
}

#[test]
fn a_restore_gives_no_number_a_second_time() {
    let sandbox = with_backup();
    let last = || sandbox.count("memory.db", "select max(id) from items");
    let before = last();
    sandbox.run(&["restore", "--yes"]);
    assert!(last() < before);
    send(&sandbox, 48..56);
    sandbox.drain();
    let new = format!("select count(*) from items where id <= {before}");
    let kept = sandbox.count("memory.db", &new);
    assert!(last() > before && kept < before, "{kept} of {before}");
    let given = sandbox.count("memory.db", "select count(*) from items");
    assert_eq!(last() - before, given - kept, "what is new comes after");
}

#[test]
fn backups_at_once_are_all_made() {
    let sandbox = with_backup();
    let made: Vec<_> = (0..4)
        .map(|_| sandbox.command(&["backup"]).spawn().unwrap())
        .collect();
    for backup in made {
        let output = backup.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let left = backups(&sandbox);
    assert!(left.iter().all(|it| it.ends_with(".db")), "{left:?}");
}

#[test]
fn check_names_what_is_out_of_step_and_its_cure_works() {
    let sandbox = with_backup();
    // A turn of which something is kept.
    let project = sandbox.project("app");
    let host = Host::new("kept", &project);
    let failed = host.bash_failed("sh check.sh", "Exit code 3\nerror: the limit is 6, not 7");
    for (hook, input) in [
        ("new", host.prompt("Make the check pass")),
        ("save", failed),
        ("save", host.edit("limit.txt", "6", "7")),
        ("save", host.bash("sh check.sh", "ok")),
        ("summary", host.stop("The limit is 7 now.")),
    ] {
        sandbox.run_hook(hook, &project, &input);
    }
    sandbox.drain();
    sandbox.keep_workers_away();
    let memory = sandbox.database("memory.db");
    memory
        .execute_batch(
            "pragma foreign_keys = off;
             delete from texts where rowid = (select min(rowid) from texts);
             delete from processed_events where event_id = (select min(id) from events);",
        )
        .unwrap();
    drop(memory);
    send(&sandbox, 48..49);
    let queue = sandbox.database("queue.db");
    queue
        .execute_batch("update events set state = 'claimed'")
        .unwrap();
    drop(queue);
    let ids = || -> Vec<(String, String)> {
        let output = sandbox.command(&["check", "--json"]).output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        let findings = found["findings"].as_array().unwrap().iter();
        findings
            .map(|it| (text(it, "id"), text(it, "cure")))
            .collect()
    };
    let pair = |id: &str, cure: &str| (id.to_owned(), cure.to_owned());
    assert_eq!(
        ids(),
        [
            pair("text-missing", "foreword vacuum"),
            pair("event-unmarked", "foreword vacuum"),
            pair("claim-left", "foreword worker drain"),
        ]
    );
    sandbox.run(&["vacuum"]);
    sandbox.drain();
    assert_eq!(ids(), []);
    assert_eq!(audit(&sandbox, 0..49), Audit::default());
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn twenty_writers_a_long_reader_a_backup_and_a_vacuum_get_along() {
    let sandbox = with_backup();
    let reader = sandbox.database("memory.db");
    reader
        .execute_batch("begin; select count(*) from items")
        .unwrap();
    let project = sandbox.project("app");
    std::thread::scope(|scope| {
        for writer in 0..20 {
            let (sandbox, project) = (&sandbox, &project);
            scope.spawn(move || {
                let host = Host::new(&format!("w{writer}"), project);
                for number in 0..10 {
                    let (hook, input) = marked(&host, 100 + writer * 10 + number);
                    sandbox.run_hook(hook, project, &input);
                }
            });
        }
        for command in ["vacuum", "backup", "vacuum"] {
            sandbox.run(&[command]);
        }
    });
    sandbox.drain();
    drop(reader);
    assert_eq!(audit(&sandbox, (0..48).chain(100..300)), Audit::default());
    let log = sandbox.log("hook.log");
    assert!(!log.contains("lost"), "{log}");
}

#[test]
fn a_backup_on_a_full_disk_fails_in_one_line_and_leaves_nothing_behind() {
    let sandbox = with_backup();
    let had = backups(&sandbox);
    let line = "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"";
    let output = sandbox.shell(line, &["backup"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.starts_with("foreword: no backup was made: "),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
    let left: Vec<_> = backups(&sandbox);
    assert_eq!(
        left.iter().filter(|it| it.ends_with(".db")).count(),
        had.len()
    );
    sandbox.run(&["backup"]);
    assert!(backups(&sandbox).iter().all(|it| it.ends_with(".db")));
    assert_eq!(audit(&sandbox, 0..48), Audit::default());
}

#[test]
fn a_clock_that_jumps_ahead_and_back_makes_nothing_old() {
    let sandbox = with_backup();
    // Makes all stored events a year older; retention is counted from the last event.
    let year = 365 * 24 * 3_600_000_i64;
    let ahead =
        format!("update events set at = at - {year}; update processed_events set at = at - {year}");
    sandbox.database("memory.db").execute_batch(&ahead).unwrap();
    let mut worker = sandbox.command(&["worker", "run"]).spawn().unwrap();
    wait_until("the worker is up", || {
        !sandbox.home().join("worker.starting").exists()
    });
    signal(worker.id(), "TERM");
    worker.wait().unwrap();
    assert_eq!(
        sandbox.count("memory.db", "select count(*) from events"),
        48
    );
}

#[test]
fn a_worker_whose_database_is_deleted_or_replaced_loses_nothing_that_comes_after() {
    let ways = [
        "rm memory.db",
        "rm memory.db memory.db-wal memory.db-shm",
        "rm memory.db-wal",
        "cp backups/memory.2*.db copy && mv copy memory.db",
        "cp memory.db copy && cat memory.db-wal > copy-wal && mv copy memory.db && mv copy-wal memory.db-wal",
        "rm queue.db",
        "rm queue.db queue.db-wal queue.db-shm",
        "rm memory.db* queue.db*",
    ];
    for way in ways {
        let sandbox = with_backup();
        sandbox.run(&["worker", "start"]);
        send(&sandbox, 48..56);
        sandbox.drain();
        let worker = sandbox.worker_pid().unwrap();
        // Half of the events come before, so that some wait in the queue.
        send(&sandbox, 56..60);
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-ec", way]).current_dir(sandbox.home());
        assert!(shell.status().unwrap().success(), "{way}");
        send(&sandbox, 60..76);
        sandbox.drain();
        // What was in a memory that somebody deleted is gone; a queue's events are taken over.
        let kept = if way.starts_with("rm queue") { 0 } else { 60 };
        assert_eq!(audit(&sandbox, kept..76), Audit::default(), "{way}");
        assert_eq!(
            sandbox.worker_pid(),
            Some(worker),
            "{way}: the worker goes on"
        );
        let problems = sandbox.status()["problems"].to_string();
        assert!(
            problems.contains("was deleted or replaced"),
            "{way}: {problems}"
        );
        assert!(!problems.contains("was damaged"), "{way}: {problems}");
        sandbox.run(&["worker", "stop"]);
        assert_eq!(audit(&sandbox, kept..76), Audit::default(), "{way}, later");
    }
}

#[test]
fn a_hostile_backup_is_restored_without_what_is_not_ours() {
    let sandbox = with_backup();
    let backup = backups(&sandbox)[0].clone();
    let backup = sandbox.home().join("backups").join(backup);
    let name = format!("backups/{}", backup.file_name().unwrap().to_str().unwrap());
    sandbox
        .database(&name)
        .execute_batch(
            "create trigger evil after insert on events begin delete from prompts; end;
             create view told as select load_extension('/tmp/evil.so');",
        )
        .unwrap();
    let printed = sandbox.run(&["restore", "--yes", backup.to_str().unwrap()]);
    assert!(
        printed.ends_with("left out, because it is not Foreword's: trigger evil, view told\n"),
        "{printed}"
    );
    assert_eq!(sandbox.run(&["check"]), "11 checks, nothing found\n");
    send(&sandbox, 48..56);
    sandbox.drain();
    let kept = (0..24).chain(48..56);
    assert_eq!(audit(&sandbox, kept), Audit::default());

    // A foreign part in the memory itself is found, and removed with no loss.
    sandbox.run(&["worker", "stop"]);
    let evil = "create trigger evil after insert on events begin delete from prompts; end";
    sandbox.database("memory.db").execute_batch(evil).unwrap();
    let check = sandbox.command(&["check", "--json"]).output().unwrap();
    let found: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(found["findings"][0]["id"], "memory-schema", "{found}");
    send(&sandbox, 56..64);
    sandbox.drain();
    assert_eq!(audit(&sandbox, (0..24).chain(48..64)), Audit::default());
    assert_eq!(sandbox.run(&["check"]), "11 checks, nothing found\n");

    // A pipe is no backup, and nobody waits for what it might say.
    let pipe = sandbox.home().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let refused = sandbox
        .command(&["restore", pipe.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
}
