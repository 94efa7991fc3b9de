//! The work of a kernel, computed from its shape: floating-point operations of its reference, and bytes with each operand moved
//! once. `exp`, `sqrt` and a division count as one operation each.

use crate::kernel::{KernelBinding, KernelReference as Reference, KernelRole};
use crate::size::Sizes;

/// Floating-point operations of a reference.
pub fn flops(reference: Reference, sizes: &Sizes) -> f64 {
    let n = |size: &str| sizes.get(size).copied().unwrap_or(1) as f64;
    match reference {
        // −g, e^, 1 +, g /, · up
        Reference::Swiglu => 5.0 * n("N"),
        // s: 4; g·s, 1 − s, g·, 1 +, s·: 5; dy·up·slope: 2; dy·(g·s): 1
        Reference::SwigluBackward => 12.0 * n("N"),
        // x², +, · scale, · gain
        Reference::RmsNorm => 4.0 * n("ROWS") * n("COLS"),
        Reference::HeadsFirst => 0.0,
        Reference::Matmul | Reference::HalfMatmul => 2.0 * n("M") * n("N") * n("K"),
        // Four products and two sums for each pair.
        Reference::Rope => 3.0 * n("T") * n("H") * n("D"),
        // max, −, e^, +, /
        Reference::Softmax => 5.0 * n("ROWS") * n("COLS"),
        // Each visible pair: q·k and p·v, and max, −, e^, +, / of its score.
        Reference::Attention => n("H") * n("T") * (n("T") + 1.0) / 2.0 * (4.0 * n("D") + 5.0),
        // m: 3, v: 4, corrections: 2, √ + ε and /: 3, decay and update: 5
        Reference::Adamw => 17.0 * n("N"),
        Reference::Residual => n("ROWS") * n("COLS"),
    }
}

/// Bytes of buffers with `counts` elements; a buffer that is read and written counts twice.
pub fn bytes(bindings: &[KernelBinding], counts: &[usize]) -> f64 {
    let each = bindings.iter().zip(counts).map(|(binding, count)| {
        let times = match binding.role {
            KernelRole::InOut => 8.0,
            KernelRole::In | KernelRole::Out => 4.0,
        };
        times * *count as f64
    });
    each.sum()
}
