//! The background worker: takes events from the queue and stores what they mean.
//!
//! At most one worker runs per data directory: it holds a file lock. A datagram wakes it, and it ends
//! by itself when idle. When asked to end it finishes the current batch, unless it is waiting for a
//! model. `derive` works on one batch, `converse` has the conversation with a model, `housekeeping`
//! adds the events of a session that hooks missed; this file decides when.

mod converse;
mod derive;
mod embed;
mod housekeeping;
pub mod redo;
pub mod request;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use foreword_core::model::{FailureKind, Millis};
use foreword_core::queue::{Claim, Queue, Readiness};
use foreword_core::spool;
use foreword_core::store::Store;
use foreword_core::text;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::config::Config;
use crate::config::provider;
use crate::home::{self, Home};
use crate::log::{Fact, Log};
use crate::not_kept;
use crate::notes::synthesize::auto;
use crate::notice::Notice;
use crate::platform::{self, Lock};
use crate::service::recover;
use crate::start;
use crate::start::anything_waits;
use derive::{DeriveFailure, Deriver};
use embed::Embedder;
use request::{Requests, Waiting};

/// How a worker's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// There was no work for the idle time, or draining is complete. `left` events are still queued.
    Done { left: u64 },
    /// A signal asked it to end.
    Asked,
    /// Another worker has the lock.
    Other(u32),
    /// The settings changed since the worker started. A new worker must be started, because this one
    /// may lack a key that it needs now.
    Outdated,
    /// The program's file was replaced by another version.
    Replaced,
}

/// Until when a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Idle,
    Drained,
}

const ALL_DONE: WorkerEnd = WorkerEnd::Done { left: 0 };

/// When draining, the worker waits for retries that are due within this time.
const DRAIN_PATIENCE: Millis = 60_000;
/// The most recoveries of a damaged database in a row; after them the worker gives up.
const RECOVERIES_MAX: u32 = 3;
/// The longest time that proposals take; a model may be asked for each.
const PROPOSALS_MAX: Duration = Duration::from_mins(10);
/// The pause after a database could not be written.
const OUTAGE_PAUSE: Millis = 5_000;

/// Runs a worker in this process.
pub fn run(home: &Home, config: &Config, until: Until) -> anyhow::Result<WorkerEnd> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the runtime")?;
    let end = runtime.block_on(async {
        let mut recoveries = 0;
        loop {
            let lock =
                match Lock::acquire(&home.lock()).context("could not take the worker's lock")? {
                    Ok(lock) => lock,
                    Err(holder) => return Ok(WorkerEnd::Other(holder)),
                };
            recover::set_unreleased_aside(home)?;
            housekeeping::finish_recovery(home)?;
            let worked = match Worker::come_up(home, config, until) {
                Ok(mut worker) => {
                    let worked = worker.work_and_propose().await;
                    worker.deriver.end_unused(Millis::MAX).await;
                    note(home, "ended");
                    match worked {
                        Err(error) if error.is::<Moved>() => worker.leave_moved(error),
                        worked => worked,
                    }
                }
                Err(error) => Err(error),
            };
            let end = match worked {
                Err(error) if recover::is_damage(&error) && recoveries < RECOVERIES_MAX => {
                    recoveries += 1;
                    housekeeping::recover(home)?;
                    continue;
                }
                Err(error) if error.is::<Moved>() && recoveries < RECOVERIES_MAX => {
                    recoveries += 1;
                    continue;
                }
                end => end?,
            };
            drop(lock);
            // A hook may have queued an event after the last look and have seen the lock still held,
            // so that it started no worker: look once more.
            if end != ALL_DONE || until == Until::Drained || !anything_waits(home) {
                return anyhow::Ok(end);
            }
        }
    });
    // A proposal may still hang.
    runtime.shutdown_background();
    end
}

