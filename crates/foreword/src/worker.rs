//! The background worker: takes events from the queue and stores what they mean.
//!
//! At most one per data directory: a file lock is the only authority. It is
//! woken by a datagram, ends by itself when idle, and finishes the batch in hand
//! when asked to end, unless a model is still to answer. `derive` is the work on one batch,
//! `fill` adds what hooks missed of a session; this file decides when.

mod derive;
mod embed;
mod fill;
mod house;
pub mod redo;
pub mod request;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use anyhow::Context as _;
use foreword_core::model::{FailureKind, Millis};
use foreword_core::queue::{Claim, Queue, Readiness};
use foreword_core::spool;
use foreword_core::store::Store;
use foreword_core::text;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::Config;
use crate::config::provider::{self};
use crate::home::{self, Home};
use crate::log::Log;
use crate::notes::synthesize::auto;
use crate::notice::Matter;
use crate::platform::{self, Lock};
use crate::service::{recover, unreleased};
use crate::start;
use crate::start::control::anything_waits;
use derive::Deriver;
use embed::Embedder;
use request::{Requests, Waiting};

/// How a worker's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing to do for the idle time, or all done when draining.
    Done { left: u64 },
    /// Asked to by a signal.
    Asked,
    /// Another worker has the lock.
    Other(u32),
    /// The settings are no longer those that it came up with. Perhaps it was not even given
    /// the key that it needs now: another worker has to be started.
    Outdated,
    /// Another version of the program is in its place.
    Replaced,
}

/// Until when a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Idle,
    Drained,
}

const ALL_DONE: End = End::Done { left: 0 };

/// Retries that are due within this time are worth waiting for when draining.
const DRAIN_PATIENCE: Millis = 60_000;
/// So often in a row a damaged database is recovered, before a person has to look.
const RECOVERIES_MAX: u32 = 3;
/// When a database cannot be written, everything waits this long.
const OUTAGE_PAUSE: Millis = 5_000;

/// Runs a worker in this process.
pub fn run(home: &Home, config: &Config, until: Until) -> anyhow::Result<End> {
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
                    Err(holder) => return Ok(End::Other(holder)),
                };
            unreleased::set_aside(home)?;
            house::finish_recovery(home)?;
            let worked = match Worker::come_up(home, config, until) {
                Ok(mut worker) => {
                    let worked = worker.work().await;
                    note(home, "ended");
                    worked
                }
                Err(error) => Err(error),
            };
            let end = match worked {
                Err(error) if recover::is_damage(&error) && recoveries < RECOVERIES_MAX => {
                    recoveries += 1;
                    house::recover(home)?;
                    continue;
                }
                end => end?,
            };
            drop(lock);
            // A hook may have pushed after the last look and seen the lock still
            // held: look once more, now that a new worker could be started.
            if end != ALL_DONE || until == Until::Drained || !anything_waits(home) {
                return anyhow::Ok(end);
            }
        }
    })?;
    if end == ALL_DONE {
        auto::propose(home, config);
    }
    Ok(end)
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
    /// Someone waits for everything to be done.
    waiting: Vec<Waiting>,
    /// When something was last done.
    progress_at: Millis,
    /// Until when an outage of the databases is waited for.
    not_before: Millis,
    /// A claim may be left that could neither be finished nor given back.
    claim_in_doubt: bool,
    house_kept: Millis,
    backup_looked_at: Millis,
    /// A session of which a batch failed is taken up in smaller parts, until one goes well.
    limits: HashMap<String, u32>,
    /// Sessions that were heard of and did not say goodbye, of which hooks may have missed something.
    open: BTreeSet<String>,
    /// What it came up with.
    settings: provider::ProviderFiles,
    /// Once there is a model, and nothing else to do.
    embedder: Option<Embedder>,
}

/// What a worker does after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// There may be more to do at once.
    Again,
    /// Nothing before this time, unless somebody wakes it.
    WaitUntil(Millis),
    End(End),
}

/// What came of looking for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    Something,
    /// Asked to end in the middle of it.
    Asked,
}

impl<'a> Worker<'a> {
    fn come_up(home: &'a Home, config: &'a Config, until: Until) -> anyhow::Result<Worker<'a>> {
        let queue =
            Queue::open(&home.queue(), &home.backups()).context("could not open queue.db")?;
        let store =
            Store::open(&home.memory(), &home.backups()).context("could not open memory.db")?;
        queue
            .free_claims_of_the_dead()
            .context("could not free old claims")?;
        store
            .close_calls_of_the_dead()
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
        Log::Worker.begin(home);
        note(home, "came up");
        start::clear_stamp(home);
        let mut deriver = Deriver::new(store, home, config);
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

