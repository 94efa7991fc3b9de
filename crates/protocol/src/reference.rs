//! The plain reference of each exercise's kernel: outputs in f64, each with the error that f32 arithmetic may cause. It is simple
//! and slow on purpose, because every kernel is compared with it. Inputs come from this program's seeded generator.

pub mod cost;
pub mod real;

use half::f16;

use super::kernel::{KernelBinding, KernelFill, KernelReference, KernelRole, KernelShape};
use super::size::Sizes;
use crate::config::{NORM_EPS, ROPE_THETA};
use crate::random::{Rng, hash};
use real::{Functions, ROUND, Real, adding, adding_cut, dot, sum};

/// AdamW's constants, the same as elsewhere in this program.
const LR: f64 = 3e-4;
const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const ADAM_EPS: f64 = 1e-8;
const DECAY: f64 = 0.01;

/// Outputs for the inputs (`in` and `inout` buffers in binding order): one for each `out` and `inout` buffer. The bounds hold for a
/// kernel that uses these `functions`.
pub fn outputs(
    reference: KernelReference,
    inputs: &[Vec<f32>],
    sizes: &Sizes,
    functions: Functions,
) -> Vec<Vec<Real>> {
    let wide = |values: &Vec<f32>| values.iter().map(|x| f64::from(*x)).collect();
    let x: Vec<Vec<f64>> = inputs.iter().map(wide).collect();
    let size = |name: &str| sizes.get(name).map_or(0, |n| *n as usize);
    match reference {
        KernelReference::Swiglu => vec![swiglu(&x)],
        KernelReference::SwigluBackward => swiglu_backward(&x).into(),
        KernelReference::RmsNorm => vec![rms_norm(&x, size("COLS"))],
        KernelReference::HeadsFirst => vec![heads_first(&x[0], ["T", "H", "D"].map(size))],
        KernelReference::Matmul => vec![matmul(&x, ["M", "N", "K"].map(size), adding)],
        KernelReference::HalfMatmul => {
            let half = |x: &f32| f64::from(f16::from_f32(*x));
            let round = |values: &Vec<f32>| values.iter().map(half).collect();
            let x: Vec<Vec<f64>> = inputs.iter().map(round).collect();
            vec![matmul(&x, ["M", "N", "K"].map(size), adding_cut)]
        }
        KernelReference::Rope => vec![rope(&x[0], ["H", "D"].map(size), functions)],
        KernelReference::Softmax => vec![softmax(&x[0], size("COLS"))],
        KernelReference::Attention => vec![attention(&x, ["H", "T", "D"].map(size))],
        KernelReference::Adamw => adamw(&x, size("STEP"), functions).into(),
        KernelReference::Residual => {
            let pairs = x[0].iter().zip(&x[1]);
            let sums = pairs.map(|(x, y)| Real::exact(*x) + Real::exact(*y));
            vec![sums.collect()]
        }
    }
}

/// Values of the buffers that a kernel reads at a shape, in binding order; equal seeds give equal values. `values` fills all buffers
/// with one kind of values, positive where the exercise needs that; without it, each buffer gets the kind that the exercise names.
///
/// # Errors
/// If a size is missing, or a buffer would be too large.
pub fn inputs(
    bindings: &[KernelBinding],
    shape: &KernelShape,
    values: Option<KernelFill>,
    seed: u64,
) -> Result<Vec<Vec<f32>>, String> {
    // Each drawn shape has its own numbers.
    let seed = match shape.is_drawn() {
        true => seed ^ hash(shape.label.bytes()),
        false => seed,
    };
    let read = (0..)
        .zip(bindings)
        .filter(|it| it.1.role != KernelRole::Out);
    read.map(|(number, binding)| {
        let count = binding.count.value(&shape.sizes)?;
        let own = shape.fill.get(&binding.name).unwrap_or(&binding.fill);
        let mut rng = Rng::named(seed, "kernel input", number);
        let row = binding.count.row(&shape.sizes).max(1);
        let fill = values.unwrap_or(*own);
        let mut drawn = draw(fill, &shape.numbers, count, row, &mut rng);
        let far = matches!(fill, KernelFill::Far | KernelFill::Beneath);
        if far && number.is_multiple_of(2) {
            drawn.iter_mut().for_each(|x| *x = -*x);
        }
        Ok(match *own {
            KernelFill::Positive => drawn.into_iter().map(f32::abs).collect(),
            _ => drawn,
        })
    })
    .collect()
}

