//! `SwiGLU`, the gate of the feed-forward layer: `silu(gate) · up`, forward and backward, apart or packed.
//! The products around it are in `linear`. Shazeer, "GLU Variants Improve Transformer", 2020.

use rayon::prelude::*;

use super::{GRAIN, rows_per_task, sigmoid};

/// `out = silu(gate) · up` with `silu(x) = x / (1 + exp(-x))`; all of one length.
///
/// # Panics
/// If the lengths differ.
pub fn forward(out: &mut [f32], gate: &[f32], up: &[f32]) {
    assert_eq!((gate.len(), up.len()), (out.len(), out.len()));
    let tasks = out
        .par_chunks_mut(GRAIN)
        .zip(gate.par_chunks(GRAIN))
        .zip(up.par_chunks(GRAIN));
    tasks.for_each(|((out, gate), up)| forward_slice(out, gate, up));
}

/// The gradients of [`forward`]: `dup = dout · silu(gate)` and `dgate = dout · up · s · (1 + gate · (1 - s))`.
///
/// Here `s = 1 / (1 + exp(-gate))`. All of one length.
///
/// # Panics
/// If the lengths differ.
pub fn backward(dgate: &mut [f32], dup: &mut [f32], dout: &[f32], gate: &[f32], up: &[f32]) {
    let len = dout.len();
    assert_eq!(
        (dgate.len(), dup.len(), gate.len(), up.len()),
        (len, len, len, len)
    );
    let inputs = dout
        .par_chunks(GRAIN)
        .zip(gate.par_chunks(GRAIN))
        .zip(up.par_chunks(GRAIN));
    let tasks = dgate
        .par_chunks_mut(GRAIN)
        .zip(dup.par_chunks_mut(GRAIN))
        .zip(inputs);
    tasks.for_each(|((dgate, dup), ((dout, gate), up))| backward_slice(dgate, dup, dout, gate, up));
}

/// [`forward`] over packed rows: `packed` is N × 2F, gate in columns 0..F and up in F..2F; `out` is N × F.
///
/// # Panics
/// If the lengths do not fit each other.
pub fn forward_packed(out: &mut [f32], packed: &[f32], width: usize) {
    assert_eq!(packed.len(), 2 * out.len());
    assert!(out.len().is_multiple_of(width.max(1)));
    let rows = rows_per_task(width);
    let tasks = out
        .par_chunks_mut(rows * width)
        .zip(packed.par_chunks(rows * 2 * width));
    tasks.for_each(|(out, packed)| {
        for (out, packed) in out
            .chunks_exact_mut(width)
            .zip(packed.chunks_exact(2 * width))
        {
            let (gate, up) = packed.split_at(width);
            forward_slice(out, gate, up);
        }
    });
}

/// [`backward`] over packed rows: `packed` and `dpacked` are N × 2F, `dout` is N × F.
///
/// # Panics
/// If the lengths do not fit each other.
pub fn backward_packed(dpacked: &mut [f32], dout: &[f32], packed: &[f32], width: usize) {
    assert_eq!(
        (packed.len(), dpacked.len()),
        (2 * dout.len(), 2 * dout.len())
    );
    assert!(dout.len().is_multiple_of(width.max(1)));
    let rows = rows_per_task(2 * width);
    let inputs = dout
        .par_chunks(rows * width)
        .zip(packed.par_chunks(rows * 2 * width));
    dpacked
        .par_chunks_mut(rows * 2 * width)
        .zip(inputs)
        .for_each(|(dpacked, (dout, packed))| {
            let inputs = dout.chunks_exact(width).zip(packed.chunks_exact(2 * width));
            for (dpacked, (dout, packed)) in dpacked.chunks_exact_mut(2 * width).zip(inputs) {
                let (dgate, dup) = dpacked.split_at_mut(width);
                let (gate, up) = packed.split_at(width);
                backward_slice(dgate, dup, dout, gate, up);
            }
        });
}

simd! {
    fn forward_slice(out: &mut [f32], gate: &[f32], up: &[f32]) {
        for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
            *out = *gate * sigmoid(*gate) * *up;
        }
    }
}

simd! {
    fn backward_slice(dgate: &mut [f32], dup: &mut [f32], dout: &[f32], gate: &[f32], up: &[f32]) {
        for ((((dgate, dup), dout), gate), up) in dgate.iter_mut().zip(dup).zip(dout).zip(gate).zip(up) {
            let s = sigmoid(*gate);
            *dup = *dout * *gate * s;
            *dgate = *dout * *up * s * (1.0 + *gate * (1.0 - s));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_gradient, assert_near, numbers, wide};
    use super::*;

    fn reference(gate: &[f64], up: &[f64]) -> Vec<f64> {
        gate.iter()
            .zip(up)
            .map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up)
            .collect()
    }

    #[test]
    fn forward_and_gradients() {
        let len = 7 * 33;
        let gate: Vec<f32> = numbers(1, len).iter().map(|x| x * 6.0).collect();
        let (up, dout) = (numbers(2, len), numbers(3, len));
        let mut out = vec![f32::NAN; len];
        forward(&mut out, &gate, &up);
        assert_near(&out, &reference(&wide(&gate), &wide(&up)), 1e-6);
        let loss = |gate: &[f64], up: &[f64]| {
            reference(gate, up)
                .iter()
                .zip(&dout)
                .map(|(out, dout)| out * f64::from(*dout))
                .sum::<f64>()
        };
        let (mut dgate, mut dup) = (vec![f32::NAN; len], vec![f32::NAN; len]);
        backward(&mut dgate, &mut dup, &dout, &gate, &up);
        assert_gradient(&wide(&gate), &dgate, |gate| loss(gate, &wide(&up)));
        assert_gradient(&wide(&up), &dup, |up| loss(&wide(&gate), up));
    }

    #[test]
    fn packed_rows_give_the_same_bits() {
        for (rows, width) in [(1, 1), (7, 33), (40, 997)] {
            let (packed, dout) = (numbers(1, rows * 2 * width), numbers(2, rows * width));
            let half = |second: usize| -> Vec<f32> {
                packed
                    .chunks(2 * width)
                    .flat_map(|row| row[second * width..][..width].to_vec())
                    .collect()
            };
            let (gate, up) = (half(0), half(1));
            let (mut want, mut got) = (vec![0.0; rows * width], vec![0.0; rows * width]);
            forward(&mut want, &gate, &up);
            forward_packed(&mut got, &packed, width);
            assert!(want == got);
            let (mut dgate, mut dup) = (want.clone(), want.clone());
            backward(&mut dgate, &mut dup, &dout, &gate, &up);
            let mut dpacked = vec![0.0; rows * 2 * width];
            backward_packed(&mut dpacked, &dout, &packed, width);
            for (row, dpacked) in dpacked.chunks(2 * width).enumerate() {
                assert_eq!(dpacked[..width], dgate[row * width..][..width]);
                assert_eq!(dpacked[width..], dup[row * width..][..width]);
            }
        }
    }

    #[test]
    fn extreme_gates_stay_finite() {
        let gate = [-1e4, -100.0, -89.0, 89.0, 1e4];
        let mut out = [f32::NAN; 5];
        forward(&mut out, &gate, &[1.0; 5]);
        assert_eq!(out, [0.0, 0.0, 0.0, 89.0, 1e4]);
        let (mut dgate, mut dup) = ([f32::NAN; 5], [f32::NAN; 5]);
        backward(&mut dgate, &mut dup, &[1.0; 5], &gate, &[1.0; 5]);
        assert!(dgate.iter().chain(&dup).all(|x| x.is_finite()));
    }
}
