//! The products of a linear layer from burn's primitives.

use crate::ops::{Float, Kernels};

/// Computes y `[n, out]` with the library's product and a transposed view of W.
pub(super) fn forward<B: Kernels>(x: Float<B>, w: Float<B>) -> Float<B> {
    B::float_matmul(x, B::float_swap_dims(w, 0, 1)) // [n, out]
}

/// Computes dx `[n, in]` and dW `[out, in]`.
pub(super) fn backward<B: Kernels>([x, w, dy]: [Float<B>; 3]) -> [Float<B>; 2] {
    let dx = B::float_matmul(dy.clone(), w); // [n, in]
    let dw = B::float_matmul(B::float_swap_dims(dy, 0, 1), x); // [out, in]
    [dx, dw]
}