/// The `count` elements of a buffer whose rows have `row` elements.
fn draw(fill: KernelFill, numbers: &[f64], count: u64, row: u64, rng: &mut Rng) -> Vec<f32> {
    let (mut constant, mut outlier) = (0.0, 0);
    let mut between = |from: f64, to: f64| from * (to / from).powf(rng.uniform());
    let size = match fill {
        KernelFill::Far => between(1e5, 1e8),
        KernelFill::Huge => between(1e4, 1e8),
        KernelFill::Outlier => between(8.0, 2e3),
        KernelFill::Beneath => numbers.iter().copied().fold(1.0, f64::max),
        _ => 0.0,
    };
    let draw = |at: u64| {
        match fill {
            // In eighths: f32 sums of such a number and of its square are exact.
            KernelFill::Constant if at == 0 => constant = (1 + rng.below(24)) as f64 / 8.0,
            KernelFill::Outlier if at.is_multiple_of(row) => {
                outlier = at + rng.below(row as usize) as u64;
            }
            _ => {}
        }
        let drawn = match fill {
            KernelFill::Positive => rng.uniform(),
            KernelFill::Normal => rng.normal(),
            KernelFill::Large => 100.0 * rng.normal(),
            KernelFill::Small => 1e-3 * rng.normal(),
            KernelFill::Tiny => 1e-8 * rng.normal(),
            KernelFill::Zero => 0.0,
            KernelFill::Constant => constant,
            KernelFill::Outlier if at == outlier => size,
            KernelFill::Outlier => rng.normal(),
            KernelFill::Written if numbers.is_empty() || rng.below(4) == 0 => rng.normal(),
            KernelFill::Written => {
                let near = [1.0, 0.99, 1.01, 1.5][rng.below(4)];
                let sign = [1.0, -1.0][rng.below(2)];
                sign * near * numbers[rng.below(numbers.len())]
            }
            KernelFill::Above => 5.0 + rng.normal(),
            KernelFill::Below => 10.0 * rng.normal() - 200.0,
            KernelFill::Far => size * (1.0 + 0.25 * rng.normal()),
            KernelFill::Beneath => size * (1.25 + 0.25 * rng.uniform()),
            // Only one in eight is 0, because equal terms of a sum all round the same way.
            KernelFill::Sparse if rng.below(8) == 0 => 0.0,
            KernelFill::Sparse => rng.normal(),
            KernelFill::Huge => size * rng.normal(),
            KernelFill::Rising => rng.normal() + 4.0 * at as f64,
            KernelFill::Falling => rng.normal() - 4.0 * at as f64,
        };
        drawn as f32
    };
    (0..count).map(draw).collect()
}

/// An element that a kernel wrote, and its expected value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The error over the largest error that rounding explains; infinite for an unexpected NaN.
    pub share: f64,
    pub at: usize,
    pub expected: f64,
    pub found: f64,
    /// The largest error that rounding explains.
    pub bound: f64,
}

impl Difference {
    pub fn off(&self) -> f64 {
        (self.found - self.expected).abs()
    }
}

/// The difference of each element, which may be at most `most`. `None` when the lengths differ.
pub fn differences<'a>(
    expected: &'a [Real],
    found: &'a [f32],
    most: f64,
) -> Option<impl Iterator<Item = Difference> + Clone + use<'a>> {
    let pairs = expected.iter().zip(found).enumerate();
    let all = pairs.map(move |(at, (real, found))| {
        let (found, bound) = (f64::from(*found), real.bound().min(most));
        // An element beyond the range of f32 has no right value.
        let any =
            found == real.value || real.value.is_nan() || real.value.abs() > f64::from(f32::MAX);
        let share = match (found - real.value).abs() {
            0.0 => 0.0,
            off if off.is_nan() => f64::INFINITY,
            off => off / bound,
        };
        Difference {
            // Any number is right there, also one that overflowed.
            share: if any || share.is_nan() { 0.0 } else { share },
            at,
            expected: real.value,
            found,
            bound,
        }
    });
    (expected.len() == found.len()).then_some(all)
}

