//! kill -9 at every named point: nothing that was accepted is lost, nothing is doubled, nothing
//! stays claimed.
//!
//! The process kills itself at an instruction that `FOREWORD_FAULT` names, so a scenario is the
//! same every time. `foreword-bench crash` kills at random moments (`bench`).

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use foreword::platform::Lock;
use foreword_bench::agent::model::CountingModel;
use foreword_bench::database;
use foreword_bench::trial::{Audit, Trial};
use foreword_core::fault::POINTS;
use rusqlite::{Connection, OpenFlags};

use crate::program;

/// A trial with three sessions, and the model that its worker asks.
struct Scene {
    trial: Trial,
    /// Kept running while the scene lasts; none if the worker works offline.
    _model: Option<CountingModel>,
}

impl Scene {
    /// No worker has run yet: events go to the spool.
    fn fresh() -> Scene {
        Scene {
            trial: Trial::with_kills(&program(), None).unwrap(),
            _model: None,
        }
    }

    /// A worker has made the databases: events go to the queue.
    fn settled() -> Scene {
        let scene = Scene::fresh();
        scene.trial.drain().unwrap();
        scene
    }

    /// The worker asks a model.
    fn asking() -> Scene {
        let mut scene = Scene::settled();
        let model = CountingModel::start().unwrap();
        let environment = model.environment();
        scene.trial.sandbox.environment.extend(environment);
        scene._model = Some(model);
        scene
    }

    fn send(&mut self, count: u32) {
        for _ in 0..count {
            assert!(self.trial.send(None).unwrap().1.success());
        }
    }

    fn expect_death(&self, arguments: &[&str], fault: &str) {
        let status = self.trial.run(arguments, Some(fault)).unwrap();
        assert_killed(status, fault);
        let worker = Lock::holder(&self.trial.sandbox.home.lock()).unwrap();
        assert_eq!(worker, None, "after {fault}");
    }

    fn audit(&self) -> Audit {
        self.trial.drain().unwrap();
        self.trial.audit().unwrap()
    }

    fn expect_intact(&self, after: &str) {
        let audit = self.audit();
        let clean = audit.is_clean() && audit.skipped == 0;
        assert!(clean, "after {after}: {audit:?}");
    }

    fn memory(&self) -> Connection {
        database::look(&self.trial.sandbox.home.memory()).unwrap()
    }

    fn is_stored(&self, mark: u32) -> bool {
        database::marks(&self.memory()).unwrap().contains_key(&mark)
    }
}

fn assert_killed(status: ExitStatus, fault: &str) {
    assert_eq!(status.signal(), Some(9), "{fault}");
}

/// Kills a process at a point, then checks the events after the next worker.
fn visit(point: &str) {
    match point {
        "hook:before-insert" => a_hook_dies(Scene::settled(), point, Written::No),
        "hook:after-insert" => {
            a_hook_dies(Scene::settled(), point, Written::Yes);
            a_hook_dies(Scene::fresh(), point, Written::Yes);
        }
        "spool:before-rename" => a_hook_dies(Scene::fresh(), point, Written::No),
        "spool:after-rename" => a_hook_dies(Scene::fresh(), point, Written::Yes),
        "intake:after-insert" => a_worker_dies(Scene::fresh, point),
        "claim:after-commit"
        | "store:after-index"
        | "store:before-commit"
        | "store:after-commit"
        | "queue:after-delete" => {
            a_worker_dies(Scene::settled, point);
            a_worker_dies(Scene::fresh, point);
        }
        "provider:before-call" | "provider:after-call" => a_worker_dies(Scene::asking, point),
        // First while queue.db is made, then while memory.db is.
        "migration:before-commit" => a_worker_dies(Scene::fresh, point),
        // The test in foreword_core::db makes a database of an older schema for it.
        "migration:after-backup" => {}
        "backup:before-rename" | "backup:after-rename" => a_backup_dies(point),
        "recover:after-aside" | "recover:after-base" | "recover:after-salvage" => {
            a_recovery_dies(point);
        }
        _ => panic!("{point} has no scenario"),
    }
}

/// Whether a hook that died had written its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    No,
}

