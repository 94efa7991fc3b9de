//! The blocked attention against the definition in double precision.

use super::super::testing::{assert_gradient, assert_near, numbers, on_threads, wide};
use super::*;

/// The definition over separate buffers, one query and head at a time.
fn reference(shape: Shape, q: &[f64], k: &[f64], v: &[f64]) -> Vec<f64> {
    let Shape {
        batch,
        time,
        heads,
        kv_heads,
        head_dim,
    } = shape;
    let mut out = vec![0.0; q.len()];
    for row in 0..batch * time {
        for head in 0..heads {
            let kv_head = head / (heads / kv_heads);
            let at = |row: usize, heads: usize, head: usize| (row * heads + head) * head_dim;
            let keys = row / time * time..=row;
            let scores: Vec<f64> = keys
                .clone()
                .map(|key| {
                    let (q, k) = (
                        &q[at(row, heads, head)..][..head_dim],
                        &k[at(key, kv_heads, kv_head)..],
                    );
                    q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / (head_dim as f64).sqrt()
                })
                .collect();
            let most = scores
                .iter()
                .fold(f64::NEG_INFINITY, |most, x| most.max(*x));
            let total: f64 = scores.iter().map(|x| (x - most).exp()).sum();
            for (key, score) in keys.zip(&scores) {
                let p = (score - most).exp() / total;
                let v = &v[at(key, kv_heads, kv_head)..][..head_dim];
                for (out, v) in out[at(row, heads, head)..][..head_dim].iter_mut().zip(v) {
                    *out += p * v;
                }
            }
        }
    }
    out
}

struct Case {
    shape: Shape,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

impl Case {
    fn new(
        batch: usize,
        time: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        size: f32,
    ) -> Self {
        let shape = Shape {
            batch,
            time,
            heads,
            kv_heads,
            head_dim,
        };
        let rows = shape.rows();
        let sized = |seed, heads: usize| {
            numbers(seed, rows * heads * head_dim)
                .iter()
                .map(|x| x * size)
                .collect::<Vec<_>>()
        };
        Self {
            shape,
            q: sized(1, heads),
            k: sized(2, kv_heads),
            v: numbers(3, rows * kv_heads * head_dim),
        }
    }

    fn views(&self) -> [View<'_>; 3] {
        [
            View::separate(&self.q, self.shape, self.shape.heads),
            View::separate(&self.k, self.shape, self.shape.kv_heads),
            View::separate(&self.v, self.shape, self.shape.kv_heads),
        ]
    }

    /// The same numbers, row by row as q, k, v.
    fn packed(&self) -> Vec<f32> {
        let Shape {
            heads,
            kv_heads,
            head_dim,
            ..
        } = self.shape;
        let rows = self
            .q
            .chunks(heads * head_dim)
            .zip(self.k.chunks(kv_heads * head_dim));
        let rows = rows.zip(self.v.chunks(kv_heads * head_dim));
        rows.flat_map(|((q, k), v)| [q, k, v].concat()).collect()
    }

    fn forward(&self, [q, k, v]: [View; 3]) -> (Vec<f32>, Vec<f32>) {
        let (mut out, mut lse) = (
            vec![f32::NAN; self.q.len()],
            vec![f32::NAN; self.shape.rows() * self.shape.heads],
        );
        forward(&mut out, &mut lse, self.shape, q, k, v);
        (out, lse)
    }