    async fn work(&mut self) -> anyhow::Result<End> {
        loop {
            match self.tick().await? {
                Next::Again => {}
                Next::WaitUntil(time) => {
                    if self.wait(time - self.now()).await {
                        return Ok(End::Asked);
                    }
                }
                Next::End(end) => return Ok(end),
            }
        }
    }

    /// One round of the worker, without waiting:
    /// 1. End if a signal, other settings or another program ask for it.
    /// 2. Keep house, then work on the next batch that is ready.
    /// 3. If none is and somebody waits for everything to be done: answer, once nothing is due soon.
    /// 4. Back up if nothing waits.
    /// 5. End after the idle time, unless a transcript has something that hooks missed.
    /// 6. Have texts indexed by meaning until the next batch is due.
    async fn tick(&mut self) -> anyhow::Result<Next> {
        if let Some(end) = self.reason_to_end().await {
            return Ok(Next::End(end));
        }

        let now = self.now();
        self.mind_the_clock(now);
        self.keep_house(now);
        let drain = self.until == Until::Drained || !self.waiting.is_empty();
        match self.step(now, drain).await? {
            Step::Something => {
                self.progress_at = self.now();
                return Ok(Next::Again);
            }
            Step::Asked => return Ok(Next::End(End::Asked)),
            Step::Nothing => {}
        }

        let next_due = self.next_due(now, drain);
        let patient = now < self.progress_at + DRAIN_PATIENCE;
        let soon = next_due.is_some_and(|due| due <= now + DRAIN_PATIENCE);
        if drain && !(soon && patient) {
            return Ok(self.drained(now).await);
        }

        let _ = self.queue.checkpoint();
        if next_due.is_none() && !anything_waits(self.home) {
            self.back_up(now)?;
        }

        // Events that wait for a person wait without a worker: the next hook starts one.
        let hopeless = self.is_hopeless(now);
        let next_due = next_due.filter(|_| !hopeless);
        let idle_end = self.progress_at + Millis::from(self.config.worker.idle_seconds) * 1000;
        if next_due.is_none() && now >= idle_end {
            if self.fill_open(now) {
                return Ok(Next::Again);
            }
            let left = if hopeless { self.left() } else { 0 };
            return Ok(Next::End(End::Done { left }));
        }

        self.embed(self.until);
        Ok(Next::WaitUntil(next_due.unwrap_or(idle_end).max(now + 1)))
    }

    fn now(&self) -> Millis {
        (self.deriver.clock)()
    }

    async fn reason_to_end(&mut self) -> Option<End> {
        if self.asked_to_end().await {
            return Some(End::Asked);
        }
        if self.until == Until::Drained {
            return None;
        }
        // A user who switches a model off means the next call, not the next worker.
        if provider::ProviderFiles::read(self.home) != self.settings {
            return Some(End::Outdated);
        }
        let replaced = platform::program().is_ok_and(|(_, replaced)| replaced);
        replaced.then_some(End::Replaced)
    }

    /// A clock that was put back must not keep an idle worker alive for that long, nor an outage.
    fn mind_the_clock(&mut self, now: Millis) {
        let used_at = self.embedder.as_ref().map_or(0, Embedder::used_at);
        self.progress_at = self.progress_at.min(now).max(used_at.min(now));
        self.not_before = self.not_before.min(now + OUTAGE_PAUSE);
    }

    /// When the next batch can be worked on: neither before an outage nor a pause is over.
    fn next_due(&mut self, now: Millis, drain: bool) -> Option<Millis> {
        let due = self.queue.next_due(now, self.readiness(drain));
        let due = due.unwrap_or_else(|error| {
            self.outage(&format!("could not look at queue.db: {error}"));
            Some(now)
        })?;
        let paused = self.paused_until(now).unwrap_or(0);
        Some(due.max(self.not_before).max(paused))
    }

    /// Nothing more can be done now for whoever waits for everything to be done.
    async fn drained(&mut self, now: Millis) -> Next {
        if self.fill_open(now) {
            return Next::Again;
        }
        let left = self.left();
        if self.until == Until::Drained {
            return Next::End(End::Done { left });
        }
        self.requests.answer(&mut self.waiting, left).await;
        Next::Again
    }

