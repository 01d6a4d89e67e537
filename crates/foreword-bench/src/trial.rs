//! The harness of `crash`, `load`, `soak` and the crash tests: sessions that send marked events to
//! real hooks, and an audit that looks for every accepted event in both databases.
//!
//! A mark decides all of its event, so a mark that is sent again is the same event. Hooks and
//! workers are processes of their own in a throw-away home (`world`), and end with the trial.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use foreword_core::db::OpenError;
use foreword_core::queue::Queue;
use foreword_core::safety::check::Defect;
use foreword_core::spool;
use foreword_core::store::Store;
use rusqlite::Connection;
use serde::Serialize;
use serde_json::{Value, json};

use super::database::{self, Marks, Processed};
use super::host;
use super::process::{self, pass};
use super::system;
use super::world::World;
use foreword::{platform, start};

/// A turn has a prompt, six tool uses and a stop.
const EVENTS_PER_TURN: u32 = 8;
/// After eight turns the session ends, and another takes its place.
const EVENTS_PER_SESSION: u32 = 8 * EVENTS_PER_TURN;
/// How often `live` calls its watcher in the whole time, within sensible limits.
const LOOKS: f64 = 240.0;

pub struct Trial {
    pub world: World,
    /// How many sessions there are at a time.
    pub sessions: u32,
    /// Bytes of a tool's output.
    pub output: usize,
    /// The marks whose hook ended well.
    pub accepted: BTreeSet<u32>,
    /// How many marks were sent with `send`.
    pub marks: u32,
}

/// Sessions and size of a tool's output in a trial whose processes are killed.
const KILLED_SESSIONS: u32 = 3;
const KILLED_OUTPUT: usize = 300;

impl Trial {
    pub fn new(program: &Path, sessions: u32, output: usize) -> anyhow::Result<Trial> {
        Ok(Trial {
            world: World::new(program)?,
            sessions,
            output,
            accepted: BTreeSet::new(),
            marks: 0,
        })
    }

