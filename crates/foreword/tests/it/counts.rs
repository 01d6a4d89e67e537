//! System calls and page faults of a hook, which are the same on a busy machine, unlike times.
//!
//! Faults are counted in the optimised programs that users run: a plain release
//! build, and the static one of the archive. `scripts/test` builds both and names
//! them in FOREWORD_TEST_RELEASE and FOREWORD_TEST_STATIC; a plain `cargo test`
//! builds them here, which takes some minutes the first time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::{Host, Sandbox, feed};

#[test]
fn a_plain_hook_takes_few_page_faults() {
    let faults = least_minor_faults(plain());
    assert!(faults <= 210, "{faults} minor faults");
}

#[test]
fn a_static_hook_takes_fewer_page_faults() {
    let faults = least_minor_faults(r#static());
    assert!(faults <= 170, "{faults} minor faults");
}

#[test]
fn a_hook_starts_no_process_opens_no_network_and_waits_for_no_disk() {
    for program in [plain(), r#static()] {
        let calls = system_calls_of_a_save(program);
        let count = |names: &[&str]| {
            calls
                .iter()
                .filter(|call| names.contains(&call.name()))
                .count()
        };
        // Else the counts below would be those of a failed hook.
        assert!(
            count(&["execve"]) == 1 && count(&["pwrite64"]) > 0,
            "{calls:#?}"
        );

        assert_eq!(
            count(&["clone", "clone3", "fork", "vfork"]),
            0,
            "{calls:#?}"
        );
        let foreign = calls
            .iter()
            .filter(|it| it.name() == "socket" && !it.0.contains("AF_UNIX"));
        assert_eq!(foreign.count(), 0, "{calls:#?}");
        assert!(count(&["fsync", "fdatasync"]) <= 1, "{calls:#?}");
    }
}

/// The page faults of one `save` of 5 KB beside a running worker: the least of several runs, since
/// the page cache and the place of the stack only ever add some.
///
/// Of a copy, as an installed program is one: what was written in one go lies in larger pieces
/// in the page cache than what a linker wrote, and takes some twenty faults less.
fn least_minor_faults(program: &Path) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let installed = folder.path().join("foreword");
    std::fs::copy(program, &installed).unwrap();
    let output = Command::new(plain().with_file_name("foreword-bench"))
        .args(["hooks", "--json", "--rounds", "1", "--samples", "20"])
        .args(["--only", "save_5k_worker_idle", "--program"])
        .arg(&installed)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    results["scenarios"]["save_5k_worker_idle"]["minor_faults_least"]
        .as_u64()
        .unwrap()
}

/// A line of `strace`: `name(arguments) = result`.
#[derive(Debug)]
struct Call(String);

impl Call {
    fn name(&self) -> &str {
        self.0.split('(').next().unwrap_or_default()
    }
}

fn system_calls_of_a_save(program: &Path) -> Vec<Call> {
    let found = Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status();
    assert!(
        found.is_ok(),
        "strace is not installed; scripts/test installs it"
    );

    let sandbox = Sandbox::new();
    let project = sandbox.project("pay");
    let host = Host::new("s1", &project);
    assert!(sandbox.run(&["worker", "start"]).starts_with("started"));
    sandbox.drain();

    let trace = sandbox.user_home().join("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-o"])
        .arg(&trace)
        .arg(program)
        .arg("save");
    sandbox.isolate(&mut command);
    command
        .env("CLAUDE_PROJECT_DIR", &project)
        .stdin(Stdio::piped());
    let input = host.bash("make", &"a line of output\n".repeat(290));
    let output = feed(command, input.to_string().as_bytes());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        r#"{"continue":true,"suppressOutput":true}"#
    );
    let trace = std::fs::read_to_string(trace).unwrap();
    // With -f each line begins with the number of its process.
    let calls = trace.lines().filter_map(|line| line.split_once(' '));
    calls
        .map(|(_, call)| Call(call.trim_start().to_owned()))
        .collect()
}

fn plain() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        built("FOREWORD_TEST_RELEASE", "release/foreword", || {
            let mut command = Command::new(env!("CARGO"));
            command.args(["build", "--release"]);
            command
        })
    })
}

fn r#static() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        built("FOREWORD_TEST_STATIC", "dist/foreword", || {
            Command::new("scripts/dist")
        })
    })
}

/// The program that the environment names; else it is built.
fn built(variable: &str, path: &str, build: impl Fn() -> Command) -> PathBuf {
    if let Some(program) = std::env::var_os(variable) {
        return PathBuf::from(program);
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The program of this test run lies in target/debug.
    let target = Path::new(env!("CARGO_BIN_EXE_foreword"))
        .ancestors()
        .nth(2)
        .unwrap();
    let output = build()
        .current_dir(workspace)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    target.join(path)
}
