//! The work of a kernel, computed from its shape. `exp`, `sqrt` and a division count as one operation each.

use crate::kernel::{KernelBinding, KernelRole, KernelSpec};
use crate::size::Sizes;

/// Returns the number of floating-point operations of a kernel at these sizes.
pub fn flops(spec: &KernelSpec, sizes: &Sizes) -> f64 {
    spec.flops
        .iter()
        .map(|product| product.work(sizes).unwrap_or(0.0))
        .sum()
}

/// Returns the bytes that move if a kernel moves each element of its buffers once; a buffer that is read and written moves twice.
/// `counts` has the number of elements of each buffer.
pub fn bytes(bindings: &[KernelBinding], counts: &[usize]) -> f64 {
    bindings
        .iter()
        .zip(counts)
        .map(|(binding, count)| match binding.role {
            KernelRole::InOut => 8.0 * *count as f64,
            KernelRole::In | KernelRole::Out => 4.0 * *count as f64,
        })
        .sum()
}
