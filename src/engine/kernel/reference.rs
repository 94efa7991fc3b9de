//! What the kernels of the exercises have to compute, in the plainest Rust: inputs in, outputs out, sums in f64. Slow on
//! purpose; every kernel is held against it. Inputs come from a seeded generator of our own.

use crate::config::Precision;
use crate::ops::cpu::format::nearest;
use crate::protocol::{KernelBinding, KernelFill, KernelReference, KernelRole, KernelShape, Sizes};
use crate::random::Rng;

/// RMSNorm's ε, AdamW's constants and RoPE's base, as everywhere in this program.
const EPS: f64 = 1e-5;
const LR: f64 = 3e-4;
const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const ADAM_EPS: f64 = 1e-8;
const DECAY: f64 = 0.01;
const THETA: f64 = 10_000.0;

/// Outputs for the inputs (`in` and `inout` buffers in binding order): one for each `out` and `inout` buffer.
pub fn outputs(reference: KernelReference, inputs: &[Vec<f32>], sizes: &Sizes) -> Vec<Vec<f32>> {
    let wide = |values: &Vec<f32>| values.iter().map(|x| f64::from(*x)).collect();
    let x: Vec<Vec<f64>> = inputs.iter().map(wide).collect();
    let size = |name: &str| sizes.get(name).map_or(0, |n| *n as usize);
    let found = match reference {
        KernelReference::Swiglu => vec![swiglu(&x)],
        KernelReference::SwigluBackward => swiglu_backward(&x).into(),
        KernelReference::RmsNorm => vec![rms_norm(&x, size("COLS"))],
        KernelReference::HeadsFirst => vec![heads_first(&x[0], ["T", "H", "D"].map(size))],
        KernelReference::Matmul => vec![matmul(&x, ["M", "N", "K"].map(size))],
        KernelReference::HalfMatmul => {
            let round = |values: &Vec<f32>| {
                let values = values.iter();
                values
                    .map(|x| f64::from(nearest(*x, Precision::F16)))
                    .collect()
            };
            let x: Vec<Vec<f64>> = inputs.iter().map(round).collect();
            vec![matmul(&x, ["M", "N", "K"].map(size))]
        }
        KernelReference::Rope => vec![rope(&x[0], ["H", "D"].map(size))],
        KernelReference::Softmax => vec![softmax(&x[0], size("COLS"))],
        KernelReference::Attention => vec![attention(&x, ["H", "T", "D"].map(size))],
        KernelReference::Adamw => adamw(&x, size("STEP")).into(),
        KernelReference::Residual => vec![x[0].iter().zip(&x[1]).map(|(x, y)| x + y).collect()],
    };
    let narrow = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect();
    found.into_iter().map(narrow).collect()
}

/// Values for the buffers that a kernel reads at a shape, in binding order; equal seeds give equal values.
///
/// # Errors
/// When a size is missing, or a buffer would be too large.
pub fn inputs(
    bindings: &[KernelBinding],
    shape: &KernelShape,
    seed: u64,
) -> Result<Vec<Vec<f32>>, String> {
    let read = (0..)
        .zip(bindings)
        .filter(|(_, binding)| binding.role != KernelRole::Out);
    read.map(|(number, binding)| {
        let count = binding.count.value(&shape.sizes)?;
        let fill = shape.fill.get(&binding.name).unwrap_or(&binding.fill);
        let mut rng = Rng::named(seed, "kernel input", number);
        Ok((0..count).map(|at| draw(*fill, at, &mut rng)).collect())
    })
    .collect()
}

/// Element `at` of a buffer.
fn draw(fill: KernelFill, at: u64, rng: &mut Rng) -> f32 {
    let drawn = match fill {
        KernelFill::Positive => rng.uniform(),
        KernelFill::Normal => rng.normal(),
        KernelFill::Large => 100.0 * rng.normal(),
        KernelFill::Small => 1e-3 * rng.normal(),
        KernelFill::Tiny => 1e-8 * rng.normal(),
        KernelFill::Zero => 0.0,
        KernelFill::Above => 5.0 + rng.normal(),
        KernelFill::Below => 10.0 * rng.normal() - 200.0,
        KernelFill::Rising => rng.normal() + 4.0 * at as f64,
        KernelFill::Falling => rng.normal() - 4.0 * at as f64,
    };
    drawn as f32
}

/// An expected output and what a kernel wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Largest error over the largest expected value; infinite where something is NaN that should not be.
    pub error: f64,
    /// Where it is.
    pub at: usize,
    pub expected: f32,
    pub found: f32,
    /// Largest expected value, by magnitude.
    pub scale: f64,
}

/// The largest difference; `None` when the lengths differ.
pub fn difference(expected: &[f32], found: &[f32]) -> Option<Difference> {
    if expected.len() != found.len() {
        return None;
    }
    let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let scale = f64::from(largest).max(f64::MIN_POSITIVE);
    let pairs = expected.iter().zip(found).enumerate();
    let all = pairs.map(|(at, (&expected, &found))| {
        let error = (f64::from(expected) - f64::from(found)).abs() / scale;
        Difference {
            error: if error.is_nan() { f64::INFINITY } else { error },
            at,
            expected,
            found,
            scale,
        }
    });
    all.reduce(|worst, next| {
        if next.error > worst.error {
            next
        } else {
            worst
        }
    })
}

fn silu(g: f64) -> f64 {
    g / (1.0 + (-g).exp())
}

