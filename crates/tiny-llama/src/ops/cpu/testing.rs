//! Numbers and threads for the tests of kernels.

use protocol::random::Rng;

/// Returns `len` numbers between -1 and 1. Equal seeds give equal numbers.
pub fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| 2.0 * rng.uniform() as f32 - 1.0).collect()
}

/// Runs `work` on a pool of `threads` threads.
pub fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("no pool")
        .install(work)
}
