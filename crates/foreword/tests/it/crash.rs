//! kill -9 at every named point and at random moments: nothing that was accepted
//! is lost, nothing is doubled, nothing stays claimed.
//!
//! The process kills itself at an instruction that `FOREWORD_FAULT` names, so a
//! scenario is the same every time; only the random rounds also kill from outside.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus, Stdio};

use foreword_core::fault::POINTS;

use crate::agent::{server::Server, world::answer};
use crate::audit::{Audit, audit, counts_of_marks, marked};
use crate::support::{Host, Sandbox, signal};

const SIGKILL: i32 = 9;

/// A home, three sessions in it, and what was accepted of what they sent.
struct Scene {
    sandbox: Sandbox,
    hosts: Vec<Host>,
    accepted: Vec<u32>,
    marks: u32,
    /// Offline, if there is none.
    _model: Option<Server>,
}

impl Scene {
    /// No worker has been here: events go to the spool.
    fn fresh() -> Scene {
        let sandbox = Sandbox::new();
        let project = sandbox.project("app");
        let hosts = ["s1", "s2", "s3"].map(|session| Host::new(session, &project));
        sandbox.keep_workers_away();
        Scene {
            sandbox,
            hosts: hosts.into(),
            accepted: Vec::new(),
            marks: 0,
            _model: None,
        }
    }

    /// The databases are there: events go to the queue.
    fn settled() -> Scene {
        let scene = Scene::fresh();
        scene.sandbox.drain();
        scene.sandbox.keep_workers_away();
        scene
    }

    /// A model is asked, and answers.
    fn asking() -> Scene {
        let mut scene = Scene::settled();
        let model = Server::start("claude-code/fake_anthropic.py");
        model.script(&serde_json::json!({"then": answer("Part raised to seven")}));
        let address = format!("http://127.0.0.1:{}", model.port);
        scene.sandbox.set("FOREWORD_PROVIDER", "anthropic");
        scene.sandbox.set("FOREWORD_ANTHROPIC_BASE_URL", address);
        scene.sandbox.set("ANTHROPIC_API_KEY", "sk-test");
        scene._model = Some(model);
        scene
    }

    /// Runs a hook with the next mark, to its end or to where it dies.
    fn send(&mut self, fault: &str) -> (u32, ExitStatus) {
        self.marks += 1;
        let status = self.send_again(self.marks, fault);
        if status.success() {
            self.accepted.push(self.marks);
        }
        (self.marks, status)
    }

    fn send_again(&self, mark: u32, fault: &str) -> ExitStatus {
        self.start(mark, fault).wait().unwrap()
    }

    /// Starts a hook that carries this mark. The same mark is the same input.
    fn start(&self, mark: u32, fault: &str) -> Child {
        let host = &self.hosts[mark as usize % self.hosts.len()];
        let (hook, mut input) = marked(host, mark);
        if hook == "save" {
            input["tool_use_id"] = format!("call-{mark}").into();
        }
        let mut command = self.sandbox.hook_command(hook, &host.project);
        if !fault.is_empty() {
            command.env("FOREWORD_FAULT", fault);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let _ = child
            .stdin
            .take()
            .unwrap()
            .write_all(input.to_string().as_bytes());
        child
    }

    fn worker(&self, action: &str, fault: &str) -> ExitStatus {
        let mut command = self.sandbox.command(&["worker", action]);
        command
            .env("FOREWORD_FAULT", fault)
            .env("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().unwrap()
    }

    fn expect_death(&self, action: &str, fault: &str) {
        let status = self.worker(action, fault);
        assert_eq!(status.signal(), Some(SIGKILL), "{action} with {fault}");
        assert_eq!(self.sandbox.worker_pid(), None);
    }

    /// Everything is processed now; what is wrong with it?
    fn audit(&self) -> Audit {
        self.sandbox.drain();
        audit(&self.sandbox, self.accepted.iter().copied())
    }

    fn expect_intact(&self, after: &str) {
        assert_eq!(self.audit(), Audit::default(), "after {after}");
    }

    fn stored(&self, mark: u32) -> u32 {
        let counts = counts_of_marks(&self.sandbox.database("memory.db"));
        counts.get(&mark).copied().unwrap_or_default()
    }
}

/// Kills at a point, and looks at what is left before and after it is mended.
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
        // There is no second migration; the tests in foreword_core::db have one of their own.
        "migration:after-backup" => {}
        "backup:before-rename" | "backup:after-rename" => a_backup_dies(point),
        "recover:after-aside" | "recover:after-base" | "recover:after-salvage" => {
            a_recovery_dies(point);
        }
        _ => panic!("{point} has no scenario"),
    }
}

/// Whether a hook that died had written its event: accepted, though nobody heard so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    No,
}

