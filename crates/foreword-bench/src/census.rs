//! Samples a home over time, for `load` and `soak`: processes, the worker's memory and open
//! files, bytes on disk, waiting events.
//!
//! A series is flat, and so shows no leak, if the median of its last quarter is at most that of its
//! first quarter plus an allowance. memory.db grows with every event, so its bytes per event are
//! looked at instead.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::plot::{self, Series};
use super::process;
use super::sandbox::BenchSandbox;
use super::statistics::percentile;
use foreword::platform::Lock;
use foreword::service;

/// The sampled series, each with the growth that still counts as flat; none if it is expected to
/// grow.
pub struct Census {
    began: Instant,
    series: Vec<(Series, Option<f64>)>,
}

/// Growth by up to a quarter counts as chance.
const CHANCE: f64 = 1.25;

impl Census {
    pub fn new() -> Census {
        let series = [
            ("processes in the background", Some(1.0)),
            ("worker: MB of memory", Some(4.0)),
            ("worker: open files", Some(4.0)),
            ("events that wait", Some(500.0)),
            // The write-ahead log alone may keep four MB.
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
                .map(|(name, allowed)| {
                    let points = Vec::new();
                    (Series { name, points }, allowed)
                })
                .into(),
        }
    }

    /// Adds a sample of a home to which `sent` events were sent.
    pub fn take(&mut self, sandbox: &BenchSandbox, sent: u32) -> anyhow::Result<()> {
        let home = &sandbox.home;
        let seconds = self.began.elapsed().as_secs_f64();
        let worker = Lock::holder(&home.lock())?;
        // Hooks are children of this process and end at once; they are not counted.
        let ours = Some(std::process::id());
        let background = process::started_for(home.dir()).into_iter();
        let background = background.filter_map(process::parent).map(Some);
        let background = background.filter(|parent| *parent != ours).count();
        let megabytes = |bytes: u64| Some(bytes as f64 / 1e6);
        let memory = megabytes(database(&home.memory()));
        let values = [
            Some(background as f64),
            worker
                .and_then(process::kilobytes)
                .map(|it| it as f64 / 1024.0),
            worker.and_then(process::open_files).map(|it| it as f64),
            Some(service::waiting(home) as f64),
            megabytes(database(&home.queue())),
            megabytes(folder(&home.spool())),
            megabytes(folder(&home.logs())),
            megabytes(folder(&home.backups())),
            memory,
            memory
                .filter(|_| sent > 0)
                .map(|it| it * 1000.0 / f64::from(sent)),
        ];
        for ((series, _), value) in self.series.iter_mut().zip(values) {
            // Without a worker there is no value.
            series.points.extend(value.map(|value| (seconds, value)));
        }
        Ok(())
    }

    /// The result as two fields of a report.
    pub fn json(&self) -> Value {
        let all = self.series.iter();
        let flat = all
            .clone()
            .all(|(it, allowed)| is_flat(it, *allowed) != Some(false));
        let series: Value = all
            .map(|(it, allowed)| {
                let (first, last) = quarters(it);
                let row = json!({
                    "first_quarter": first,
                    "last_quarter": last,
                    "flat": is_flat(it, *allowed),
                    "points": it.points,
                });
                (it.name.to_owned(), row)
            })
            .collect();
        json!({"flat": flat, "series": series})
    }

    pub fn plot(&self, path: &Path, title: &str, grey: &[(f64, f64)]) -> anyhow::Result<()> {
        let series = self.series.iter().map(|(series, _)| series);
        plot::write(path, title, "seconds", series, grey)
    }
}

/// The medians of the first and of the last quarter of the time.
fn quarters(series: &Series) -> (f64, f64) {
    let values: Vec<f64> = series.points.iter().map(|it| it.1).collect();
    let quarter = values.len().div_ceil(4);
    let middle = |values: &[f64]| percentile(values, 50).unwrap_or_default();
    let last = values.len() - quarter;
    (middle(&values[..quarter]), middle(&values[last..]))
}

fn is_flat(series: &Series, allowed: Option<f64>) -> Option<bool> {
    let (first, last) = quarters(series);
    Some(last <= first * CHANCE + allowed?)
}

/// Bytes of a database, its write-ahead log and its shared memory.
fn database(path: &Path) -> u64 {
    let size_of = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::fs::metadata(name).map_or(0, |it| it.len())
    };
    size_of("") + size_of("-wal") + size_of("-shm")
}

/// Bytes of all files below a folder. A file that is removed meanwhile counts as none.
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
        }
    }

    #[test]
    fn a_growing_series_is_not_flat_and_an_oscillating_one_is() {
        assert_eq!(is_flat(&series(|at| 10.0 + at), Some(4.0)), Some(false));
        assert_eq!(
            is_flat(&series(|at| 10.0 + at % 4.0), Some(4.0)),
            Some(true)
        );
    }
}
