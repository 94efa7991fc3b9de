//! The CPU's roofs, measured: multiply-adds on registers alone, on all threads. No kernel can be faster.

use std::time::Instant;

/// Independent sums: enough to hide the latency of an addition at every vector width.
const LANES: usize = 256;
/// Rounds of one measurement; a few milliseconds.
const ROUNDS: usize = 100_000;

simd! {
    /// `ROUNDS` multiply-adds in each of `LANES` sums.
    fn multiply_add(sums: &mut [f32; LANES], factor: f32, term: f32) {
        for _ in 0..ROUNDS {
            for sum in sums.iter_mut() {
                *sum = if L::FUSED { sum.mul_add(factor, term) } else { *sum * factor + term };
            }
        }
    }
}

/// FLOP/s of all threads together: the best of a few measurements, two operations per multiply-add.
pub fn peak_flops() -> f64 {
    let threads = rayon::current_num_threads();
    (0..5).map(|_| once(threads)).fold(0.0, f64::max)
}

fn once(threads: usize) -> f64 {
    let began = Instant::now();
    let left = rayon::broadcast(|_| {
        let mut sums = [1.0_f32; LANES];
        multiply_add(
            &mut sums,
            std::hint::black_box(0.999),
            std::hint::black_box(0.001),
        );
        sums.iter().sum::<f32>()
    });
    std::hint::black_box(left);
    2.0 * (LANES * ROUNDS * threads) as f64 / began.elapsed().as_secs_f64()
}
