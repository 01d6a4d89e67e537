//! The worker's life: one per home, started by any hook or command that needs it, ended when idle,
//! and without the environment of the session that started it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};

use crate::audit::{Audit, audit, marked};
use crate::support::{Host, Sandbox, environment_of, signal, wait_until};

/// A worker in the foreground that has started.
fn running(sandbox: &Sandbox, settings: &[(&str, &str)]) -> Child {
    sandbox.keep_workers_away();
    let mut command = sandbox.command(&["worker", "run"]);
    let child = command.envs(settings.iter().copied()).spawn().unwrap();
    wait_until("the worker is up", || is_up(sandbox, child.id()));
    child
}

/// Whether a worker has started: it has the lock and has removed the stamp, its last step before work.
fn is_up(sandbox: &Sandbox, pid: u32) -> bool {
    sandbox.worker_pid() == Some(pid) && !sandbox.home().join("worker.starting").exists()
}

fn printed(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// Sends events with these marks.
fn send(sandbox: &Sandbox, marks: std::ops::Range<u32>) {
    let project = sandbox.project("app");
    let host = Host::new(&format!("s{}", marks.start), &project);
    for mark in marks {
        let (hook, input) = marked(&host, mark);
        sandbox.run_hook(hook, &project, &input);
    }
}

#[test]
fn a_second_worker_says_who_the_first_is_and_leaves() {
    let sandbox = Sandbox::new();
    let first = running(&sandbox, &[]);
    let said_by_second = sandbox.run(&["worker", "run"]);
    assert_eq!(
        said_by_second,
        format!("another worker is running (pid {})\n", first.id())
    );
    signal(first.id(), "TERM");
    assert_eq!(printed(first), (Some(0), "ended as asked\n".into()));
}

#[test]
fn start_status_and_stop_say_what_is_so() {
    let sandbox = Sandbox::new();
    let run = |action| sandbox.run(&["worker", action]);
    assert_eq!(run("status"), "not running; the next hook starts it\n");
    assert_eq!(run("stop"), "no worker is running\n");
    let started = run("start");
    let pid = sandbox.worker_pid().unwrap();
    assert_eq!(started, format!("started (pid {pid})\n"));
    assert_eq!(
        run("start"),
        format!("a worker is running already (pid {pid})\n")
    );
    assert_eq!(run("status"), format!("running (pid {pid})\n"));
    let worker = &sandbox.status()["worker"];
    assert_eq!(worker, &serde_json::json!({"running": true, "pid": pid}));
    assert_eq!(run("stop"), "stopped\n");
    assert_eq!(sandbox.worker_pid(), None);
    let worker = &sandbox.status()["worker"];
    assert_eq!(worker, &serde_json::json!({"running": false, "pid": null}));
}

#[test]
fn an_ending_worker_finishes_its_batch_and_keeps_no_claim() {
    for name in ["TERM", "INT"] {
        let sandbox = Sandbox::new();
        sandbox.keep_workers_away();
        // Sessions of their own, so that there are as many batches.
        for mark in 0..40 {
            send(&sandbox, mark..mark + 1);
        }
        let worker = sandbox
            .command(&["worker", "run"])
            .env("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "0")
            .spawn()
            .unwrap();
        wait_until("it is in the middle of its work", || {
            is_up(&sandbox, worker.id())
                && sandbox.count("memory.db", "select count(*) from events") > 0
        });
        signal(worker.id(), name);
        assert_eq!(printed(worker), (Some(0), "ended as asked\n".into()));
        assert_eq!(sandbox.worker_pid(), None);
        let claimed = "select count(*) from events where state = 'claimed' or crashes > 0";
        assert_eq!(sandbox.count("queue.db", claimed), 0);
        sandbox.drain();
        assert_eq!(audit(&sandbox, 0..40), Audit::default());
    }
}

#[test]
fn a_worker_with_nothing_to_do_ends_and_the_next_hook_starts_one() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    for round in 1..=2 {
        let input = host.stop(&format!("Done {round}."));
        let mut hook = sandbox.hook_command("summary", &project);
        hook.env("FOREWORD_WORKER_IDLE_SECONDS", "0");
        let mut hook = hook.spawn().unwrap();
        serde_json::to_writer(hook.stdin.take().unwrap(), &input).unwrap();
        assert!(hook.wait().unwrap().success());
        wait_until("the event is processed and nobody is left", || {
            sandbox.home().join("memory.db").exists()
                && sandbox.worker_pid().is_none()
                && sandbox.background_workers().is_empty()
                && sandbox.status()["pending"] == 0
        });
        let events = sandbox.count("memory.db", "select count(*) from events");
        assert_eq!(events, round);
    }
    let worker = sandbox
        .command(&["worker", "run"])
        .env("FOREWORD_WORKER_IDLE_SECONDS", "1")
        .spawn()
        .unwrap();
    assert_eq!(printed(worker), (Some(0), "nothing left to do\n".into()));
}

#[test]
fn what_a_killed_worker_had_claimed_is_freed_by_the_next() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    send(&sandbox, 0..6);
    let dead = sandbox
        .command(&["worker", "drain"])
        .env("FOREWORD_FAULT", "claim:after-commit")
        .output()
        .unwrap();
    assert_eq!(dead.status.signal(), Some(9));
    let claimed = "select count(*) from events where state = 'claimed'";
    assert_eq!(sandbox.count("queue.db", claimed), 6);
    assert_eq!(sandbox.status()["pending"], 6);

    let next = running(&sandbox, &[]);
    assert_eq!(sandbox.count("queue.db", claimed), 0);
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..6), Audit::default());
    signal(next.id(), "TERM");
    assert_eq!(printed(next).0, Some(0));
}