/// gate, up [N] → silu(gate)·up
fn swiglu(x: &[Vec<f64>]) -> Vec<Real> {
    let rows = x[0].iter().zip(&x[1]);
    let silu = |g: Real| g * g.sigmoid();
    rows.map(|(g, u)| silu(Real::exact(*g)) * Real::exact(*u))
        .collect()
}

/// dy, gate, up [N] → dgate, dup. With s = 1/(1 + e^−g): silu' = s·(1 + g·(1 − s)).
fn swiglu_backward(x: &[Vec<f64>]) -> [Vec<Real>; 2] {
    let rows = x[0].iter().zip(&x[1]).zip(&x[2]);
    let (gate, up) = rows
        .map(|((dy, g), u)| {
            let ([dy, g, u], one) = ([*dy, *g, *u].map(Real::exact), Real::exact(1.0));
            let s = g.sigmoid();
            (dy * u * s * (one + g * (one - s)), dy * g * s)
        })
        .unzip();
    [gate, up]
}

/// x [ROWS, COLS], gain [COLS] → x/√(mean x² + ε)·gain
fn rms_norm(x: &[Vec<f64>], cols: usize) -> Vec<Real> {
    let row = |row: &[f64]| -> Vec<Real> {
        let (sum, size) = dot(row.iter().map(|x| (*x, *x)));
        let sum = Real::exact(sum).off_by(adding(cols) * size);
        let mean = sum / Real::exact(cols as f64) + Real::written(NORM_EPS);
        let scale = Real::exact(1.0) / mean.sqrt();
        let pairs = row.iter().zip(&x[1]);
        pairs
            .map(|(x, gain)| Real::exact(*x) * scale * Real::exact(*gain))
            .collect()
    };
    x[0].chunks(cols.max(1)).flat_map(row).collect()
}

/// x [T, H, D] → the same numbers as [H, T, D]
fn heads_first(x: &[f64], [t, h, d]: [usize; 3]) -> Vec<Real> {
    let mut out = Vec::with_capacity(t * h * d);
    for head in 0..h {
        for token in 0..t {
            let start = (token * h + head) * d;
            out.extend(x[start..start + d].iter().copied().map(Real::exact));
        }
    }
    out
}

/// a [M, K], b [K, N] → a·b; `error` gives the error of adding that many products.
fn matmul(x: &[Vec<f64>], [m, n, k]: [usize; 3], error: fn(usize) -> f64) -> Vec<Real> {
    let mut out = Vec::with_capacity(m * n);
    for row in 0..m {
        for col in 0..n {
            let (sum, size) = dot((0..k).map(|p| (x[0][row * k + p], x[1][p * n + col])));
            out.push(Real::exact(sum).off_by(error(k) * size));
        }
    }
    out
}

/// x [T, H, D] → pairs (2i, 2i+1) rotated by t·θ^(−2i/D)
fn rope(x: &[f64], [h, d]: [usize; 2], functions: Functions) -> Vec<Real> {
    let rotated_values = |(pair, values): (usize, &[f64; 2])| {
        let (token, i) = (pair * 2 / (h * d).max(1), pair % (d / 2).max(1));
        let (sin, cos) = angle(token, 2.0 * i as f64 / d as f64).sin_cos(functions);
        let [x, y] = values.map(Real::exact);
        [x * cos - y * sin, x * sin + y * cos]
    };
    let pairs = x.as_chunks::<2>().0.iter().enumerate();
    pairs.flat_map(rotated_values).collect()
}

/// t·θ^−e modulo 2π: θ^−e is e^(−e·ln θ), and the 2π that is subtracted or divided by is an f32.
fn angle(token: usize, e: f64) -> Real {
    let exponent = e * ROPE_THETA.ln();
    let speed = match e {
        0.0 => Real::exact(1.0),
        _ => Real::exact(-exponent).off_by(adding(1) * exponent).exp(),
    };
    let turn = Real::exact(token as f64) * speed;
    turn.off_by(4.0 * ROUND * turn.value)
}