fn a_hook_dies(mut scene: Scene, point: &str, written: Written) {
    scene.send("");
    let (mark, status) = scene.send(point);
    assert_eq!(status.signal(), Some(SIGKILL), "{point}");
    scene.send("");
    scene.expect_intact(point);
    assert_eq!(scene.stored(mark), u32::from(written == Written::Yes));

    scene.sandbox.keep_workers_away();
    assert!(scene.send_again(mark, "").success());
    scene.accepted.push(mark);
    scene.expect_intact("the same was told again");
}

fn a_worker_dies(scene: fn() -> Scene, point: &str) {
    for action in ["run", "drain"] {
        for passing in 1..=2 {
            let mut scene = scene();
            for _ in 0..12 {
                assert!(scene.send("").1.success());
            }
            scene.expect_death(action, &format!("{point}:{passing}"));
            scene.sandbox.keep_workers_away();
            scene.send("");
            scene.expect_intact(&format!("{action} died at {point}:{passing}"));
        }
    }
}

/// A copy that was not finished is none, and the next one is made all the same.
fn a_backup_dies(point: &str) {
    let mut scene = Scene::settled();
    scene.send("");
    scene.sandbox.drain();
    let mut backup = scene.sandbox.command(&["backup"]);
    let killed = backup.env("FOREWORD_FAULT", point).status().unwrap();
    assert_eq!(killed.signal(), Some(SIGKILL), "{point}");
    let backups = |sandbox: &Sandbox| {
        let entries = std::fs::read_dir(sandbox.home().join("backups")).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with("Z.db")).count()
    };
    assert_eq!(
        backups(&scene.sandbox),
        usize::from(point == "backup:after-rename")
    );
    scene.sandbox.run(&["backup"]);
    assert!(backups(&scene.sandbox) > 0);
    scene.expect_intact(point);
}

/// Both databases lose their first bytes; the next worker takes up what the first one began.
fn a_recovery_dies(point: &str) {
    for passing in 1..=2 {
        let mut scene = Scene::settled();
        for _ in 0..12 {
            assert!(scene.send("").1.success());
        }
        scene.sandbox.drain();
        scene.sandbox.run(&["backup"]);
        scene.sandbox.keep_workers_away();
        for _ in 0..12 {
            assert!(scene.send("").1.success());
        }
        for name in ["queue.db", "memory.db"] {
            scene
                .sandbox
                .database(name)
                .query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
                .unwrap();
            let path = scene.sandbox.home().join(name);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[..100].fill(0x5a);
            std::fs::write(path, bytes).unwrap();
        }
        scene.expect_death("drain", &format!("{point}:{passing}"));
        scene.sandbox.keep_workers_away();
        scene.send("");
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
    scene.hosts.truncate(1);
    for _ in 0..5 {
        scene.send("");
    }
    scene.expect_death("drain", "store:after-commit");
    let in_memory = scene
        .sandbox
        .count("memory.db", "select count(*) from events");
    let claimed = "select count(*) from events where state = 'claimed'";
    assert_eq!(
        (in_memory, scene.sandbox.count("queue.db", claimed)),
        (5, 5)
    );
    scene.expect_intact("the next worker");
}

#[test]
fn a_worker_that_dies_again_and_again_still_gets_everything_done_in_the_end() {
    let mut scene = Scene::settled();
    for _ in 0..12 {
        scene.send("");
    }
    for point in [
        "claim:after-commit",
        "store:before-commit",
        "store:after-commit",
        "queue:after-delete",
    ] {
        scene.expect_death("drain", point);
    }
    scene.expect_intact("four deaths");
}

#[test]
fn the_audit_notices_when_nothing_guards_against_doubles() {
    let mut scene = Scene::settled();
    for _ in 0..5 {
        scene.send("");
    }
    scene.expect_death("drain", "plant:processed-events-off,store:after-commit");
    assert!(
        scene
            .worker("drain", "plant:processed-events-off")
            .success()
    );
    let audit = audit(&scene.sandbox, scene.accepted.iter().copied());
    assert_eq!(audit.lost, [0; 0]);
    assert!(!audit.doubled.is_empty(), "{audit:?}");
}

#[test]
fn the_audit_notices_what_is_lost_and_what_is_out_of_step() {
    let mut scene = Scene::settled();
    for _ in 0..8 {
        scene.send("");
    }
    scene.expect_intact("nothing");
    let memory = scene.sandbox.database("memory.db");
    memory
        .execute("delete from events where event like '%mark-3-%'", [])
        .unwrap();
    memory
        .execute(
            "delete from texts where rowid = (select min(id) from prompts)",
            [],
        )
        .unwrap();
    let audit = scene.audit();
    assert_eq!(audit.lost, [3]);
    assert_eq!(audit.damage.len(), 2, "{audit:?}");
}

/// What may happen to a process in the random rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Lives,
    DiesAt(String),
    /// Killed from outside after so many turns of a loop.
    KilledAfter(u32),
}

