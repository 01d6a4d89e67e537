//! The stable interface: exit codes, JSON keys, and how install changes a file
//! that belongs to the user.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Host, Sandbox};

fn output(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    sandbox.command(arguments).output().unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn wrong_usage_is_64_and_changes_nothing() {
    let sandbox = Sandbox::new();
    let wrong: &[&[&str]] = &[
        &[],
        &["sav"],
        &["--bogus"],
        &["context", "--bogus"],
        &["new", "x"],
        &["save", "--bogus"],
        &["summary", "x", "y"],
        &["cleanup", "--bogus"],
        &["worker"],
        &["worker", "restart"],
        &["show"],
        &["why", "twelve"],
        &["search", "x", "--format", "xml"],
        &["search", "x", "--limit", "many"],
        &["search", "x", "--limit", "0"],
        &["status", "--yaml"],
        &["install", "there"],
    ];
    for arguments in wrong {
        let output = output(&sandbox, arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    assert!(!sandbox.home().exists());
}

#[test]
fn help_and_version_are_answers_not_errors() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["--help"][..],
        &["help"],
        &["--version"],
        &["worker", "--help"],
    ] {
        let output = output(&sandbox, arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty());
    }
}

#[test]
fn what_cannot_be_done_is_1_with_a_line_that_says_why() {
    let sandbox = Sandbox::new();
    let failures: &[(&[&str], &str)] = &[
        (&["show", "1"], "nothing is remembered yet"),
        (&["worker", "run"], "config.toml"),
        (&["worker", "start"], "config.toml"),
        (&["worker", "drain"], "config.toml"),
    ];
    std::fs::create_dir_all(sandbox.home()).unwrap();
    for (arguments, why) in failures {
        if *why == "config.toml" {
            std::fs::write(sandbox.home().join("config.toml"), "[worker]\nidle = 1\n").unwrap();
        }
        let output = output(&sandbox, arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains(why) && error.lines().count() == 1, "{error}");
    }
    // A hook uses the settings that it can read, and logs the error.
    let project = sandbox.project("app");
    sandbox.keep_workers_away();
    sandbox.run_hook("new", &project, &Host::new("s1", &project).prompt("Hello"));
    let log = sandbox.log("hook.log");
    assert!(log.contains("the other settings hold"), "{log}");
    assert_eq!(sandbox.spooled(), 1);
    // But an input that an exclusion might cover is not stored while the settings cannot be read.
    let broken = "[capture\nexclude_projects = ['*']\n";
    std::fs::write(sandbox.home().join("config.toml"), broken).unwrap();
    sandbox.run_hook("new", &project, &Host::new("s2", &project).prompt("Hello"));
    assert_eq!(sandbox.spooled(), 1);
    assert!(
        sandbox
            .log("hook.log")
            .contains("nothing is stored until that is corrected")
    );
    // Nor if an exclusion is written wrongly.
    for mistake in [
        "[capture]\nexclude_projects = '/p'\n",
        "[capture]\nexclude_project = ['/p']\n",
        "[capture]\nexclude_projects = ['/p', 3]\n",
        "exclude_paths = ['*.env']\n",
    ] {
        std::fs::write(sandbox.home().join("config.toml"), mistake).unwrap();
        sandbox.run_hook("new", &project, &Host::new("s3", &project).prompt("Hello"));
        assert_eq!(sandbox.spooled(), 1, "{mistake}");
    }
}

#[test]
fn status_json_has_every_key_from_the_first_moment_on() {
    let expected = [
        "pending",
        "skipped",
        "observations",
        "summaries",
        "prompts",
        "sessions",
        "worker",
        "provider",
        "provider_reason",
        "off",
    ];
    let sandbox = Sandbox::new();
    let check = |status: &Value| {
        for key in expected {
            assert!(status.get(key).is_some(), "{key} is missing: {status}");
        }
        assert_eq!(keys(&status["worker"]), ["pid", "running"]);
    };
    let fresh = sandbox.status();
    check(&fresh);
    assert_eq!(
        (&fresh["pending"], &fresh["provider"]),
        (&json!(0), &json!("offline"))
    );
    sandbox.keep_workers_away();
    a_session(&sandbox);
    let waiting = sandbox.status();
    assert_eq!(
        (&waiting["pending"], &waiting["prompts"]),
        (&json!(5), &json!(0))
    );
    sandbox.drain();
    let done = sandbox.status();
    check(&done);
    let counts = ["pending", "skipped", "prompts", "summaries", "sessions"].map(|key| &done[key]);
    assert_eq!(
        counts,
        [&json!(0), &json!(0), &json!(1), &json!(1), &json!(1)]
    );
    assert!(done["observations"].as_i64().unwrap() > 0);

    let mut off = sandbox.command(&["status", "--json"]);
    let off = off.env("FOREWORD_OFF", "1").output().unwrap();
    let off: Value = serde_json::from_slice(&off.stdout).unwrap();
    assert_eq!((&off["off"], &done["off"]), (&json!(true), &json!(false)));
}

/// A session that leaves a prompt, an observation and a summary.
fn a_session(sandbox: &Sandbox) -> PathBuf {
    let project = sandbox.project("pay");
    let host = Host::new("s1", &project);
    for (hook, input) in [
        ("new", host.prompt("Fix the expiry test\nplease")),
        (
            "save",
            host.bash_failed(
                "cargo test",
                "Exit code 101\nassertion failed: now <= expires",
            ),
        ),
        (
            "save",
            host.edit("src/token.rs", "now < expires", "now <= expires"),
        ),
        ("save", host.bash("cargo test", "test result: ok")),
        (
            "summary",
            host.stop(
                "The expiry check in `src/token.rs` accepts a token in its last second. It \
                 compared `now < expires` before.",
            ),
        ),
    ] {
        sandbox.run_hook(hook, &project, &input);
    }
    project
}

#[test]
fn search_json_has_every_key_in_every_hit() {
    let sandbox = Sandbox::new();
    let project = a_session(&sandbox);
    sandbox.drain();
    let search = |words: &str, dir: &PathBuf, more: &[&str]| -> Vec<Value> {
        let mut command = sandbox.command(&["search", words, "--format", "json"]);
        let output = command.args(more).current_dir(dir).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // The items of a turn are one hit, unless one kind of items is asked for.
    let turns = search("expiry expires", &project, &[]);
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["items"], json!([1, 2, 3]));
    let kinds = ["observation", "prompt", "summary"];
    let of_kind = |kind| search("expiry expires", &project, &["--kind", kind]);
    let hits: Vec<Value> = kinds.into_iter().flat_map(of_kind).collect();
    assert_eq!(hits.len(), kinds.len());
    for hit in turns.iter().chain(&hits) {
        let expected = [
            "created_at",
            "hidden",
            "id",
            "items",
            "kind",
            "origin",
            "pinned",
            "project",
            "retracted",
            "score",
            "session",
            "stale",
            "superseded_by",
            "title",
            "type",
            "until",
        ];
        assert_eq!(keys(hit), expected);
        assert!(
            hit["id"].is_i64() && hit["title"].is_string() && hit["score"].is_number(),
            "{hit}"
        );
        assert_eq!(
            (&hit["project"], &hit["session"]),
            (&json!("pay"), &json!("s1"))
        );
        assert_eq!(hit["type"].is_string(), hit["kind"] == "observation");
        assert!(hit["created_at"].as_str().unwrap().ends_with('Z'));
        if hit["kind"] == "prompt" {
            assert_eq!(hit["title"], "Fix the expiry test");
        }
    }
    // The default scope is the project of the current folder.
    let elsewhere = sandbox.project("other");
    assert_eq!(search("expiry", &elsewhere, &[]), [Value::Null; 0]);
    assert_eq!(
        search("expiry expires", &elsewhere, &["--all-projects"]),
        turns
    );
    assert_eq!(
        search("\"' OR * NEAR( -x:y ^", &project, &[]),
        [Value::Null; 0]
    );
}

#[test]
fn show_json_has_all_fields_of_each_kind() {
    let sandbox = Sandbox::new();
    a_session(&sandbox);
    sandbox.drain();
    let common = [
        "created_at",
        "id",
        "kind",
        "project",
        "prompt_number",
        "same_turn",
        "session",
        "session_title",
        "uuid",
    ];
    let own: &[(&str, &[&str])] = &[
        ("prompts", &["text", "reply"]),
        (
            "observations",
            &[
                "type",
                "title",
                "subtitle",
                "fact_origins",
                "facts",
                "narrative",
                "concepts",
                "files_read",
                "files_modified",
                "origin",
                "agent_id",
                "branch",
                "commit",
                "provider",
                "model",
                "prompt_version",
                "events",
                "retracted",
                "superseded_by",
                "supersedes",
                "times",
                "stale",
                "stale_files",
                "pinned_at",
                "hidden_at",
                "edited_at",
                "until",
                "imported_from",
                "related",
            ],
        ),
        (
            "summaries",
            &[
                "request",
                "investigated",
                "learned",
                "completed",
                "next_steps",
                "files_read",
                "files_edited",
                "notes",
                "provider",
                "model",
                "prompt_version",
            ],
        ),
    ];
    for (table, own) in own {
        let id = sandbox.count("memory.db", &format!("select min(id) from {table}"));
        for number in [format!("{id}"), format!("#{id}")] {
            let item: Value =
                serde_json::from_str(&sandbox.run(&["show", &number, "--format", "json"])).unwrap();
            let mut expected = [&common[..], own].concat();
            expected.sort_unstable();
            let mut found = keys(&item);
            found.sort_unstable();
            assert_eq!(found, expected, "{table}");
            assert_eq!(item["id"], id);
        }
    }
    let missing = output(&sandbox, &["show", "#999"]);
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(missing.stderr).unwrap(),
        "foreword: there is no #999; find numbers with `foreword search WORDS`\n"
    );
}

