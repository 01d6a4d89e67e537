//! The log files: short lines about what happened, for `status`, `doctor` and `logs`.
//!
//! They never hold the content of prompts or tool output. Each line is one small write to a file
//! opened for appending, so that the lines of several processes do not mix.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use foreword_core::files::{self, SMALL_MAX};
use foreword_core::model::Millis;
use foreword_core::text;

use crate::home::{self, Home};
use crate::platform::deadline::PartingLine;

/// The size in bytes from which a log file is renamed to `.log.1`, in place of the one before.
const SIZE_MAX: u64 = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// Problems of hooks.
    Hook,
    /// Problems of the worker.
    Worker,
    /// The work that the worker has done.
    Work,
}

/// A kind of log line that `status` and `doctor` search for. Each line begins with the code of its
/// kind in brackets, so that its text can change freely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// A hook did not understand its input.
    PayloadUnexpected,
    /// A damaged database was recovered, or one that was replaced was opened again.
    Recovered,
}

impl Fact {
    fn code(self) -> &'static str {
        match self {
            Fact::PayloadUnexpected => "[payload-unexpected]",
            Fact::Recovered => "[recovered]",
        }
    }

    /// The log that lines of this kind are written to.
    pub fn log(self) -> Log {
        match self {
            Fact::PayloadUnexpected => Log::Hook,
            Fact::Recovered => Log::Worker,
        }
    }

    pub fn record(self, home: &Home, line: &str) {
        self.log().line(home, &format!("{} {line}", self.code()));
    }

    /// The lines of this kind since a time, oldest first, each with its time and without its code.
    pub fn since(self, home: &Home, since: Millis) -> Vec<String> {
        let since = text::rfc3339(since);
        let lines = self.log().all(home);
        let lines = lines.iter().filter_map(|line| {
            let (at, rest) = line.split_once(' ')?;
            let message = rest.strip_prefix(self.code())?;
            (*at >= *since).then(|| format!("{at}{message}"))
        });
        lines.collect()
    }
}

impl Log {
    pub const ALL: [Log; 3] = [Log::Hook, Log::Work, Log::Worker];

    pub fn name(self) -> &'static str {
        match self {
            Log::Hook => "hook",
            Log::Worker => "worker",
            Log::Work => "work",
        }
    }

    pub fn path(self, home: &Home) -> PathBuf {
        home.logs().join(format!("{}.log", self.name()))
    }

    /// The renamed file and the present one; either may be missing.
    pub fn files(self, home: &Home) -> [PathBuf; 2] {
        let path = self.path(home);
        [path.with_extension("log.1"), path]
    }

    /// Creates the file with one empty line if there is none. It then occupies a block on the disk,
    /// so that a few lines can still be written when the disk is full.
    pub fn begin(self, home: &Home) {
        let made = std::fs::create_dir_all(home.logs());
        if let Ok(mut file) = made.and_then(|()| File::create_new(self.path(home))) {
            let _ = file.write_all(b"\n");
        }
    }

    /// Adds a line with the current time. Errors are ignored, since there is nowhere to log them.
    pub fn line(self, home: &Home, line: &str) {
        let [older, path] = self.files(home);
        if std::fs::metadata(&path).is_ok_and(|it| it.len() > SIZE_MAX) {
            let _ = std::fs::rename(&path, &older);
        }
        let open = || OpenOptions::new().create(true).append(true).open(&path);
        let file = open().or_else(|_| {
            std::fs::create_dir_all(home.logs())?;
            open()
        });
        let line = format!("{} {}\n", text::rfc3339(home::now()), text::flat(line));
        let written = file.and_then(|mut file| {
            let length = file.metadata()?.len();
            let written = file.write_all(line.as_bytes());
            // On a full disk a part of the line may have been written.
            if written.is_err() {
                let _ = file.set_len(length);
            }
            written
        });
        // The system may limit the size of a file (`ulimit -f`).
        if written.is_err_and(|error| error.kind() == ErrorKind::FileTooLarge) {
            let _ = std::fs::rename(&path, older);
            let _ = open().and_then(|mut file| file.write_all(line.as_bytes()));
        }
    }

    /// A line for the case that this process is ended, with the number of bytes that were read until
    /// then between `before` and `after`.
    pub fn prepared(self, home: &Home, before: &str, after: &'static str) -> Option<PartingLine> {
        let before = format!("{} {before}", text::rfc3339(home::now()));
        PartingLine::new(&[home.dir(), &home.logs()], &self.path(home), before, after)
    }

    /// All lines, those of the renamed log included, oldest first.
    pub fn all(self, home: &Home) -> Vec<String> {
        let texts = self
            .files(home)
            .map(|path| files::read_text(&path, SMALL_MAX));
        let texts = texts.map(Result::unwrap_or_default);
        let lines = texts.iter().flat_map(|text| text.lines());
        let lines = lines.filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }

    /// The last lines of the current log file, oldest first.
    pub fn tail(self, home: &Home, count: usize) -> Vec<String> {
        let log = files::read_text(&self.path(home), SMALL_MAX).unwrap_or_default();
        let lines: Vec<_> = log.lines().filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(count)..]
            .iter()
            .map(|&line| line.to_owned())
            .collect()
    }
}