impl Fate {
    fn draw(random: &mut Random, points: &[&str], turns: u32) -> Fate {
        match random.below(3) {
            0 => Fate::Lives,
            1 => {
                let point = points[random.below(points.len() as u32) as usize];
                Fate::DiesAt(format!("{point}:{}", 1 + random.below(3)))
            }
            _ => Fate::KilledAfter(random.below(turns)),
        }
    }

    fn fault(&self) -> &str {
        match self {
            Fate::DiesAt(fault) => fault,
            _ => "",
        }
    }
}

/// The points that a process of this road passes.
fn points_of(road: &[&str]) -> Vec<&'static str> {
    let on_road = |point: &&&str| road.iter().any(|it| point.starts_with(it));
    POINTS.iter().filter(on_road).copied().collect()
}

const ROUNDS: u32 = 200;
/// Turns of the waiting loop that a hook and a worker take, about.
const HOOK_TURNS: u32 = 1500;
const WORKER_TURNS: u32 = 8000;
/// A new home now and then, so that the spool and the first start are met too.
const ROUNDS_PER_HOME: u32 = 20;
/// An event that a worker dies with six times is skipped; so often it must not happen here.
const ROUNDS_PER_AUDIT: u32 = 2;

#[test]
fn two_hundred_rounds_of_random_kills_lose_nothing_and_double_nothing() {
    let mut random = Random::from_env();
    let mut killed = 0;
    for _ in 0..ROUNDS / ROUNDS_PER_HOME {
        let mut scene = Scene::fresh();
        for round in 1..=ROUNDS_PER_HOME {
            killed += kill_round(&mut scene, &mut random);
            if round % ROUNDS_PER_AUDIT == 0 {
                scene.expect_intact(&format!("round {round} with seed {}", random.seed));
            }
        }
    }
    assert!(killed > ROUNDS, "only {killed} processes were killed");
}

/// A worker and three hooks at once; says how many of them were killed.
fn kill_round(scene: &mut Scene, random: &mut Random) -> u32 {
    // Mostly the worker of this round is the only one; else hooks start another.
    if random.below(4) > 0 {
        scene.sandbox.keep_workers_away();
    }
    let roads = [
        "intake",
        "claim",
        "store",
        "queue",
        "migration:before-commit",
    ];
    let fate = Fate::draw(random, &points_of(&roads), WORKER_TURNS);
    let mut worker = scene
        .sandbox
        .command(&["worker", "run"])
        .env("FOREWORD_FAULT", fate.fault())
        .env("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();

    let mut hooks = Vec::new();
    for _ in 0..3 {
        // Now and then the host tells something again.
        let again = scene.marks > 0 && random.below(5) == 0;
        let mark = if again {
            1 + random.below(scene.marks)
        } else {
            scene.marks += 1;
            scene.marks
        };
        let fate = Fate::draw(random, &points_of(&["hook", "spool"]), HOOK_TURNS);
        hooks.push((mark, scene.start(mark, fate.fault()), fate));
    }

    let worker_turns = match fate {
        Fate::KilledAfter(turns) => turns,
        _ => WORKER_TURNS,
    };
    let mut turn = 0;
    while hooks
        .iter_mut()
        .any(|(_, hook, _)| hook.try_wait().unwrap().is_none())
    {
        for (_, hook, fate) in &mut hooks {
            if *fate == Fate::KilledAfter(turn) {
                hook.kill().unwrap();
            }
        }
        if turn == worker_turns {
            worker.kill().unwrap();
        }
        turn += 1;
        std::thread::yield_now();
    }
    let mut killed = 0;
    for (mark, mut hook, _) in hooks {
        let status = hook.wait().unwrap();
        if status.success() {
            scene.accepted.push(mark);
        }
        killed += u32::from(status.signal() == Some(SIGKILL));
    }

    while turn < worker_turns && worker.try_wait().unwrap().is_none() {
        turn += 1;
        std::thread::yield_now();
    }
    worker.kill().unwrap();
    killed += u32::from(worker.wait().unwrap().signal() == Some(SIGKILL));
    // One that a hook started.
    for pid in scene.sandbox.background_workers() {
        signal(pid, "KILL");
        killed += 1;
    }
    killed
}

/// Small, seeded and good enough: xorshift64*.
struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// `FOREWORD_TEST_SEED` repeats what a failed run printed.
    fn from_env() -> Random {
        let seed = match std::env::var("FOREWORD_TEST_SEED") {
            Ok(seed) => seed.parse().expect("FOREWORD_TEST_SEED is a number"),
            Err(_) => std::time::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64,
        };
        println!("FOREWORD_TEST_SEED={seed}");
        Random {
            seed,
            state: seed | 1,
        }
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let high = (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32;
        high % limit
    }
}
