//! The formula of each operation in double precision, as simple as possible. The other tests compare every version with it.

use crate::ops::matrix::Matrix;

/// Returns x·Wᵀ.
pub(super) fn linear(x: &Matrix, w: &Matrix) -> Matrix {
    exact(x.rows, w.rows, |n, m| {
        x.row(n).iter().zip(w.row(m)).map(|(a, b)| a * b).sum()
    })
}

/// Returns a matrix of these values, which are not rounded to `f32`, because differences of a formula need all digits.
pub(super) fn exact(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Matrix {
    Matrix {
        rows,
        columns,
        values: (0..rows * columns)
            .map(|i| value(i / columns, i % columns))
            .collect(),
    }
}

pub(super) fn add(a: &Matrix, b: &Matrix) -> Matrix {
    exact(a.rows, a.columns, |r, c| a.at(r, c) + b.at(r, c))
}

/// Returns x / √(mean(x²) + ε) · γ.
pub(super) fn rms_norm(x: &Matrix, gain: &Matrix) -> Matrix {
    let inverse: Vec<f64> = (0..x.rows)
        .map(|r| {
            let mean = x.row(r).iter().map(|v| v * v).sum::<f64>() / x.columns as f64;
            1.0 / (mean + protocol::config::NORM_EPS).sqrt()
        })
        .collect();
    exact(x.rows, x.columns, |r, c| {
        x.at(r, c) * inverse[r] * gain.values[c]
    })
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// Returns silu(gate)·up.
pub(super) fn swiglu(gate: &Matrix, up: &Matrix) -> Matrix {
    exact(gate.rows, gate.columns, |r, c| {
        silu(gate.at(r, c)) * up.at(r, c)
    })
}

/// Returns x with the pairs (2i, 2i+1) of its first `rotated` columns rotated by t·θ^(−2i/dh).
pub(super) fn rope(x: &Matrix, context: usize, head_dim: usize, rotated: usize) -> Matrix {
    exact(x.rows, x.columns, |r, c| {
        if c >= rotated {
            return x.at(r, c);
        }
        let pair = c % head_dim / 2;
        let power = -2.0 * pair as f64 / head_dim as f64;
        let angle = (r % context) as f64 * protocol::config::ROPE_THETA.powf(power);
        if c % 2 == 0 {
            x.at(r, c) * angle.cos() - x.at(r, c + 1) * angle.sin()
        } else {
            x.at(r, c - 1) * angle.sin() + x.at(r, c) * angle.cos()
        }
    })
}

/// Returns the rows W\[token\].
pub(super) fn embedding(w: &Matrix, tokens: &[i32]) -> Matrix {
    exact(tokens.len(), w.columns, |r, c| w.at(tokens[r] as usize, c))
}

/// Returns mean(logsumexp(z) − z\[target\]).
pub(super) fn cross_entropy(logits: &Matrix, targets: &[i32]) -> Matrix {
    let losses = (0..logits.rows).map(|r| {
        let row = logits.row(r);
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = row.iter().map(|z| (z - most).exp()).sum();
        most - row[targets[r] as usize] + total.ln()
    });
    let mean = losses.sum::<f64>() / logits.rows as f64;
    exact(1, 1, |_, _| mean)
}

/// The sizes of an attention.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub context: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
}

impl Heads {
    /// Returns the number of columns of the queries, and of the keys.
    pub(super) fn widths(&self) -> (usize, usize) {
        (self.heads * self.head_dim, self.kv_heads * self.head_dim)
    }

    /// Returns the probabilities of one row of one head for the keys up to the row's own.
    pub(super) fn probabilities(
        &self,
        q: &Matrix,
        k: &Matrix,
        row: usize,
        head: usize,
    ) -> Vec<f64> {
        let dh = self.head_dim;
        let first = row - row % self.context;
        let kv = head / (self.heads / self.kv_heads);
        let q = &q.row(row)[head * dh..][..dh];
        let scores: Vec<f64> = (first..=row)
            .map(|key| {
                let k = &k.row(key)[kv * dh..][..dh];
                q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>() / (dh as f64).sqrt()
            })
            .collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
        let total: f64 = powers.iter().sum();
        powers.iter().map(|p| p / total).collect()
    }
}

/// Returns softmax(q·kᵀ/√dh)·v without the keys after each query.
pub(super) fn attention(q: &Matrix, k: &Matrix, v: &Matrix, sizes: Heads) -> Matrix {
    let dh = sizes.head_dim;
    let group = sizes.heads / sizes.kv_heads;
    let mut out = exact(q.rows, q.columns, |_, _| 0.0);
    for row in 0..q.rows {
        let first = row - row % sizes.context;
        for head in 0..sizes.heads {
            for (key, p) in sizes.probabilities(q, k, row, head).into_iter().enumerate() {
                let from = &v.row(first + key)[head / group * dh..][..dh];
                let to = &mut out.values[row * q.columns + head * dh..][..dh];
                for (to, from) in to.iter_mut().zip(from) {
                    *to += p * from;
                }
            }
        }
    }
    out
}

/// Returns dq, dk and dv: dv = Pᵀ·dO, dS = P∘(dP − rowsum(dP∘P))/√dh, dq = dS·k, dk = dSᵀ·q.
pub(super) fn attention_backward(
    q: &Matrix,
    k: &Matrix,
    v: &Matrix,
    dy: &Matrix,
    sizes: Heads,
) -> [Matrix; 3] {
    let dh = sizes.head_dim;
    let group = sizes.heads / sizes.kv_heads;
    let scale = 1.0 / (dh as f64).sqrt();
    let [mut dq, mut dk, mut dv] = [q, k, v].map(|like| exact(like.rows, like.columns, |_, _| 0.0));
    for row in 0..q.rows {
        let first = row - row % sizes.context;
        for head in 0..sizes.heads {
            let (own, other) = (row * q.columns + head * dh, head / group * dh);
            let p = sizes.probabilities(q, k, row, head);
            let dy = &dy.values[own..][..dh];
            let dp: Vec<f64> = (0..p.len())
                .map(|key| {
                    let v = &v.row(first + key)[other..][..dh];
                    dy.iter().zip(v).map(|(a, b)| a * b).sum()
                })
                .collect();
            let mean: f64 = p.iter().zip(&dp).map(|(p, dp)| p * dp).sum();
            for (key, (p, dp)) in p.iter().zip(&dp).enumerate() {
                let start = (first + key) * k.columns + other;
                let ds = p * (dp - mean) * scale;
                for (i, dy) in dy.iter().enumerate() {
                    dv.values[start + i] += p * dy;
                    dk.values[start + i] += ds * q.values[own + i];
                    dq.values[own + i] += ds * k.values[start + i];
                }
            }
        }
    }
    [dq, dk, dv]
}
