//! Products on a GPU with fused RoPE and SwiGLU: the product before them does their forward pass while it stores its result, and the
//! operation after them does their backward pass. RoPE and SwiGLU need no launch of their own; on matrix cores they exchange f16.

use burn::backend::TensorMetadata;
use burn::tensor::{Slice, Tensor};

use super::format::Format;
use super::linear::{self, LinearResidual};
use super::pending::AfterNorm;
use super::shapes::Rope;
use super::{Cost, Float, Kernels, Operation};
use crate::config::Matmul;

/// x `[n, d]`, W `[m, d]` → x·Wᵀ with its first columns rotated, `[n, m]`, in f16 on matrix cores. Its backward pass expects the
/// gradient of x·Wᵀ.
#[derive(Clone, Debug)]
pub struct LinearRope {
    pub rope: Rope,
    /// As in [`Linear`](super::linear::Linear).
    pub operand: Option<Tensor<2>>,
    /// Likewise.
    pub after: AfterNorm,
}

impl Operation<2> for LinearRope {
    const NAME: &'static str = "linear+rope";

    type Saved<B: Kernels> = [Float<B>; 2];

    fn version(&self) -> &'static str {
        linear::version(Matmul::Own, self.rope.format)
    }

    fn forward<B: Kernels>(&self, [x, w]: [Float<B>; 2]) -> (Float<B>, [Float<B>; 2]) {
        let format = self.rope.format;
        let [x, w] = linear::operands::<B>([x, w], self.operand.as_ref(), format);
        let rotation = self.rope.rotation(w.shape()[0]);
        let tables = self.rope.tables::<B>();
        let norm = self.after.take();
        let y = B::linear_rope(x.clone(), w.clone(), tables, rotation, format, norm);
        (y, [x, w])
    }

    fn backward<B: Kernels>(&self, [x, w]: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 2] {
        B::linear_backward_own(dy, x, w, self.rope.format, self.after.adds_parts)
    }

    fn cost(&self, [x, w]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let (mut forward, backward) = linear::cost_after(&self.after, x, w, self.rope.format);
        forward.flops += 3.0 * (x[0] * self.rope.rotated) as f64;
        // The result is f16 on matrix cores.
        forward.bytes += (4.0 * self.rope.format.bytes_per_f32_byte() - 4.0) * (x[0] * w[0]) as f64;
        (forward, backward)
    }
}

/// x `[n, d]`, W `[2f, d]` → gates, ups and silu(gate)·up stacked, `[3n, f]`, in f16 on matrix cores. Its backward pass
/// expects the gradient of x·Wᵀ, with gates and ups side by side.
#[derive(Clone, Debug)]
pub struct LinearSwiglu {
    pub format: Format,
    /// As in [`Linear`](super::linear::Linear).
    pub operand: Option<Tensor<2>>,
    /// Likewise.
    pub after: AfterNorm,
}

/// Whether a product of these widths can have gates beside their ups.
pub fn takes_swiglu(hidden: usize, ffn: usize) -> bool {
    hidden.is_multiple_of(4) && ffn.is_multiple_of(16)
}

impl Operation<2> for LinearSwiglu {
    const NAME: &'static str = "linear+swiglu";

    type Saved<B: Kernels> = [Float<B>; 2];

    fn version(&self) -> &'static str {
        linear::version(Matmul::Own, self.format)
    }

    fn forward<B: Kernels>(&self, [x, w]: [Float<B>; 2]) -> (Float<B>, [Float<B>; 2]) {
        let [x, w] = linear::operands::<B>([x, w], self.operand.as_ref(), self.format);
        let norm = self.after.take();
        let y = B::linear_swiglu(x.clone(), w.clone(), self.format, norm);
        (y, [x, w])
    }

    fn backward<B: Kernels>(&self, [x, w]: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 2] {
        B::linear_backward_own(dy, x, w, self.format, self.after.adds_parts)
    }

    fn cost(&self, [x, w]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let (mut forward, backward) = linear::cost_after(&self.after, x, w, self.format);
        let n = (x[0] * w[0]) as f64 / 2.0;
        forward.flops += 8.0 * n;
        // For each activation, three values in place of two in f32.
        forward.bytes += (12.0 * self.format.bytes_per_f32_byte() - 8.0) * n;
        (forward, backward)
    }
}

/// The output of [`LinearSwiglu`], W `[d, f]` and a residual `[n, d]` → residual + silu(gate)·up·Wᵀ. Its backward pass includes
/// the activation's.
#[derive(Clone, Debug)]
pub struct SwigluLinear(pub LinearResidual);

impl Operation<3> for SwigluLinear {
    const NAME: &'static str = "linear+residual";

    /// Gates, ups and silu(gate)·up stacked; silu(gate)·up again; and W.
    type Saved<B: Kernels> = [Float<B>; 3];

    fn version(&self) -> &'static str {
        self.0.version()
    }

    fn forward<B: Kernels>(
        &self,
        [gated, w, residual]: [Float<B>; 3],
    ) -> (Float<B>, [Float<B>; 3]) {
        let n = gated.shape()[0] / 3;
        let last = Slice::from(2 * n..3 * n);
        let active = B::float_slice(gated.clone(), &[last, Slice::full()]); // [n, f]
        let (y, [active, w]) = self.0.forward::<B>([active, w, residual]);
        (y, [gated, active, w])
    }

    fn backward<B: Kernels>(
        &self,
        [gated, active, w]: [Float<B>; 3],
        dy: Float<B>,
    ) -> [Float<B>; 3] {
        let operand = B::operand(dy.clone(), self.0.format);
        let [dgated, dw] = B::linear_backward_swiglu(operand, gated, active, w, self.0.format);
        [dgated, dw, dy]
    }

    fn cost(&self, [gated, w, residual]: &[Vec<usize>; 3]) -> (Cost, Cost) {
        let active = vec![gated[0] / 3, gated[1]];
        let n = (active[0] * active[1]) as f64;
        let (forward, mut backward) = self.0.cost(&[active, w.clone(), residual.clone()]);
        backward.flops += 14.0 * n;
        // Gate and up are read, and their gradients are written in place of one in f32.
        backward.bytes += (16.0 * self.0.format.bytes_per_f32_byte() - 4.0) * n;
        (forward, backward)
    }
}
