//! What `crash`, `load` and `soak` share: sessions that tell marked events to real hooks, and
//! the audit of what became of them.
//!
//! A mark decides all of its event, so the same mark told again is the same event. Whatever
//! runs here is a process of its own, in a throw-away home (`world`), and ends with the trial.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use foreword_core::check::Wrong;
use foreword_core::db::OpenError;
use foreword_core::queue::Queue;
use foreword_core::spool;
use foreword_core::store::Store;
use serde_json::{Value, json};

use super::host;
use super::process;
use super::world::World;
use crate::{platform, start};

/// A prompt, six tool uses and a stop.
const EVENTS_PER_TURN: u32 = 8;
/// Then the session ends, and another takes its place.
const EVENTS_PER_SESSION: u32 = 8 * EVENTS_PER_TURN;

pub struct Trial {
    pub world: World,
    /// So many at a time.
    pub sessions: u32,
    /// How large a tool's output is.
    pub output: usize,
    /// The marks whose hook ended well.
    pub accepted: BTreeSet<u32>,
}

impl Trial {
    pub fn new(sessions: u32, output: usize) -> anyhow::Result<Trial> {
        Ok(Trial {
            world: World::new(&std::env::current_exe()?)?,
            sessions,
            output,
            accepted: BTreeSet::new(),
        })
    }

    /// The hook that tells of a mark, and its input.
    pub fn event(&self, mark: u32) -> (&'static str, String) {
        let (hook, own) = match self.number(mark) % EVENTS_PER_TURN {
            0 => (
                "new",
                json!({
                    "hook_event_name": "UserPromptSubmit",
                    "prompt": format!("Find out why part {mark} fails; mark-{mark}-"),
                }),
            ),
            last if last == EVENTS_PER_TURN - 1 => (
                "summary",
                json!({
                    "hook_event_name": "Stop",
                    "last_assistant_message": format!("Part {mark} is mended: mark-{mark}-"),
                }),
            ),
            _ => (
                "save",
                json!({
                    "hook_event_name": "PostToolUse",
                    "tool_name": "Bash",
                    "tool_use_id": format!("call-{mark}"),
                    "tool_input": {"command": format!("make part{mark}")},
                    "tool_response": {
                        "stdout": format!("mark-{mark}-\n{}", host::code(self.output)),
                        "stderr": "",
                        "interrupted": false,
                    },
                }),
            ),
        };
        (hook, self.input(mark, &own))
    }

    fn input(&self, mark: u32, own: &Value) -> String {
        let (place, number) = (mark % self.sessions, self.number(mark));
        let session = format!("session-{place}-{}", number / EVENTS_PER_SESSION);
        let mut input = json!({
            "session_id": session,
            "transcript_path": format!("/transcripts/{session}.jsonl"),
            "cwd": self.world.host.project,
            "prompt_id": format!("{session}-prompt-{}", number / EVENTS_PER_TURN),
        });
        for (name, value) in own.as_object().into_iter().flatten() {
            input[name] = value.clone();
        }
        input.to_string()
    }

    /// A session begins and ends: what is told then carries no mark.
    pub fn border(&self, hook: &str, mark: u32) -> anyhow::Result<Process> {
        let own = match hook {
            "context" => json!({"hook_event_name": "SessionStart", "source": "startup"}),
            _ => json!({"hook_event_name": "SessionEnd", "reason": "other"}),
        };
        self.start(hook, self.input(mark, &own), None)
    }

    pub fn is_first_of_session(&self, mark: u32) -> bool {
        self.number(mark).is_multiple_of(EVENTS_PER_SESSION)
    }

    /// Which event of its place this is. Not all sessions change at once.
    fn number(&self, mark: u32) -> u32 {
        mark / self.sessions + mark % self.sessions * EVENTS_PER_TURN
    }

    /// Starts the hook that tells of a mark.
    pub fn tell(&self, mark: u32, fault: Option<&str>) -> anyhow::Result<Process> {
        let (hook, input) = self.event(mark);
        self.start(hook, input, fault)
    }