/// Makes proposals in a thread; whoever receives learns that it is done.
fn begin_proposals(home: Home, config: Config) -> oneshot::Receiver<()> {
    let (done, is_done) = oneshot::channel();
    std::thread::spawn(move || {
        auto::propose(&home, &config);
        let _ = done.send(());
    });
    is_done
}

/// A database was deleted or replaced while this worker had it open. What it stores from now on would
/// be lost, so it acknowledges nothing more and opens the file again.
#[derive(Debug)]
struct Moved(&'static str);

impl std::error::Error for Moved {}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} was deleted or replaced while the worker had it open; the worker opened the file that is there now, \
             and events that were not stored go into it",
            self.0
        )
    }
}

fn note(home: &Home, what: &str) {
    let id = std::process::id();
    Log::Work.line(home, &format!("worker {id} {what}"));
}

struct Worker<'a> {
    home: &'a Home,
    config: &'a Config,
    until: Until,
    queue: Queue,
    deriver: Deriver,
    requests: Requests,
    signals: [Signal; 2],
    /// Commands that wait until everything is done.
    waiting: Vec<Waiting>,
    /// The time of the last progress.
    progress_at: Millis,
    /// The end of the pause after a failure of a database.
    not_before: Millis,
    /// Whether a claim may exist that could neither be finished nor given back.
    claim_in_doubt: bool,
    house_kept: Millis,
    backup_looked_at: Millis,
    /// The largest batch for sessions of which a batch failed, until one succeeds.
    limits: HashMap<String, u32>,
    /// Sessions without an end event, of which hooks may have missed events.
    open: BTreeSet<String>,
    /// The settings files at the start.
    settings: provider::ProviderFiles,
    /// The embedder, once the sentence model is installed and there is nothing else to do.
    embedder: Option<Embedder>,
}

/// What the worker does after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// There may be more to do at once.
    Again,
    /// Wait until this time or until a message wakes it.
    WaitUntil(Millis),
    End(WorkerEnd),
}

/// The result of looking for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerStep {
    Nothing,
    Something,
    /// A signal asked the worker to end during the work.
    Asked,
}

