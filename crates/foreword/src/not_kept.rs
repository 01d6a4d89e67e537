//! Counts what was not kept, by reason and hook: the numbers that `status`, `dropped` and `doctor`
//! show.
//!
//! The counters are one file of a fixed size, which is written as a whole when it is created and
//! then changed in place. So a count needs no new block on the disk, and events that a full disk
//! costs are counted too. The file holds numbers only, never content. A count that cannot be written
//! is lost: a hook has nowhere else to report it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use foreword_core::capture::Drop;
use foreword_core::files::{self, SMALL_MAX};
use foreword_core::host::Hook;
use foreword_core::model::Millis;
use foreword_core::text;

use crate::home::{self, Home};
use crate::local_time;
use crate::platform::deadline::PartingCount;

/// Why an event, or a part of one, was not kept. The number is its place in the file, so it never
/// changes and is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    CouldNotWrite = 0,
    TooLarge = 1,
    Deadline = 2,
    NotUnderstood = 3,
    BrokenSettings = 4,
    Off = 5,
    OwnRun = 6,
    BoringTool = 7,
    OwnTool = 8,
    ExcludedProject = 9,
    ExcludedPath = 10,
    OtherEvent = 11,
    SecretPart = 12,
    LargePart = 13,
    LateReminder = 14,
}

impl Reason {
    const ALL: [Reason; 15] = [
        Reason::CouldNotWrite,
        Reason::TooLarge,
        Reason::Deadline,
        Reason::NotUnderstood,
        Reason::BrokenSettings,
        Reason::Off,
        Reason::OwnRun,
        Reason::BoringTool,
        Reason::OwnTool,
        Reason::ExcludedProject,
        Reason::ExcludedPath,
        Reason::OtherEvent,
        Reason::SecretPart,
        Reason::LargePart,
        Reason::LateReminder,
    ];

    /// What was not kept, as `foreword dropped` shows it.
    pub fn words(self) -> &'static str {
        match self {
            Reason::CouldNotWrite => "an event that could not be written",
            Reason::TooLarge => "an event that was too large",
            Reason::Deadline => "an event that was not ready when the hook's time was over",
            Reason::NotUnderstood => "input of a hook that was not understood",
            Reason::BrokenSettings => "an event while the settings could not be read",
            Reason::Off => "an event while Foreword was switched off",
            Reason::OwnRun => "one of Foreword's own agent runs",
            Reason::BoringTool => "the use of a tool that leaves nothing to remember",
            Reason::OwnTool => "a call to Foreword itself",
            Reason::ExcludedProject => "an excluded project",
            Reason::ExcludedPath => "an excluded path",
            Reason::OtherEvent => "an event that this command does not handle",
            Reason::SecretPart => "a secret or private part of an event",
            Reason::LargePart => "a part of an event that was too large",
            Reason::LateReminder => "a reminder that was not found in time",
        }
    }

    /// Whether an event was lost that should have been kept. Input that was not understood may be no
    /// event at all; `doctor` reports it by itself.
    pub fn is_loss(self) -> bool {
        matches!(
            self,
            Reason::CouldNotWrite | Reason::TooLarge | Reason::Deadline | Reason::BrokenSettings
        )
    }
}

impl From<Drop> for Reason {
    fn from(drop: Drop) -> Reason {
        match drop {
            Drop::Empty | Drop::NotJson | Drop::NoSession => Reason::NotUnderstood,
            Drop::OtherEvent => Reason::OtherEvent,
            Drop::BoringTool => Reason::BoringTool,
            Drop::OwnTool => Reason::OwnTool,
            Drop::ExcludedProject => Reason::ExcludedProject,
            Drop::ExcludedPath => Reason::ExcludedPath,
        }
    }
}

/// Counts one event, or a part of one, that `hook` did not keep, with its size in bytes (0 if it is
/// not known). Creates the file if there is none; errors are ignored.
pub fn count(home: &Home, reason: Reason, hook: Hook, bytes: usize) {
    if let Some(counters) = Counters::open(home, true) {
        counters.add(reason, hook, bytes, home::now());
    }
}

