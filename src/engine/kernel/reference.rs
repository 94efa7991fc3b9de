//! What the kernels of the exercises have to compute, in the plainest Rust: inputs in, outputs out, sums in f64. Slow on
//! purpose; every kernel is held against it. Inputs come from a seeded generator of our own.

use crate::protocol::{KernelBinding, KernelFill, KernelReference, KernelRole, Sizes};
use crate::random::Rng;

/// Outputs for the inputs (`in` and `inout` buffers in binding order): one for each `out` and `inout` buffer.
pub type Reference = fn(&[Vec<f32>], &Sizes) -> Vec<Vec<f32>>;

/// RMSNorm's ε, AdamW's constants and RoPE's base, as everywhere in this program.
const EPS: f64 = 1e-5;
const LR: f64 = 3e-4;
const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const ADAM_EPS: f64 = 1e-8;
const DECAY: f64 = 0.01;
const THETA: f64 = 10_000.0;

/// The function that computes a reference.
pub fn of(reference: KernelReference) -> Reference {
    match reference {
        KernelReference::Swiglu => swiglu,
        KernelReference::SwigluBackward => swiglu_backward,
        KernelReference::RmsNorm => rms_norm,
        KernelReference::HeadsFirst => heads_first,
        KernelReference::Matmul => matmul,
        KernelReference::Rope => rope,
        KernelReference::Softmax => softmax,
        KernelReference::Attention => attention,
        KernelReference::Adamw => adamw,
        KernelReference::Residual => residual,
    }
}

/// Values for the buffers that a kernel reads, in binding order; equal seeds give equal values.
///
/// # Errors
/// When a size is missing, or a buffer would be too large.
pub fn inputs(
    bindings: &[KernelBinding],
    sizes: &Sizes,
    seed: u64,
) -> Result<Vec<Vec<f32>>, String> {
    let read = (0..)
        .zip(bindings)
        .filter(|(_, binding)| binding.role != KernelRole::Out);
    read.map(|(number, binding)| {
        let count = binding.count.value(sizes)?;
        let mut rng = Rng::named(seed, "kernel input", number);
        Ok((0..count).map(|_| draw(binding.fill, &mut rng)).collect())
    })
    .collect()
}

fn draw(fill: KernelFill, rng: &mut Rng) -> f32 {
    match fill {
        KernelFill::Positive => rng.uniform() as f32,
        KernelFill::Normal => rng.normal() as f32,
        KernelFill::Large => (100.0 * rng.normal()) as f32,
    }
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
}

/// The largest difference; `None` when the lengths differ.
pub fn difference(expected: &[f32], found: &[f32]) -> Option<Difference> {
    if expected.len() != found.len() || expected.is_empty() {
        return None;
    }
    let scale = expected
        .iter()
        .fold(0.0_f64, |most, x| most.max(f64::from(x.abs())))
        .max(f64::MIN_POSITIVE);
    let mut worst = Difference {
        error: 0.0,
        at: 0,
        expected: expected[0],
        found: found[0],
    };
    for (at, (&expected, &found)) in expected.iter().zip(found).enumerate() {
        let error = (f64::from(expected) - f64::from(found)).abs() / scale;
        let error = if error.is_nan() { f64::INFINITY } else { error };
        if error > worst.error {
            worst = Difference {
                error,
                at,
                expected,
                found,
            };
        }
    }
    Some(worst)
}

fn size(sizes: &Sizes, name: &str) -> usize {
    sizes
        .get(name)
        .copied()
        .and_then(|n| usize::try_from(n).ok())
        .unwrap_or(0)
}

fn silu(g: f64) -> f64 {
    g / (1.0 + (-g).exp())
}

/// gate, up [N] → silu(gate)·up
fn swiglu(x: &[Vec<f32>], _: &Sizes) -> Vec<Vec<f32>> {
    vec![
        x[0].iter()
            .zip(&x[1])
            .map(|(&g, &u)| (silu(g.into()) * f64::from(u)) as f32)
            .collect(),
    ]
}

/// dy, gate, up [N] → dgate, dup. With s = 1/(1 + e^−g): silu' = s·(1 + g·(1 − s)).
fn swiglu_backward(x: &[Vec<f32>], _: &Sizes) -> Vec<Vec<f32>> {
    let rows = x[0].iter().zip(&x[1]).zip(&x[2]);
    let (gate, up) = rows
        .map(|((&dy, &g), &u)| {
            let (dy, g, u) = (f64::from(dy), f64::from(g), f64::from(u));
            let s = 1.0 / (1.0 + (-g).exp());
            (
                (dy * u * s * (1.0 + g * (1.0 - s))) as f32,
                (dy * silu(g)) as f32,
            )
        })
        .unzip();
    vec![gate, up]
}

