//! Numbers and comparisons for the kernels' tests. Test code only.

/// `len` repeatable numbers between -1 and 1.
pub fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32) / ((1_u32 << 23) as f32) - 1.0
    };
    (0..len).map(|_| next()).collect()
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

/// Fails unless `gradient` is what central differences of `loss` give at `at`.
pub fn assert_gradient(at: &[f64], gradient: &[f32], loss: impl Fn(&[f64]) -> f64) {
    assert_eq!(at.len(), gradient.len());
    let mut moved = at.to_vec();
    let want: Vec<f64> = (0..at.len())
        .map(|index| {
            let step = 1e-5;
            moved[index] = at[index] + step;
            let above = loss(&moved);
            moved[index] = at[index] - step;
            let below = loss(&moved);
            moved[index] = at[index];
            (above - below) / (2.0 * step)
        })
        .collect();
    assert_near(gradient, &want, 2e-5);
}

/// The same numbers in double precision.
pub fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// Runs `work` on a pool of `threads` threads.
pub fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("no pool")
        .install(work)
}