    /// How many events are in the queue, apart from those set aside.
    fn left(&self) -> u64 {
        self.queue.counts().map_or(0, |counts| counts.pending)
    }

    /// Takes in what was spooled and works on the next batch. A database that cannot be
    /// used is an outage; only one that is damaged is an end.
    async fn step(&mut self, now: Millis, drain: bool) -> anyhow::Result<Step> {
        if now < self.not_before {
            return Ok(Step::Nothing);
        }
        let stepped = match self.take_back().and_then(|()| self.take_in()) {
            Ok(taken) => match self.one_batch(now, drain).await {
                Ok(Step::Nothing) if taken => Ok(Step::Something),
                stepped => stepped,
            },
            Err(error) => Err(error),
        };
        stepped.or_else(|error| {
            if recover::is_damage(&error) {
                return Err(error);
            }
            self.outage(&format!("{error:#}"));
            Ok(Step::Nothing)
        })
    }

    fn is_hopeless(&self, now: Millis) -> bool {
        let leash = &self.deriver.leash;
        leash.is_hopeless(&self.deriver.store, now).unwrap_or(false)
    }

    /// Until when the provider is left alone; none if it may be asked.
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

    /// After an outage: this worker has no batch in hand, so what is claimed is free.
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
    async fn one_batch(&mut self, now: Millis, drain: bool) -> anyhow::Result<Step> {
        if self.paused_until(now).is_some() {
            return Ok(Step::Nothing);
        }
        let (limits, deriver) = (&self.limits, &self.deriver);
        let claim = self
            .queue
            .claim(now, self.readiness(drain), |session| {
                deriver.portion(limits.get(session).copied())
            })
            .context("could not claim from queue.db")?;
        let Some(claim) = claim else {
            return Ok(Step::Nothing);
        };
        if let Some(embedder) = &self.embedder {
            embedder.pause();
        }
        if self.fill_ended(&claim, now)? {
            // What was missing belongs before the end.
            self.give_back(claim)?;
            return Ok(Step::Something);
        }
        let [terminate, interrupt] = &mut self.signals;
        let derived = tokio::select! {
            biased;
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
            derived = self.deriver.derive(&claim, now) => Some(derived),
        };
        match self.deriver.leash.notice(&self.deriver.store, now) {
            Ok(Some(line)) => Matter::Provider.tell(self.home, &line),
            Ok(None) => Matter::Provider.take_back(self.home),
            Err(_) => {}
        }
        match derived {
            Some(Ok(())) => {
                self.limits.remove(&claim.host_session_id);
                let events = text::count(claim.events.len() as u64, "event", "events");
                let session = text::shorten(&claim.host_session_id, 80);
                Log::Work.line(
                    self.home,
                    &format!("{events} of session {session} taken in"),
                );
                self.queue
                    .finish(claim)
                    .context("could not finish in queue.db")?;
            }
            Some(Err(failure)) => return self.failed(claim, failure),
            None => {
                // The call is broken off; what it was about is asked again later.
                let _ = self.deriver.store.close_calls_of_the_dead();
                self.give_back(claim)?;
                return Ok(Step::Asked);
            }
        }
        Ok(Step::Something)
    }

    fn failed(&mut self, claim: Claim, failure: derive::Failure) -> anyhow::Result<Step> {
        let count = claim.events.len();
        let events = text::count(count as u64, "event", "events");
        match failure {
            derive::Failure::Storage(error) => {
                self.give_back(claim)?;
                Err(error).context("could not store in memory.db")
            }
            derive::Failure::Paused(failure) => {
                let events = text::count(count as u64, "event waits", "events wait");
                self.log(&format!("{events}: {}", failure.kind));
                // A slow model may manage less at once. Nothing counts, whatever it was.
                if failure.kind == FailureKind::Timeout {
                    self.halve(&claim);
                }
                self.give_back(claim)?;
                Ok(Step::Nothing)
            }
            derive::Failure::Event(_) if count > 1 && self.deriver.splits() => {
                self.log(&format!("{events} failed together; in two parts next"));
                self.halve(&claim);
                self.give_back(claim)?;
                Ok(Step::Something)
            }
            derive::Failure::Event(error) => {
                self.log(&format!("{events} failed"));
                self.limits.remove(&claim.host_session_id);
                self.queue
                    .fail(claim, &error, self.now())
                    .context("could not record a failure in queue.db")?;
                Ok(Step::Something)
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

    /// Nothing that an event could be blamed for: everything waits.
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
                // Who waits asks again from time to time.
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
