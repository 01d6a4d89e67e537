//! A data directory that another user could write is not used; sockets and files inside it are for
//! its user alone, however long its path is.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use crate::support::{Host, Sandbox, not_run};

/// Another user, who needs no name.
const OTHER: u32 = 54_321;

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

fn folder(path: &Path, mode: u32) -> PathBuf {
    std::fs::create_dir_all(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_owned()
}

fn give_away(path: &Path) {
    chown(path, Some(OTHER), Some(OTHER)).unwrap();
}

/// A data directory in which another user planted settings that run a program.
fn planted(sandbox: &Sandbox, dir: &Path) -> PathBuf {
    let evil = sandbox.user_home().join("evil.sh");
    std::fs::write(&evil, "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n").unwrap();
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!(
        "provider = \"claude\"\n[claude]\ncommand = \"{}\"\n",
        evil.display()
    );
    std::fs::write(dir.join("config.toml"), config).unwrap();
    std::fs::write(dir.join("off"), "everywhere\n").unwrap();
    sandbox.user_home().join("ran")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Hooks are silent and write nothing; commands fail with one line that contains `why`.
fn assert_refused(sandbox: &mut Sandbox, dir: &Path, why: &str) {
    let ran = planted(sandbox, dir);
    let before = names(dir);
    sandbox.set("FOREWORD_HOME", dir);
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    assert_eq!(
        sandbox.run_hook("context", &project, &host.start("startup")),
        ""
    );
    assert_eq!(
        sandbox.run_hook("new", &project, &host.prompt("Hello there, you")),
        ""
    );
    sandbox.run_hook("save", &project, &host.bash("make", "done"));
    assert_eq!(
        sandbox.run_hook("summary", &project, &host.stop("Done.")),
        ""
    );
    for arguments in [
        &["status"][..],
        &["doctor"],
        &["search", "done"],
        &["worker", "drain"],
        &["worker", "run"],
        &["context", "--preview"],
    ] {
        let output = sandbox.command(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
        assert!(
            error.lines().count() == 1 && error.contains(why),
            "{arguments:?}: {error}"
        );
    }
    assert_eq!(names(dir), before, "{why}");
    assert!(!ran.exists(), "{why}");
}

#[test]
fn a_home_that_others_can_write_is_not_used() {
    let mut sandbox = Sandbox::new();
    let base = sandbox.user_home();
    for mode in [0o777, 0o722, 0o770, 0o1777] {
        let dir = folder(&base.join(format!("open-{mode:o}")), mode);
        assert_refused(&mut sandbox, &dir, "other users can write to ");
    }
    // A file inside that others can write, in a folder that they may enter.
    let dir = folder(&base.join("inside"), 0o755);
    planted(&sandbox, &dir);
    let config = dir.join("config.toml");
    std::fs::set_permissions(config, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_refused(&mut sandbox, &dir, "config.toml (mode 666)");
    // One that others may only read is used, and closed to them.
    let dir = folder(&base.join("readable"), 0o755);
    sandbox.set("FOREWORD_HOME", &dir);
    sandbox.run(&["status"]);
    assert_eq!(std::fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_home_that_somebody_else_could_replace_is_not_used() {
    let mut sandbox = Sandbox::new();
    let base = sandbox.user_home();
    let open = folder(&base.join("open"), 0o777);
    let below = folder(&open.join("mine/home"), 0o700);
    folder(&open.join("mine"), 0o755);
    assert_refused(&mut sandbox, &below, "and could replace ");
    // By a link from a safe place.
    let link = base.join("link");
    symlink(&below, &link).unwrap();
    assert_refused(&mut sandbox, &link, "and could replace ");
    // In a sticky folder, such as /tmp, nobody else can replace it; it is made for us alone.
    let sticky = folder(&base.join("sticky"), 0o1777);
    let home = sticky.join("home");
    sandbox.set("FOREWORD_HOME", &home);
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    sandbox.keep_workers_away();
    sandbox.run_hook("save", &project, &host.bash("make", "done"));
    assert_eq!(std::fs::metadata(&home).unwrap().mode() & 0o777, 0o700);
    sandbox.run(&["worker", "drain"]);
    assert_eq!(sandbox.status()["sessions"], 1);
}

#[test]
fn a_home_of_another_user_is_not_used() {
    if !is_root() {
        not_run("trust::a_home_of_another_user_is_not_used", "not root");
        return;
    }
    let mut sandbox = Sandbox::new();
    let base = sandbox.user_home();
    let foreign = folder(&base.join("foreign"), 0o755);
    planted(&sandbox, &foreign);
    give_away(&foreign);
    assert_refused(
        &mut sandbox,
        &foreign,
        "belongs to another user (uid 54321)",
    );
    let parent = folder(&base.join("parent"), 0o755);
    let below = folder(&parent.join("home"), 0o700);
    give_away(&parent);
    assert_refused(&mut sandbox, &below, "belongs to another user (uid 54321)");
    // A link that another user made, in a folder where everybody may.
    let sticky = folder(&base.join("sticky"), 0o1777);
    let mine = folder(&base.join("mine"), 0o700);
    let link = sticky.join("link");
    symlink(&mine, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(OTHER), Some(OTHER)).unwrap();
    assert_refused(
        &mut sandbox,
        &link,
        "another user (uid 54321) made the link",
    );
}

#[test]
fn a_long_path_puts_no_socket_where_others_can_take_its_name() {
    let mut sandbox = Sandbox::new();
    let temporary = folder(&sandbox.user_home().join("tmp"), 0o1777);
    sandbox.set("TMPDIR", &temporary);
    let home = sandbox.user_home().join("a-long-name".repeat(12));
    sandbox.set("FOREWORD_HOME", &home);
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    sandbox.run_hook("save", &project, &host.bash("make", "done"));
    sandbox.run(&["worker", "start"]);
    // The running worker hears us.
    sandbox.drain();
    assert!(home.join("worker.sock").exists());
    assert_eq!(names(&temporary), [""; 0]);
    assert_eq!(sandbox.status()["sessions"], 1);
    sandbox.run(&["worker", "stop"]);
    assert!(!home.join("worker.sock").exists());
}

#[test]
fn a_path_too_long_for_sqlite_is_named_and_events_wait() {
    let mut sandbox = Sandbox::new();
    let mut home = sandbox.user_home();
    for _ in 0..3 {
        home.push("x".repeat(200));
    }
    sandbox.set("FOREWORD_HOME", &home);
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    for number in 0..3 {
        let mut input = host.bash("make", "done");
        input["tool_use_id"] = format!("call-{number}").into();
        sandbox.run_hook("save", &project, &input);
    }
    assert_eq!(std::fs::read_dir(home.join("spool")).unwrap().count(), 3);
    let why = "bytes, and SQLite cannot use more than 410; events wait in the spool";
    let problems = sandbox.status()["problems"].to_string();
    assert!(problems.contains(why), "{problems}");
    let doctor = sandbox.command(&["doctor", "--json"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let findings = found["findings"].as_array().unwrap();
    let finding = findings
        .iter()
        .find(|it| it["id"] == "data-path-long")
        .unwrap();
    // The cure moves the directory, and nothing is lost.
    let cure = finding["cure"]
        .as_str()
        .unwrap()
        .replace(" && unset FOREWORD_HOME", "");
    let moved = std::process::Command::new("sh")
        .args(["-c", &cure])
        .status();
    assert!(moved.unwrap().success(), "{cure}");
    sandbox.set("FOREWORD_HOME", sandbox.user_home().join(".foreword"));
    sandbox.drain();
    assert_eq!(sandbox.count("memory.db", "select count(*) from events"), 3);
}

#[test]
fn a_file_that_others_could_read_is_made_private_and_that_is_said_once() {
    let mut sandbox = Sandbox::new();
    sandbox.set("FOREWORD_WORKER_IDLE_SECONDS", "0");
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    sandbox.run_hook("save", &project, &host.bash("make", "done"));
    sandbox.drain();
    sandbox.run(&["worker", "stop"]);
    let memory = sandbox.home().join("memory.db");
    for path in [&memory, &sandbox.home().join("logs")] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox.run(&["worker", "run"]);
    sandbox.run(&["worker", "run"]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&memory) & 0o077, 0);
    assert_eq!(mode(&sandbox.home().join("logs")), 0o700);
    let log = sandbox.log("worker.log");
    assert_eq!(
        log.matches("other users could read 2 files and folders")
            .count(),
        1,
        "{log}"
    );
}