    fn start(&self, hook: &str, input: String, fault: Option<&str>) -> anyhow::Result<Process> {
        let mut process = Process::start(self.command(&[hook], fault))?;
        // One that was killed does not read.
        if let Some(mut stdin) = process.0.stdin.take() {
            let _ = stdin.write_all(input.as_bytes());
        }
        Ok(process)
    }

    /// The program, armed to die at a point if one is named.
    pub fn command(&self, arguments: &[&str], fault: Option<&str>) -> Command {
        let world = &self.world;
        let mut command = world.command(&world.program, arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(point) = fault {
            let planted = world.environment.iter().find(|(name, _)| *name == FAULT);
            let planted = planted.map(|(_, plant)| format!("{plant},"));
            command.env(FAULT, planted.unwrap_or_default() + point);
        }
        command
    }

    /// Kills the workers that hooks have started, and waits until they are gone; says how many.
    pub fn kill_workers(&self) -> u32 {
        let workers = process::that_know(self.world.home.dir());
        for &worker in &workers {
            platform::kill_group(worker);
        }
        self.wait_for_none(Duration::from_secs(1));
        workers.len() as u32
    }

    /// Waits until no process of this home is left; says how many still are after that time.
    pub fn wait_for_none(&self, patience: Duration) -> usize {
        let deadline = Instant::now() + patience;
        loop {
            let left = process::that_know(self.world.home.dir()).len();
            if left == 0 || Instant::now() > deadline {
                return left;
            }
            pass(Duration::from_millis(5));
        }
    }

    /// Looks for everything that was accepted, when all is processed.
    pub fn audit(&self) -> anyhow::Result<Audit> {
        let home = &self.world.home;
        let mut audit = Audit::default();
        let queue = audit.open(Queue::look(&home.queue()))?;
        let store = audit.open(Store::look(&home.memory()))?;
        let stored = store
            .as_ref()
            .map_or(Ok(Default::default()), Store::marks)?;
        let queued = queue
            .as_ref()
            .map_or(Ok(Default::default()), Queue::marks)?;
        let count = |mark: &u32| stored.get(mark).unwrap_or(&0) + queued.get(mark).unwrap_or(&0);
        for mark in self.accepted.iter().filter(|mark| count(mark) == 0) {
            audit.lost += 1;
            audit.see(format!("mark {mark} is lost"));
        }
        for (mark, times) in stored.iter().filter(|(mark, _)| count(mark) > 1) {
            audit.doubled += 1;
            audit.see(format!("mark {mark} is stored {times} times"));
        }
        audit.stored = stored.len() as u64;
        if let Some(store) = store {
            let twice = store.told_twice()?;
            audit.doubled += twice;
            if twice > 0 {
                audit.see(format!("{twice} prompts, observations or summaries twice"));
            }
            audit.damage(store.check()?);
        }
        if let Some(queue) = queue {
            let counts = queue.counts()?;
            let pending = counts.pending;
            audit.skipped = counts.skipped;
            audit.stuck += pending;
            if pending > 0 {
                audit.see(format!("{pending} events are left in the queue"));
            }
            // What is claimed is counted as stuck.
            audit.damage(queue.check(true)?);
        }
        let spooled = spool::waiting(&home.spool())?.len() + spool::unreadable(&home.spool())?;
        audit.stuck += spooled as u64;
        if spooled > 0 {
            audit.see(format!("{spooled} events are left in the spool"));
        }
        Ok(audit)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // Nobody is on the way up: the stamp is ours.
        self.kill_workers();
        start::clear_stamp(&self.world.home);
    }
}

const FAULT: &str = "FOREWORD_FAULT";

/// What is wrong; all zero and nothing seen if nothing is.
#[derive(Debug, Default)]
pub struct Audit {
    pub stored: u64,
    pub skipped: u64,
    pub lost: u64,
    pub doubled: u64,
    pub stuck: u64,
    pub damaged: u64,
    pub seen: Vec<String>,
}

/// So much of what was seen is told.
const SEEN_MAX: usize = 20;

impl Audit {
    pub fn is_clean(&self) -> bool {
        self.lost + self.doubled + self.stuck + self.damaged == 0
    }

