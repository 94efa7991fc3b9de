//! Measures the CPU's peaks: multiply-adds on registers only, and a triad that does little arithmetic on much memory. These
//! functions run on one thread; the caller starts several.

use std::hint::black_box;

/// The numbers of independent sums that are tried. They are enough to hide the latency of an addition, and few enough for the registers: 48
/// if a register holds four numbers, 96 for eight, 192 for sixteen. The measurement shows which is fastest.
pub const LANES: [usize; 3] = [48, 96, 192];

/// Defines a function that does `rounds` multiply-adds in each of `lanes` sums.
macro_rules! multiply_add {
    ($name:ident, $lanes:expr) => {
        simd! {
            fn $name(sums: &mut [f32; $lanes], factor: f32, term: f32, rounds: usize) {
                let mut kept = *sums;
                for _ in 0..rounds {
                    for sum in &mut kept {
                        *sum = if L::FUSED {
                            sum.mul_add(factor, term)
                        } else {
                            *sum * factor + term
                        };
                    }
                }
                *sums = kept;
            }
        }
    };
}

multiply_add!(narrow, LANES[0]);
multiply_add!(middle, LANES[1]);
multiply_add!(wide, LANES[2]);

simd! {
    /// Computes out = a + ½·b, the triad of McCalpin's STREAM (1995). It moves twelve bytes for each value.
    pub fn triad(out: &mut [f32], a: &[f32], b: &[f32]) {
        let _ = L::FUSED;
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = *a + 0.5 * *b;
        }
    }
}

/// Does `rounds` multiply-adds, each of them two floating-point operations, on each of `LANES[which]` sums.
pub fn multiply_adds(which: usize, rounds: usize) {
    match which {
        0 => run(narrow, rounds),
        1 => run(middle, rounds),
        _ => run(wide, rounds),
    }
}

fn run<const N: usize>(kernel: fn(&mut [f32; N], f32, f32, usize), rounds: usize) {
    let mut sums = [1.0; N];
    kernel(&mut sums, black_box(0.999), black_box(0.001), rounds);
    black_box(sums.iter().sum::<f32>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_near_one_and_the_triad_adds() {
        let mut sums = [1.0; LANES[2]];
        wide(&mut sums, 0.999, 0.001, 1000);
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-3));
        let mut out = [0.0; 5];
        triad(&mut out, &[1.0; 5], &[4.0; 5]);
        assert_eq!(out, [3.0; 5]);
    }
}