/// x [ROWS, COLS] → softmax of each row
fn softmax(x: &[f64], cols: usize) -> Vec<Real> {
    let row = |row: &[f64]| {
        let (powers, total) = powers(row.iter().copied().map(Real::exact));
        powers.into_iter().map(move |it| it / total)
    };
    x.chunks(cols.max(1)).flat_map(row).collect()
}

/// e^(x − m) with the largest m, and their sum.
fn powers(row: impl Iterator<Item = Real> + Clone) -> (Vec<Real>, Real) {
    let larger = |one: Real, other: Real| match one.value < other.value {
        true => other,
        false => one,
    };
    let most = row.clone().reduce(larger).unwrap_or_default();
    // A kernel may also subtract m and the logarithm of the sum together.
    let less = |x: Real| (x - most).off_by(ROUND * (x.value.abs() + most.value.abs()));
    let powers: Vec<Real> = row.map(|x| less(x).exp()).collect();
    let total = sum(powers.iter().copied());
    (powers, total)
}

/// q, k, v [H, T, D] → causal softmax(q·kᵀ/√D)·v
fn attention(x: &[Vec<f64>], [h, t, d]: [usize; 3]) -> Vec<Real> {
    let at = |buffer: &[f64], row: usize, i: usize| buffer[row * d + i];
    let root = Real::exact(d as f64).sqrt();
    let mut out = Vec::with_capacity(h * t * d);
    for head in 0..h {
        for query in 0..t {
            let (q, first) = (head * t + query, head * t);
            let score = |key: usize| {
                let (sum, size) = dot((0..d).map(|i| (at(&x[0], q, i), at(&x[1], first + key, i))));
                Real::exact(sum).off_by(adding(d) * size) / root
            };
            let scores: Vec<Real> = (0..=query).map(score).collect();
            let (powers, total) = powers(scores.iter().copied());
            for i in 0..d {
                let weighted = powers.iter().zip(first..);
                let weighted = weighted.map(|(p, key)| *p * Real::exact(at(&x[2], key, i)));
                out.push(sum(weighted) / total);
            }
        }
    }
    out
}

/// gradient, weight, m, v [N] → weight, m, v after this step of AdamW; v holds squares, so it is positive
fn adamw(x: &[Vec<f64>], step: usize, functions: Functions) -> [Vec<Real>; 3] {
    let one = Real::exact(1.0);
    let [beta1, beta2] = [BETA1, BETA2].map(Real::written);
    let [correct1, correct2] = [beta1, beta2].map(|beta| one - beta.power(step as f64, functions));
    let (rate, decay) = (Real::written(LR), Real::written(DECAY));
    let mut out = [const { Vec::new() }; 3];
    for (((g, w), m), v) in x[0].iter().zip(&x[1]).zip(&x[2]).zip(&x[3]) {
        let [g, w, m, v] = [*g, *w, *m, *v].map(Real::exact);
        let m = beta1 * m + (one - beta1) * g;
        let v = beta2 * v + (one - beta2) * (g * g);
        let update = (m / correct1) / ((v / correct2).sqrt() + Real::written(ADAM_EPS));
        out[0].push(w - rate * decay * w - rate * update);
        out[1].push(m);
        out[2].push(v);
    }
    out
}

#[cfg(test)]
mod forms;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        let expected = [1.0, -4.0].map(|x| Real::exact(x).off_by(0.25));
        assert!(differences(&expected, &[1.0], 9.0).is_none());
        let shares = |found: &[f32]| -> Vec<f64> {
            let all = differences(&expected, found, 9.0).expect("equal lengths");
            all.map(|it| it.share.round()).collect()
        };
        assert_eq!(shares(&[1.0, -3.0]), [0.0, 4.0]);
        assert_eq!(shares(&[f32::NAN, -4.0]), [f64::INFINITY, 0.0]);
        let exact = [Real::exact(1.0)];
        let found = differences(&exact, &[1.000_000_1], 9.0).expect("equal lengths");
        assert_eq!(
            found.map(|it| it.share).collect::<Vec<_>>(),
            [f64::INFINITY]
        );
    }
}
