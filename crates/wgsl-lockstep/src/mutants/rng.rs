//! A small generator of random numbers, so that equal seeds make equal kernels with every version of every library.

/// A constant that distinguishes these numbers from those that a caller draws from the same seed.
const PURPOSE: u64 = 0xb2b8_8245_443f_39b3;

/// A stream of pseudo-random numbers: SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) struct Rng(u64);

impl Rng {
    /// Returns one of the streams of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = Self(seed);
        rng.0 = rng.bits() ^ PURPOSE;
        rng.0 = rng.bits() ^ stream;
        rng
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws an integer below a limit, each with the same probability.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }
}
