//! `SwiGLU`, the gate of the feed-forward layer: `silu(gate) · up`, forward and backward, both halves side by side.
//! The products around it are in `linear`. Shazeer, "GLU Variants Improve Transformer", 2020.

use super::Fused;
use crate::ops::Float;
use crate::ops::cpu::exp::sigmoid;
use crate::ops::cpu::{filled, rows_per_task};
use crate::ops::cpu::{tensor, values};
use crate::ops::format::Format;
use burn::backend::{Flex, TensorMetadata as _};

type T = Float<Flex>;

impl Fused for Flex {
    fn forward(packed: T, _: Format) -> T {
        let [n, w] = packed.shape().dims();
        tensor(forward(values(&packed), w / 2), [n, w / 2])
    }

    fn backward(packed: T, dy: T, _: Format) -> T {
        let width = dy.shape()[1];
        let dpacked = backward(values(&dy), values(&packed), width);
        tensor(dpacked, packed.shape())
    }
}

/// `out = silu(gate) · up` with `silu(x) = x / (1 + exp(-x))`: `packed` is N × 2F, gate in columns 0..F and up in F..2F;
/// the result is N × F.
pub(crate) fn forward(packed: &[f32], width: usize) -> Vec<f32> {
    assert!(packed.len().is_multiple_of(2 * width));
    let part = rows_per_task(width) * width;
    filled(packed.len() / 2, part, |task, out| {
        let packed = packed[task * 2 * part..].chunks_exact(2 * width);
        for (out, packed) in out.chunks_exact_mut(width).zip(packed) {
            let (gate, up) = packed.split_at(width);
            forward_slice(out, gate, up);
        }
    })
}

/// The gradients of [`forward`]: `dup = dout · silu(gate)` and `dgate = dout · up · s · (1 + gate · (1 - s))`, with
/// `s = 1 / (1 + exp(-gate))`. `packed` and `dpacked` are N × 2F, `dout` is N × F.
pub(crate) fn backward(dout: &[f32], packed: &[f32], width: usize) -> Vec<f32> {
    assert_eq!(packed.len(), 2 * dout.len());
    assert!(dout.len().is_multiple_of(width));
    let part = rows_per_task(2 * width) * width;
    filled(packed.len(), 2 * part, |task, dpacked| {
        let dout = dout[task * part..].chunks_exact(width);
        let packed = packed[task * 2 * part..].chunks_exact(2 * width);
        let rows = dpacked.chunks_exact_mut(2 * width);
        for ((dpacked, dout), packed) in rows.zip(dout).zip(packed) {
            let (dgate, dup) = dpacked.split_at_mut(width);
            let (gate, up) = packed.split_at(width);
            backward_slice(dgate, dup, dout, gate, up);
        }
    })
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
