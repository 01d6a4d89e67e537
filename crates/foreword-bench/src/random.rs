//! A small seeded generator of random numbers (xorshift64*): the same seed gives the same numbers.

use std::time::Duration;

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A whole number from zero up to, but without, `limit`.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit.max(1)
    }

    /// A number from zero up to one.
    pub fn part(&mut self) -> f64 {
        f64::from(self.next()) / (f64::from(u32::MAX) + 1.0)
    }

    /// A number from minus one up to one.
    pub fn sign(&mut self) -> f32 {
        (self.part() * 2.0 - 1.0) as f32
    }

    /// A time from zero up to `within`.
    pub fn moment(&mut self, within: Duration) -> Duration {
        within.mul_f64(self.part())
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }
}