/// A count of an event for the case that this process is ended.
pub fn prepared(home: &Home, reason: Reason, hook: Hook) -> Option<PartingCount> {
    let add = move |file, bytes| Counters { file }.add(reason, hook, bytes, home::now());
    PartingCount::new(&[home.dir()], &path(home), Box::new(add))
}

/// Creates the file if there is none, so that it has its block before the disk is full.
pub fn begin(home: &Home) {
    if !path(home).exists()
        && let Some(counters) = Counters::open(home, true)
    {
        counters.lock();
        counters.fill(home::now());
    }
}

/// Counts an event while Foreword is switched off. Creates no file: nothing is there yet of
/// somebody who has it always switched off.
pub fn count_off(home: &Home, hook: Hook) {
    if let Some(counters) = Counters::open(home, false) {
        counters.add(Reason::Off, hook, 0, home::now());
    }
}

/// The open file of counters.
pub struct Counters {
    file: File,
}

/// The first bytes of the file, followed by the time of its creation.
const MAGIC: &[u8; 8] = b"fw-count";
/// The length of the file in bytes: one block of most disks.
const LENGTH: usize = 4096;
/// The start of the first slot.
const SLOTS: u64 = 16;
/// The length of a slot: the number of events, their bytes, and the time of the last one.
const SLOT: usize = 24;

/// The file of counters.
pub fn path(home: &Home) -> PathBuf {
    home.dir().join("not-kept")
}

fn slot_of(reason: Reason, hook: Hook) -> u64 {
    let hook = Hook::ALL.iter().position(|it| *it == hook).unwrap_or(0);
    let slot = reason as usize * Hook::ALL.len() + hook;
    SLOTS + (slot * SLOT) as u64
}

fn numbers(bytes: &[u8; SLOT]) -> [u64; 3] {
    let number = |at: usize| {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(number)
    };
    [number(0), number(8), number(16)]
}

impl Counters {
    fn open(home: &Home, create: bool) -> Option<Counters> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create);
        let open = || options.open(path(home));
        let file = open().or_else(|error| {
            if create {
                std::fs::create_dir_all(home.dir())?;
                return open();
            }
            Err(error)
        });
        Some(Counters { file: file.ok()? })
    }

    /// Adds to a counter, with system calls only: it allocates nothing, so a signal handler may call
    /// it.
    pub fn add(&self, reason: Reason, hook: Hook, bytes: usize, now: Millis) {
        let at = slot_of(reason, hook);
        self.lock();
        self.fill(now);
        let mut slot = [0; SLOT];
        if self.file.read_exact_at(&mut slot, at).is_err() {
            return;
        }
        let [count, size, _] = numbers(&slot);
        slot[..8].copy_from_slice(&count.saturating_add(1).to_le_bytes());
        slot[8..16].copy_from_slice(&size.saturating_add(bytes as u64).to_le_bytes());
        slot[16..].copy_from_slice(&now.to_le_bytes());
        let _ = self.file.write_all_at(&slot, at);
        let _ = self.file.unlock();
    }

    /// Writes all counters as 0 into a file that is new, or that a killed process or a full disk left
    /// incomplete. The caller holds the lock.
    fn fill(&self, now: Millis) {
        if self
            .file
            .metadata()
            .is_ok_and(|it| it.len() < LENGTH as u64)
        {
            // Not on the stack, which is small in a signal handler.
            static EMPTY: [u8; LENGTH - SLOTS as usize] = [0; LENGTH - SLOTS as usize];
            let mut head = [0; SLOTS as usize];
            head[..8].copy_from_slice(MAGIC);
            head[8..].copy_from_slice(&now.to_le_bytes());
            let written = self.file.write_all_at(&head, 0);
            let _ = written.and_then(|()| self.file.write_all_at(&EMPTY, SLOTS));
        }
    }

    /// Takes the lock on the file, which is free again when the file is closed. After 50 ms it goes
    /// on without: a process that was halted while it held the lock must not hold up a hook.
    fn lock(&self) {
        for _ in 0..500 {
            if self.file.try_lock().is_ok() {
                return;
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "polls for a lock, for 50 ms at most"
            )]
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// All that was not kept for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub reason: Reason,
    pub count: u64,
    pub bytes: u64,
    pub last_at: Millis,
    /// The number for each hook that dropped something for this reason.
    pub hooks: Vec<(Hook, u64)>,
}

