//! A small random generator and a hash. They are our own, so that weights, tokens and names that are hashes of contents stay equal
//! across library versions and devices. Neither is fit for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A stream of pseudo-random numbers: SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Returns the stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the stream for one purpose: equal seeds, names and numbers give equal streams.
    pub fn named(seed: u64, name: &str, number: u64) -> Self {
        let mut rng = Self::new(seed);
        rng.0 = rng.bits() ^ hash(name.bytes());
        rng.0 = rng.bits() ^ number;
        rng
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number that is uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an integer that is uniform in 0..limit.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }

    /// Returns a standard normal number (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Returns an unpredictable seed, short enough to type.
pub fn unpredictable_seed() -> u64 {
    1 + RandomState::new().build_hasher().finish() % 999_999
}

/// Returns the 64-bit FNV-1a hash of some bytes, which is equal on every machine. The numbers are the offset basis and the prime of the published
/// algorithm.
pub fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}