/// gate, up [N] → silu(gate)·up
fn swiglu(x: &[Vec<f64>]) -> Vec<f64> {
    x[0].iter().zip(&x[1]).map(|(g, u)| silu(*g) * u).collect()
}

/// dy, gate, up [N] → dgate, dup. With s = 1/(1 + e^−g): silu' = s·(1 + g·(1 − s)).
fn swiglu_backward(x: &[Vec<f64>]) -> [Vec<f64>; 2] {
    let rows = x[0].iter().zip(&x[1]).zip(&x[2]);
    let (gate, up) = rows
        .map(|((dy, g), u)| {
            let s = 1.0 / (1.0 + (-g).exp());
            (dy * u * s * (1.0 + g * (1.0 - s)), dy * silu(*g))
        })
        .unzip();
    [gate, up]
}

/// x [ROWS, COLS], gain [COLS] → x/√(mean x² + ε)·gain
fn rms_norm(x: &[Vec<f64>], cols: usize) -> Vec<f64> {
    let row = |row: &[f64]| -> Vec<f64> {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / cols as f64;
        let scale = 1.0 / (mean + EPS).sqrt();
        let pairs = row.iter().zip(&x[1]);
        pairs.map(|(x, gain)| x * scale * gain).collect()
    };
    x[0].chunks(cols.max(1)).flat_map(row).collect()
}

/// x [T, H, D] → the same numbers as [H, T, D]
fn heads_first(x: &[f64], [t, h, d]: [usize; 3]) -> Vec<f64> {
    let mut out = Vec::with_capacity(t * h * d);
    for head in 0..h {
        for token in 0..t {
            let start = (token * h + head) * d;
            out.extend_from_slice(&x[start..start + d]);
        }
    }
    out
}

/// a [M, K], b [K, N] → a·b
fn matmul(x: &[Vec<f64>], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let mut out = Vec::with_capacity(m * n);
    for row in 0..m {
        for col in 0..n {
            let products = (0..k).map(|p| x[0][row * k + p] * x[1][p * n + col]);
            out.push(products.sum());
        }
    }
    out
}

/// x [T, H, D] → pairs (2i, 2i+1) rotated by t·θ^(−2i/D)
fn rope(x: &[f64], [h, d]: [usize; 2]) -> Vec<f64> {
    let rotated_values = |(pair, values): (usize, &[f64; 2])| {
        let (token, i) = (pair * 2 / (h * d).max(1), pair % (d / 2).max(1));
        let angle = token as f64 * THETA.powf(-2.0 * i as f64 / d as f64);
        let ([x, y], (sin, cos)) = (*values, angle.sin_cos());
        [x * cos - y * sin, x * sin + y * cos]
    };
    let pairs = x.as_chunks::<2>().0.iter().enumerate();
    pairs.flat_map(rotated_values).collect()
}

/// x [ROWS, COLS] → softmax of each row
fn softmax(x: &[f64], cols: usize) -> Vec<f64> {
    let rows = x.chunks(cols.max(1));
    rows.flat_map(|row| probabilities(row.to_vec())).collect()
}

fn probabilities(mut row: Vec<f64>) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter_mut().for_each(|x| *x = (*x - most).exp());
    let total: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= total);
    row
}

/// q, k, v [H, T, D] → causal softmax(q·kᵀ/√D)·v
fn attention(x: &[Vec<f64>], [h, t, d]: [usize; 3]) -> Vec<f64> {
    let at = |buffer: &[f64], row: usize, i: usize| buffer[row * d + i];
    let mut out = Vec::with_capacity(h * t * d);
    for head in 0..h {
        for query in 0..t {
            let (q, first) = (head * t + query, head * t);
            let score = |key: usize| {
                let products = (0..d).map(|i| at(&x[0], q, i) * at(&x[1], first + key, i));
                products.sum::<f64>() / (d as f64).sqrt()
            };
            let weights = probabilities((0..=query).map(score).collect());
            for i in 0..d {
                let weighted = weights.iter().zip(first..);
                out.push(weighted.map(|(p, key)| p * at(&x[2], key, i)).sum());
            }
        }
    }
    out
}

/// gradient, weight, m, v [N] → weight, m, v after this step of AdamW; v holds squares, so it is positive
fn adamw(x: &[Vec<f64>], step: usize) -> [Vec<f64>; 3] {
    let step = step as f64;
    let (correct1, correct2) = (1.0 - BETA1.powf(step), 1.0 - BETA2.powf(step));
    let mut out = [const { Vec::new() }; 3];
    for (((g, w), m), v) in x[0].iter().zip(&x[1]).zip(&x[2]).zip(&x[3]) {
        let m = BETA1 * m + (1.0 - BETA1) * g;
        let v = BETA2 * v + (1.0 - BETA2) * g * g;
        let update = (m / correct1) / ((v / correct2).sqrt() + ADAM_EPS);
        out[0].push(w - LR * DECAY * w - LR * update);
        out[1].push(m);
        out[2].push(v);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        assert_eq!(difference(&[1.0, 2.0], &[1.0]), None);
        let found = difference(&[1.0, -4.0], &[1.0, -3.0]).expect("equal lengths");
        assert_eq!((found.at, found.error), (1, 0.25));
        assert_eq!(
            difference(&[1.0], &[f32::NAN]).map(|d| d.error),
            Some(f64::INFINITY)
        );
    }
}
