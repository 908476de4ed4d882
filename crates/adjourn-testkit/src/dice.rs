//! Random choices that can be had again from their seed.

#![expect(clippy::expect_used, reason = "a test that fails should stop where it fails")]

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// A small generator (xorshift); nothing here needs a good one.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Draws from a seed.
    pub fn new(seed: u64) -> Self {
        // Seeds that lie side by side must not begin alike, and zero would stay zero for ever.
        let mut dice = Self((seed ^ 0x9e37_79b9_7f4a_7c15).max(1));
        for _ in 0..8 {
            dice.below(2);
        }
        dice
    }

    /// Draws from the seed that [`seed`] returns, so that a test that fails shows it.
    pub fn drawn() -> Self {
        Self::new(seed())
    }

    /// Returns another generator that goes its own way.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.below(u64::MAX))
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Returns a number from `start` up to, not including, `end`.
    pub fn between(&mut self, start: u64, end: u64) -> u64 {
        start + self.below(end - start)
    }

    /// Returns an index into something of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("an index")
    }

    /// Returns true once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Flips one bit of one byte.
    pub fn flip(&mut self, byte: &mut u8) {
        *byte ^= 1 << self.below(8);
    }

    /// Returns a time between two numbers of milliseconds.
    pub fn millis(&mut self, start: u64, end: u64) -> Duration {
        Duration::from_micros(self.between(start * 1000, end * 1000))
    }
}

/// Returns the seed in `ADJOURN_SEED`, or draws one; either way it is printed.
///
/// # Panics
/// What is there is no number.
pub fn seed() -> u64 {
    let seed = match std::env::var("ADJOURN_SEED") {
        Ok(text) => text.parse().expect("ADJOURN_SEED is a number"),
        Err(_) => RandomState::new().hash_one(0) >> 16,
    };
    println!("ADJOURN_SEED={seed}");
    seed
}
