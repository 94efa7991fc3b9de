//! The work of a kernel, computed from its shape: floating-point operations, and bytes with each operand moved once. `exp`, `sqrt` and a
//! division count as one operation each.

use crate::kernel::{KernelBinding, KernelRole, KernelSpec};
use crate::size::Sizes;

/// Floating-point operations by shape.
pub fn flops(spec: &KernelSpec, sizes: &Sizes) -> f64 {
    let products = spec.flops.iter();
    products
        .map(|product| product.work(sizes).unwrap_or(0.0))
        .sum()
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
