//! Numbers and comparisons for the kernels' tests. Test code only.

use crate::random::Rng;

/// `len` repeatable numbers between -1 and 1.
pub fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| 2.0 * rng.uniform() as f32 - 1.0).collect()
}

/// Fails unless every element is within `tolerance` of the wanted one, relative to the largest wanted element.
pub fn assert_near(got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(1e-30, |most: f64, x| most.max(x.abs()));
    for (index, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - want).abs() / scale;
        assert!(
            error <= tolerance,
            "element {index}: got {got}, want {want}, error {error:e} of the largest"
        );
    }
}

/// Runs `work` on a pool of `threads` threads.
pub fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("no pool")
        .install(work)
}
