//! The harness of `crash`, `load`, `soak` and the crash tests: sessions that send marked events to
//! real hooks, and an audit that looks for every accepted event in both databases.
//!
//! A mark is a number that determines its whole event, so sending a mark again sends the same event.
//! Hooks and workers are processes of their own in a throw-away home (`sandbox`), and end with the trial.

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

use super::database::{self, Marks, Processed};
use super::host::{self, HostEvent};
use super::process::{self, sleep};
use super::sandbox::BenchSandbox;
use super::system;
use foreword::{platform, start};

/// A turn has a prompt, six tool uses and a stop.
const EVENTS_PER_TURN: u32 = 8;
/// A session has eight turns, then another session takes its place.
const EVENTS_PER_SESSION: u32 = 8 * EVENTS_PER_TURN;
/// How often `live` calls its watcher, unless that is oftener than four times a second or rarer than
/// every five seconds.
const WATCHES: f64 = 240.0;

/// A sandbox, and the marks that were sent in it.
pub struct Trial {
    pub sandbox: BenchSandbox,
    /// How many sessions there are at a time.
    pub sessions: u32,
    /// Bytes of a tool's output.
    pub output: usize,
    /// The marks whose hook exited successfully.
    pub accepted: BTreeSet<u32>,
    /// How many marks were sent with `send`.
    pub marks: u32,
}

/// Sessions in a trial whose processes are killed.
const KILLED_SESSIONS: u32 = 3;
/// Bytes of a tool's output in a trial whose processes are killed.
const KILLED_OUTPUT: usize = 300;

impl Trial {
    pub fn new(program: &Path, sessions: u32, output: usize) -> anyhow::Result<Trial> {
        Ok(Trial {
            sandbox: BenchSandbox::new(program)?,
            sessions,
            output,
            accepted: BTreeSet::new(),
            marks: 0,
        })
    }