/// x [ROWS, COLS], gain [COLS] → x/√(mean x² + ε)·gain
fn rms_norm(x: &[Vec<f32>], sizes: &Sizes) -> Vec<Vec<f32>> {
    let cols = size(sizes, "COLS");
    let mut out = Vec::with_capacity(x[0].len());
    for row in x[0].chunks(cols.max(1)) {
        let mean = row
            .iter()
            .map(|&x| f64::from(x) * f64::from(x))
            .sum::<f64>()
            / cols as f64;
        let scale = 1.0 / (mean + EPS).sqrt();
        out.extend(
            row.iter()
                .zip(&x[1])
                .map(|(&x, &gain)| (f64::from(x) * scale * f64::from(gain)) as f32),
        );
    }
    vec![out]
}

/// x [T, H, D] → the same numbers as [H, T, D]
fn heads_first(x: &[Vec<f32>], sizes: &Sizes) -> Vec<Vec<f32>> {
    let (t, h, d) = (size(sizes, "T"), size(sizes, "H"), size(sizes, "D"));
    let mut out = Vec::with_capacity(t * h * d);
    for head in 0..h {
        for token in 0..t {
            let start = (token * h + head) * d;
            out.extend_from_slice(&x[0][start..start + d]);
        }
    }
    vec![out]
}

/// a [M, K], b [K, N] → a·b
fn matmul(x: &[Vec<f32>], sizes: &Sizes) -> Vec<Vec<f32>> {
    let (m, n, k) = (size(sizes, "M"), size(sizes, "N"), size(sizes, "K"));
    let mut out = Vec::with_capacity(m * n);
    for row in 0..m {
        for col in 0..n {
            let products =
                (0..k).map(|p| f64::from(x[0][row * k + p]) * f64::from(x[1][p * n + col]));
            out.push(products.sum::<f64>() as f32);
        }
    }
    vec![out]
}

/// x [T, H, D] → pairs (2i, 2i+1) turned by t·θ^(−2i/D)
fn rope(x: &[Vec<f32>], sizes: &Sizes) -> Vec<Vec<f32>> {
    let (h, d) = (size(sizes, "H"), size(sizes, "D"));
    let mut out = x[0].clone();
    for (pair, values) in out.chunks_mut(2).enumerate() {
        let (token, i) = (pair * 2 / (h * d).max(1), pair % (d / 2).max(1));
        let angle = token as f64 * THETA.powf(-2.0 * i as f64 / d as f64);
        if let [a, b] = values {
            let (x, y) = (f64::from(*a), f64::from(*b));
            *a = (x * angle.cos() - y * angle.sin()) as f32;
            *b = (x * angle.sin() + y * angle.cos()) as f32;
        }
    }
    vec![out]
}

/// x [ROWS, COLS] → softmax of each row
fn softmax(x: &[Vec<f32>], sizes: &Sizes) -> Vec<Vec<f32>> {
    let rows = x[0].chunks(size(sizes, "COLS").max(1));
    vec![
        rows.flat_map(|row| probabilities(row.iter().map(|&x| f64::from(x)).collect()))
            .map(|p| p as f32)
            .collect(),
    ]
}

fn probabilities(mut row: Vec<f64>) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter_mut().for_each(|x| *x = (*x - most).exp());
    let total: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= total);
    row
}

/// q, k, v [H, T, D] → causal softmax(q·kᵀ/√D)·v
fn attention(x: &[Vec<f32>], sizes: &Sizes) -> Vec<Vec<f32>> {
    let (h, t, d) = (size(sizes, "H"), size(sizes, "T"), size(sizes, "D"));
    let at = |buffer: &[f32], row: usize, i: usize| f64::from(buffer[row * d + i]);
    let mut out = Vec::with_capacity(h * t * d);
    for head in 0..h {
        for query in 0..t {
            let (q, first) = (head * t + query, head * t);
            let score = |key: usize| {
                (0..d)
                    .map(|i| at(&x[0], q, i) * at(&x[1], first + key, i))
                    .sum::<f64>()
            };
            let weights = probabilities(
                (0..=query)
                    .map(|key| score(key) / (d as f64).sqrt())
                    .collect(),
            );
            for i in 0..d {
                let mixed = weights
                    .iter()
                    .enumerate()
                    .map(|(key, p)| p * at(&x[2], first + key, i));
                out.push(mixed.sum::<f64>() as f32);
            }
        }
    }
    vec![out]
}

