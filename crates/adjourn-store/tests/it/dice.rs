//! Random choices that can be had again: every test prints the seed it drew.

use std::hash::{BuildHasher as _, RandomState};

/// A small generator (xorshift); nothing here needs a good one.
pub struct Dice(u64);

impl Dice {
    /// Takes the seed from `ADJOURN_SEED`, or draws one; either way it is printed, and a test that
    /// fails shows it.
    pub fn new() -> Self {
        let given = std::env::var("ADJOURN_SEED").ok();
        let seed: u64 = match given {
            Some(text) => text.parse().expect("ADJOURN_SEED is a number"),
            None => RandomState::new().hash_one(0),
        };
        println!("ADJOURN_SEED={seed}");
        // The generator would stay at zero for ever.
        Self(seed.max(1))
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Returns an index into something of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("an index")
    }

    /// Flips one bit of one byte.
    pub fn flip(&mut self, byte: &mut u8) {
        *byte ^= 1 << self.below(8);
    }
}
