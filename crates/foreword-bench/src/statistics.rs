//! Percentiles and ratios of samples.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

/// The percentiles that are reported.
pub const PERCENTILES: [u32; 3] = [50, 95, 99];

/// The smallest value that at least `percent` percent of the values do not exceed.
pub fn percentile<T: Copy + PartialOrd>(values: &[T], percent: u32) -> Option<T> {
    let mut values = values.to_vec();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let rank = (values.len() * percent as usize).div_ceil(100);
    values.get(rank.max(1) - 1).copied()
}

pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50).unwrap_or(f64::NAN)
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// `{"p50": …, "p95": …, "p99": …}`
pub fn by_percentile(number: impl Fn(u32) -> Option<f64>) -> Map<String, Value> {
    let rounded = |number: f64| (number * 1000.0).round() / 1000.0;
    PERCENTILES
        .iter()
        .map(|&percent| (format!("p{percent}"), json!(number(percent).map(rounded))))
        .collect()
}

/// Samples in milliseconds, round by round, in the order in which they were taken.
///
/// A reported percentile is the median over the rounds of each round's percentile, so that a busy
/// moment of the machine spoils one round and not the result.
#[derive(Default)]
pub struct Rounds(pub Vec<Vec<f64>>);

impl Rounds {
    /// Runs a function and adds its time to the last round.
    pub fn add<T>(&mut self, ask: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<()> {
        let started = Instant::now();
        let answer = ask()?;
        let took = milliseconds(started.elapsed());
        drop(answer);
        self.0.last_mut().into_iter().for_each(|it| it.push(took));
        Ok(())
    }

    pub fn percentiles(&self) -> Map<String, Value> {
        by_percentile(|percent| {
            let rounds = self.0.iter();
            median_over(rounds.filter_map(|it| percentile(it, percent)))
        })
    }

    /// A percentile divided by a percentile of the reference, which was sampled in the same rounds.
    pub fn ratio(&self, percent: u32, reference: &Rounds, of_reference: u32) -> Option<f64> {
        let rounds = self.0.iter().zip(&reference.0);
        median_over(rounds.filter_map(|(ours, reference)| {
            Some(percentile(ours, percent)? / percentile(reference, of_reference)?)
        }))
    }
}

fn median_over(rounds: impl Iterator<Item = f64>) -> Option<f64> {
    percentile(&rounds.collect::<Vec<f64>>(), 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<u32> = (1..=200).rev().collect();
        let of = |percent| percentile(&values, percent);
        assert_eq!((of(50), of(95), of(99)), (Some(100), Some(190), Some(198)));
        assert_eq!(percentile(&[7], 99), Some(7));
        assert_eq!(percentile::<u32>(&[], 50), None);
    }
}
