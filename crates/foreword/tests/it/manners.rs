//! What people who use the commands every day rely on: times of their own clock, ids as they are
//! printed, JSON from every command that reads, help by purpose, quiet pipes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Host, Sandbox};

/// A memory with one session, whose bugfix is #2.
fn a_memory() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    let project = sandbox.project("pay");
    sandbox.keep_workers_away();
    a_session(&sandbox, &project, "5e5510a1-mended");
    (sandbox, project)
}

fn a_session(sandbox: &Sandbox, project: &Path, id: &str) {
    let host = Host::new(id, project);
    let send = |hook, input| sandbox.run_hook(hook, project, &input);
    send("new", host.prompt("Fix the expiry test"));
    send(
        "save",
        host.bash_failed("make", "Exit code 2\nassertion failed"),
    );
    send(
        "save",
        host.edit("src/token.rs", "now < expires", "now <= expires"),
    );
    send(
        "save",
        host.bash("make", "test result: ok. 8 passed; 0 failed"),
    );
    send(
        "summary",
        host.stop("A token was invalid in its last second; it is valid then now."),
    );
    sandbox.drain();
}

/// What a command prints in a folder, and what it says on stderr.
fn run_in(sandbox: &Sandbox, dir: &Path, zone: &str, arguments: &[&str]) -> (String, String) {
    let mut command = sandbox.command(arguments);
    let output = command.env("TZ", zone).current_dir(dir).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    (out, error)
}

#[test]
fn people_read_and_write_local_time_and_json_has_utc() {
    let (sandbox, project) = a_memory();
    // These zones are 26 hours apart, so they never have the same date.
    let (east, west) = ("EAST-14", "WEST12");
    let print = |zone, arguments: &[&str]| run_in(&sandbox, &project, zone, arguments).0;
    let date = |zone| {
        let sessions = print(zone, &["sessions"]);
        let mut words = sessions.split_whitespace().skip(1);
        let (date, time) = (words.next().unwrap(), words.next().unwrap());
        assert_eq!((date.len(), time.len()), (10, 5), "{sessions}");
        date.to_owned()
    };
    assert_ne!(date(east), date(west));
    for arguments in [
        &["search", "expiry"][..],
        &["timeline", "2"],
        &["show", "2"],
        &["projects"],
    ] {
        let printed = print(east, arguments);
        assert!(printed.contains(&date(east)), "{arguments:?}: {printed}");
    }
    let search = ["search", "expiry", "--format", "json"];
    assert_eq!(print(east, &search), print(west, &search));
    let json: Value = serde_json::from_str(&print(east, &search)).unwrap();
    assert!(json[0]["created_at"].as_str().unwrap().ends_with('Z'));

    // A day is the reader's own: in the west, the east's today has not begun.
    let found = |zone, more: &[&str]| {
        let found = print(zone, &[&["search", "expiry"], more].concat());
        found.starts_with('#')
    };
    let today = date(east);
    assert!(found(east, &["--since", "today", "--until", "today"]));
    assert!(found(east, &["--since", &today, "--until", &today]));
    assert!(!found(west, &["--since", &today]));
}