    pub fn add(&mut self, other: Audit) {
        self.stored += other.stored;
        self.skipped += other.skipped;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.stuck += other.stuck;
        self.damaged += other.damaged;
        for what in other.seen {
            self.see(what);
        }
    }

    pub fn json(&self) -> Value {
        json!({
            "stored": self.stored,
            "skipped": self.skipped,
            "lost": self.lost,
            "doubled": self.doubled,
            "stuck": self.stuck,
            "damaged": self.damaged,
            "seen": self.seen,
        })
    }

    pub fn in_words(&self) -> String {
        format!(
            "{} events stored, {} skipped; {} lost, {} doubled, {} stuck, {} damaged",
            self.stored, self.skipped, self.lost, self.doubled, self.stuck, self.damaged
        )
    }

    fn see(&mut self, what: String) {
        if self.seen.len() < SEEN_MAX {
            self.seen.push(what);
        }
    }

    fn damage(&mut self, wrong: Vec<Wrong>) {
        self.damaged += wrong.len() as u64;
        for wrong in wrong {
            self.see(wrong.what);
        }
    }

    /// A file that is too damaged to be opened is a finding, not an error of ours.
    fn open<T>(&mut self, opened: Result<Option<T>, OpenError>) -> anyhow::Result<Option<T>> {
        match opened {
            Err(error) if error.is_damage() => {
                self.damaged += 1;
                self.see(error.to_string());
                Ok(None)
            }
            opened => Ok(opened?),
        }
    }
}

/// A child of ours that does not outlive us.
pub struct Process(Child);

impl Process {
    pub fn start(mut command: Command) -> anyhow::Result<Process> {
        Ok(Process(command.spawn()?))
    }

    pub fn kill(&mut self) {
        // It may have ended by itself meanwhile.
        let _ = self.0.kill();
    }

    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }

    pub fn end(&mut self) -> anyhow::Result<ExitStatus> {
        Ok(self.0.wait()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

pub fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}

/// The one place where a bench waits for time to pass.
#[expect(
    clippy::disallowed_methods,
    reason = "a random moment is nothing that could be waited on"
)]
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// Small, seeded and good enough: xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32;
        high % limit.max(1)
    }

    /// A moment before this time is over.
    pub fn moment(&mut self, within: Duration) -> Duration {
        within.mul_f64(f64::from(self.below(10_000)) / 10_000.0)
    }
}

/// When what is told, and for how long.
pub struct Pace {
    pub began: Instant,
    end: Instant,
    /// Marks a second.
    rate: f64,
}

/// So often a home is looked at in the whole time, but not more often than is sensible.
const LOOKS: f64 = 240.0;

impl Pace {
    pub fn new(minutes: f64, rate: f64) -> Pace {
        let began = Instant::now();
        Pace {
            began,
            end: began + Duration::from_secs_f64(minutes * 60.0),
            rate,
        }
    }

    /// Waits until it is a mark's turn; false if the time is over before.
    pub fn wait_for(&self, mark: u32) -> bool {
        self.wait_until(self.began + Duration::from_secs_f64(f64::from(mark) / self.rate))
    }

    pub fn wait_until(&self, moment: Instant) -> bool {
        const LOOK_UP: Duration = Duration::from_millis(100);
        loop {
            let now = Instant::now();
            if now >= self.end || moment >= self.end || platform::interrupted() {
                return false;
            }
            match moment.checked_duration_since(now) {
                Some(left) if !left.is_zero() => pass(left.min(LOOK_UP)),
                _ => return true,
            }
        }
    }

    /// Does something again and again until the time is over.
    pub fn watch(&self, mut look: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let every = ((self.end - self.began).as_secs_f64() / LOOKS).clamp(0.25, 5.0);
        let mut next = self.began;
        while self.wait_until(next) {
            look()?;
            next = Instant::now() + Duration::from_secs_f64(every);
        }
        Ok(())
    }
}

/// What a thread came to.
pub fn join<T>(thread: ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err(anyhow!("a thread of the bench panicked")))
}