    /// A trial whose processes are killed: workers start when they are told to, and wait for no
    /// further events. `plant` names a defect that all of its processes have.
    pub fn with_kills(program: &Path, plant: Option<&str>) -> anyhow::Result<Trial> {
        let mut trial = Trial::new(program, KILLED_SESSIONS, KILLED_OUTPUT)?;
        let environment = &mut trial.world.environment;
        environment.push(("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "0".to_owned()));
        if let Some(plant) = plant {
            environment.push((FAULT, format!("plant:{plant}")));
        }
        trial.world.keep_workers_away()?;
        Ok(trial)
    }

    pub fn next_mark(&mut self) -> u32 {
        self.marks += 1;
        self.marks - 1
    }

    /// Runs a hook with the next mark, to its end or to the point at which it dies.
    pub fn send(&mut self, fault: Option<&str>) -> anyhow::Result<(u32, ExitStatus)> {
        let mark = self.next_mark();
        let status = self.tell(mark, fault)?.end()?;
        self.accepted.extend(status.success().then_some(mark));
        Ok((mark, status))
    }

    /// Runs a command of the program, to its end or to the point at which it dies.
    pub fn run(&self, arguments: &[&str], fault: Option<&str>) -> anyhow::Result<ExitStatus> {
        Process::start(self.command(arguments, fault))?.end()
    }

    /// Has a worker process everything, and keeps hooks from starting another.
    pub fn drain(&self) -> anyhow::Result<()> {
        self.world.run(&["worker", "drain"])?;
        self.world.keep_workers_away()
    }

    /// Overwrites the first bytes of both databases.
    pub fn damage(&self) -> anyhow::Result<()> {
        let home = &self.world.home;
        Queue::open(&home.queue(), &home.backups())?.vacuum()?;
        Store::open(&home.memory(), &home.backups())?.vacuum()?;
        for path in [home.queue(), home.memory()] {
            let mut bytes = std::fs::read(&path)?;
            bytes.iter_mut().take(100).for_each(|it| *it = 0x5a);
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }

    /// The hook that sends a mark, and its input.
    pub fn event(&self, mark: u32) -> (&'static str, String) {
        let (hook, event, own) = match self.number(mark) % EVENTS_PER_TURN {
            0 => (
                "new",
                "UserPromptSubmit",
                json!({"prompt": format!("Find out why part {mark} fails; mark-{mark}-")}),
            ),
            last if last == EVENTS_PER_TURN - 1 => (
                "summary",
                "Stop",
                json!({"last_assistant_message": format!("Part {mark} is mended: mark-{mark}-")}),
            ),
            _ => (
                "save",
                "PostToolUse",
                json!({
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
        (hook, self.input(mark, event, own))
    }

    fn input(&self, mark: u32, event: &str, own: Value) -> String {
        let (place, number) = (mark % self.sessions, self.number(mark));
        let session = format!("session-{place}-{}", number / EVENTS_PER_SESSION);
        let turn = format!("{session}-prompt-{}", number / EVENTS_PER_TURN);
        host::input(&self.world.host.project, &session, &turn, event, own)
    }

    /// Starts the hook of a session's begin or end, whose event carries no mark.
    pub fn border(&self, hook: &str, mark: u32) -> anyhow::Result<Process> {
        let input = match hook {
            "context" => self.input(mark, "SessionStart", json!({"source": "startup"})),
            _ => self.input(mark, "SessionEnd", json!({"reason": "other"})),
        };
        self.start(hook, &input, None)
    }

    pub fn is_first_of_session(&self, mark: u32) -> bool {
        self.number(mark).is_multiple_of(EVENTS_PER_SESSION)
    }

    /// Which event of its place this is. Not all sessions change at once.
    fn number(&self, mark: u32) -> u32 {
        mark / self.sessions + mark % self.sessions * EVENTS_PER_TURN
    }

    /// Starts the hook that sends a mark.
    pub fn tell(&self, mark: u32, fault: Option<&str>) -> anyhow::Result<Process> {
        let (hook, input) = self.event(mark);
        self.start(hook, &input, fault)
    }

    fn start(&self, hook: &str, input: &str, fault: Option<&str>) -> anyhow::Result<Process> {
        let mut process = Process::start(self.command(&[hook], fault))?;
        // A hook that was killed does not read its input.
        if let Some(mut stdin) = process.0.stdin.take() {
            let _ = stdin.write_all(input.as_bytes());
        }
        Ok(process)
    }

    /// Tells marks at a rate a second until the time is over, each session in a thread of its own,
    /// while somebody watches how many were told.
    pub fn live<T: Send>(
        &self,
        minutes: f64,
        rate: f64,
        tell: impl Fn(u32) -> anyhow::Result<T> + Sync,
        mut watch: impl FnMut(u32) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<T>> {
        let began = Instant::now();
        let end = began + Duration::from_secs_f64(minutes * 60.0);
        let every = Duration::from_secs_f64((minutes * 60.0 / LOOKS).clamp(0.25, 5.0));
        let told = AtomicU32::new(0);
        let (tell, told) = (&tell, &told);
        let live = |place: u32| -> anyhow::Result<Vec<T>> {
            let marks = (place..).step_by(self.sessions as usize);
            let turn = |mark| began + Duration::from_secs_f64(f64::from(mark) / rate);
            let marks = marks.take_while(|mark| wait_until(turn(*mark), end));
            let tell = |mark| tell(mark).inspect(|_| _ = told.fetch_add(1, Ordering::Relaxed));
            marks.map(tell).collect()
        };
        std::thread::scope(|scope| {
            let sessions = 0..self.sessions;
            let sessions: Vec<_> = sessions
                .map(|place| scope.spawn(move || live(place)))
                .collect();
            let mut watched = Ok(());
            let mut next = began;
            while watched.is_ok() && wait_until(next, end) {
                watched = watch(told.load(Ordering::Relaxed));
                next = Instant::now() + every;
            }
            let mut all = Vec::new();
            for session in sessions {
                let told = session.join();
                all.extend(told.map_err(|_| anyhow!("a thread of the bench panicked"))??);
            }
            watched?;
            ensure!(!system::interrupted(), "interrupted");
            Ok(all)
        })
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

    /// Kills the workers that hooks have started and waits until they are gone; returns how many.
    pub fn kill_workers(&self) -> u32 {
        let workers = process::that_know(self.world.home.dir());
        for &worker in &workers {
            platform::kill_group(worker);
        }
        process::left_over(self.world.home.dir(), Duration::from_secs(1));
        workers.len() as u32
    }

    /// Looks for everything that was accepted, when all is processed.
    pub fn audit(&self) -> anyhow::Result<Audit> {
        let mut audit = Audit::default();
        self.add_to(&mut audit)?;
        Ok(audit)
    }

    /// The same, beside what was found in other homes.
    pub fn add_to(&self, audit: &mut Audit) -> anyhow::Result<()> {
        let home = &self.world.home;
        let queue = audit.open(Queue::look(&home.queue()))?;
        let store = audit.open(Store::look(&home.memory()))?;
        let (mut stored, mut queued) = (Marks::new(), Marks::new());
        if store.is_some() {
            let memory = database::look(&home.memory())?;
            stored = database::marks(&memory)?;
            audit.add_repeated(&memory)?;
        }
        if queue.is_some() {
            queued = database::marks(&database::look(&home.queue())?)?;
        }
        let count = |mark: &u32| stored.get(mark).unwrap_or(&0) + queued.get(mark).unwrap_or(&0);
        for mark in self.accepted.iter().filter(|mark| count(mark) == 0) {
            audit.lost += 1;
            audit.see(format!("mark {mark} is lost"));
        }
        // An event that was stored and came back is stored twice, or is in both databases.
        for mark in stored.keys().filter(|mark| count(mark) > 1) {
            audit.doubled += 1;
            audit.see(format!("mark {mark} is there {} times", count(mark)));
        }
        audit.stored += stored.len() as u64;
        if let Some(store) = store {
            audit.damage(store.check()?);
        }
        if let Some(queue) = queue {
            let counts = queue.counts()?;
            let pending = counts.pending;
            audit.skipped += counts.skipped;
            audit.stuck += pending;
            if pending > 0 {
                audit.see(format!("{pending} events are left in the queue"));
            }
            // Claimed events are counted as stuck above.
            audit.damage(queue.check(true)?);
        }
        let spooled = spool::waiting(&home.spool())?.len() + spool::unreadable(&home.spool())?;
        audit.stuck += spooled as u64;
        if spooled > 0 {
            audit.see(format!("{spooled} events are left in the spool"));
        }
        Ok(())
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // No worker is starting: the stamp was left by `keep_workers_away`.
        self.kill_workers();
        start::clear_stamp(&self.world.home);
    }
}

const FAULT: &str = "FOREWORD_FAULT";

/// What is wrong; all zero and nothing seen if nothing is.
#[derive(Debug, Default, Serialize)]
pub struct Audit {
    pub stored: u64,
    pub skipped: u64,
    pub lost: u64,
    pub doubled: u64,
    pub stuck: u64,
    pub damaged: u64,
    pub seen: Vec<String>,
}

/// The report lists at most this many findings.
const SEEN_MAX: usize = 20;

impl Audit {
    pub fn is_clean(&self) -> bool {
        self.lost + self.doubled + self.stuck + self.damaged == 0
    }

    fn see(&mut self, what: String) {
        if self.seen.len() < SEEN_MAX {
            self.seen.push(what);
        }
    }

    /// What was derived a second time, and events that are processed but not stored.
    fn add_repeated(&mut self, memory: &Connection) -> anyhow::Result<()> {
        let twice = database::derived_twice(memory)?;
        self.doubled += twice;
        if twice > 0 {
            self.see(format!("{twice} prompts, observations or summaries twice"));
        }
        let Processed {
            processed, events, ..
        } = database::processed(memory)?;
        let missing = processed.saturating_sub(events);
        self.damaged += missing;
        if missing > 0 {
            self.see(format!("{missing} events are processed but not stored"));
        }
        Ok(())
    }

    fn damage(&mut self, wrong: Vec<Defect>) {
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

/// Waits for a moment; false if the time is over before.
fn wait_until(moment: Instant, end: Instant) -> bool {
    const LOOK_UP: Duration = Duration::from_millis(100);
    loop {
        let now = Instant::now();
        if now >= end || moment >= end || system::interrupted() {
            return false;
        }
        if moment <= now {
            return true;
        }
        pass((moment - now).min(LOOK_UP));
    }
}
