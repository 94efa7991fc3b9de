//! A linear layer without bias, y = x·Wᵀ, with W stored as `[out, in]`.
//!
//! The backward pass computes dx = dy·W and dW = dyᵀ·x. These are two products of the forward pass's size, so a training step costs three
//! forward passes.
//!
//! On a GPU, a product can do the work of RoPE or SwiGLU (`NextOperation`). The product before such an operation applies the forward pass when
//! it stores its result, and the operation behind it does the backward pass. Their tensors are f16 on matrix cores and f32 elsewhere.

pub(crate) mod fused_cpu;
pub(crate) mod fused_gpu;
pub(crate) mod planner;
mod reference;

use burn::backend::{Backend, Cube, TensorMetadata};
use burn::tensor::{Slice, Tensor};
use burn_cubecl::kernel::into_contiguous;

use super::format::Format;
pub use super::shapes::NextOperation;
use super::shared_work::{PartialNorm, SharedWork};
use super::{Cost, Float, Kernels, Operation, Parameter, primitive};
pub use fused_gpu::tiles::{TileRun, tile_runs};
use protocol::config::Matmul;

/// The operation y = x·Wᵀ of x `[n, in]` and W `[out, in]`. Its result is y `[n, out]`, or the result of the operation `then` on y. The backward
/// pass expects the gradient of x·Wᵀ.
#[derive(Clone, Debug, Default)]
pub struct Linear {
    pub matmul: Matmul,
    pub format: Format,
    /// A copy of W in the product's format, if there is one.
    pub operand: Option<Tensor<2>>,
    /// The work that the product shares with the norm before it, if x is a norm's output.
    pub shared: SharedWork,
    pub then: NextOperation,
}

/// A device's own kernels for products.
pub trait FusedLinear: Backend {
    /// Computes y `[n, m]` = x `[n, k]` · Wᵀ with W `[m, k]`, and applies `then`, which is `Nothing` on the CPU. With `norm`, x is the
    /// output of that norm, which this product has to write.
    fn forward(
        inputs: [Float<Self>; 2],
        format: Format,
        norm: Option<PartialNorm>,
        then: &NextOperation,
    ) -> Float<Self>;
    /// Computes x·Wᵀ + residual `[n, m]` from x, W and residual, and the part of the next norm that `shared` asks for.
    fn forward_onto(inputs: [Float<Self>; 3], format: Format, shared: &SharedWork) -> Float<Self>;
    /// Computes dx `[n, k]` = dy `[n, m]` · W and dW `[m, k]` = dyᵀ · x from x, W and dy. `gated` is the output of a product with
    /// [`NextOperation::Swiglu`] whose last third is x; dx then holds the gradients `[n, 2k]` of gate and up. On the CPU, `gated` is always
    /// `None`.
    fn backward(
        inputs: [Float<Self>; 3],
        format: Format,
        gated: Option<Float<Self>>,
    ) -> [Float<Self>; 2];
}

impl Operation<2> for Linear {
    const NAME: &'static str = "linear";

    type Saved<B: Kernels> = [Float<B>; 2];

    fn name(&self) -> &'static str {
        match self.then {
            NextOperation::Nothing => Self::NAME,
            NextOperation::Rope(_) => "linear+rope",
            NextOperation::Swiglu => "linear+swiglu",
        }
    }

    fn version(&self) -> &'static str {
        version(self.matmul, self.format)
    }

    fn forward<B: Kernels>(&self, [x, w]: [Float<B>; 2]) -> (Float<B>, [Float<B>; 2]) {
        let [x, w] = operands::<B>([x, w], self.operand.as_ref(), self.format);
        let norm = self.shared.partial().take();
        (self.product::<B>(x.clone(), w.clone(), norm), [x, w])
    }

    fn backward<B: Kernels>(&self, [x, w]: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 2] {
        let dy = B::operand(dy, self.format);
        backward::<B>(self.matmul, self.format, [x, w, dy])
    }

    fn cost(&self, [x, w]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let (mut forward, backward) = cost(x, w, self.format);
        let n = x[0] as f64;
        let y = (x[0] * w[0]) as f64;
        if self.shared.gain.is_some() {
            // The product does the rest of the norm before it: it multiplies the rows of x and of its result, and writes the normed x.
            forward.flops += n * x[1] as f64 + y;
            forward.bytes += 2.0 * n * x[1] as f64;
        }
        let written = 4.0 * self.format.bytes_per_f32_byte();
        match &self.then {
            NextOperation::Nothing => {}
            NextOperation::Rope(rope) => {
                forward.flops += 3.0 * n * rope.rotated as f64;
                forward.bytes += (written - 4.0) * y;
            }
            NextOperation::Swiglu => {
                // For each activation, three values are written instead of two in f32.
                forward.flops += 4.0 * y;
                forward.bytes += (1.5 * written - 4.0) * y;
            }
        }
        (forward, backward)
    }
}

impl Linear {
    /// Computes x·Wᵀ of operands in the run's format.
    pub(super) fn product<B: Kernels>(
        &self,
        x: Float<B>,
        w: Float<B>,
        norm: Option<PartialNorm>,
    ) -> Float<B> {
        match self.matmul {
            Matmul::Library => reference::forward::<B>(x, w),
            _ => <B as FusedLinear>::forward([x, w], self.format, norm, &self.then),
        }
    }
}