    fn backward(&self, dout: &[f32]) -> [Vec<f32>; 3] {
        let (out, lse) = self.forward(self.views());
        let mut gradients = [&self.q, &self.k, &self.v].map(|x| vec![f32::NAN; x.len()]);
        let [dq, dk, dv] = &mut gradients;
        let [q, k, v] = self.views();
        backward(
            Gradients::Separate { dq, dk, dv },
            self.shape,
            q,
            k,
            v,
            &out,
            &lse,
            dout,
        );
        gradients
    }
}

#[test]
fn forward_agrees_with_the_definition() {
    let cases = [
        (1, 1, 1, 1, 4, 1.0),
        (2, 7, 4, 2, 6, 1.0),
        (2, 64, 2, 2, 32, 1.0),
        (1, 65, 2, 1, 64, 1.0),
        (1, 200, 3, 1, 5, 1.0),
        (1, 150, 2, 1, 128, 1.0),
        (1, 130, 2, 1, 8, 100.0),
    ];
    for (batch, time, heads, kv_heads, head_dim, size) in cases {
        let case = Case::new(batch, time, heads, kv_heads, head_dim, size);
        let (out, lse) = case.forward(case.views());
        // Large scores leave few correct digits in a single-precision exponent.
        let tolerance = if size > 1.0 { 2e-3 } else { 1e-5 };
        assert_near(
            &out,
            &reference(case.shape, &wide(&case.q), &wide(&case.k), &wide(&case.v)),
            tolerance,
        );
        assert!(lse.iter().all(|x| x.is_finite()));
        let packed = case.packed();
        assert!((out, lse) == case.forward(View::packed(&packed, case.shape)));
    }
}

#[test]
fn gradients_agree_with_differences() {
    for (batch, time, heads, kv_heads, head_dim) in
        [(1, 1, 1, 1, 4), (2, 7, 4, 2, 6), (1, 70, 2, 1, 4)]
    {
        let case = Case::new(batch, time, heads, kv_heads, head_dim, 1.0);
        let dout = numbers(4, case.q.len());
        let [dq, dk, dv] = case.backward(&dout);
        let (q, k, v) = (wide(&case.q), wide(&case.k), wide(&case.v));
        let loss = |q: &[f64], k: &[f64], v: &[f64]| {
            reference(case.shape, q, k, v)
                .iter()
                .zip(&dout)
                .map(|(out, dout)| out * f64::from(*dout))
                .sum::<f64>()
        };
        if time > 1 {
            assert_gradient(&q, &dq, |q| loss(q, &k, &v));
            assert_gradient(&k, &dk, |k| loss(&q, k, &v));
        }
        assert_gradient(&v, &dv, |v| loss(&q, &k, v));

        let packed = case.packed();
        let mut dpacked = vec![f32::NAN; packed.len()];
        let [q, k, v] = View::packed(&packed, case.shape);
        let (out, lse) = case.forward([q, k, v]);
        backward(
            Gradients::Packed(&mut dpacked),
            case.shape,
            q,
            k,
            v,
            &out,
            &lse,
            &dout,
        );
        let want = Case {
            shape: case.shape,
            q: dq,
            k: dk,
            v: dv,
        }
        .packed();
        assert!(want == dpacked);
    }
}

#[test]
fn blocked_gradients_agree_over_several_blocks() {
    // The sum of the gradients of v over all positions is the sum of dout, whatever the probabilities are.
    let case = Case::new(1, 300, 2, 1, 16, 2.0);
    let [dq, dk, dv] = case.backward(&vec![1.0; case.q.len()]);
    let total: f64 = wide(&dv).iter().sum();
    assert!((total - case.q.len() as f64).abs() < 1e-2, "{total}");
    assert!(dq.iter().chain(&dk).all(|x| x.is_finite()));
}

#[test]
fn long_sequences_and_threads() {
    let case = Case::new(1, 4096, 2, 1, 8, 1.0);
    let dout = numbers(4, case.q.len());
    let run = |threads| {
        on_threads(threads, || {
            (case.forward(case.views()), case.backward(&dout))
        })
    };
    let one = run(1);
    assert!(one == run(3));
    let ((out, _), _) = one;
    let last = case.q.len() - 16..;
    let want = reference(case.shape, &wide(&case.q), &wide(&case.k), &wide(&case.v));
    assert_near(&out[last.clone()], &want[last], 1e-4);
}