    /// A trial whose processes are killed: hooks start no workers, and workers do not wait for
    /// further events. `plant` names a defect that all of its processes have.
    pub fn with_kills(program: &Path, plant: Option<&str>) -> anyhow::Result<Trial> {
        let mut trial = Trial::new(program, KILLED_SESSIONS, KILLED_OUTPUT)?;
        let environment = &mut trial.sandbox.environment;
        environment.push(("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "0".to_owned()));
        if let Some(plant) = plant {
            environment.push((FAULT, format!("plant:{plant}")));
        }
        trial.sandbox.keep_workers_away()?;
        Ok(trial)
    }

    pub fn next_mark(&mut self) -> u32 {
        self.marks += 1;
        self.marks - 1
    }

    /// Runs the hook of the next mark, to its end or to the point at which it dies.
    pub fn send(&mut self, fault: Option<&str>) -> anyhow::Result<(u32, ExitStatus)> {
        let mark = self.next_mark();
        let status = self.start_marked(mark, fault)?.end()?;
        self.accepted.extend(status.success().then_some(mark));
        Ok((mark, status))
    }

    /// Runs a command of the program, to its end or to the point at which it dies.
    pub fn run(&self, arguments: &[&str], fault: Option<&str>) -> anyhow::Result<ExitStatus> {
        ChildGuard::start(self.command(arguments, fault))?.end()
    }

    /// Has a worker process everything, and keeps hooks from starting another.
    pub fn drain(&self) -> anyhow::Result<()> {
        self.sandbox.run(&["worker", "drain"])?;
        self.sandbox.keep_workers_away()
    }

    /// Overwrites the first bytes of both databases.
    pub fn damage(&self) -> anyhow::Result<()> {
        let home = &self.sandbox.home;
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
        let (hook, event) = match self.number(mark) % EVENTS_PER_TURN {
            0 => {
                let prompt = format!("Find out why part {mark} fails; mark-{mark}-");
                ("new", host::prompt_sent(&prompt))
            }
            last if last == EVENTS_PER_TURN - 1 => {
                let reply = format!("Part {mark} is mended: mark-{mark}-");
                ("summary", host::turn_ended(&reply))
            }
            _ => {
                let (id, command) = (format!("call-{mark}"), format!("make part{mark}"));
                let output = format!("mark-{mark}-\n{}", host::code(self.output));
                ("save", host::command_ran(&id, &command, &output))
            }
        };
        (hook, self.input(mark, event))
    }

    fn input(&self, mark: u32, event: HostEvent) -> String {
        let (place, number) = (mark % self.sessions, self.number(mark));
        let session = format!("session-{place}-{}", number / EVENTS_PER_SESSION);
        let turn = format!("{session}-prompt-{}", number / EVENTS_PER_TURN);
        host::input(&self.sandbox.host.project, &session, &turn, event)
    }

    /// Starts the hook of a session's start or end, whose event has no mark.
    pub fn start_unmarked(&self, hook: &str, mark: u32) -> anyhow::Result<ChildGuard> {
        let input = match hook {
            "context" => self.input(mark, host::session_started()),
            _ => self.input(mark, host::session_ended()),
        };
        self.start(hook, &input, None)
    }

    pub fn is_first_of_session(&self, mark: u32) -> bool {
        self.number(mark).is_multiple_of(EVENTS_PER_SESSION)
    }

    /// The number of a mark's event among those of its place. The places are offset, so that not all
    /// sessions end at once.
    fn number(&self, mark: u32) -> u32 {
        mark / self.sessions + mark % self.sessions * EVENTS_PER_TURN
    }

    /// Starts the hook that sends a mark.
    pub fn start_marked(&self, mark: u32, fault: Option<&str>) -> anyhow::Result<ChildGuard> {
        let (hook, input) = self.event(mark);
        self.start(hook, &input, fault)
    }

    fn start(&self, hook: &str, input: &str, fault: Option<&str>) -> anyhow::Result<ChildGuard> {
        let mut process = ChildGuard::start(self.command(&[hook], fault))?;
        // Writing fails if the hook was killed before it read its input.
        if let Some(mut stdin) = process.0.stdin.take() {
            let _ = stdin.write_all(input.as_bytes());
        }
        Ok(process)
    }

    /// Sends marks at a rate a second until the time is over, each session in a thread of its own.
    /// `watch` is called at intervals with the number of marks that were sent.
    pub fn live<T: Send>(
        &self,
        minutes: f64,
        rate: f64,
        send: impl Fn(u32) -> anyhow::Result<T> + Sync,
        mut watch: impl FnMut(u32) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<T>> {
        let began = Instant::now();
        let end = began + Duration::from_secs_f64(minutes * 60.0);
        let every = Duration::from_secs_f64((minutes * 60.0 / WATCHES).clamp(0.25, 5.0));
        let sent = AtomicU32::new(0);
        let (send, sent) = (&send, &sent);
        let live = |place: u32| -> anyhow::Result<Vec<T>> {
            let marks = (place..).step_by(self.sessions as usize);
            let turn = |mark| began + Duration::from_secs_f64(f64::from(mark) / rate);
            let marks = marks.take_while(|mark| wait_until(turn(*mark), end));
            let send = |mark| send(mark).inspect(|_| _ = sent.fetch_add(1, Ordering::Relaxed));
            marks.map(send).collect()
        };
        std::thread::scope(|scope| {
            let sessions = 0..self.sessions;
            let sessions: Vec<_> = sessions
                .map(|place| scope.spawn(move || live(place)))
                .collect();
            let mut watched = Ok(());
            let mut next = began;
            while watched.is_ok() && wait_until(next, end) {
                watched = watch(sent.load(Ordering::Relaxed));
                next = Instant::now() + every;
            }
            let mut all = Vec::new();
            for session in sessions {
                let results = session.join();
                all.extend(results.map_err(|_| anyhow!("a thread of the bench panicked"))??);
            }
            watched?;
            ensure!(!system::interrupted(), "interrupted");
            Ok(all)
        })
    }

    /// A command of the program, which dies at the point `fault` if one is given.
    pub fn command(&self, arguments: &[&str], fault: Option<&str>) -> Command {
        let sandbox = &self.sandbox;
        let mut command = sandbox.command(&sandbox.program, arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(point) = fault {
            let planted = sandbox.environment.iter().find(|(name, _)| *name == FAULT);
            let planted = planted.map(|(_, plant)| format!("{plant},"));
            command.env(FAULT, planted.unwrap_or_default() + point);
        }
        command
    }

    /// Kills the workers that hooks have started and waits until they are gone; returns how many.
    pub fn kill_workers(&self) -> u32 {
        let workers = process::started_for(self.sandbox.home.dir());
        for &worker in &workers {
            platform::kill_group(worker);
        }
        process::left_over(self.sandbox.home.dir(), Duration::from_secs(1));
        workers.len() as u32
    }

    /// Checks that every accepted event is stored once. All events must be processed by then.
    pub fn audit(&self) -> anyhow::Result<Audit> {
        let mut audit = Audit::default();
        self.add_to(&mut audit)?;
        Ok(audit)
    }

    /// The same; adds to the findings of other homes.
    pub fn add_to(&self, audit: &mut Audit) -> anyhow::Result<()> {
        let home = &self.sandbox.home;
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
        // An event that was processed twice is stored twice, or is in both databases.
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
        // The stamp is that of `keep_workers_away`: no worker is starting, so none is waited for.
        self.kill_workers();
        start::clear_stamp(&self.sandbox.home);
    }
}

/// The variable that names a point to die at, or a planted defect.
pub(crate) const FAULT: &str = "FOREWORD_FAULT";

/// Counts of stored events and of faults, with a text for each fault.
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

    /// Adds results that were derived twice, and events that are processed but not stored.
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

    /// Counts a file that is too damaged to be opened as a finding, not as an error of the audit.
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

/// A child process that is killed when this is dropped.
pub struct ChildGuard(Child);

impl ChildGuard {
    pub fn start(mut command: Command) -> anyhow::Result<ChildGuard> {
        Ok(ChildGuard(command.spawn()?))
    }

    pub fn kill(&mut self) {
        // Fails if the process has ended meanwhile.
        let _ = self.0.kill();
    }

    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }

    pub fn end(&mut self) -> anyhow::Result<ExitStatus> {
        Ok(self.0.wait()?)
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

pub fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}

/// Waits for a moment; false if the end comes first.
fn wait_until(moment: Instant, end: Instant) -> bool {
    const CHECK_EVERY: Duration = Duration::from_millis(100);
    loop {
        let now = Instant::now();
        if now >= end || moment >= end || system::interrupted() {
            return false;
        }
        if moment <= now {
            return true;
        }
        sleep((moment - now).min(CHECK_EVERY));
    }
}