#[test]
fn a_worker_that_cannot_come_up_is_not_started_by_every_hook() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.home().join("memory.db")).unwrap();
    let stamp = sandbox.home().join("worker.starting");
    send(&sandbox, 0..1);
    wait_until("the worker's word why", || {
        sandbox
            .log("worker.log")
            .contains("could not open memory.db")
    });
    assert!(stamp.exists(), "a failed start is remembered");

    // After many failures the pause is long.
    sandbox.keep_workers_away();
    let before = std::fs::read(&stamp).unwrap();
    send(&sandbox, 1..20);
    assert_eq!(
        std::fs::read(&stamp).unwrap(),
        before,
        "a start would be stamped"
    );

    // A command does not wait for the pause: it shows the error.
    for action in ["run", "drain", "start"] {
        let output = sandbox.command(&["worker", action]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{action}");
        assert!(
            error.contains("could not open memory.db"),
            "{action}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }

    assert_eq!(sandbox.worker_pid(), None);

    // After the repair a worker started by hand processes everything.
    std::fs::remove_dir(sandbox.home().join("memory.db")).unwrap();
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..20), Audit::default());
    assert!(
        !stamp.exists(),
        "a worker that came up forgets the failures"
    );
}

#[test]
fn a_killed_worker_that_had_come_up_is_started_again_at_once() {
    let sandbox = Sandbox::new();
    let mut killed = Vec::new();
    for mark in 0..4 {
        send(&sandbox, mark..mark + 1);
        wait_until("a worker is up", || {
            sandbox.worker_pid().is_some_and(|pid| is_up(&sandbox, pid))
        });
        let pid = sandbox.worker_pid().unwrap();
        assert!(!killed.contains(&pid));
        signal(pid, "KILL");
        wait_until("it is dead", || sandbox.worker_pid().is_none());
        killed.push(pid);
    }
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..4), Audit::default());
}

#[test]
fn a_background_worker_has_nothing_of_the_session_that_started_it() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let inherited = sandbox.user_home().join("inherited");
    let line = format!("exec 9>'{}'; exec \"$0\" \"$@\"", inherited.display());
    let mut hook = sandbox.shell(&line, &["new"]);
    hook.current_dir(&project)
        .env("CLAUDE_PROJECT_DIR", &project)
        .env("LC_ALL", "C.UTF-8")
        .env("HTTPS_PROXY", "http://proxy.invalid:3128")
        .env("FOREWORD_PROVIDER", "offline");
    let left_behind = [
        "CLAUDECODE",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PID",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "LD_PRELOAD_NOT_REALLY",
    ];
    for name in left_behind {
        hook.env(name, "from-the-session");
    }
    hook.stdin(std::process::Stdio::piped());
    let mut hook = hook.spawn().unwrap();
    let input = Host::new("s1", &project).prompt("Hello");
    serde_json::to_writer(hook.stdin.take().unwrap(), &input).unwrap();
    let hook_pid = hook.id();
    assert!(hook.wait().unwrap().success());
    wait_until("the worker is up", || {
        sandbox.worker_pid().is_some_and(|pid| is_up(&sandbox, pid))
    });
    let pid = sandbox.worker_pid().unwrap();
    let proc = |file: &str| std::path::PathBuf::from(format!("/proc/{pid}/{file}"));

    let environ = std::fs::read(proc("environ")).unwrap();
    let mut names: Vec<_> = environment_of(&environ)
        .filter_map(|pair| std::str::from_utf8(pair).unwrap().split_once('='))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    let expected = [
        "FOREWORD_HOME",
        "FOREWORD_MODEL_HUB",
        "FOREWORD_PROVIDER",
        "FOREWORD_SHOW_WITHIN_MS",
        "HOME",
        "HTTPS_PROXY",
        "LC_ALL",
        "PATH",
    ];
    assert_eq!(names, expected);

    assert_eq!(std::fs::read_link(proc("cwd")).unwrap().to_str(), Some("/"));
    let stat = std::fs::read_to_string(proc("stat")).unwrap();
    // After the name in brackets: state, parent, group, session, terminal.
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let (parent, group, session, terminal) = (fields[1], fields[2], fields[3], fields[4]);
    let own = pid.to_string();
    assert_eq!(
        (group, session, terminal),
        (own.as_str(), own.as_str(), "0")
    );
    assert_ne!(parent, hook_pid.to_string());

    let mut descriptors = Vec::new();
    for entry in std::fs::read_dir(proc("fd")).unwrap() {
        let entry = entry.unwrap();
        let number: u32 = entry.file_name().to_str().unwrap().parse().unwrap();
        let target = std::fs::read_link(entry.path()).unwrap();
        let target = target.to_str().unwrap().to_owned();
        if number <= 2 {
            assert_eq!(target, "/dev/null");
        } else {
            descriptors.push(target);
        }
    }
    let home = sandbox.home();
    let own = |target: &String| {
        target.starts_with(home.to_str().unwrap())
            || target.starts_with("anon_inode:")
            || target.starts_with("socket:")
    };
    assert!(descriptors.iter().all(own), "{descriptors:?}");
    assert!(!descriptors.is_empty());
    assert!(
        inherited.exists(),
        "the hook did have a descriptor to leave behind"
    );
    let status = std::fs::read_to_string(proc("status")).unwrap();
    assert!(
        status.lines().any(|line| line == "Umask:\t0077"),
        "{status}"
    );
}