fn a_hook_dies(mut scene: Scene, point: &str, written: Written) {
    scene.send(1);
    let (mark, status) = scene.trial.send(Some(point)).unwrap();
    assert_killed(status, point);
    scene.send(1);
    scene.expect_intact(point);
    assert_eq!(scene.is_stored(mark), written == Written::Yes, "{point}");

    let again = scene.trial.start_marked(mark, None).unwrap().end().unwrap();
    assert!(again.success());
    scene.trial.accepted.insert(mark);
    scene.expect_intact("the host sent the same event again");
}

fn a_worker_dies(scene: fn() -> Scene, point: &str) {
    for action in ["run", "drain"] {
        for passing in 1..=2 {
            let mut scene = scene();
            scene.send(12);
            scene.expect_death(&["worker", action], &format!("{point}:{passing}"));
            scene.trial.sandbox.keep_workers_away().unwrap();
            scene.send(1);
            scene.expect_intact(&format!("{action} died at {point}:{passing}"));
        }
    }
}

/// An unfinished copy is not taken for a backup, and the next one is made all the same.
fn a_backup_dies(point: &str) {
    let mut scene = Scene::settled();
    scene.send(1);
    scene.trial.drain().unwrap();
    scene.expect_death(&["backup"], point);
    let backups = || {
        let entries = std::fs::read_dir(scene.trial.sandbox.home.backups()).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with("Z.db")).count()
    };
    assert_eq!(backups(), usize::from(point == "backup:after-rename"));
    scene.trial.sandbox.run(&["backup"]).unwrap();
    assert!(backups() > 0);
    scene.expect_intact(point);
}

/// Both databases lose their first bytes; the next worker goes on where the first one died.
fn a_recovery_dies(point: &str) {
    for passing in 1..=2 {
        let mut scene = Scene::settled();
        scene.send(12);
        scene.trial.drain().unwrap();
        scene.trial.sandbox.run(&["backup"]).unwrap();
        scene.trial.sandbox.keep_workers_away().unwrap();
        scene.send(12);
        scene.trial.damage().unwrap();
        scene.expect_death(&["worker", "drain"], &format!("{point}:{passing}"));
        scene.trial.sandbox.keep_workers_away().unwrap();
        scene.send(1);
        scene.expect_intact(&format!("a recovery died at {point}:{passing}"));
    }
}

#[test]
fn a_kill_at_any_named_point_loses_nothing_and_doubles_nothing() {
    for point in POINTS {
        visit(point);
    }
}

#[test]
fn a_worker_killed_between_the_two_databases_leaves_its_events_in_both_and_they_count_once() {
    let mut scene = Scene::settled();
    scene.trial.sessions = 1;
    scene.send(5);
    scene.expect_death(&["worker", "drain"], "store:after-commit");
    let queue = database::look(&scene.trial.sandbox.home.queue()).unwrap();
    let claimed = "select count(*) from events where state = 'claimed'";
    let claimed: u64 = queue.query_row(claimed, [], |row| row.get(0)).unwrap();
    let stored = database::processed(&scene.memory()).unwrap();
    assert_eq!((stored.processed, stored.events, claimed), (5, 5, 5));
    drop(queue);
    scene.expect_intact("the next worker");
}

#[test]
fn a_worker_that_dies_again_and_again_still_gets_everything_done_in_the_end() {
    let mut scene = Scene::settled();
    scene.send(12);
    for point in [
        "claim:after-commit",
        "store:before-commit",
        "store:after-commit",
        "queue:after-delete",
    ] {
        scene.expect_death(&["worker", "drain"], point);
    }
    scene.expect_intact("four deaths");
}

#[test]
fn the_audit_notices_what_is_lost_and_what_is_out_of_step() {
    let mut scene = Scene::settled();
    scene.send(8);
    scene.expect_intact("nothing");
    let path = scene.trial.sandbox.home.memory();
    let memory = database::open(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    memory
        .execute_batch("delete from events where id = (select min(id) from events);")
        .unwrap();
    let audit = scene.trial.audit().unwrap();
    // The event's mark is lost, and it is processed but not stored.
    assert_eq!((audit.lost, audit.doubled), (1, 0), "{audit:?}");
    assert_eq!((audit.damaged, audit.stuck), (1, 0), "{audit:?}");
}