#[test]
fn a_session_is_found_by_the_beginning_of_its_id_wherever_one_is_printed() {
    let (sandbox, project) = a_memory();
    a_session(&sandbox, &project, "5e5510b2-again");
    let print = |arguments: &[&str]| run_in(&sandbox, &project, "UTC", arguments);
    let printed = print(&["sessions"]).0;
    let id = printed.lines().nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(id, "5e5510a1");
    assert!(
        print(&["show", id])
            .0
            .starts_with("session 5e5510a1-mended\n")
    );
    assert!(print(&["show", id]).0.contains("  #2 "));
    assert_eq!(print(&["sessions", id]).0.matches("5e5510").count(), 1);
    assert!(print(&["timeline", id]).0.starts_with("  #1 "));
    assert!(
        print(&["redo", id, "--dry-run"])
            .0
            .starts_with("session 5e5510a1-mended:")
    );
    assert!(print(&["search", "--session", id]).0.starts_with('#'));
    assert!(
        print(&["off", "--session", id])
            .0
            .contains("5e5510a1-mended")
    );
    print(&["on", "--session", id]);

    // Several sessions begin so: all are listed, and nothing is done.
    let several = "foreword: several sessions begin with '5e5510'; write more of the id: \
                   5e5510b2-again, 5e5510a1-mended\n";
    for arguments in [
        &["show", "5e5510"][..],
        &["sessions", "5e5510"],
        &["redo", "5e5510"],
        &["search", "--session", "5e5510"],
        &["off", "--session", "5e5510"],
    ] {
        assert_eq!(
            print(arguments),
            (String::new(), several.to_owned()),
            "{arguments:?}"
        );
    }
    for arguments in [
        &["show", "kumquat"][..],
        &["sessions", "kumquat"],
        &["redo", "kumquat"],
    ] {
        let error = print(arguments).1;
        assert!(error.contains("`foreword sessions` lists them"), "{error}");
    }

    // `summarize` finds the transcript, too.
    let transcripts = sandbox.user_home().join(".claude/projects/pay");
    std::fs::create_dir_all(&transcripts).unwrap();
    for name in ["5e5510a1-mended", "5e5510b2-again"] {
        std::fs::write(transcripts.join(format!("{name}.jsonl")), "").unwrap();
    }
    let error = print(&["summarize", "5e5510a1"]).1;
    assert!(error.contains("5e5510a1-mended.jsonl"), "{error}");
    let error = print(&["summarize", "5e5510"]).1;
    assert!(
        error.contains("write more of the id: 5e5510a1-mended, 5e5510b2-again"),
        "{error}"
    );
}

#[test]
fn every_command_that_reads_prints_json_by_either_flag() {
    let (sandbox, project) = a_memory();
    for command in [
        "status",
        "search",
        "search expiry",
        "timeline 2",
        "sessions",
        "show 2",
        "show 5e5510a1",
        "why 2 expiry",
        "receipts",
        "projects",
        "recall",
        "notes",
        "cost",
        "doctor",
        "check",
        "dropped",
        "logs",
        "model status",
        "worker status",
        "context --preview",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let by = |flag: &[&str]| {
            let printed = run_in(&sandbox, &project, "UTC", &[&words[..], flag].concat()).0;
            let json: Value = serde_json::from_str(&printed).unwrap_or_else(|error| {
                panic!("{command} {flag:?}: {error}: {printed}");
            });
            json.is_array()
        };
        assert_eq!(by(&["--json"]), by(&["--format", "json"]), "{command}");
    }
}

#[test]
fn a_search_without_words_lists_the_newest() {
    let (sandbox, project) = a_memory();
    a_session(&sandbox, &project, "5e5510b2-again");
    let (printed, error) = run_in(&sandbox, &project, "UTC", &["search"]);
    assert!(
        printed.starts_with('#') && error.is_empty(),
        "{printed}{error}"
    );
    let numbers = printed.lines().filter_map(|line| line.strip_prefix('#'));
    let numbers = numbers.map(|line| line.split(' ').next().unwrap().parse().unwrap());
    let numbers: Vec<i64> = numbers.collect();
    assert!(
        numbers.len() > 1 && numbers.is_sorted_by(|a, b| a > b),
        "{printed}"
    );
}