#[test]
fn a_drain_is_done_by_the_running_worker_or_by_itself() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    send(&sandbox, 0..6);
    sandbox.drain();
    assert_eq!(audit(&sandbox, 0..6), Audit::default());
    assert_eq!(sandbox.worker_pid(), None);

    // This event would wait for more events; a drain processes it at once.
    let worker = running(
        &sandbox,
        &[("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "100000")],
    );
    send(&sandbox, 8..14);
    sandbox.drain();
    assert_eq!(audit(&sandbox, (0..6).chain(8..14)), Audit::default());
    assert_eq!(sandbox.worker_pid(), Some(worker.id()));
    signal(worker.id(), "TERM");
    assert_eq!(printed(worker).0, Some(0));
}

#[test]
fn two_drains_at_once_both_end_when_all_is_done() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    send(&sandbox, 0..30);
    let drains: Vec<_> = (0..4)
        .map(|_| sandbox.command(&["worker", "drain"]).spawn().unwrap())
        .collect();
    for drain in drains {
        assert_eq!(
            printed(drain),
            (Some(0), "everything is processed\n".into())
        );
    }
    assert_eq!(audit(&sandbox, 0..30), Audit::default());
}

#[test]
fn a_drain_says_what_is_left_and_leaves_somebody_to_care_for_it() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    send(&sandbox, 0..2);
    sandbox.drain();
    sandbox.keep_workers_away();
    send(&sandbox, 2..4);
    let later = "update events set due_at = at + 3600000 where event like '%mark-2-%'";
    sandbox.database("queue.db").execute(later, []).unwrap();
    assert_eq!(
        sandbox.run(&["worker", "drain"]),
        "1 event is left; `foreword status` says why\n"
    );
    assert_eq!(sandbox.status()["pending"], 1);
    wait_until("a worker is there for it", || {
        sandbox.worker_pid().is_some()
    });
}

#[test]
fn a_drain_is_answered_by_whoever_comes_after_the_worker_that_was_asked() {
    let sandbox = Sandbox::new();
    let patient = [("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "100000")];
    let mut first = running(&sandbox, &patient);
    send(&sandbox, 0..6);
    // The worker gets the request and never answers.
    signal(first.id(), "STOP");
    let folder = sandbox.user_home().join("tmp");
    std::fs::create_dir(&folder).unwrap();
    let mut drain = sandbox.command(&["worker", "drain"]);
    let drain = drain.env("TMPDIR", &folder).spawn().unwrap();
    wait_until("the drain has a socket to be answered on", || {
        let mut entries = std::fs::read_dir(&folder).unwrap();
        entries.any(|entry| entry.unwrap().path().join("answer").exists())
    });
    signal(first.id(), "KILL");
    first.wait().unwrap();
    let mut second = sandbox.command(&["worker", "run"]);
    let second = second.envs(patient).spawn().unwrap();
    assert_eq!(
        printed(drain),
        (Some(0), "everything is processed\n".into())
    );
    assert_eq!(audit(&sandbox, 0..6), Audit::default());
    signal(second.id(), "KILL");
    printed(second);
}

#[test]
fn a_home_whose_path_is_too_long_for_a_socket_has_a_worker_too() {
    let sandbox = Sandbox::new();
    let long = sandbox.user_home().join("x".repeat(120));
    let run = |action: &str| {
        let mut command: Command = sandbox.command(&["worker", action]);
        let output = command.env("FOREWORD_HOME", &long).output().unwrap();
        assert!(output.status.success(), "{action}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run("start").starts_with("started (pid "));
    assert_eq!(run("drain"), "everything is processed\n");
    assert_eq!(run("stop"), "stopped\n");
}
