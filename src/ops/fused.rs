//! Products on matrix cores with fused RoPE and SwiGLU: the product before them does their forward pass while it stores its result,
//! and the product after them does their backward pass. They exchange f16, and RoPE and SwiGLU need no launch of their own.

use burn::backend::TensorMetadata;
use burn::tensor::{Slice, Tensor};

use super::format::Format;
use super::linear::{self, LinearResidual};
use super::shapes::Rope;
use super::{Cost, Float, Kernels, Operation};

/// The format for which these operations exist.
const FORMAT: Format = Format::Native;

/// x `[n, d]`, W `[m, d]` → x·Wᵀ with its first columns rotated, `[n, m]` in f16. Its backward pass expects the gradient of x·Wᵀ.
#[derive(Clone, Debug)]
pub struct LinearRope {
    pub rope: Rope,
    /// As in [`Linear`](super::linear::Linear).
    pub operand: Option<Tensor<2>>,
    /// Likewise.
    pub normed: bool,
}

impl Operation<2> for LinearRope {
    const NAME: &'static str = "linear+rope";

    type Saved<B: Kernels> = [Float<B>; 2];

    fn version(&self) -> &'static str {
        "own, f16"
    }

    fn forward<B: Kernels>(&self, [x, w]: [Float<B>; 2]) -> (Float<B>, [Float<B>; 2]) {
        let [x, w] = linear::operands::<B>([x, w], self.operand.as_ref(), FORMAT);
        let rotation = self.rope.rotation(w.shape()[0]);
        let y = B::linear_rope(x.clone(), w.clone(), self.rope.tables::<B>(), rotation);
        (y, [x, w])
    }

    fn backward<B: Kernels>(&self, [x, w]: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 2] {
        B::linear_backward_own(dy, x, w, FORMAT, self.normed)
    }

    fn cost(&self, [x, w]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let (mut forward, backward) = linear::cost(x, w, FORMAT);
        forward.flops += 3.0 * (x[0] * self.rope.rotated) as f64;
        // The result is f16.
        forward.bytes -= 2.0 * (x[0] * w[0]) as f64;
        (forward, backward)
    }
}

/// x `[n, d]`, W `[2f, d]` → gates, ups and silu(gate)·up stacked, `[3n, f]` in f16. Its backward pass expects the gradient of
/// x·Wᵀ, with gates and ups side by side.
#[derive(Clone, Debug)]
pub struct LinearSwiglu {
    /// As in [`Linear`](super::linear::Linear).
    pub operand: Option<Tensor<2>>,
    /// Likewise.
    pub normed: bool,
}

/// Whether a product of these widths can interleave gates and ups.
pub fn takes_swiglu(hidden: usize, ffn: usize) -> bool {
    hidden.is_multiple_of(4) && ffn.is_multiple_of(16)
}

impl Operation<2> for LinearSwiglu {
    const NAME: &'static str = "linear+swiglu";

    type Saved<B: Kernels> = [Float<B>; 2];

    fn version(&self) -> &'static str {
        "own, f16"
    }

    fn forward<B: Kernels>(&self, [x, w]: [Float<B>; 2]) -> (Float<B>, [Float<B>; 2]) {
        let [x, w] = linear::operands::<B>([x, w], self.operand.as_ref(), FORMAT);
        (B::linear_swiglu(x.clone(), w.clone()), [x, w])
    }

    fn backward<B: Kernels>(&self, [x, w]: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 2] {
        B::linear_backward_own(dy, x, w, FORMAT, self.normed)
    }

    fn cost(&self, [x, w]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let (mut forward, backward) = linear::cost(x, w, FORMAT);
        let n = (x[0] * w[0]) as f64 / 2.0;
        forward.flops += 8.0 * n;
        // For each activation, two f32 values fewer and three f16 values more.
        forward.bytes -= 2.0 * n;
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
        "own, f16"
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
        let operand = B::operand(dy.clone(), FORMAT);
        let [dgated, dw] = B::linear_backward_swiglu(operand, gated, active, w);
        [dgated, dw, dy]
    }

    fn cost(&self, [gated, w, residual]: &[Vec<usize>; 3]) -> (Cost, Cost) {
        let active = vec![gated[0] / 3, gated[1]];
        let n = (active[0] * active[1]) as f64;
        let (forward, mut backward) = self.0.cost(&[active, w.clone(), residual.clone()]);
        backward.flops += 14.0 * n;
        // Gate and up are read, and two f16 gradients are written instead of one in f32.
        backward.bytes += 4.0 * n;
        (forward, backward)
    }
}
