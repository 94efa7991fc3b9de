//! SwiGLU's activation from burn's primitives.

use burn::backend::TensorMetadata;
use burn::tensor::{Shape, Slice};

use crate::ops::{Float, Kernels};

/// Computes silu(gate)·up `[n, f]`.
pub(super) fn forward<B: Kernels>([gate, up]: [Float<B>; 2]) -> Float<B> {
    let silu = B::float_mul(gate.clone(), B::sigmoid(gate)); // [n, f]
    B::float_mul(silu, up)
}

/// Computes the gradients of gate and up, `[n, f]` each.
pub(super) fn backward<B: Kernels>([gate, up]: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 2] {
    let s = B::sigmoid(gate.clone()); // [n, f]
    let silu = B::float_mul(gate, s.clone()); // [n, f]
    // s·(1 + g·(1 − s)) = s + silu·(1 − s)
    let rest = B::float_add_scalar(B::float_neg(s.clone()), 1.0.into()); // [n, f]
    let slope = B::float_add(s, B::float_mul(silu.clone(), rest)); // [n, f]
    let dgate = B::float_mul(B::float_mul(dy.clone(), up), slope);
    [dgate, B::float_mul(dy, silu)]
}

/// Returns copies of the two halves of `[n, 2f]`, `[n, f]` each. They are copies, because on a view the CPU library's sigmoid branches on the
/// sign of each value. Processors cannot predict the signs, so this takes twice the time of a copy and a sigmoid.
pub(super) fn halves<B: Kernels>(packed: Float<B>) -> [Float<B>; 2] {
    let [rows, both] = packed.shape().dims();
    let width = both / 2;
    let half = |from: usize| {
        let columns = Slice::from(from..from + width);
        let view = B::float_slice(packed.clone(), &[Slice::full(), columns]); // [n, f]
        let flat = B::float_reshape(view, Shape::from([rows * width])); // [n·f]
        B::float_reshape(flat, Shape::from([rows, width]))
    };
    [half(0), half(width)]
}