/// All that was not kept, the most frequent reason first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotKept {
    /// Since when it was counted; none if nothing was counted yet.
    pub since: Option<Millis>,
    pub rows: Vec<Row>,
}

impl NotKept {
    pub fn read(home: &Home) -> NotKept {
        let bytes = files::read(&path(home), SMALL_MAX).unwrap_or_default();
        if bytes.len() < LENGTH || !bytes.starts_with(MAGIC) {
            return NotKept::default();
        }
        let slot = |reason, hook| {
            let at = slot_of(reason, hook) as usize;
            let mut slot = [0; SLOT];
            slot.copy_from_slice(&bytes[at..at + SLOT]);
            numbers(&slot)
        };
        let row = |&reason: &Reason| {
            let mut row = Row {
                reason,
                count: 0,
                bytes: 0,
                last_at: 0,
                hooks: Vec::new(),
            };
            for &hook in Hook::ALL {
                let [count, bytes, last_at] = slot(reason, hook);
                if count > 0 {
                    row.count = row.count.saturating_add(count);
                    row.bytes = row.bytes.saturating_add(bytes);
                    row.last_at = row.last_at.max(last_at.cast_signed());
                    row.hooks.push((hook, count));
                }
            }
            (row.count > 0).then_some(row)
        };
        let mut rows: Vec<Row> = Reason::ALL.iter().filter_map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        let mut since = [0; 8];
        since.copy_from_slice(&bytes[8..16]);
        NotKept {
            since: (!rows.is_empty()).then(|| Millis::from_le_bytes(since)),
            rows,
        }
    }

    /// The events that were lost though they should have been kept.
    pub fn losses(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.reason.is_loss())
    }

    /// The number of events that were lost.
    pub fn lost(&self) -> u64 {
        self.losses().map(|row| row.count).sum()
    }
}

/// One line about the events that were lost, for `status` and `doctor`; none if none were.
pub fn lost_line(not_kept: &NotKept) -> Option<String> {
    let last_at = not_kept.losses().map(|row| row.last_at).max()?;
    let reasons = not_kept
        .losses()
        .map(|row| format!("{} × {}", row.count, row.reason.words()));
    let reasons: Vec<_> = reasons.collect();
    Some(format!(
        "{} lost since {}, the last at {}: {}",
        text::count(not_kept.lost(), "event was", "events were"),
        local_time::minute(not_kept.since.unwrap_or(last_at)),
        local_time::minute(last_at),
        reasons.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_many_at_once_are_all_there_and_the_file_does_not_grow() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home"));
        assert_eq!(NotKept::read(&home), NotKept::default());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        count(&home, Reason::Deadline, Hook::Save, 3);
                    }
                    count(&home, Reason::Off, Hook::Cleanup, 0);
                });
            }
        });
        let counted = NotKept::read(&home);
        let seen: Vec<_> = counted
            .rows
            .iter()
            .map(|row| (row.reason, row.count, row.bytes))
            .collect();
        assert_eq!(seen, [(Reason::Deadline, 400, 1200), (Reason::Off, 8, 0)]);
        assert_eq!(counted.lost(), 400);
        assert_eq!(counted.rows[0].hooks, [(Hook::Save, 400)]);
        assert_eq!(std::fs::metadata(path(&home)).unwrap().len(), LENGTH as u64);

        // A file that was left incomplete counts on, from 0.
        std::fs::write(path(&home), "").unwrap();
        count(&home, Reason::TooLarge, Hook::New, 7);
        assert_eq!(NotKept::read(&home).lost(), 1);
    }

    #[test]
    fn every_reason_has_a_place_of_its_own_in_the_file() {
        let mut places: Vec<u64> = Vec::new();
        for (at, &reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(reason as usize, at);
            places.extend(Hook::ALL.iter().map(|&hook| slot_of(reason, hook)));
        }
        let last = places.last().copied().unwrap();
        places.dedup();
        assert_eq!(places.len(), Reason::ALL.len() * Hook::ALL.len());
        assert!(last as usize + SLOT <= LENGTH);
    }
}
