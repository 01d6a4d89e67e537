//! Which processes run: one worker whatever files were left behind, none that cannot
//! start, and processes of others are left alone.
//!
//! Related tests: thirty cold launchers in `concurrency.rs`; a worker that
//! ends when idle, or was killed, in `worker.rs`; the agent of a killed worker in
//! `agent/calls.rs`; a server whose client has ended in `mcp.rs`; versions in `skew.rs`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;

use crate::audit::{Audit, audit, marked};
use crate::support::{Host, Leashed, Sandbox, signal, wait_until};

/// Sends events with these marks; each hook must succeed.
fn send(sandbox: &Sandbox, marks: std::ops::Range<u32>) {
    let project = sandbox.project("app");
    let host = Host::new(&format!("s{}", marks.start), &project);
    for mark in marks {
        let (hook, input) = marked(&host, mark);
        sandbox.run_hook(hook, &project, &input);
    }
}

/// A process that is not Foreword's.
fn bystander(marks: &[(&str, &OsStr)]) -> Leashed {
    let mut sleep = Command::new("sleep");
    sleep.arg("600").env_clear();
    sleep.env("PATH", std::env::var_os("PATH").unwrap());
    Leashed(sleep.envs(marks.iter().copied()).spawn().unwrap())
}

fn lives(process: &mut Leashed) -> bool {
    process.0.try_wait().unwrap().is_none()
}

fn is_up(sandbox: &Sandbox) -> bool {
    sandbox.worker_pid().is_some() && !sandbox.home().join("worker.starting").exists()
}

#[test]
fn what_a_dead_worker_left_names_nobody_who_is_signalled_or_believed() {
    let mut bystander = bystander(&[]);
    let pid = bystander.0.id();
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.home()).unwrap();
    // The lock's file with a number that is somebody else's by now, and a socket that nobody reads.
    std::fs::write(sandbox.home().join("worker.lock"), format!("{pid}\n")).unwrap();
    std::fs::write(sandbox.home().join("worker.pid"), format!("{pid}\n")).unwrap();
    drop(std::os::unix::net::UnixDatagram::bind(sandbox.home().join("worker.sock")).unwrap());
    assert_eq!(sandbox.status()["worker"]["running"], false);
    assert_eq!(sandbox.run(&["worker", "stop"]), "no worker is running\n");

    send(&sandbox, 0..3);
    wait_until("a worker is up", || is_up(&sandbox));
    let worker = sandbox.worker_pid().unwrap();
    assert_ne!(worker, pid);
    sandbox.drain();
    assert_eq!(sandbox.run(&["worker", "stop"]), "stopped\n");
    assert_eq!(audit(&sandbox, 0..3), Audit::default());
    assert!(lives(&mut bystander));
}

#[test]
fn a_worker_ends_no_process_that_only_shares_its_home() {
    // Processes like a user's shell, which has the home but not the variable of Foreword's agent,
    // and like an agent of another home.
    let sandbox = Sandbox::new();
    let (home, elsewhere) = (sandbox.home(), sandbox.home().join("elsewhere"));
    let with = |home: &Path, mark: &str| {
        bystander(&[
            ("FOREWORD_HOME", home.as_os_str()),
            ("FOREWORD_AGENT", mark.as_ref()),
        ])
    };
    let (mut shell, mut other) = (with(&home, "0"), with(&elsewhere, "1"));
    let mut left = with(&home, "1");
    send(&sandbox, 0..1);
    sandbox.drain();
    wait_until("what an agent left is ended", || !lives(&mut left));
    assert!(lives(&mut shell) && lives(&mut other));
}

#[test]
fn a_halted_worker_keeps_no_hook_waiting_and_is_pointed_out() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    let mut worker = Leashed(sandbox.command(&["worker", "run"]).spawn().unwrap());
    let pid = worker.0.id();
    wait_until("it is up", || is_up(&sandbox));
    signal(pid, "STOP");
    // More wake-ups than its socket can hold.
    send(&sandbox, 0..200);
    assert_eq!(sandbox.worker_pid(), Some(pid), "nobody took its place");
    assert_eq!(sandbox.background_workers(), [0; 0]);
    let status = sandbox.run(&["status"]);
    let advice = format!("`kill -CONT {pid}` continues it");
    assert!(status.contains(&advice), "{status}");
    assert_eq!(sandbox.status()["pending"], 200);
    assert_eq!(sandbox.log("hook.log"), "");
    let drain = sandbox.command(&["worker", "drain"]).output().unwrap();
    assert_eq!(drain.status.code(), Some(1), "and does not wait for it");
    assert!(
        String::from_utf8_lossy(&drain.stderr).contains(&advice),
        "{drain:?}"
    );

    signal(pid, "CONT");
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..200), Audit::default());
    assert!(!sandbox.run(&["status"]).contains("halted"));
    signal(pid, "TERM");
    worker.0.wait().unwrap();
}

#[test]
fn an_idle_worker_sleeps() {
    let mut sandbox = Sandbox::new();
    sandbox.set("FOREWORD_WORKER_IDLE_SECONDS", "3600");
    sandbox.keep_workers_away();
    let mut worker = Leashed(sandbox.command(&["worker", "run"]).spawn().unwrap());
    let pid = worker.0.id();
    wait_until("it is up", || is_up(&sandbox));
    send(&sandbox, 0..8);
    sandbox.drain();
    // How often it was woken.
    let woken = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|it| it.starts_with("voluntary_ctxt_switches"));
        line.unwrap().to_owned()
    };
    let look_at_it = || drop(sandbox.run(&["status"]));
    wait_until("it is through with its work", || {
        let before = woken();
        look_at_it();
        woken() == before
    });
    let before = woken();
    (0..20).for_each(|_| look_at_it());
    assert_eq!(woken(), before);
    signal(pid, "TERM");
    worker.0.wait().unwrap();
}

#[test]
fn thirty_hooks_at_once_that_find_no_worker_can_come_up_start_few() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.home().join("memory.db")).unwrap();
    let project = sandbox.project("app");
    let barrier = Barrier::new(30);
    std::thread::scope(|scope| {
        for number in 0..30 {
            let (sandbox, project, barrier) = (&sandbox, &project, &barrier);
            scope.spawn(move || {
                let host = Host::new(&format!("s{number}"), project);
                barrier.wait();
                sandbox.run_hook("new", project, &host.prompt("Hello"));
            });
        }
    });
    wait_until("all are gone", || sandbox.background_workers().is_empty());
    let starts = sandbox
        .log("worker.log")
        .matches("the worker could not go on")
        .count();
    assert!((1..=10).contains(&starts), "{starts} workers were started");
    std::fs::remove_dir(sandbox.home().join("memory.db")).unwrap();
    sandbox.drain();
    assert_eq!(
        sandbox.count("memory.db", "select count(*) from prompts"),
        30
    );
}

#[test]
fn a_hook_whose_host_was_killed_ends_by_itself() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    // The host has ended, but another process keeps the hook's input open and writes nothing.
    let mut host = sandbox
        .shell("exec 3<&0; \"$0\" \"$@\" <&3 & wait", &["save"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("host and hook run", || sandbox.processes().len() == 2);
    signal(host.id(), "KILL");
    let open = host.stdin.take();
    host.wait().unwrap();
    wait_until("nothing runs", || sandbox.processes().is_empty());
    drop(open);
}
