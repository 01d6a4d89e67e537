//! For each finding of doctor: the test causes it, doctor reports it, the printed cure is run as it
//! stands, and doctor no longer reports it.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::agent::world::{Agent, Provider};
use crate::support::{Host, Leashed, Sandbox, assert_same, signal, tree, wait_until};
use crate::transcript::Transcript;

/// A machine without a problem: connected, with a client and a memory.
struct Clinic {
    sandbox: Sandbox,
    project: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Clinic {
    fn new() -> Clinic {
        let sandbox = Sandbox::new();
        let project = sandbox.project("app");
        let mut clinic = Clinic {
            sandbox,
            project,
            environment: Vec::new(),
        };
        clinic.furnish();
        clinic.sandbox.run(&["install", "--allow-tools"]);
        clinic.send("done");
        clinic.sandbox.drain();
        assert_eq!(clinic.ids(), [] as [&str; 0]);
        clinic
    }

    /// A PATH with nothing on it but what the cures use, and a client.
    fn furnish(&mut self) {
        let bin = self.bin("");
        std::fs::create_dir(&bin).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        for tool in ["sh", "mv", "cp", "mkdir", "chmod", "cat"] {
            let mut found = std::env::split_paths(&path).map(|dir| dir.join(tool));
            let tool_path = found.find(|it| it.is_file()).unwrap();
            symlink(tool_path, bin.join(tool)).unwrap();
        }
        self.environment.push(("PATH", bin.display().to_string()));
        self.client("2.1.325");
    }

    fn bin(&self, name: &str) -> PathBuf {
        self.sandbox.user_home().join("bin").join(name)
    }

    /// A client of this version, which knows how to update itself.
    fn client(&self, version: &str) {
        std::fs::write(self.bin("claude.version"), version).unwrap();
        let script =
            "#!/bin/sh\n[ \"$1\" = update ] && echo 9.0.0 > \"$0.version\"\ncat \"$0.version\"\n";
        self.program("claude", script);
    }

    fn program(&self, name: &str, script: &str) {
        // By another process: a file that this one has open for writing cannot be run.
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(self.bin(name))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = writer.stdin.take().unwrap();
        input.write_all(script.as_bytes()).unwrap();
        drop(input);
        assert!(writer.wait().unwrap().success());
    }

    /// Has a hook write an event; no worker processes it.
    fn send(&self, output: &str) {
        self.sandbox.keep_workers_away();
        let host = Host::new("s1", &self.project);
        let input = host.bash("make", output);
        self.sandbox.run_hook("save", &self.project, &input);
        std::fs::remove_file(self.file("worker.starting")).unwrap();
    }

    /// A file of the data directory.
    fn file(&self, name: &str) -> PathBuf {
        self.sandbox.home().join(name)
    }

    fn settings(&self) -> PathBuf {
        self.sandbox.user_home().join(".claude/settings.json")
    }

    /// The findings of doctor; no file may change by its looking.
    fn findings(&self) -> Vec<Value> {
        let before = tree(&self.sandbox.user_home());
        let mut command = self.sandbox.command(&["doctor", "--json"]);
        let output = command.envs(self.environment.clone()).output().unwrap();
        assert_same(&before, &tree(&self.sandbox.user_home()));
        let findings = findings_in(&output.stdout);
        let is_error = findings.iter().any(|it| it["severity"] == "error");
        assert_eq!(output.status.code(), Some(i32::from(is_error)));
        findings
    }

    fn ids(&self) -> Vec<String> {
        ids(&self.findings())
    }

    /// Expects exactly this finding, runs its printed cure in a shell, and expects no finding then.
    fn is_cured_of(&self, id: &str) {
        let findings = self.findings();
        assert_eq!(ids(&findings), [id], "{findings:#?}");
        assert_eq!(findings[0]["cure_is_command"], true);
        let cure = findings[0]["cure"].as_str().unwrap();
        let text = self.text();
        assert!(
            text.contains(&format!("\n         cure: {cure}\n")),
            "{text}"
        );

        let line = format!("{{ {cure}; }} >&2 && exec \"$0\" doctor --json");
        let mut shell = self.sandbox.shell(&line, &[]);
        let output = shell.envs(self.environment.clone()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{cure}: {output:?}");
        let left = findings_in(&output.stdout);
        assert_eq!(ids(&left), [] as [&str; 0], "{cure}: {left:#?}");
    }

    /// Expects exactly this finding, with advice instead of a command: it is about the past.
    fn is_advised_about(&self, id: &str) {
        let findings = self.findings();
        assert_eq!(ids(&findings), [id], "{findings:#?}");
        assert_eq!(findings[0]["cure_is_command"], false);
    }

    /// The text that doctor prints.
    fn text(&self) -> String {
        let mut command = self.sandbox.command(&["doctor"]);
        let output = command.envs(self.environment.clone()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

fn findings_in(json: &[u8]) -> Vec<Value> {
    let answer: Value = serde_json::from_slice(json).unwrap();
    answer["findings"].as_array().unwrap().clone()
}

fn ids(findings: &[Value]) -> Vec<String> {
    let id = |finding: &Value| finding["id"].as_str().unwrap().to_owned();
    findings.iter().map(id).collect()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_machine_on_which_all_is_well_is_left_in_peace() {
    let clinic = Clinic::new();
    insta::assert_snapshot!(clinic.text(), @"36 checks, nothing found");
    clinic.send("waiting, with a log beside the queue");
    assert!(clinic.file("queue.db-wal").exists());
    assert_eq!(clinic.ids(), [] as [&str; 0]);
}

#[test]
fn a_machine_without_foreword_is_only_looked_at() {
    let sandbox = Sandbox::new();
    let output = sandbox.command(&["doctor"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(tree(&sandbox.user_home()).len(), 0);
    let text = String::from_utf8(output.stdout).unwrap();
    let plain = text
        .replace(&sandbox.user_home().display().to_string(), "~")
        .replace(env!("CARGO_BIN_EXE_foreword"), "PROGRAM");
    let first = plain.split("\n\n").next().unwrap();
    insta::assert_snapshot!(first, @r"
    error    hooks-missing
             ~/.claude/settings.json does not connect Foreword: nothing is captured, nothing recalled
             cure: PROGRAM install
    ");
}

#[test]
fn settings_broken() {
    let clinic = Clinic::new();
    std::fs::write(clinic.settings(), "{\"model\": ").unwrap();
    clinic.is_cured_of("settings-broken");
    let aside = clinic.settings().with_extension("json.broken");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{\"model\": ");
}

#[test]
fn hooks_missing() {
    let clinic = Clinic::new();
    std::fs::write(clinic.settings(), "{\"model\": \"opus\"}").unwrap();
    clinic.is_cured_of("hooks-missing");

    let text = std::fs::read_to_string(clinic.settings()).unwrap();
    let mut settings: Value = serde_json::from_str(&text).unwrap();
    settings["hooks"].as_object_mut().unwrap().remove("Stop");
    std::fs::write(clinic.settings(), settings.to_string()).unwrap();
    let evidence = clinic.findings()[0]["evidence"].to_string();
    assert!(evidence.contains("does not connect Stop"), "{evidence}");
    clinic.is_cured_of("hooks-missing");
}

#[test]
fn settings_unread() {
    let clinic = Clinic::new();
    let good = std::fs::read_to_string(clinic.settings()).unwrap();
    let trailing = good.trim_end().strip_suffix('}').unwrap().trim_end();
    for (bad, line) in [
        (
            good.replacen('{', "{\n  // mine", 1),
            "line 2 has a comment",
        ),
        (
            good.replacen('{', "{ /* mine */", 1),
            "line 1 has a comment",
        ),
        (
            format!("{trailing},\n}}\n"),
            "a comma before the bracket in line",
        ),
    ] {
        std::fs::write(clinic.settings(), &bad).unwrap();
        let findings = clinic.findings();
        assert_eq!(ids(&findings), ["settings-unread"], "{bad}");
        let evidence = findings[0]["evidence"].as_str().unwrap();
        assert!(evidence.contains(line), "{evidence}");
        let install = clinic.sandbox.run(&["install"]);
        assert!(
            install.starts_with("Claude Code is not connected yet."),
            "{install}"
        );
        assert!(install.contains(line), "{install}");
        let status = clinic.sandbox.run(&["status"]);
        assert!(
            status.contains("it does not read its settings, since"),
            "{status}"
        );
    }
    std::fs::write(clinic.settings(), good).unwrap();
    assert_eq!(clinic.ids(), [] as [&str; 0]);
}

#[test]
fn tools_not_allowed() {
    let clinic = Clinic::new();
    let allowed = || clinic.sandbox.status()["tools_allowed"].clone();
    assert_eq!(allowed(), true);
    // Nobody was asked by an install without a terminal.
    for arguments in [&["uninstall"][..], &["install"]] {
        clinic.sandbox.run(arguments);
    }
    assert_eq!(allowed(), false);
    clinic.is_cured_of("tools-not-allowed");
    assert_eq!(allowed(), true);

    // A user who said no is reminded of it, and nothing is wrong.
    clinic.sandbox.run(&["install", "--no-allow-tools"]);
    assert_eq!(clinic.ids(), [] as [&str; 0]);
    let text = clinic.text();
    assert!(text.contains("you chose this"), "{text}");

    let denied = "{\"permissions\": {\"deny\": [\"mcp__foreword\"]}}";
    std::fs::write(clinic.settings(), denied).unwrap();
    clinic.sandbox.run(&["install", "--allow-tools"]);
    assert_eq!(clinic.ids(), ["tools-not-allowed"]);

    // A plugin cannot allow its own tools; doctor shows the rules to add.
    clinic.sandbox.run(&["uninstall"]);
    std::fs::write(
        clinic.settings(),
        "{\"enabledPlugins\": {\"foreword@foreword\": true}}",
    )
    .unwrap();
    let findings = clinic.findings();
    assert_eq!(ids(&findings), ["tools-not-allowed"]);
    let advice = findings[0]["cure"].as_str().unwrap();
    let (_, rules) = advice.split_once("json: ").unwrap();
    let settings = format!(
        "{{\"enabledPlugins\": {{\"foreword@foreword\": true}}, \"permissions\": {{{rules}}}}}"
    );
    std::fs::write(clinic.settings(), settings).unwrap();
    assert_eq!(clinic.ids(), [] as [&str; 0]);
}

#[test]
fn agent_not_asked() {
    let clinic = Clinic::new();
    clinic
        .sandbox
        .run(&["install", "--provider", "agent", "--no-allow-tools"]);
    assert_eq!(clinic.ids(), ["agent-not-asked"]);
    clinic.is_cured_of("agent-not-asked");
}

#[test]
fn sessions_unseen() {
    let clinic = Clinic::new();
    let write = |session: &str, project: &Path, ago: i64| {
        let mut host = Host::new(session, project);
        let mut transcript = Transcript::of(&clinic.sandbox, &mut host);
        transcript.ago = ago;
        transcript.prompt("Fix the kumquat");
        host
    };
    let unseen = || clinic.ids() == ["sessions-unseen"];
    let soon = -60_000;
    // From before the install, of the memory agent, and of a project that is off.
    write("earlier", &clinic.project, 60_000);
    let agent = clinic.file("agent");
    std::fs::create_dir_all(&agent).unwrap();
    set_mode(&agent, 0o700);
    write("memory-agent", &agent, soon);
    let private = clinic.sandbox.project("private");
    let off = |arguments: &[&str]| {
        let mut command = clinic.sandbox.command(arguments);
        assert!(
            command
                .current_dir(&private)
                .output()
                .unwrap()
                .status
                .success()
        );
    };
    off(&["off"]);
    write("private", &private, soon);
    assert!(!unseen());
    // Sessions of a client that runs no hooks.
    let host = write("first", &clinic.project, soon);
    assert!(unseen());
    clinic.sandbox.keep_workers_away();
    clinic
        .sandbox
        .run_hook("new", &clinic.project, &host.prompt("Fix the kumquat"));
    std::fs::remove_file(clinic.file("worker.starting")).unwrap();
    assert!(!unseen(), "its event waits");
    clinic.sandbox.drain();
    assert!(!unseen(), "its event is stored");
    // One session may have been started without settings, more may not.
    for (number, expected) in [("2", false), ("3", false), ("4", true)] {
        write(number, &clinic.project, soon);
        assert_eq!(unseen(), expected, "{number}");
    }
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn hooks_of_a_program_that_moved_and_of_another_one() {
    let clinic = Clinic::new();
    let moved = clinic.sandbox.moved_program();
    let install_moved = || {
        let mut command = Command::new(&moved);
        clinic.sandbox.isolate(&mut command);
        assert!(command.arg("install").output().unwrap().status.success());
    };
    install_moved();
    clinic.is_cured_of("hooks-other-binary");
    install_moved();
    std::fs::remove_file(&moved).unwrap();
    clinic.is_cured_of("hooks-binary-gone");
}

#[test]
fn server_missing() {
    let clinic = Clinic::new();
    let list = clinic.sandbox.user_home().join(".claude.json");
    std::fs::write(&list, "{\"mcpServers\": {}}").unwrap();
    let status = clinic.sandbox.run(&["status"]);
    assert!(status.contains("\nserver      not listed: "), "{status}");
    clinic.is_cured_of("server-missing");
    let status = clinic.sandbox.run(&["status"]);
    assert!(status.contains("\nserver      listed: "), "{status}");

    let taken = "{\"mcpServers\": {\"foreword\": {\"command\": \"mine\"}}}";
    std::fs::write(&list, taken).unwrap();
    let findings = clinic.findings();
    assert_eq!(ids(&findings), ["server-missing"]);
    assert_eq!(findings[0]["cure_is_command"], false);
}

#[test]
fn server_silent() {
    let clinic = Clinic::new();
    let list = clinic.sandbox.user_home().join(".claude.json");
    let healthy = std::fs::read_to_string(&list).unwrap();
    clinic.program("foreword", "#!/bin/sh\necho what\n");
    for program in [clinic.bin("foreword"), clinic.bin("gone/foreword")] {
        let program = program.display().to_string();
        let other = healthy.replace(env!("CARGO_BIN_EXE_foreword"), &program);
        std::fs::write(&list, other).unwrap();
        clinic.is_cured_of("server-silent");
        assert_eq!(std::fs::read_to_string(&list).unwrap(), healthy);
    }
}

#[test]
fn another_memory_tool_is_named_and_not_touched() {
    let clinic = Clinic::new();
    let healthy = std::fs::read_to_string(clinic.settings()).unwrap();
    let mut settings: Value = serde_json::from_str(&healthy).unwrap();
    let other = json!({"hooks": [{"type": "command", "command": "node /opt/claude-mem/hook.js"}]});
    settings["hooks"]["Stop"]
        .as_array_mut()
        .unwrap()
        .push(other);
    std::fs::write(clinic.settings(), settings.to_string()).unwrap();
    let findings = clinic.findings();
    assert_eq!(ids(&findings), ["other-memory-tool"]);
    let evidence = findings[0]["evidence"].as_str().unwrap();
    assert!(evidence.ends_with("another memory tool: node /opt/claude-mem/hook.js"));
    assert_eq!(findings[0]["cure_is_command"], false);

    settings["hooks"]["Stop"].as_array_mut().unwrap().pop();
    settings["enabledPlugins"] = json!({"memory-keeper@market": true, "other@market": true});
    std::fs::write(clinic.settings(), settings.to_string()).unwrap();
    assert_eq!(clinic.ids(), ["other-memory-tool"]);
    settings["enabledPlugins"]["memory-keeper@market"] = false.into();
    std::fs::write(clinic.settings(), settings.to_string()).unwrap();
    assert_eq!(clinic.ids(), [] as [&str; 0]);
}

#[test]
fn client_missing_and_client_old() {
    let clinic = Clinic::new();
    clinic.client("2.1.9 (Claude Code)");
    clinic.is_cured_of("client-old");

    std::fs::rename(clinic.bin("claude"), clinic.bin("elsewhere")).unwrap();
    let npm = "#!/bin/sh\n[ \"$*\" = 'install -g @anthropic-ai/claude-code' ] && mv \"${0%npm}elsewhere\" \"${0%npm}claude\"\n";
    clinic.program("npm", npm);
    clinic.is_cured_of("client-missing");
}

#[test]
fn data_permissions() {
    let clinic = Clinic::new();
    set_mode(&clinic.sandbox.home(), 0o755);
    set_mode(&clinic.file("memory.db"), 0o644);
    clinic.is_cured_of("data-permissions");
    set_mode(&clinic.file("queue.db"), 0o400);
    clinic.is_cured_of("data-permissions");
    // Settings made with the usual umask are no finding in a closed folder, and are closed by the
    // next command that writes.
    let config = clinic.file("config.toml");
    std::fs::write(&config, "").unwrap();
    set_mode(&config, 0o644);
    assert_eq!(clinic.ids(), [] as [&str; 0]);
    clinic.sandbox.run(&["status"]);
    let mode = std::fs::metadata(&config).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn data_filesystem() {
    let mut clinic = Clinic::new();
    let synced = clinic.sandbox.user_home().join("Dropbox/foreword");
    std::fs::create_dir(synced.parent().unwrap()).unwrap();
    std::fs::rename(clinic.sandbox.home(), &synced).unwrap();
    let name = synced.display().to_string();
    clinic.environment.push(("FOREWORD_HOME", name));
    clinic.is_cured_of("data-filesystem");
    assert!(clinic.file("memory.db").exists());
}

#[test]
fn data_path_long() {
    let mut clinic = Clinic::new();
    let long = clinic
        .sandbox
        .user_home()
        .join("x".repeat(200))
        .join("y".repeat(200));
    std::fs::create_dir(long.parent().unwrap()).unwrap();
    std::fs::rename(clinic.sandbox.home(), &long).unwrap();
    clinic
        .environment
        .push(("FOREWORD_HOME", long.display().to_string()));
    clinic.is_cured_of("data-path-long");
    assert!(clinic.file("memory.db").exists());
}

#[test]
fn config_broken() {
    let mut clinic = Clinic::new();
    std::fs::write(clinic.file("config.toml"), "[worker]\nidle_second = 5\n").unwrap();
    set_mode(&clinic.file("config.toml"), 0o600);
    let evidence = clinic.findings()[0]["evidence"].to_string();
    assert!(evidence.contains("did you mean worker.idle_seconds?"));
    clinic.is_cured_of("config-broken");

    let variable = ("FOREWORD_WORKER_IDLE_SECONDS", "soon".to_owned());
    clinic.environment.push(variable);
    clinic.is_cured_of("config-broken");
}

#[test]
fn queue_damaged_and_memory_damaged() {
    let clinic = Clinic::new();
    let queue = clinic.file("queue.db");
    std::fs::write(&queue, "this was a database once").unwrap();
    // Else the write-ahead log would repair the page.
    std::fs::remove_file(clinic.file("queue.db-wal")).unwrap();
    clinic.is_cured_of("queue-damaged");

    let memory = clinic.file("memory.db");
    let mut bytes = std::fs::read(&memory).unwrap();
    let whole = bytes.clone();
    // The first page, with the header, stays.
    bytes[4096..].fill(0x55);
    std::fs::write(&memory, &bytes).unwrap();
    clinic.is_cured_of("memory-damaged");
    assert_ne!(whole, bytes);

    clinic.send("life goes on");
    clinic.sandbox.drain();
    assert_eq!(clinic.ids(), [] as [&str; 0]);
}

#[test]
fn recovered() {
    let clinic = Clinic::new();
    std::fs::write(clinic.file("memory.db"), [0x5a; 5000]).unwrap();
    let _ = std::fs::remove_file(clinic.file("memory.db-wal"));
    clinic.send("the worker puts it right");
    clinic.sandbox.drain();
    clinic.is_advised_about("recovered");
}

#[test]
fn unreleased_set_aside() {
    let clinic = Clinic::new();
    // Of the columns that the last program before the first release had, one is enough.
    let database = clinic.sandbox.database("queue.db");
    database
        .execute_batch("alter table events add column payload text; pragma user_version = 1")
        .unwrap();
    drop(database);
    clinic.sandbox.drain();
    clinic.is_cured_of("unreleased-set-aside");
}

#[test]
fn queue_newer_and_memory_newer() {
    for name in ["queue", "memory"] {
        let clinic = Clinic::new();
        let file = format!("{name}.db");
        let known = clinic.sandbox.count(&file, "pragma user_version");
        let backups = clinic.file("backups");
        if !backups.exists() {
            std::fs::create_dir(&backups).unwrap();
            set_mode(&backups, 0o700);
        }
        // A later version makes this copy before it changes anything.
        let copy = backups.join(format!("{name}.before-{}.db", known + 1));
        std::fs::copy(clinic.file(&file), copy).unwrap();
        let database = clinic.sandbox.database(&file);
        database
            .pragma_update(None, "user_version", known + 3)
            .unwrap();
        drop(database);
        match name {
            "queue" => clinic.is_cured_of("queue-newer"),
            _ => clinic.is_cured_of("memory-newer"),
        }
        assert_eq!(clinic.sandbox.count(&file, "pragma user_version"), known);
    }
}

#[test]
fn worker_not_starting() {
    let clinic = Clinic::new();
    clinic.sandbox.keep_workers_away();
    set_mode(&clinic.file("worker.starting"), 0o600);
    clinic.is_cured_of("worker-not-starting");
}

#[test]
fn worker_halted() {
    let clinic = Clinic::new();
    let worker = clinic.sandbox.command(&["worker", "run"]).spawn().unwrap();
    let worker = Leashed(worker);
    wait_until("it has the lock", || {
        clinic.sandbox.worker_pid() == Some(worker.0.id())
    });
    signal(worker.0.id(), "STOP");
    wait_until("it is halted", || !clinic.ids().is_empty());
    clinic.is_cured_of("worker-halted");
}

#[test]
fn queue_old() {
    let clinic = Clinic::new();
    clinic.send("long ago");
    let hours = "update events set at = at - 2 * 3600 * 1000";
    let queue = clinic.sandbox.database("queue.db");
    assert_eq!(queue.execute(hours, []).unwrap(), 1);
    drop(queue);
    clinic.is_cured_of("queue-old");

    // An id that begins with a time in 2024: so it is in the spool, too.
    let spooled = clinic.file("spool/018f0000-0000-7000-8000-000000000000.json");
    std::fs::create_dir_all(spooled.parent().unwrap()).unwrap();
    std::fs::write(&spooled, "{}").unwrap();
    set_mode(spooled.parent().unwrap(), 0o700);
    set_mode(&spooled, 0o600);
    assert_eq!(clinic.ids(), ["queue-old"]);
}

#[test]
fn events_skipped() {
    let clinic = Clinic::new();
    clinic.send("difficult");
    let skip = "update events set state = 'skipped', attempts = 3, last_error = 'no\u{1b}[31m way'";
    let queue = clinic.sandbox.database("queue.db");
    assert_eq!(queue.execute(skip, []).unwrap(), 1);
    drop(queue);
    let text = clinic.text();
    assert!(text.contains("1 event was skipped after failing too often: no␛[31m way\n"));
    clinic.is_cured_of("events-skipped");
    assert_eq!(clinic.sandbox.status()["skipped"], 0);
}

#[test]
fn events_lost() {
    let clinic = Clinic::new();
    // Neither the queue nor the spool can be written.
    let [queue, aside, spool] = ["queue.db", "queue.aside", "spool"].map(|it| clinic.file(it));
    std::fs::rename(&queue, &aside).unwrap();
    std::fs::create_dir(&queue).unwrap();
    let _ = std::fs::remove_dir_all(&spool);
    std::fs::write(&spool, "").unwrap();
    clinic.send("nowhere to go");
    std::fs::remove_dir(&queue).unwrap();
    std::fs::rename(&aside, &queue).unwrap();
    std::fs::remove_file(&spool).unwrap();
    // The log was rotated since.
    let log = clinic.file("logs/hook.log");
    std::fs::rename(&log, log.with_extension("log.1")).unwrap();
    clinic.is_advised_about("events-lost");
}

#[test]
fn payloads_unexpected() {
    let clinic = Clinic::new();
    clinic.sandbox.hook("save", &clinic.project, b"{\"not\": ");
    clinic.is_advised_about("payloads-unexpected");
    // It is reported for a day.
    let log = clinic.file("logs/hook.log");
    let line = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, line.replacen("20", "19", 1)).unwrap();
    assert_eq!(clinic.ids(), [] as [&str; 0]);
}

#[test]
fn spool_unreadable() {
    let clinic = Clinic::new();
    let unreadable = clinic.file("spool/unreadable");
    std::fs::create_dir_all(&unreadable).unwrap();
    std::fs::write(unreadable.join("x.json"), "half an ev").unwrap();
    let mut chmod = Command::new("chmod");
    chmod.args(["-R", "go="]).arg(clinic.file("spool"));
    assert!(chmod.status().unwrap().success());
    clinic.is_cured_of("spool-unreadable");
}

/// A failed call of a provider, as it stands in the ledger, with a pause of an hour.
fn fail(clinic: &Clinic, kind: &str) {
    let memory = clinic.sandbox.database("memory.db");
    let sql = "insert into ledger
                   (at, provider, host_session_id, events, raw_tokens, requests, state, failure, note, retry_at)
               values
                   (unixepoch() * 1000, 'anthropic', 's1', 1, 1, 1, 'failed', ?1, 'it said no', (unixepoch() + 3600) * 1000)";
    assert_eq!(memory.execute(sql, [kind]).unwrap(), 1);
}

#[test]
fn provider_missing() {
    let mut clinic = Clinic::new();
    clinic.sandbox.run(&["install", "--provider", "claude"]);
    assert_eq!(clinic.ids(), [] as [&str; 0]);
    std::fs::rename(clinic.bin("claude"), clinic.bin("elsewhere")).unwrap();
    assert_eq!(clinic.ids(), ["client-missing", "provider-missing"]);
    std::fs::rename(clinic.bin("elsewhere"), clinic.bin("claude")).unwrap();
    let command = ("FOREWORD_CLAUDE_COMMAND", "/nowhere/claude".to_owned());
    clinic.environment.push(command);
    clinic.is_cured_of("provider-missing");
    clinic.environment.pop();

    clinic.sandbox.run(&["install", "--provider", "openai"]);
    let findings = clinic.findings();
    assert_eq!(ids(&findings), ["provider-missing"]);
    let evidence = findings[0]["evidence"].as_str().unwrap();
    assert_eq!(
        evidence,
        "openai cannot be used: openai.base_url and openai.model are not set"
    );
    let config = "[openai]\nbase_url = 'http://127.0.0.1:1/v1'\nmodel = 'small'\n";
    std::fs::write(clinic.file("config.toml"), config).unwrap();
    set_mode(&clinic.file("config.toml"), 0o600);
    assert_eq!(clinic.ids(), [] as [&str; 0]);
    let printed = clinic.sandbox.run(&["install", "--provider", "openai"]);
    let why = "Local models were not looked for, because openai.base_url is set to \"http://127.0.0.1:1/v1\". ";
    assert!(printed.contains(why), "{printed}");

    // A missing key here is no finding unless calls fail for want of one: the worker may have one.
    clinic.sandbox.run(&["install", "--provider", "anthropic"]);
    assert_eq!(clinic.ids(), [] as [&str; 0]);
    fail(&clinic, "auth");
    assert_eq!(clinic.ids(), ["provider-missing"]);
}

#[test]
fn provider_paused() {
    let mut clinic = Clinic::new();
    clinic.sandbox.run(&["install", "--provider", "anthropic"]);
    fail(&clinic, "billing");
    let text = clinic.text();
    assert!(text.contains(": it said no; add credit, then"));
    clinic.is_cured_of("provider-paused");

    let key = ("ANTHROPIC_API_KEY", "sk-test".to_owned());
    clinic.environment.push(key);
    fail(&clinic, "auth");
    clinic.is_cured_of("provider-paused");
}

#[test]
fn model_unfit() {
    let clinic = Clinic::new();
    clinic.sandbox.run(&["install", "--provider", "anthropic"]);
    let answered = |state: &str| {
        let memory = clinic.sandbox.database("memory.db");
        let failure = (state == "failed").then_some("prose");
        let sql = "insert into ledger
                       (at, provider, asked_model, host_session_id, events, raw_tokens, requests, state, failure)
                   values
                       (unixepoch() * 1000, 'anthropic', 'claude-haiku-5-5', 's1', 1, 1, 1, ?, ?)";
        assert_eq!(memory.execute(sql, (state, failure)).unwrap(), 1);
    };
    answered("answered");
    for _ in 0..4 {
        answered("failed");
    }
    // An open call is no failure.
    answered("open");
    assert_eq!(clinic.ids(), [] as [&str; 0]);
    answered("failed");
    let text = clinic.text();
    let unfit = |usable, judged| {
        format!(
            "only {usable} of the last {judged} answers of anthropic (claude-haiku-5-5) could be used, \
             so memory is made offline until "
        )
    };
    assert!(text.contains(&unfit(1, 6)), "{text}");
    assert!(clinic.sandbox.run(&["status"]).contains("unfit "));
    clinic.is_cured_of("model-unfit");

    // If none could be used, four are enough.
    for _ in 0..3 {
        answered("failed");
    }
    assert_eq!(clinic.ids(), [] as [&str; 0]);
    answered("failed");
    let text = clinic.text();
    assert!(text.contains(&unfit(0, 4)), "{text}");
}

#[test]
fn a_model_is_tried_with_one_question() {
    let agent = Agent::new(Provider::OpenAi);
    agent.sandbox.drain();
    let ask = |reply: &str| {
        agent.script(&json!({"then": reply}));
        let output = agent
            .sandbox
            .command(&["doctor", "--ask"])
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let printed = printed.split_once(" s, and ").unwrap().1.to_owned();
        (output.status.success(), printed)
    };
    let observed = |title: &str, fact: &str| {
        format!(
            "<observation><title>{title}</title><facts><fact>{fact}</fact></facts></observation>"
        )
    };
    let good = observed(
        "Exported times are UTC",
        "export/dates.py passes timezone.utc",
    );
    let expected = "the answer can be used: Exported times are UTC\n";
    assert_eq!(ask(&good), (true, expected.to_owned()));
    let bad = observed(
        "Session tokens refreshed before expiry",
        "src/auth/token.rs refreshes",
    );
    for reply in [&bad, "Sure!", "<nothing>only a test</nothing>"] {
        let (usable, printed) = ask(reply);
        assert!(
            !usable && printed.starts_with("the answer cannot be used: "),
            "{printed}"
        );
    }
    let paid = "select count(*) from ledger where host_session_id = 'doctor' and requests = 1";
    assert_eq!(agent.sandbox.count("memory.db", paid), 4);

    // A person may ask also while the provider is paused; an answer ends the pause.
    agent.script(&json!({"then": {"error": {"status": 401, "message": "no"}}}));
    let refused = agent.sandbox.command(&["doctor", "--ask"]).output();
    assert!(!refused.unwrap().status.success());
    assert_eq!(agent.sandbox.status()["paused"]["kind"], "auth");
    assert_eq!(ask(&good), (true, expected.to_owned()));
    assert_eq!(agent.sandbox.status()["paused"], Value::Null);
}

#[test]
fn budget_used_up() {
    let mut clinic = Clinic::new();
    clinic.sandbox.run(&["install", "--provider", "anthropic"]);
    let spend = "insert into ledger
                     (at, provider, host_session_id, events, raw_tokens, requests, cost_usd, state)
                 values
                     (unixepoch() * 1000, 'anthropic', 's1', 1, 1, 1, 1.25, 'answered')";
    let memory = clinic.sandbox.database("memory.db");
    assert_eq!(memory.execute(spend, []).unwrap(), 1);
    drop(memory);
    // A budget of zero is intended and no finding.
    let variable = |value: &str| ("FOREWORD_BUDGET_DAILY_USD", value.to_owned());
    clinic.environment.push(variable("0"));
    assert_eq!(clinic.ids(), [] as [&str; 0]);
    clinic.environment.pop();
    clinic.environment.push(variable("0.5"));
    clinic.is_cured_of("budget-used-up");
    clinic.environment.pop();
    clinic.is_cured_of("budget-used-up");
    let config = std::fs::read_to_string(clinic.file("config.toml")).unwrap();
    assert_eq!(config, "\n[budget]\ndaily_usd = 3.0\n");
}

#[test]
fn model_damaged() {
    let clinic = Clinic::new();
    let folder = clinic.file("models/all-MiniLM-L6-v2");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    for (path, mode) in [
        ("models", 0o700),
        ("models/all-MiniLM-L6-v2", 0o700),
        ("models/all-MiniLM-L6-v2/tokenizer.json", 0o600),
    ] {
        std::fs::set_permissions(clinic.file(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(clinic.ids(), ["model-damaged"]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(clinic.ids(), [] as [&str; 0]);
}

#[test]
fn fields_of_a_newer_host_are_counted() {
    let clinic = Clinic::new();
    let host = Host::new("newer", &clinic.project);
    for number in 0..3 {
        let mut input = host.bash("make", "ok");
        input["mood"] = number.into();
        clinic.sandbox.run_hook("save", &clinic.project, &input);
    }
    clinic.sandbox.drain();
    let output = clinic
        .sandbox
        .command(&["doctor", "--json"])
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["unknown_fields"], serde_json::json!({"mood": 3}));
    let printed = clinic.sandbox.command(&["doctor"]).output().unwrap().stdout;
    assert!(
        String::from_utf8(printed)
            .unwrap()
            .contains("does not know: mood (3 events)")
    );
}

#[test]
fn every_check_has_a_test_here() {
    let sandbox = Sandbox::new();
    let output = sandbox.command(&["doctor", "--json"]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tests = include_str!("doctor.rs");
    for id in answer["checked"].as_array().unwrap() {
        let id = id.as_str().unwrap();
        // `disk-full` is tested beside its code, without a full disk.
        let tested = id == "disk-full" || tests.contains(&format!("(\"{id}\")"));
        assert!(tested || tests.contains(&format!("[\"{id}\"]")), "{id}");
    }
}