/// The operation y = residual + x·Wᵀ. The kernel adds the residual when it stores the product, which saves a launch.
#[derive(Clone, Debug, Default)]
pub struct LinearResidual {
    pub format: Format,
    /// A copy of W in the product's format, if there is one.
    pub operand: Option<Tensor<2>>,
    /// The work that the product shares with the norm that follows.
    pub shared: SharedWork,
    /// True if x is the last third of the input, which is the output of a product with [`NextOperation::Swiglu`]. The backward pass
    /// then includes the backward pass of the activation.
    pub gated: bool,
}

impl Operation<3> for LinearResidual {
    const NAME: &'static str = "linear+residual";

    /// The backward pass needs the input and W.
    type Saved<B: Kernels> = [Float<B>; 2];

    fn version(&self) -> &'static str {
        version(Matmul::Own, self.format)
    }

    fn forward<B: Kernels>(
        &self,
        [input, w, residual]: [Float<B>; 3],
    ) -> (Float<B>, [Float<B>; 2]) {
        let (x, gated) = self.split::<B>(input);
        let [x, w] = operands::<B>([x, w], self.operand.as_ref(), self.format);
        let inputs = [x.clone(), w.clone(), residual];
        let y = <B as FusedLinear>::forward_onto(inputs, self.format, &self.shared);
        (y, [gated.unwrap_or(x), w])
    }

    fn backward<B: Kernels>(&self, [input, w]: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 3] {
        let operand = B::operand(dy.clone(), self.format);
        let (x, gated) = self.split::<B>(input);
        let [dinput, dw] = <B as FusedLinear>::backward([x, w, operand], self.format, gated);
        [dinput, dw, dy]
    }

    fn cost(&self, [input, w, residual]: &[Vec<usize>; 3]) -> (Cost, Cost) {
        let x = [residual[0], input[1]];
        let (mut forward, mut backward) = cost(&x, w, self.format);
        let count = residual.iter().product::<usize>() as f64;
        forward.flops += count;
        forward.bytes += 4.0 * count;
        self.shared.add_cost(&mut forward, count);
        if self.gated {
            let n = (x[0] * x[1]) as f64;
            backward.flops += 14.0 * n;
            // Gate and up are read, and two gradients are written instead of one in f32.
            backward.bytes += (16.0 * self.format.bytes_per_f32_byte() - 4.0) * n;
        }
        (forward, backward)
    }
}

impl LinearResidual {
    /// Returns x `[n, in]`, and the whole input if x is only a part of it.
    fn split<B: Kernels>(&self, input: Float<B>) -> (Float<B>, Option<Float<B>>) {
        if !self.gated {
            return (input, None);
        }
        let n = input.shape()[0] / 3;
        let last = Slice::from(2 * n..3 * n);
        let x = B::float_slice(input.clone(), &[last, Slice::full()]); // [n, in]
        (x, Some(input))
    }
}

/// Returns true if a product of these widths can have gates beside their ups.
pub fn takes_swiglu(hidden: usize, ffn: usize) -> bool {
    hidden.is_multiple_of(4) && ffn.is_multiple_of(16)
}

/// Returns x and W in the run's format. `copy` is a copy of W in this format, if there is one.
pub(super) fn operands<B: Kernels>(
    [x, w]: [Float<B>; 2],
    copy: Option<&Tensor<2>>,
    format: Format,
) -> [Float<B>; 2] {
    [
        B::operand(x, format),
        copy.map_or_else(|| B::operand(w, format), B::constant),
    ]
}

/// Makes the f16 copies of parameters that products read, in a few launches, on a device with matrix cores.
pub fn copy_operands(parameters: Vec<&mut Parameter>) {
    let values = parameters.iter().map(|parameter| {
        into_contiguous(primitive::<Cube>(
            parameter.value.clone().without_autodiff(),
        ))
    });
    let copies = super::gpu::format::halves(values.collect());
    for (parameter, copy) in parameters.into_iter().zip(copies) {
        parameter.operand = Some(Tensor::from_primitive::<Cube>(copy)); // [out, in]
    }
}

/// Returns the name of the product's version in the list of kernels.
pub(super) fn version(matmul: Matmul, format: Format) -> &'static str {
    match (matmul, format) {
        (Matmul::Library, _) => "library",
        (_, Format::Native) => "own, f16",
        (_, Format::Split) => "split",
        (_, Format::Full | Format::Emulated(_)) => "own",
    }
}

/// Computes dx `[n, in]` and dW `[out, in]` from x, W and dy.
pub(super) fn backward<B: Kernels>(
    matmul: Matmul,
    format: Format,
    inputs: [Float<B>; 3],
) -> [Float<B>; 2] {
    match matmul {
        Matmul::Library => reference::backward::<B>(inputs),
        _ => <B as FusedLinear>::backward(inputs, format, None),
    }
}

/// Returns the costs of the forward and the backward pass for x `[n, in]` and W `[out, in]`.
pub(super) fn cost(x: &[usize], w: &[usize], format: Format) -> (Cost, Cost) {
    let n = x[0] as f64;
    let k = x[1] as f64;
    let m = w[0] as f64;
    let flops = 2.0 * n * k * m;
    // Each product reads two of the three matrices and writes the third in f32.
    let operand = format.bytes_per_f32_byte();
    let elements = (n * k + m * k) * operand + n * m;
    let gradients = 2.0 * n * m * operand + (n * k + m * k) * (1.0 + operand);
    (
        Cost::new(flops, elements),
        Cost::new(2.0 * flops, gradients),
    )
}