impl<'a> Worker<'a> {
    fn come_up(home: &'a Home, config: &'a Config, until: Until) -> anyhow::Result<Worker<'a>> {
        // Before the databases are opened: SQLite creates a log with the mode of its database.
        if let Some(line) = home.make_private() {
            Log::Worker.line(home, &line);
        }
        let queue =
            Queue::open(&home.queue(), &home.backups()).context("could not open queue.db")?;
        let store =
            Store::open(&home.memory(), &home.backups()).context("could not open memory.db")?;
        store.check_schema().context("could not use memory.db")?;
        queue.check_schema().context("could not use queue.db")?;
        queue
            .free_claims_of_dead_worker()
            .context("could not free old claims")?;
        store
            .close_abandoned_calls()
            .context("could not complete the ledger")?;
        platform::kill_orphans([
            b"FOREWORD_AGENT=1",
            &[b"FOREWORD_HOME=", home.dir().as_os_str().as_encoded_bytes()].concat(),
        ]);
        let requests =
            Requests::bind(&home.socket()).context("could not open the worker's socket")?;
        let signals = [
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        ];
        Log::Hook.begin(home);
        not_kept::begin(home);
        Log::Worker.begin(home);
        not_kept::begin(home);
        note(home, "came up");
        start::clear_stamp(home);
        let mut deriver = Deriver::new(store, home, config);
        deriver
            .sweep_conversations(home)
            .context("could not look for old conversations")?;
        if until == Until::Drained {
            deriver.leash.lift();
        }
        Ok(Worker {
            home,
            config,
            until,
            queue,
            deriver,
            requests,
            signals,
            waiting: Vec::new(),
            progress_at: home::now(),
            not_before: 0,
            claim_in_doubt: false,
            house_kept: 0,
            backup_looked_at: 0,
            limits: HashMap::new(),
            open: BTreeSet::new(),
            settings: provider::ProviderFiles::read(home),
            embedder: None,
        })
    }

    async fn work(&mut self) -> anyhow::Result<WorkerEnd> {
        loop {
            match self.tick().await? {
                Next::Again => {}
                Next::WaitUntil(time) => {
                    if self.wait(time - self.now()).await {
                        return Ok(WorkerEnd::Asked);
                    }
                }
                Next::End(end) => return Ok(end),
            }
        }
    }

    /// Works until there is nothing left to do, then makes proposals. That is done under the lock, so
    /// that no second worker begins it too, for a limited time, and beside the work that comes meanwhile.
    async fn work_and_propose(&mut self) -> anyhow::Result<WorkerEnd> {
        let mut proposals = None;
        loop {
            match self.work().await? {
                ALL_DONE => {}
                end => return Ok(end),
            }
            let (done, until) = proposals.get_or_insert_with(|| {
                let done = begin_proposals(self.home.clone(), self.config.clone());
                (done, Instant::now() + PROPOSALS_MAX)
            });
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let minutes = PROPOSALS_MAX.as_secs() / 60;
                self.log(&format!("a synthesis was given up after {minutes} minutes"));
                return Ok(ALL_DONE);
            }
            let left = Millis::try_from(left.as_millis()).unwrap_or(Millis::MAX);
            tokio::select! {
                _ = done => return Ok(ALL_DONE),
                asked = self.wait(left) => {
                    if asked {
                        return Ok(WorkerEnd::Asked);
                    }
                }
            }
        }
    }

    /// One round of the worker, without waiting:
    /// 1. End after a signal, or if the settings or the program changed.
    /// 2. Do the housekeeping, then work on the next batch that is ready.
    /// 3. If none is ready and a command waits for everything to be done: answer it, once nothing is
    ///    due soon.
    /// 4. Make a backup if nothing is queued.
    /// 5. End after the idle time, unless a transcript has something that hooks missed.
    /// 6. Have texts indexed by meaning until the next batch is due, and end processes of the model
    ///    that are not used.
    async fn tick(&mut self) -> anyhow::Result<Next> {
        if let Some(end) = self.reason_to_end().await {
            return Ok(Next::End(end));
        }

        self.check_place()?;
        let now = self.now();
        self.mind_the_clock(now);
        self.keep_house(now);
        let drain = self.until == Until::Drained || !self.waiting.is_empty();
        match self.step(now, drain).await? {
            WorkerStep::Something => {
                self.progress_at = self.now();
                return Ok(Next::Again);
            }
            WorkerStep::Asked => return Ok(Next::End(WorkerEnd::Asked)),
            WorkerStep::Nothing => {}
        }

        let next_due = self.next_due(now, drain);
        if next_due.is_none() {
            let _ = self.queue.wipe_log();
        }
        let patient = now < self.progress_at + DRAIN_PATIENCE;
        let soon = next_due.is_some_and(|due| due <= now + DRAIN_PATIENCE);
        if drain && !(soon && patient) {
            return Ok(self.drained(now).await);
        }

        let _ = self.queue.checkpoint();
        if next_due.is_none() && !anything_waits(self.home) {
            self.back_up(now)?;
        }

        // Events that wait for the user need no running worker: the next hook starts one.
        let hopeless = self.is_hopeless(now);
        let next_due = next_due.filter(|_| !hopeless);
        let idle_end = self.progress_at + Millis::from(self.config.worker.idle_seconds) * 1000;
        if next_due.is_none() && now >= idle_end {
            if self.fill_open(now) {
                return Ok(Next::Again);
            }
            let left = if hopeless { self.left() } else { 0 };
            return Ok(Next::End(WorkerEnd::Done { left }));
        }

        if self.copy_notes() {
            return Ok(Next::Again);
        }
        self.embed(self.until);
        let unused = self.deriver.end_unused(now).await.unwrap_or(Millis::MAX);
        let next = next_due.unwrap_or(idle_end).min(unused);
        Ok(Next::WaitUntil(next.max(now + 1)))
    }

    /// Fails if a database was deleted or replaced. Costs a few system calls.
    fn check_place(&self) -> anyhow::Result<()> {
        ensure!(self.deriver.store.is_in_place(), Moved("memory.db"));
        ensure!(self.queue.is_in_place(), Moved("queue.db"));
        Ok(())
    }

    /// Closes the databases after one of them was deleted or replaced. Events of a queue that has no
    /// name any more go into the spool, and from there into the one that is there now.
    fn leave_moved(self, moved: anyhow::Error) -> anyhow::Result<WorkerEnd> {
        let line = moved.to_string();
        Fact::Recovered.record(self.home, &line);
        Notice::Recovered.post(self.home, &line);
        if !self.queue.is_in_place() {
            let spool = self.home.spool();
            self.queue
                .forsake(|event| spool::write(&spool, event))
                .context("could not spool the events of a queue.db that was deleted or replaced")?;
        }
        if !self.deriver.store.is_in_place() {
            self.deriver.store.forsake();
        }
        Err(moved)
    }

    fn now(&self) -> Millis {
        (self.deriver.clock)()
    }

    async fn reason_to_end(&mut self) -> Option<WorkerEnd> {
        if self.asked_to_end().await {
            return Some(WorkerEnd::Asked);
        }
        if self.until == Until::Drained {
            return None;
        }
        // A user who switches a model off expects that to hold from the next call on.
        if provider::ProviderFiles::read(self.home) != self.settings {
            return Some(WorkerEnd::Outdated);
        }
        let replaced = platform::program().is_ok_and(|(_, replaced)| replaced);
        replaced.then_some(WorkerEnd::Replaced)
    }

    /// Corrects times in the future, so that a clock that was set back prolongs neither the idle time
    /// nor a pause.
    fn mind_the_clock(&mut self, now: Millis) {
        let used_at = self.embedder.as_ref().map_or(0, Embedder::used_at);
        self.progress_at = self.progress_at.min(now).max(used_at.min(now));
        self.not_before = self.not_before.min(now + OUTAGE_PAUSE);
    }

    /// The time of the next batch, after the pauses of the databases and of the provider.
    fn next_due(&mut self, now: Millis, drain: bool) -> Option<Millis> {
        let due = self.queue.next_due(now, self.readiness(drain));
        let due = due.unwrap_or_else(|error| {
            self.outage(&format!("could not look at queue.db: {error}"));
            Some(now)
        })?;
        let paused = self.paused_until(now).unwrap_or(0);
        Some(due.max(self.not_before).max(paused))
    }

    /// Answers the commands that wait, because nothing more can be done now.
    async fn drained(&mut self, now: Millis) -> Next {
        if self.fill_open(now) {
            return Next::Again;
        }
        let left = self.left();
        if self.until == Until::Drained {
            return Next::End(WorkerEnd::Done { left });
        }
        self.requests.answer(&mut self.waiting, left).await;
        Next::Again
    }

    /// The number of queued events, without those set aside.
    fn left(&self) -> u64 {
        self.queue.counts().map_or(0, |counts| counts.pending)
    }

    /// Moves spooled events into the queue and works on the next batch. A database that cannot be
    /// used causes a pause; only a damaged one is an error.
    async fn step(&mut self, now: Millis, drain: bool) -> anyhow::Result<WorkerStep> {
        if now < self.not_before {
            return Ok(WorkerStep::Nothing);
        }
        let stepped = match self.take_back().and_then(|()| self.take_in()) {
            Ok(taken) => match self.one_batch(now, drain).await {
                Ok(WorkerStep::Nothing) if taken => Ok(WorkerStep::Something),
                stepped => stepped,
            },
            Err(error) => Err(error),
        };
        stepped.or_else(|error| {
            if recover::is_damage(&error) || error.is::<Moved>() {
                return Err(error);
            }
            self.outage(&format!("{error:#}"));
            Ok(WorkerStep::Nothing)
        })
    }

    fn is_hopeless(&self, now: Millis) -> bool {
        let leash = &self.deriver.leash;
        leash.is_hopeless(&self.deriver.store, now).unwrap_or(false)
    }

    /// The end of the provider's pause; none if it may be asked.
    fn paused_until(&self, now: Millis) -> Option<Millis> {
        let leash = &self.deriver.leash;
        leash.waits_until(&self.deriver.store, now).unwrap_or(None)
    }

    fn readiness(&self, drain: bool) -> Readiness {
        Readiness {
            drain,
            batch_max: self.config.worker.batch_max,
            batch_wait: if drain {
                0
            } else {
                Millis::from(self.config.worker.batch_wait_seconds) * 1000
            },
        }
    }

    /// Frees all claims after a failure of a database; this worker has no batch at that time.
    fn take_back(&mut self) -> anyhow::Result<()> {
        if self.claim_in_doubt {
            self.queue
                .take_back_claims()
                .context("could not take back claims in queue.db")?;
            self.claim_in_doubt = false;
        }
        Ok(())
    }

    /// Moves spooled events into the queue; true if there were some.
    fn take_in(&self) -> anyhow::Result<bool> {
        let count = spool::take_in(&self.home.spool(), &self.queue)
            .context("could not take in the spool")?;
        Ok(count > 0)
    }

    /// Works on the next batch that is ready.
    async fn one_batch(&mut self, now: Millis, drain: bool) -> anyhow::Result<WorkerStep> {
        if self.paused_until(now).is_some() {
            return Ok(WorkerStep::Nothing);
        }
        let (limits, deriver) = (&self.limits, &self.deriver);
        let claim = self
            .queue
            .claim(now, self.readiness(drain), |session| {
                deriver.portion(limits.get(session).copied())
            })
            .context("could not claim from queue.db")?;
        let Some(claim) = claim else {
            return self.close_session(now).await;
        };
        if let Some(embedder) = &self.embedder {
            embedder.pause();
        }
        if self.fill_ended(&claim, now)? {
            // The events that were missed come before the end of the session.
            self.give_back(claim)?;
            return Ok(WorkerStep::Something);
        }
        let [terminate, interrupt] = &mut self.signals;
        let derived = tokio::select! {
            biased;
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
            derived = self.deriver.derive(&claim, now) => Some(derived),
        };
        self.post_notice(now);
        match derived {
            Some(Ok(())) => {
                if let Err(moved) = self.check_place() {
                    self.give_back(claim)?;
                    return Err(moved);
                }
                self.limits.remove(&claim.host_session_id);
                let events = text::count(claim.events.len() as u64, "event", "events");
                let session = text::shorten(&claim.host_session_id, 80);
                let line = format!("{events} of session {session} processed");
                Log::Work.line(self.home, &line);
                self.queue
                    .finish(claim)
                    .context("could not finish in queue.db")?;
            }
            Some(Err(failure)) => return self.failed(claim, failure),
            None => {
                // The call is cancelled; the next worker asks again about these events.
                let _ = self.deriver.store.close_abandoned_calls();
                self.give_back(claim)?;
                return Ok(WorkerStep::Asked);
            }
        }
        Ok(WorkerStep::Something)
    }

    /// Has a model asked about one session that is over.
    async fn close_session(&mut self, now: Millis) -> anyhow::Result<WorkerStep> {
        let [terminate, interrupt] = &mut self.signals;
        let closed = tokio::select! {
            biased;
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
            closed = self.deriver.close_session(now) => Some(closed),
        };
        match closed {
            Some(Ok(false)) => Ok(WorkerStep::Nothing),
            Some(Ok(true)) => {
                self.post_notice(now);
                Ok(WorkerStep::Something)
            }
            Some(Err(DeriveFailure::Paused(failure))) => {
                self.log(&format!(
                    "the last question about a session waits: {}",
                    failure.kind
                ));
                self.post_notice(now);
                Ok(WorkerStep::Nothing)
            }
            Some(Err(DeriveFailure::Storage(error))) => {
                Err(error).context("could not store in memory.db")
            }
            Some(Err(DeriveFailure::Event(error))) => {
                self.log(&format!(
                    "the last question about a session failed: {error}"
                ));
                Ok(WorkerStep::Nothing)
            }
            None => {
                let _ = self.deriver.store.close_abandoned_calls();
                Ok(WorkerStep::Asked)
            }
        }
    }

    /// Tells the user about a model that cannot be asked, or withdraws the line once it can be.
    fn post_notice(&self, now: Millis) {
        match self.deriver.leash.notice(&self.deriver.store, now) {
            Ok(Some(line)) => Notice::Provider.post(self.home, &line),
            Ok(None) => Notice::Provider.withdraw(self.home),
            Err(_) => {}
        }
    }

    fn failed(&mut self, claim: Claim, failure: DeriveFailure) -> anyhow::Result<WorkerStep> {
        let count = claim.events.len();
        let events = text::count(count as u64, "event", "events");
        match failure {
            DeriveFailure::Storage(error) => {
                self.give_back(claim)?;
                Err(error).context("could not store in memory.db")
            }
            DeriveFailure::Paused(failure) => {
                let events = text::count(count as u64, "event waits", "events wait");
                self.log(&format!("{events}: {}", failure.kind));
                // A slow model may manage a smaller batch. The batch does not count as failed.
                if failure.kind == FailureKind::Timeout {
                    self.halve(&claim);
                }
                self.give_back(claim)?;
                Ok(WorkerStep::Nothing)
            }
            DeriveFailure::Event(error) => {
                self.log(&format!("{events} failed"));
                self.limits.remove(&claim.host_session_id);
                self.queue
                    .fail(claim, &error, self.now())
                    .context("could not record a failure in queue.db")?;
                Ok(WorkerStep::Something)
            }
        }
    }

    /// The next batch of this session has half as many events.
    fn halve(&mut self, claim: &Claim) {
        let half = u32::try_from(claim.events.len() / 2).unwrap_or(1);
        self.limits
            .insert(claim.host_session_id.clone(), half.max(1));
    }

    fn give_back(&mut self, claim: Claim) -> anyhow::Result<()> {
        self.queue
            .give_back(claim)
            .context("could not give events back to queue.db")
    }

    fn log(&self, line: &str) {
        Log::Worker.line(self.home, line);
    }

    /// Starts a pause after a failure that no event caused.
    fn outage(&mut self, what: &str) {
        self.not_before = self.now() + OUTAGE_PAUSE;
        self.claim_in_doubt = true;
        Log::Worker.line(
            self.home,
            &format!("{what}; waiting {} s", OUTAGE_PAUSE / 1000),
        );
    }

    async fn asked_to_end(&mut self) -> bool {
        let [terminate, interrupt] = &mut self.signals;
        tokio::select! {
            biased;
            _ = terminate.recv() => true,
            _ = interrupt.recv() => true,
            () = std::future::ready(()) => false,
        }
    }

    /// Sleeps until woken or until the time is over; true when asked to end.
    async fn wait(&mut self, milliseconds: Millis) -> bool {
        let sleep = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
        let [terminate, interrupt] = &mut self.signals;
        tokio::select! {
            _ = terminate.recv() => return true,
            _ = interrupt.recv() => return true,
            request = self.requests.next() => {
                // A command that waits repeats its request.
                if let Some(request) = request.filter(|it| !self.waiting.contains(it)) {
                    self.waiting.push(request);
                    self.deriver.leash.lift();
                }
            }
            () = tokio::time::sleep(sleep) => {}
        }
        false
    }
}

#[cfg(test)]
mod tests;
