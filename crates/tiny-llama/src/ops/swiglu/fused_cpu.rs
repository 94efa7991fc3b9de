//! SwiGLU on the CPU: `silu(gate) · up`, forward and backward, for gates and ups side by side in one matrix.

use super::FusedSwiglu;
use crate::ops::Float;
use crate::ops::cpu::exp::sigmoid;
use crate::ops::cpu::{filled, rows_per_task, tensor, values};
use crate::ops::format::Format;
use burn::backend::{Flex, TensorMetadata as _};

type T = Float<Flex>;

impl FusedSwiglu for Flex {
    /// Computes `out = silu(gate) · up` with `silu(x) = x / (1 + exp(-x))`.
    fn forward(packed: T, _: Format) -> T {
        let [n, both] = packed.shape().dims();
        let input = values(&packed);
        let width = both / 2;
        let part = rows_per_task(width) * width;
        let out = filled(input.len() / 2, part, |task, out| {
            let rows = input[task * 2 * part..].chunks_exact(both);
            for (out, packed) in out.chunks_exact_mut(width).zip(rows) {
                let (gate, up) = packed.split_at(width);
                forward_slice(out, gate, up);
            }
        });
        tensor(out, [n, width])
    }

    /// Computes `dup = dy · silu(gate)` and `dgate = dy · up · s · (1 + gate · (1 - s))`, with `s = 1 / (1 + exp(-gate))`.
    fn backward(packed: T, dy: T, _: Format) -> T {
        let width = dy.shape()[1];
        let input = values(&packed);
        let gradient = values(&dy);
        let part = rows_per_task(2 * width) * width;
        let dpacked = filled(input.len(), 2 * part, |task, dpacked| {
            let gradient_rows = gradient[task * part..].chunks_exact(width);
            let input_rows = input[task * 2 * part..].chunks_exact(2 * width);
            let rows = dpacked.chunks_exact_mut(2 * width);
            for ((dpacked, dy), packed) in rows.zip(gradient_rows).zip(input_rows) {
                let (dgate, dup) = dpacked.split_at_mut(width);
                let (gate, up) = packed.split_at(width);
                backward_slice(dgate, dup, dy, gate, up);
            }
        });
        tensor(dpacked, packed.shape())
    }
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
        let elements = dgate.iter_mut().zip(dup).zip(dout).zip(gate).zip(up);
        for ((((dgate, dup), dout), gate), up) in elements {
            let s = sigmoid(*gate);
            *dup = *dout * *gate * s;
            *dgate = *dout * *up * s * (1.0 + *gate * (1.0 - s));
        }
    }
}
