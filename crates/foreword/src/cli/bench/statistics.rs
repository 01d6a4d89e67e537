//! From samples to the few numbers that are reported.

use std::time::Duration;

use super::hooks::{Goal, Measured};
use super::spawn::Sample;

/// The percentiles that are reported.
pub const PERCENTILES: [u32; 3] = [50, 95, 99];

/// The smallest value that so many percent of all are not above.
pub fn percentile<T: Copy + PartialOrd>(values: &[T], percent: u32) -> Option<T> {
    let mut values = values.to_vec();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let rank = (values.len() * percent as usize).div_ceil(100);
    values.get(rank.max(1) - 1).copied()
}

pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50).unwrap_or(f64::NAN)
}

fn times(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|it| milliseconds(it.took)).collect()
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

impl Measured {
    /// Milliseconds of the hook: the percentile of each round, the median of those.
    pub fn hook(&self, percent: u32) -> f64 {
        self.over_rounds(|_, hook| percentile(hook, percent))
    }

    pub fn reference(&self, percent: u32) -> f64 {
        self.over_rounds(|reference, _| percentile(reference, percent))
    }

    /// A percentile of the hook as a multiple of the same percentile of the reference.
    pub fn ratio(&self, percent: u32) -> f64 {
        self.over_rounds(|reference, hook| {
            Some(percentile(hook, percent)? / percentile(reference, percent)?)
        })
    }

    /// The same, as a multiple of the reference's median: what is left when only the hook is slow.
    pub fn ratio_to_median(&self, percent: u32) -> f64 {
        self.over_rounds(|reference, hook| {
            Some(percentile(hook, percent)? / percentile(reference, 50)?)
        })
    }

    fn over_rounds(&self, number: impl Fn(&[f64], &[f64]) -> Option<f64>) -> f64 {
        let rounds = self.rounds.iter();
        let numbers: Vec<f64> = rounds
            .filter_map(|round| number(&times(&round.reference), &times(&round.hook)))
            .collect();
        median(&numbers)
    }

    /// Pages that a hook makes the kernel map, at each spawn.
    pub fn minor_faults(&self) -> Vec<u64> {
        let hooks = self.rounds.iter().flat_map(|round| &round.hook);
        hooks.map(|sample| sample.minor_faults).collect()
    }

    pub fn reference_minor_faults(&self) -> Vec<u64> {
        let references = self.rounds.iter().flat_map(|round| &round.reference);
        references.map(|sample| sample.minor_faults).collect()
    }

    pub fn met(&self) -> bool {
        PERCENTILES.iter().all(|&percent| {
            self.goal
                .at(percent)
                .is_none_or(|goal| self.ratio(percent) <= goal)
        })
    }
}

impl Goal {
    pub fn at(&self, percent: u32) -> Option<f64> {
        match percent {
            50 => Some(self.p50),
            95 => self.p95,
            _ => self.p99,
        }
    }
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