#[test]
fn colours_are_for_a_terminal_or_on_request_and_never_for_an_agent() {
    let (sandbox, project) = a_memory();
    let print = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        let command = command
            .envs(variables.iter().copied())
            .current_dir(&project);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let forced = [("CLICOLOR_FORCE", "1")];
    for arguments in [
        &["search", "expiry"][..],
        &["show", "2"],
        &["status"],
        &["help"],
    ] {
        let plain = print(&[], arguments);
        assert!(!plain.contains('\x1b'), "{plain}");
        for (variables, more) in [(&forced[..], "auto"), (&[], "always")] {
            let coloured = print(variables, &[arguments, &["--color", more]].concat());
            assert!(coloured.contains("\x1b["), "{arguments:?}: {coloured}");
        }
        let never = print(&forced, &[arguments, &["--color", "never"]].concat());
        assert!(!never.contains('\x1b'), "{never}");
        let none = [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")];
        assert!(!print(&none, arguments).contains('\x1b'));
    }
    let json = print(&forced, &["search", "expiry", "--json"]);
    assert!(!json.contains('\x1b'), "{json}");

    let mut sandbox = sandbox;
    sandbox.set("CLICOLOR_FORCE", "1");
    let mut client = crate::mcp::Client::new(&sandbox, &project);
    let found = client.text_of("get_observations", serde_json::json!({"ids": [2]}));
    assert!(
        found.contains("#2 bugfix") && !found.contains('\x1b'),
        "{found}"
    );
    client.end();
}

#[test]
fn nobody_who_reads_is_no_error_for_any_command_that_prints() {
    let (sandbox, _) = a_memory();
    for arguments in [
        &["completions", "bash"][..],
        &["completions", "zsh"],
        &["man"],
        &["help", "--all"],
        &["--help"],
        &["search", "--all-projects"],
        &["status"],
        &["logs"],
        &["doctor"],
        &["check", "--json"],
    ] {
        // The reader has ended before anything is written, on both streams.
        let line = r#"("$0" "$@" 2>&1; echo $? >&3) 3>&2 | true"#;
        let closed = sandbox.shell(line, arguments).output().unwrap();
        let said = String::from_utf8_lossy(&closed.stderr);
        assert!(
            ["0\n", "1\n"].contains(&said.as_ref()),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_skipped_event_is_tried_again_by_the_number_that_status_shows() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("pay");
    sandbox.keep_workers_away();
    a_session(&sandbox, &project, "s1");
    let host = Host::new("s2", &project);
    sandbox.keep_workers_away();
    sandbox.run_hook("new", &project, &host.prompt("Add refunds"));
    sandbox.run_hook("summary", &project, &host.stop("Added."));
    let skip = "update events set state = 'skipped', attempts = 3, last_error = 'too odd'";
    assert_eq!(sandbox.database("queue.db").execute(skip, []).unwrap(), 2);
    let print = |arguments: &[&str]| run_in(&sandbox, &project, "UTC", arguments);
    let status = print(&["status"]).0;
    assert!(
        status.contains("2 events could not be processed; `foreword retry`"),
        "{status}"
    );
    assert!(status.contains("            1  prompt of ") && status.contains(": too odd\n"));
    let error = print(&["retry", "3"]).1;
    assert!(
        error.contains("`foreword status` numbers them from 1 to 2"),
        "{error}"
    );
    assert!(
        print(&["retry", "2"])
            .0
            .starts_with("1 skipped event is tried again\n")
    );
    assert_eq!(sandbox.status()["skipped"], 1);
    assert!(
        print(&["retry"])
            .0
            .starts_with("1 skipped event is tried again\n")
    );
    assert_eq!(sandbox.status()["skipped"], 0);
}

#[test]
fn an_event_that_waits_is_the_last_event() {
    let (sandbox, project) = a_memory();
    let earlier = "update sessions set last_event_at = last_event_at - 600000";
    sandbox.database("memory.db").execute(earlier, []).unwrap();
    assert!(
        sandbox
            .run(&["status"])
            .contains("last event  10 min ago\n")
    );
    sandbox.keep_workers_away();
    let host = Host::new("s2", &project);
    sandbox.run_hook("new", &project, &host.prompt("Add refunds"));
    let status = sandbox.run(&["status"]);
    assert!(!status.contains("last event  10 min ago\n"), "{status}");
}
