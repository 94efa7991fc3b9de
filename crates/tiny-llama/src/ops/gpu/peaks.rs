//! Kernels that reach a device's peaks: multiply-adds on registers only, matrix products on registers only, and a triad that does
//! little arithmetic on much memory. Their results are not used.

use crate::ops::gpu::wgsl::{self, Numbers, Program};
use crate::ops::gpu::{Float4, arg, horizontal};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;
/// The number of sums of each invocation, of four numbers each. Eight independent numbers hide the latency of an addition, and also fit in the registers
/// of a CPU driver.
const SUMS: usize = 2;
/// The number of multiply-adds on each sum in one iteration of the loop; the loop's counter costs little in comparison.
const UNROLLED: usize = 32;

/// Returns the floating-point operations of [`multiply_add`]: two for each multiply-add on each of four numbers.
pub fn flops(groups: u32, rounds: usize) -> f64 {
    f64::from(groups) * (THREADS * SUMS * 4 * UNROLLED * rounds * 2) as f64
}

/// Returns the number of values that [`multiply_add`] writes.
pub const fn outputs(groups: u32) -> usize {
    groups as usize * THREADS
}

/// Computes s ← s·factor + term, 32 times `rounds`, on eight numbers per invocation that stay in registers. Their sum is written to out
/// `[≥ outputs(groups)]`, so no driver can omit the work. 1 launch.
pub fn multiply_add(out: &CubeTensor, groups: u32, rounds: usize) {
    debug_assert!(out.meta.num_elements() >= outputs(groups));
    unsafe {
        peak_multiply_add::launch_unchecked(
            &out.client,
            CubeCount::Static(groups, 1, 1),
            CubeDim::new_1d(THREADS as u32),
            arg(out),
            rounds,
            FACTOR,
            TERM,
        );
    }
}

/// Factor and term keep the sums near 1 = TERM / (1 − FACTOR).
const FACTOR: f32 = 0.999;
const TERM: f32 = 0.001;

#[cube(launch_unchecked)]
fn peak_multiply_add(out: &mut [f32], rounds: usize, factor: f32, term: f32) {
    let factors = Float4::new(factor);
    let terms = Float4::new(term);
    let start = (UNIT_POS + CUBE_POS_X) as f32 * 1e-9;
    let mut sums = Array::<Float4>::new(SUMS);
    #[unroll]
    for i in 0..SUMS {
        sums[i] = Float4::new(start + i as f32);
    }
    let mut round = 0usize;
    while round < rounds {
        #[unroll]
        for _ in 0..UNROLLED {
            #[unroll]
            for i in 0..SUMS {
                sums[i] = fma(sums[i], factors, terms);
            }
        }
        round += 1;
    }
    let mut total = sums[0];
    #[unroll]
    for i in 1..SUMS {
        total += sums[i];
    }
    out[CUBE_POS_X as usize * THREADS + UNIT_POS as usize] = horizontal::<Const<4>>(total, true);
}

/// The side of the matrices that one instruction multiplies.
const SIDE: usize = 16;
const SUBGROUP: usize = 32;
const SUBGROUPS: usize = 4;
/// The number of left operands that a subgroup holds, and of right operands; it holds OPERANDS² sums.
const OPERANDS: usize = 4;

/// Returns the floating-point operations of [`matrix_products`]: two for each multiply-add of its 16×16×16 products.
pub fn matrix_flops(groups: u32, rounds: usize) -> f64 {
    f64::from(groups) * (SUBGROUPS * OPERANDS * OPERANDS * rounds * 2 * SIDE.pow(3)) as f64
}

/// The number of values that [`matrix_products`] writes: one matrix for each sum of a workgroup. The workgroups overwrite each other's values.
pub const MATRIX_OUTPUTS: usize = SUBGROUPS * OPERANDS * OPERANDS * SIDE * SIDE;

/// Computes sum_ij ← a_i·b_j + sum_ij, `rounds` times, on f16 matrices with f32 sums that stay in registers. 1 launch.
pub fn matrix_products(out: &CubeTensor, groups: u32, rounds: usize) {
    debug_assert!(out.meta.num_elements() >= MATRIX_OUTPUTS);
    wgsl::launch(matrix_program(rounds), [groups as usize, 1, 1], &[out]);
}