/// gradient, weight, m, v [N] → weight, m, v after step STEP of AdamW; v holds squares, so it is positive
fn adamw(x: &[Vec<f32>], sizes: &Sizes) -> Vec<Vec<f32>> {
    let step = size(sizes, "STEP") as f64;
    let (correct1, correct2) = (1.0 - BETA1.powf(step), 1.0 - BETA2.powf(step));
    let mut out = vec![Vec::new(), Vec::new(), Vec::new()];
    for (((&g, &w), &m), &v) in x[0].iter().zip(&x[1]).zip(&x[2]).zip(&x[3]) {
        let (g, w) = (f64::from(g), f64::from(w));
        let m = BETA1 * f64::from(m) + (1.0 - BETA1) * g;
        let v = BETA2 * f64::from(v) + (1.0 - BETA2) * g * g;
        let update = (m / correct1) / ((v / correct2).sqrt() + ADAM_EPS);
        out[0].push((w - LR * DECAY * w - LR * update) as f32);
        out[1].push(m as f32);
        out[2].push(v as f32);
    }
    out
}

/// x, y [N] → x + y
fn residual(x: &[Vec<f32>], _: &Sizes) -> Vec<Vec<f32>> {
    vec![x[0].iter().zip(&x[1]).map(|(x, y)| x + y).collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(list: &[(&str, u64)]) -> Sizes {
        list.iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect()
    }

    #[test]
    fn the_backward_pass_is_the_slope_of_the_forward_pass() {
        let (gate, up, h) = (
            vec![-1.5, 0.0, 0.3, 4.0],
            vec![2.0, -1.0, 0.5, 1.0],
            1e-2_f32,
        );
        let found = swiglu_backward(&[vec![1.0; 4], gate.clone(), up.clone()], &sizes(&[]));
        let moved = |dg: f32, du: f32| {
            let shift = |x: &[f32], d: f32| x.iter().map(|x| x + d).collect::<Vec<_>>();
            swiglu(&[shift(&gate, dg), shift(&up, du)], &sizes(&[])).remove(0)
        };
        for (slope, (a, b)) in [
            (&found[0], (moved(h, 0.0), moved(-h, 0.0))),
            (&found[1], (moved(0.0, h), moved(0.0, -h))),
        ] {
            for ((slope, a), b) in slope.iter().zip(&a).zip(&b) {
                assert!(
                    (slope - (a - b) / (2.0 * h)).abs() < 1e-3,
                    "{slope} {a} {b}"
                );
            }
        }
    }

    #[test]
    fn small_cases_by_hand() {
        let near = |found: &[f32], expected: &[f32]| {
            let difference = difference(expected, found).expect("equal lengths");
            assert!(difference.error < 1e-5, "{difference:?}");
        };
        near(
            &matmul(
                &[vec![1., 2., 3., 4.], vec![5., 6., 7., 8.]],
                &sizes(&[("M", 2), ("N", 2), ("K", 2)]),
            )[0],
            &[19., 22., 43., 50.],
        );
        near(
            &heads_first(
                &[(0..12).map(|x| x as f32).collect()],
                &sizes(&[("T", 3), ("H", 2), ("D", 2)]),
            )[0],
            &[0., 1., 4., 5., 8., 9., 2., 3., 6., 7., 10., 11.],
        );
        near(
            &softmax(&[vec![1000.0, 1000.0]], &sizes(&[("COLS", 2)]))[0],
            &[0.5, 0.5],
        );
        near(
            &rms_norm(&[vec![3., 4.], vec![1., 2.]], &sizes(&[("COLS", 2)]))[0],
            &[0.848_528, 2.262_742],
        );
        near(
            &rope(&[vec![1., 0., 1., 0.]], &sizes(&[("H", 1), ("D", 2)]))[0],
            &[1., 0., 0.540_302, 0.841_471],
        );
        // The first query sees the first key only.
        let flash = attention(
            &[vec![1., 2.], vec![3., 4.], vec![5., 7.]],
            &sizes(&[("H", 1), ("T", 2), ("D", 1)]),
        );
        near(&flash[0], &[5.0, 6.761_594]);
        // First step: the update is ±1 whatever the gradient.
        let updated = adamw(
            &[vec![0.5], vec![1.0], vec![0.0], vec![0.0]],
            &sizes(&[("STEP", 1)]),
        );
        near(&updated[0], &[1.0 - 3e-6 - 3e-4]);
    }

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
