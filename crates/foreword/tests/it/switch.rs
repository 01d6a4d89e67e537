//! The off switch and the limits: when off, nothing is written and nothing is shown to agents.

use std::path::Path;

use crate::support::{Host, Sandbox};

/// Everything under a folder: names and contents, but for the file of counters.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else {
        return all;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else if path.is_file() && !path.ends_with("not-kept") {
            all.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    all.sort();
    all
}

/// Runs a whole session through every hook; returns everything that they printed.
fn session(sandbox: &Sandbox, host: &Host) -> String {
    let project = &host.project;
    let mut printed = sandbox.run_hook("context", project, &host.start("startup"));
    printed += &sandbox.run_hook("new", project, &host.prompt("Remember the canary"));
    sandbox.run_hook("save", project, &host.edit("src/a.rs", "1", "2"));
    sandbox.run_hook(
        "save",
        project,
        &host.tool("Glob", serde_json::json!({}), serde_json::json!({})),
    );
    printed += &sandbox.run_hook("summary", project, &host.stop("Done."));
    printed + &sandbox.run_hook("cleanup", project, &host.end())
}

/// How many events came while Foreword was switched off: the only thing that is kept of them.
fn counted_as_off(sandbox: &Sandbox) -> u64 {
    let dropped: serde_json::Value =
        serde_json::from_str(&sandbox.run(&["dropped", "--json"])).unwrap();
    let rows = dropped["dropped"].as_array().unwrap();
    let off = "an event while Foreword was switched off";
    let row = rows.iter().find(|row| row["reason"] == off);
    row.map_or(0, |row| row["count"].as_u64().unwrap())
}

/// A memory with something about the project, and no running worker.
fn remembered() -> (Sandbox, Host) {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    session(&sandbox, &Host::new("first", &project));
    sandbox.drain();
    sandbox.run(&["worker", "stop"]);
    (sandbox, Host::new("second", &project))
}

fn command_in(sandbox: &Sandbox, dir: &Path, arguments: &[&str]) -> String {
    let output = sandbox
        .command(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn switched_off_in_a_project_it_is_silent_there_and_nowhere_else() {
    let (sandbox, host) = remembered();
    let printed = command_in(&sandbox, &host.project, &["off"]);
    assert!(printed.starts_with("off in the project"), "{printed}");
    let before = contents(&sandbox.home());
    assert_eq!(session(&sandbox, &host), "");
    assert_eq!(contents(&sandbox.home()), before, "not a byte was written");
    assert_eq!(
        counted_as_off(&sandbox),
        5,
        "the sixth event is of a boring tool"
    );

    let other = sandbox.project("other");
    session(&sandbox, &Host::new("third", &other));
    sandbox.drain();
    assert_eq!(
        sandbox.count("memory.db", "select count(*) from sessions"),
        2
    );

    assert!(command_in(&sandbox, &host.project, &["status"]).contains("off         project"));
    command_in(&sandbox, &host.project, &["on"]);
    assert!(session(&sandbox, &host).contains("canary"));
}

#[test]
fn switched_off_everywhere_or_for_a_session_it_is_silent() {
    let (sandbox, host) = remembered();
    for (off, on) in [
        (vec!["off", "--everywhere"], vec!["on", "--everywhere"]),
        (
            vec!["off", "--session", "second"],
            vec!["on", "--session", "second"],
        ),
    ] {
        sandbox.run(&off);
        let before = contents(&sandbox.home());
        assert_eq!(session(&sandbox, &host), "", "{off:?}");
        assert_eq!(contents(&sandbox.home()), before, "{off:?}");
        sandbox.run(&on);
    }
    assert_eq!(counted_as_off(&sandbox), 6 + 5);
    assert!(session(&sandbox, &host).contains("canary"));
}

#[test]
fn a_session_can_be_switched_off_from_inside() {
    let (sandbox, host) = remembered();
    let mut inside = sandbox.command(&["off", "--session"]);
    inside.env("CLAUDE_CODE_SESSION_ID", "second");
    assert!(inside.output().unwrap().status.success());
    assert_eq!(session(&sandbox, &host), "");

    let outside = sandbox.command(&["off", "--session"]).output().unwrap();
    assert_eq!(outside.status.code(), Some(1));
    assert!(
        String::from_utf8(outside.stderr)
            .unwrap()
            .contains("which session?")
    );
}

#[test]
fn where_there_is_no_project_off_says_what_to_write() {
    let sandbox = Sandbox::new();
    let output = sandbox.command(&["off"]).current_dir("/").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("--everywhere")
    );
}

#[test]
fn what_is_excluded_is_counted_and_not_kept() {
    let sandbox = Sandbox::new();
    let (client, app) = (sandbox.project("client"), sandbox.project("app"));
    std::fs::create_dir_all(sandbox.home()).unwrap();
    let config = "[capture]\nexclude_projects = [\"~/work/client\"]\nexclude_paths = [\"*/secrets/*\"]\nboring_tools = [\"Read\"]\n";
    std::fs::write(sandbox.home().join("config.toml"), config).unwrap();

    // Before any worker runs: one that starts ends the processes of an agent left by another.
    let mut child = sandbox.command(&["save"]);
    child.env("FOREWORD_AGENT", "1");
    let ended = child.output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(session(&sandbox, &Host::new("c", &client)), "");
    let host = Host::new("a", &app);
    sandbox.run_hook("new", &app, &host.prompt("hello"));
    sandbox.run_hook("save", &app, &host.edit("secrets/a.txt", "1", "2"));
    sandbox.run_hook("save", &app, &host.edit("src/a.txt", "1", "2"));
    sandbox.run_hook(
        "save",
        &app,
        &host.tool("Read", serde_json::json!({}), serde_json::json!({})),
    );
    let secret = format!("use ghp_{} now", "a1B2".repeat(9));
    sandbox.run_hook("save", &app, &host.bash("deploy", &secret));
    sandbox.run_hook("save", &app, &host.bash("deploy", &"long ".repeat(20_000)));
    sandbox.drain();

    assert_eq!(
        sandbox.count("memory.db", "select count(*) from sessions"),
        1
    );
    assert_eq!(sandbox.count("memory.db", "select count(*) from events"), 4);
    let dropped: serde_json::Value =
        serde_json::from_str(&sandbox.run(&["dropped", "--json"])).unwrap();
    let mut reasons: Vec<(String, u64)> = dropped["dropped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["reason"].as_str().unwrap().to_owned(),
                row["count"].as_u64().unwrap(),
            )
        })
        .collect();
    reasons.sort();
    let expected = [
        ("a part of an event that was too large", 1),
        ("a secret or private part of an event", 1),
        ("an excluded path", 1),
        ("an excluded project", 6),
        ("one of Foreword's own agent runs", 1),
        ("the use of a tool that leaves nothing to remember", 1),
    ];
    assert_eq!(
        reasons,
        expected.map(|(reason, count)| (reason.to_owned(), count))
    );
    assert!(sandbox.run(&["dropped"]).contains("6  an excluded project"));
}