#[test]
fn switched_off_nothing_is_written_and_nothing_said() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    for name in ["FOREWORD_OFF", "FOREWORD_AGENT"] {
        for (hook, input, answer) in [
            ("context", host.start("startup"), ""),
            ("new", host.prompt("Hello"), ""),
            (
                "save",
                host.bash("make", "done"),
                r#"{"continue":true,"suppressOutput":true}"#,
            ),
            ("summary", host.stop("Done."), ""),
            ("cleanup", host.end(), ""),
        ] {
            let mut command = sandbox.hook_command(hook, &project);
            let mut child = command.env(name, "1").spawn().unwrap();
            // Switched off, a hook need not read its input.
            let _ = serde_json::to_writer(child.stdin.take().unwrap(), &input);
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            assert_eq!(
                (output.stdout.as_slice(), output.stderr.as_slice()),
                (answer.as_bytes(), &b""[..])
            );
        }
        // Foreword's own agent sessions are counted and not stored.
        let expected = name == "FOREWORD_AGENT";
        assert_eq!(sandbox.home().join("not-kept").exists(), expected);
        assert!(
            !sandbox.home().join("spool").exists() && !sandbox.home().join("queue.db").exists()
        );
    }
}

#[test]
fn nobody_who_reads_a_commands_output_is_no_crash() {
    let sandbox = Sandbox::new();
    a_session(&sandbox);
    sandbox.drain();
    for arguments in [
        &["status"][..],
        &["search", "expiry", "--all-projects"],
        &["show", "1"],
        &["worker", "status"],
    ] {
        let closed = sandbox
            .shell(r#""$0" "$@" | true"#, arguments)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&closed.stderr), "", "{arguments:?}");
        let full = sandbox
            .shell(r#"exec "$0" "$@" > /dev/full"#, arguments)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&full.stderr);
        assert_eq!(full.status.code(), Some(1), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_demo_that_nobody_watches_to_its_end_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let temporary = sandbox.user_home().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut watched = sandbox.shell(r#""$0" "$@" | head -1"#, &["demo"]);
    let output = watched.env("TMPDIR", &temporary).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    // The shell does not wait for the demo, only for `head`.
    crate::support::wait_until("the stage is cleared", || {
        std::fs::read_dir(&temporary).unwrap().next().is_none()
    });
}

/// Claude Code's settings of this sandbox's user.
fn settings(sandbox: &Sandbox) -> PathBuf {
    let path = sandbox.user_home().join(".claude/settings.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

#[test]
fn a_second_install_changes_no_byte_and_uninstall_restores_the_file() {
    let sandbox = Sandbox::new();
    let path = settings(&sandbox);
    let before = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}\n    ]\n  }\n}\n";
    std::fs::write(&path, before).unwrap();
    sandbox.run(&["install"]);
    let installed = std::fs::read_to_string(&path).unwrap();
    assert!(installed.contains("say done"));
    assert!(installed.contains("\"PostToolUseFailure\""));

    let backups = std::fs::read_dir(sandbox.home().join("backups")).unwrap();
    let kept = backups.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    assert!(kept.into_iter().any(|text| text == before));

    assert!(
        sandbox
            .run(&["install"])
            .starts_with("Claude Code is connected already")
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), installed);
    assert!(
        sandbox
            .run(&["status"])
            .contains("Claude Code is connected\n")
    );

    sandbox.run(&["uninstall"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    let again = sandbox.run(&["uninstall"]);
    assert!(
        again.starts_with("Claude Code was not connected"),
        "{again}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn install_makes_the_file_if_there_is_none_and_follows_claudes_own_directory() {
    let sandbox = Sandbox::new();
    sandbox.run(&["install"]);
    assert!(sandbox.user_home().join(".claude/settings.json").exists());
    let elsewhere = sandbox.user_home().join("elsewhere");
    let mut command = sandbox.command(&["install"]);
    let output = command
        .env("CLAUDE_CONFIG_DIR", &elsewhere)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(elsewhere.join("settings.json").exists());
}

#[test]
fn settings_that_are_broken_or_not_ours_to_write_stay_as_they_are() {
    for broken in [
        "{",
        "[]",
        "nonsense",
        "{\"hooks\": []}",
        "{\"hooks\": {\"Stop\": 1}}",
        "{\"a\": 1} trailing",
    ] {
        let sandbox = Sandbox::new();
        let path = settings(&sandbox);
        std::fs::write(&path, broken).unwrap();
        let output = output(&sandbox, &["install"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{broken}");
        assert!(error.contains("nothing was changed"), "{broken}: {error}");
        assert!(
            error.lines().count() == 1 && error.contains("settings.json"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);
    }
    let sandbox = Sandbox::new();
    std::fs::create_dir(settings(&sandbox)).unwrap();
    let folder = output(&sandbox, &["install"]);
    assert_eq!(folder.status.code(), Some(1));
    assert!(
        String::from_utf8(folder.stderr)
            .unwrap()
            .contains("nothing was changed")
    );
}

#[test]
fn settings_that_are_read_only_stay_as_they_are() {
    let sandbox = Sandbox::new();
    let path = settings(&sandbox);
    std::fs::write(&path, "{}").unwrap();
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    let mut command = sandbox.as_anyone(&["install"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("nothing was changed"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
}

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let sandbox = Sandbox::new();
    let demo = sandbox.run(&["demo"]);
    let today = demo
        .lines()
        .find_map(|line| line.split("Open since ").nth(1)?.split(':').next())
        .unwrap();
    let plain = |text: &str, date: &str| {
        text.trim()
            .replace(date, "DATE")
            .replace(env!("CARGO_BIN_EXE_foreword"), "foreword")
    };
    let printed: Vec<String> = demo.lines().map(|line| plain(line, today)).collect();
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let excerpt = readme
        .split("```\n")
        .find(|block| block.starts_with("$ foreword show"))
        .unwrap();
    let then = excerpt
        .split("Open since ")
        .nth(1)
        .unwrap()
        .split(':')
        .next()
        .unwrap();
    for line in excerpt.lines() {
        assert!(
            printed.contains(&plain(line, then)),
            "the demo does not print: {line}"
        );
    }
    assert!(excerpt.lines().count() > 20);
}

#[test]
fn the_preview_is_what_the_hook_says_and_then_why() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    sandbox.run_hook("new", &project, &host.prompt("Mend the limit"));
    let error = "Exit code 101\nassertion failed: the limit is 6, not 7";
    sandbox.run_hook("save", &project, &host.bash_failed("cargo test", error));
    let edit = host.edit("limit.rs", "PARCELS: u8 = 6", "PARCELS: u8 = 7");
    sandbox.run_hook("save", &project, &edit);
    let passed = host.bash("cargo test", "test result: ok. 1 passed");
    sandbox.run_hook("save", &project, &passed);
    let reply =
        "`PARCELS` in `limit.rs` allows seven parcels a day. `Van::load` had refused the seventh.";
    sandbox.run_hook("summary", &project, &host.stop(reply));
    sandbox.drain();

    let start = Host::new("s2", &project).start("startup");
    let index: Value =
        serde_json::from_str(&sandbox.run_hook("context", &project, &start)).unwrap();
    let index = index["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    let mut command = sandbox.command(&["context", "--preview", "--session", "s2"]);
    let output = command.current_dir(&project).output().unwrap();
    let preview = String::from_utf8(output.stdout).unwrap();
    let why = preview.strip_prefix(index).unwrap();
    assert!(why.starts_with("\n\nWhy each line is there"), "{why}");
    assert!(why.contains("shown; a bugfix +40"), "{why}");
    assert!(!index.contains("since"), "{index}");

    // The file has changed since it was remembered.
    for (change, mark) in [("700", "files changed since"), ("", "files gone since")] {
        let limit = project.join("limit.rs");
        match change {
            "" => std::fs::remove_file(limit).unwrap(),
            change => std::fs::write(limit, change).unwrap(),
        }
        let index = sandbox.run_hook("context", &project, &start);
        assert!(index.contains(mark), "{index}");
    }
}
