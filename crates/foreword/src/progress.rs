//! The progress of work that takes seconds, on standard error: a bar or a running clock on a terminal.
//! Elsewhere nothing is shown, except that a download prints a line now and then.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the clock of a bar moves.
const TICK: Duration = Duration::from_millis(200);
/// A download without a terminal prints a line for each step of this many percent.
const STEP: u64 = 20;

pub struct Progress {
    bar: ProgressBar,
    name: String,
    /// The percentage of the last line that was printed, where lines are.
    printed: Option<u64>,
}

impl Progress {
    /// A download of so many bytes.
    pub fn bytes(name: &str, total: u64) -> Progress {
        let template =
            "{msg} [{bar:25}] {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}";
        let mut progress = Progress::new(name, Some(total), template);
        progress.printed = (!std::io::stderr().is_terminal()).then_some(0);
        progress
    }

    /// Work in so many steps.
    pub fn steps(name: &str, total: u64) -> Progress {
        let template = "{msg} [{bar:25}] {pos} of {len}, {elapsed}";
        Progress::new(name, Some(total), template)
    }

    /// Work of unknown length, such as a question to a model.
    pub fn clock(name: &str) -> Progress {
        Progress::new(name, None, "{spinner} {msg}, {elapsed}")
    }

    fn new(name: &str, total: Option<u64>, template: &str) -> Progress {
        // Hidden by itself if standard error is no terminal.
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::new_spinner(),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("#- "));
        }
        bar.set_message(name.to_owned());
        bar.enable_steady_tick(TICK);
        Progress {
            bar,
            name: name.to_owned(),
            printed: None,
        }
    }

    /// Shows how much is done so far.
    pub fn set(&mut self, done: u64) {
        self.bar.set_position(done);
        let Some(printed) = &mut self.printed else {
            return;
        };
        let total = self.bar.length().unwrap_or(done).max(1);
        let percent = done * 100 / total / STEP * STEP;
        if percent > *printed {
            *printed = percent;
            eprintln!("{}: {percent} %", self.name);
        }
    }

    /// Whether a person sees it.
    pub fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
