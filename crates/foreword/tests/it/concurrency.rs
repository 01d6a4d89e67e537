//! Many hooks at once: a busy host runs one per parallel tool call, and several
//! hosts share a home. None fails, each event is stored once, one worker runs.

use std::process::Output;
use std::sync::Barrier;

use serde_json::Value;

use crate::audit::{Audit, audit, marked};
use crate::support::{Host, Sandbox, wait_until};

const SAVED: &str = r#"{"continue":true,"suppressOutput":true}"#;

/// Runs a function in `count` threads that start at the same moment.
fn at_once(threads: u32, work: impl Fn(u32) + Sync) {
    let barrier = Barrier::new(threads as usize);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(thread);
            });
        }
    });
}

fn expect_answer(hook: &str, output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{hook}: {output:?}");
    assert_eq!(output.stderr, b"", "{hook}");
    let answer = if hook == "save" { SAVED } else { "" };
    assert_eq!(output.stdout, answer.as_bytes(), "{hook}");
}

/// Runs hooks in several threads at once; each thread is a session and runs one hook after another.
fn storm(sandbox: &Sandbox, threads: u32, each: u32) {
    let project = sandbox.project("app");
    at_once(threads, |thread| {
        let host = Host::new(&format!("s{thread}"), &project);
        for number in 0..each {
            let (hook, input) = marked(&host, thread * each + number);
            let output = sandbox.hook(hook, &project, input.to_string().as_bytes());
            expect_answer(hook, &output);
        }
    });
    sandbox.drain();
    assert_eq!(audit(sandbox, 0..threads * each), Audit::default());
    let events = sandbox.count("memory.db", "select count(*) from events");
    assert_eq!(events, i64::from(threads * each));
    assert!(!sandbox.log("hook.log").contains("lost"));
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn two_thousand_events_from_thirty_two_hooks_at_once_are_all_stored_once() {
    let sandbox = Sandbox::new();
    sandbox.drain();
    storm(&sandbox, 32, 63);
}

#[test]
fn thirty_two_first_hooks_of_a_fresh_home_are_all_stored_once() {
    storm(&Sandbox::new(), 32, 1);
}

#[test]
fn thirty_two_hooks_that_find_no_worker_to_start_fill_the_spool() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    storm(&sandbox, 32, 4);
}

#[test]
fn the_same_told_twice_is_one_event() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    let inputs: [(&str, Value); 4] = [
        ("new", host.prompt("Add refunds")),
        ("save", host.bash("make", "done")),
        ("save", host.bash_failed("make check", "Exit code 2")),
        ("summary", host.stop("Added.")),
    ];
    // At once on a fresh home, at once again with a worker, and after the drain.
    for round in 1..=3 {
        at_once(8, |thread| {
            let (hook, input) = &inputs[thread as usize % inputs.len()];
            let output = sandbox.hook(hook, &project, input.to_string().as_bytes());
            expect_answer(hook, &output);
        });
        sandbox.drain();
        let events = sandbox.count("memory.db", "select count(*) from events");
        assert_eq!(events, 4, "round {round}");
        assert_eq!(audit(&sandbox, []), Audit::default(), "round {round}");
    }
    assert_eq!(sandbox.status()["prompts"], 1);
}

#[test]
fn thirty_cold_launchers_at_once_leave_one_worker() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    at_once(30, |thread| {
        let host = Host::new(&format!("s{thread}"), &project);
        sandbox.run_hook("new", &project, &host.prompt("Hello"));
    });
    // All that were started exist by now; all but one find the lock taken and end.
    wait_until("one worker, and it holds the lock", || {
        let workers = sandbox.background_workers();
        workers.len() == 1 && sandbox.worker_pid() == Some(workers[0])
    });
    sandbox.drain();
    assert_eq!(
        sandbox.count("memory.db", "select count(*) from prompts"),
        30
    );
}

#[test]
fn people_who_start_workers_by_hand_at_once_get_one_too() {
    let sandbox = Sandbox::new();
    at_once(10, |_| {
        sandbox.run(&["worker", "start"]);
    });
    wait_until("one worker, and it holds the lock", || {
        let workers = sandbox.background_workers();
        workers.len() == 1 && sandbox.worker_pid() == Some(workers[0])
    });
}
