//! What a home takes over time, for `load` and `soak`: processes, the worker's memory and open
//! files, bytes on disk, events that wait.
//!
//! What does not leak is flat: the last quarter of the time takes no more than the first, but
//! for a little that is allowed to each. The memory itself grows with what it is told, so that is
//! looked at by event.

use std::path::Path;
use std::time::Instant;

use foreword_core::spool;
use serde_json::{Value, json};

use super::process;
use super::statistics::median;
use super::world::World;
use crate::platform::Lock;

/// One number over time: seconds and values.
pub struct Series {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
    /// So much more is still flat; none if growing is its nature.
    allowed: Option<f64>,
}

pub struct Census {
    pub began: Instant,
    pub series: Vec<Series>,
}

/// A quarter more than before is chance.
const CHANCE: f64 = 1.25;

impl Census {
    pub fn new() -> Census {
        let series = [
            ("processes in the background", Some(1.0)),
            ("worker: MB of memory", Some(4.0)),
            ("worker: open files", Some(4.0)),
            ("events that wait", Some(500.0)),
            // Its log keeps up to four of them.
            ("queue.db: MB", Some(8.0)),
            ("spool: MB", Some(1.0)),
            ("logs: MB", Some(1.0)),
            ("backups: MB", None),
            ("memory.db: MB", None),
            ("memory.db: KB per event", Some(2.0)),
        ];
        Census {
            began: Instant::now(),
            series: series
                .map(|(name, allowed)| Series {
                    name,
                    points: Vec::new(),
                    allowed,
                })
                .into(),
        }
    }

    /// Looks at a home that was told so many events.
    pub fn take(&mut self, world: &World, told: u32) -> anyhow::Result<()> {
        let home = &world.home;
        let seconds = self.began.elapsed().as_secs_f64();
        let worker = Lock::holder(&home.lock())?;
        // Hooks are our children, and gone in a moment.
        let ours = Some(std::process::id());
        let background = process::that_know(home.dir()).into_iter();
        let background = background.filter_map(process::parent).map(Some);
        let background = background.filter(|parent| *parent != ours).count();
        let megabytes = |bytes: u64| Some(bytes as f64 / 1e6);
        let memory = megabytes(database(&home.memory()));
        // A queue that is just being made or mended cannot be counted.
        let queued = world.pending().ok();
        let spooled = spool::waiting(&home.spool()).map_or(0, |it| it.len());
        let values = [
            Some(background as f64),
            worker
                .and_then(process::kilobytes)
                .map(|it| it as f64 / 1024.0),
            worker.and_then(process::open_files).map(|it| it as f64),
            queued.map(|queued| queued as f64 + spooled as f64),
            megabytes(database(&home.queue())),
            megabytes(folder(&home.spool())),
            megabytes(folder(&home.logs())),
            megabytes(folder(&home.backups())),
            memory,
            memory
                .filter(|_| told > 0)
                .map(|it| it * 1000.0 / f64::from(told)),
        ];
        for (series, value) in self.series.iter_mut().zip(values) {
            // While no worker lives it has no memory to speak of.
            series.points.extend(value.map(|value| (seconds, value)));
        }
        Ok(())
    }

    pub fn is_flat(&self) -> bool {
        self.series.iter().all(|it| it.is_flat().unwrap_or(true))
    }

    pub fn json(&self) -> Value {
        let series = self.series.iter().map(|it| {
            let (first, last) = it.quarters();
            let points = it.points.iter().map(|(at, value)| [at, value]);
            let points: Vec<_> = points
                .map(|it| it.map(|number| (number * 100.0).round() / 100.0))
                .collect();
            let row = json!({
                "first_quarter": first, "last_quarter": last, "flat": it.is_flat(), "points": points,
            });
            (it.name.to_owned(), row)
        });
        series.collect()
    }

    pub fn table(&self) -> String {
        let rows = self.series.iter().map(|it| {
            let (first, last) = it.quarters();
            let flat = match it.is_flat() {
                Some(true) => "flat",
                Some(false) => "GROWS",
                None => "",
            };
            format!("{:<28} {first:>9.1} → {last:>9.1}  {flat}\n", it.name)
        });
        rows.collect()
    }
}

impl Series {
    /// The medians of the first and of the last quarter of the time.
    fn quarters(&self) -> (f64, f64) {
        let quarter = self.points.len().div_ceil(4);
        let of = |points: &[(f64, f64)]| {
            let values: Vec<f64> = points.iter().map(|it| it.1).collect();
            if values.is_empty() {
                0.0
            } else {
                median(&values)
            }
        };
        let last = self.points.len() - quarter;
        (of(&self.points[..quarter]), of(&self.points[last..]))
    }

    fn is_flat(&self) -> Option<bool> {
        let (first, last) = self.quarters();
        Some(last <= first * CHANCE + self.allowed?)
    }
}

/// A database with what stands beside it.
fn database(path: &Path) -> u64 {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::fs::metadata(name).map_or(0, |it| it.len())
    };
    beside("") + beside("-wal") + beside("-shm")
}

/// All files in a folder, however deep; some may go while we look.
fn folder(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(it) if it.is_dir() => folder(&entry.path()),
        Ok(it) => it.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(value: fn(f64) -> f64) -> Series {
        Series {
            name: "open files",
            points: (0..40).map(f64::from).map(|at| (at, value(at))).collect(),
            allowed: Some(4.0),
        }
    }

    #[test]
    fn what_grows_is_not_flat_and_what_only_moves_is() {
        assert_eq!(series(|at| 10.0 + at).is_flat(), Some(false));
        assert_eq!(series(|at| 10.0 + at % 4.0).is_flat(), Some(true));
    }
}