fn matrix_program(rounds: usize) -> Program<Numbers> {
    let threads = SUBGROUPS * SUBGROUP;
    let own = Numbers::from([
        ("rounds", rounds),
        ("operands", OPERANDS),
        ("threads", threads),
    ]);
    Program::new("gpu/wgsl/peak_matrix_cores.wgsl", threads, own)
}

/// Returns the bytes that [`triad`] moves for `len` values: two reads and one write of four bytes each.
pub fn bytes(len: usize) -> f64 {
    12.0 * len as f64
}

/// Computes out = a + ½·b, all `[len]`, len a multiple of 4: the triad of McCalpin's STREAM (1995). Neighbouring invocations take
/// neighbouring vectors. 1 launch.
pub fn triad(a: &CubeTensor, b: &CubeTensor, out: &CubeTensor, len: usize) {
    let vectors = len / 4;
    let groups = vectors.div_ceil(THREADS * 4).clamp(1, 16_384);
    unsafe {
        peak_triad::launch_unchecked(
            &out.client,
            CubeCount::Static(groups as u32, 1, 1),
            CubeDim::new_1d(THREADS as u32),
            arg(a),
            arg(b),
            arg(out),
            vectors,
            groups * THREADS,
        );
    }
}

#[cube(launch_unchecked)]
fn peak_triad(a: &[Float4], b: &[Float4], out: &mut [Float4], vectors: usize, stride: usize) {
    let half = Float4::new(0.5);
    let mut i = CUBE_POS_X as usize * THREADS + UNIT_POS as usize;
    while i < vectors {
        out[i] = fma(b[i], half, a[i]);
        i += stride;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::format::nearest;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::wgsl::Wgsl as _;
    use protocol::config::Precision;

    #[test]
    fn every_multiply_add_is_done() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let groups = 3;
        let rounds = 5;
        let out = device.tensor(&vec![0.0; outputs(groups)], [outputs(groups)]);
        multiply_add(&out, groups, rounds);
        let want: Vec<f32> = (0..outputs(groups))
            .map(|at| {
                let start = ((at % THREADS + at / THREADS) as f32) * 1e-9;
                let sum = |i: usize| {
                    (0..rounds * UNROLLED).fold(start + i as f32, |s, _| s.mul_add(FACTOR, TERM))
                };
                4.0 * (0..SUMS).map(sum).sum::<f32>()
            })
            .collect();
        check::close("multiply-adds", &device.read(&out), &want, 1e-5);
        assert_eq!(flops(1, 1), 256.0 * 8.0 * 32.0 * 2.0);
    }

    #[test]
    fn every_product_of_matrix_cores_is_done() {
        check::valid_wgsl(&matrix_program(3).text());
        let Some(device) = TestDevice::any() else {
            return;
        };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        let rounds = 3;
        let out = device.tensor(&vec![0.0; MATRIX_OUTPUTS], [MATRIX_OUTPUTS]);
        matrix_products(&out, 1, rounds);
        let half = |i: usize| nearest((i % 61) as f32 * 1e-3, Precision::F16);
        let value = |matrix: usize, row: usize, column: usize| {
            half(matrix * SIDE * SIDE + row * SIDE + column)
        };
        let all = (0..MATRIX_OUTPUTS).map(|at| {
            let sum = at / 256 % 16;
            let row = at / SIDE % SIDE;
            let column = at % SIDE;
            let product = |k| value(sum / OPERANDS, row, k) * value(sum % OPERANDS, k, column);
            rounds as f32 * (0..SIDE).map(product).sum::<f32>()
        });
        check::close(
            "products",
            &device.read(&out),
            &all.collect::<Vec<_>>(),
            1e-5,
        );
        assert_eq!(matrix_flops(1, 1), 4.0 * 16.0 * 8192.0);
    }

    #[test]
    fn the_triad_reaches_every_value() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for len in [4, 1020, 4096, 70_000] {
            let a = numbers(1, len);
            let b = numbers(2, len);
            let out = device.tensor(&vec![0.0; len], [len]);
            triad(
                &device.tensor(&a, [len]),
                &device.tensor(&b, [len]),
                &out,
                len,
            );
            let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + 0.5 * b).collect();
            check::close("triad", &device.read(&out), &want, 1e-6);
        }
    }
}
