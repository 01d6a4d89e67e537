//! A disk that is really full, at every write: the home is a small tmpfs with a little room
//! left, a page more in each round. Hooks succeed, events accepted before are kept, and with
//! room again everything is processed.
//!
//! A mount needs a namespace of its own, so the test runs itself again inside of one.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::audit::{Audit, audit, counts_of_marks, marked};
use crate::support::{Host, Sandbox, not_run, wait_until};

const INSIDE: &str = "FOREWORD_TEST_NAMESPACE";
const PAGE: u64 = 4096;

/// Runs a test in a mount namespace of its own; true if it runs in one already.
pub fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let allowed = Command::new("unshare").args(["-rm", "true"]).output();
    if !allowed.is_ok_and(|it| it.status.success()) {
        not_run(test, "no mount namespaces here");
        return false;
    }
    let output = Command::new("unshare")
        .arg("-rm")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    assert!(printed.contains("1 passed"), "{printed}");
    false
}

/// A home on a disk of its own.
struct Disk {
    sandbox: Sandbox,
    marks: u32,
}

impl Disk {
    fn new() -> Disk {
        let sandbox = Sandbox::new();
        std::fs::create_dir_all(sandbox.home()).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs"]);
        assert!(mount.arg(sandbox.home()).status().unwrap().success());
        let mut disk = Disk { sandbox, marks: 0 };
        disk.sandbox.keep_workers_away();
        disk.send(9);
        disk.sandbox.drain();
        disk.sandbox.keep_workers_away();
        disk
    }

    /// Sends events; each hook must succeed and print no error.
    fn send(&mut self, count: u32) {
        let project = self.sandbox.project("app");
        for _ in 0..count {
            let host = Host::new(&format!("s{}", self.marks / 8), &project);
            let (hook, mut input) = marked(&host, self.marks);
            input["tool_use_id"] = format!("call-{}", self.marks).into();
            self.marks += 1;
            self.sandbox.run_hook(hook, &project, &input);
        }
    }

    fn ballast(&self) -> PathBuf {
        self.sandbox.home().join("ballast")
    }

    /// Fills the disk but for `room` bytes.
    fn fill(&self, room: u64) {
        let mut file = File::create(self.ballast()).unwrap();
        while file.write_all(&[0; PAGE as usize]).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length - room).unwrap();
    }

    fn clear(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }

    /// Runs a command, which may fail for want of room with a one-line error.
    fn try_run(&self, arguments: &[&str]) -> bool {
        let output = self.sandbox.command(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        match output.status.code() {
            Some(0) => true,
            Some(1) => {
                assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
                false
            }
            _ => panic!("{arguments:?}: {:?} {error}", output.status),
        }
    }

    /// Whether a worker processes everything. One that waits for room is killed.
    fn drains(&self) -> bool {
        // A log file has room for a line in its last page.
        let log = self.sandbox.home().join("logs/worker.log");
        assert!(log.exists(), "a worker begins its log");
        std::fs::write(&log, "\n").unwrap();
        self.sandbox.keep_workers_away();
        let mut command = self.sandbox.command(&["worker", "drain"]);
        let mut drain = command.spawn().unwrap();
        let mut ended = None;
        wait_until("the worker ends or waits", || {
            ended = drain.try_wait().unwrap();
            ended.is_some() || std::fs::read_to_string(&log).unwrap().contains("; waiting")
        });
        drain.kill().unwrap();
        drain.wait().unwrap();
        ended.is_some_and(|it| it.success())
    }

    /// Processes everything, then checks that all marks are stored once.
    fn expect(&self, marks: impl IntoIterator<Item = u32>, when: &str) {
        self.sandbox.drain();
        self.sandbox.keep_workers_away();
        assert_eq!(audit(&self.sandbox, marks), Audit::default(), "{when}");
    }
}

#[test]
fn hooks_go_on_however_little_room_there_is() {
    if !inside("full_disk::hooks_go_on_however_little_room_there_is") {
        return;
    }
    let mut disk = Disk::new();
    let mut accepted: Vec<u32> = (0..disk.marks).collect();
    let mut kept = Vec::new();
    for pages in 0..24 {
        disk.fill(pages * PAGE);
        let sent = disk.marks..disk.marks + 3;
        disk.send(3);
        disk.clear();
        disk.expect(accepted.iter().copied(), &format!("{pages} pages"));
        let counts = counts_of_marks(&disk.sandbox.database("memory.db"));
        let there: Vec<u32> = sent.filter(|mark| counts.contains_key(mark)).collect();
        kept.push(there.len());
        accepted.extend(there);
    }
    assert_eq!(
        (kept.first(), kept.last()),
        (Some(&0), Some(&3)),
        "{kept:?}"
    );
    // The three commands count the same, and what is true.
    let lost = u64::from(disk.marks) - accepted.len() as u64;
    let json = |command| -> serde_json::Value {
        serde_json::from_str(&disk.sandbox.run(&[command, "--json"])).unwrap()
    };
    assert_eq!(json("status")["lost"], lost);
    let dropped = json("dropped");
    assert_eq!(dropped["lost"], lost, "{dropped}");
    let hooks = dropped["dropped"][0]["hooks"].as_object().unwrap().values();
    let counted: u64 = hooks.filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(counted, lost, "{dropped}");
    let said = format!("{lost} events were lost");
    assert!(disk.sandbox.run(&["status"]).contains(&said));
    let doctor = disk.sandbox.command(&["doctor"]).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains(&said), "{doctor}");
}

#[test]
fn a_worker_loses_nothing_however_little_room_there_is() {
    if !inside("full_disk::a_worker_loses_nothing_however_little_room_there_is") {
        return;
    }
    let mut disk = Disk::new();
    let mut went_well = Vec::new();
    for pages in (0..120).step_by(5) {
        disk.send(8);
        disk.fill(pages * PAGE);
        went_well.push(disk.drains());
        disk.clear();
        disk.expect(0..disk.marks, &format!("{pages} pages"));
    }
    assert!(
        !went_well[0] && went_well[went_well.len() - 1],
        "{went_well:?}"
    );
}

#[test]
fn looking_after_the_files_needs_room_and_loses_nothing_without() {
    if !inside("full_disk::looking_after_the_files_needs_room_and_loses_nothing_without") {
        return;
    }
    let disk = Disk::new();
    let home = disk.sandbox.home();
    for arguments in [&["backup"][..], &["vacuum"]] {
        let mut went_well = Vec::new();
        for pages in (0..160).step_by(8) {
            disk.fill(pages * PAGE);
            went_well.push(disk.try_run(arguments));
            disk.clear();
            disk.expect(0..disk.marks, &format!("{arguments:?} with {pages} pages"));
        }
        assert!(!went_well[0], "{arguments:?}: {went_well:?}");
        assert!(
            went_well[went_well.len() - 1],
            "{arguments:?}: {went_well:?}"
        );
    }
    // A recovery that fails for want of room is repeated when there is room.
    disk.sandbox.run(&["backup"]);
    let mut recovered = Vec::new();
    for pages in (0..1000).step_by(100) {
        std::fs::write(home.join("memory.db"), [0x5a; 8192]).unwrap();
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(home.join(format!("memory.db{suffix}")));
        }
        disk.fill(pages * PAGE);
        recovered.push(disk.drains());
        disk.clear();
        disk.expect(0..disk.marks, &format!("recovery with {pages} pages"));
    }
    assert!(
        !recovered[0] && recovered[recovered.len() - 1],
        "{recovered:?}"
    );
}
