//! The versions of operations that differ by device, behind one trait: `kernels/on_cpu.rs` for the CPU device (flex),
//! `kernels/on_gpu.rs` for every CubeCL device. The plain references are in the operations' files and use burn's primitives on any
//! device.

mod on_cpu;
mod on_gpu;

use burn::backend::{Backend, Cube, DispatchDevice, Flex, TensorMetadata};
use burn::tensor::{Device, Int, Shape, Slice, Tensor};

use protocol::config::Precision;

use super::format::Format;
use super::gpu;
use super::learner_kernel::LiveKernel;
use super::pending::{ForNorm, Pending, UnfinishedNorm};
use super::shapes::{Attention, Heads, NextOperation, Rotation, Rows};

/// A backend's float tensor.
pub type Float<B> = burn::backend::tensor::FloatTensor<B>;
/// A backend's integer tensor.
pub type Ints<B> = burn::backend::tensor::IntTensor<B>;

/// A device's own kernels. Matrices are `[rows, columns]`, row-major; formulas are in the operations' files.
pub trait Kernels: Backend {
    /// The backend's tensor of token numbers.
    fn indices(tokens: &Tensor<1, Int>) -> Ints<Self>;
    /// The backend's tensor of a constant table.
    fn constant(table: &Tensor<2>) -> Float<Self>;

    /// Values rounded to a short format, stored as f32.
    fn rounded(x: Float<Self>, format: Precision) -> Float<Self>;
    /// Values rounded to f16; unchanged f32 if `linear_own` rounds them.
    fn half(x: Float<Self>) -> Float<Self>;

    /// An operand of a product in the run's format, with the same shape.
    fn operand(x: Float<Self>, format: Format) -> Float<Self> {
        match format {
            Format::Native => Self::half(x),
            Format::Full | Format::Split | Format::Emulated(_) => Self::rounded_operand(x, format),
        }
    }
    /// The same for a kernel without matrix cores: values of the format stored as f32.
    fn rounded_operand(x: Float<Self>, format: Format) -> Float<Self> {
        match format {
            Format::Full | Format::Split => x,
            Format::Emulated(short) => Self::rounded(x, short),
            Format::Native => Self::rounded(x, Precision::F16),
        }
    }

    /// y `[n, m]` = x `[n, k]` · Wᵀ, W `[m, k]`, or what `then` makes of it, which is `Nothing` on the CPU. If a norm left its work, x is
    /// its output, which has no values yet.
    fn linear_own(
        x: Float<Self>,
        w: Float<Self>,
        format: Format,
        norm: Option<UnfinishedNorm>,
        then: &NextOperation,
    ) -> Float<Self>;
    /// x·Wᵀ + residual `[n, m]`. Leaves to the norm that follows what `pending` says.
    fn linear_residual(
        x: Float<Self>,
        w: Float<Self>,
        residual: Float<Self>,
        format: Format,
        pending: Option<&ForNorm>,
    ) -> Float<Self>;
    /// dx `[n, k]` = dy `[n, m]` · W and dW `[m, k]` = dyᵀ · x. With `in_parts`, dx may be `[parts·n, k]`, which `rms_norm_backward`
    /// adds. With `gated`, the output of a product with [`NextOperation::Swiglu`] whose last third is x, dx are the gradients `[n, 2k]` of gate and
    /// up; never on the CPU.
    fn linear_backward_own(
        dy: Float<Self>,
        x: Float<Self>,
        w: Float<Self>,
        format: Format,
        in_parts: bool,
        gated: Option<Float<Self>>,
    ) -> [Float<Self>; 2];

    /// y `[n, d]`, as an operand of products in `format`, and 1/rms `[n, 1]`. Writes x first if it is a sum that is pending. Leaves the
    /// rest of the work to the product that follows, if `unfinished` is given and the operation before left its part.
    fn rms_norm(
        x: Float<Self>,
        gain: Float<Self>,
        format: Format,
        pending: Option<&ForNorm>,
        unfinished: Option<&Pending<UnfinishedNorm>>,
    ) -> (Float<Self>, Float<Self>);
    /// dx (+ `earlier`) `[n, d]` and dγ `[1, d]`, from dy `[n, d]` or its parts. dx is also `left` in f16, if that is
    /// given, which is never on the CPU.
    fn rms_norm_backward(
        x: Float<Self>,
        gain: Float<Self>,
        inverse: Float<Self>,
        dy: Float<Self>,
        earlier: Option<Float<Self>>,
        left: Option<&Pending<Tensor<2>>>,
    ) -> (Float<Self>, Float<Self>);

    /// `[n, w]` → `[n, w]` with the first `rotated` columns rotated, as an operand of products in `format`.
    fn rope(
        x: Float<Self>,
        cos: Float<Self>,
        sin: Float<Self>,
        rotation: Rotation,
        format: Format,
    ) -> Float<Self>;

    /// `[n, 2f]` → `[n, f]`, as an operand of products in `format`.
    fn swiglu_packed(packed: Float<Self>, format: Format) -> Float<Self>;
    /// The gradient `[n, 2f]`, as an operand of products in `format`.
    fn swiglu_packed_backward(packed: Float<Self>, dy: Float<Self>, format: Format) -> Float<Self>;
    /// The activation `[n, f]`, and the two products it is computed from.
    fn naive_swiglu(x: Float<Self>, w_gate: Float<Self>, w_up: Float<Self>) -> [Float<Self>; 3];

    /// Output `[n, heads·dh]`, and logsumexp of the scores for each row and head; `None` if no kernel fits the sizes.
    /// With `half` the products take f16, which requires `gpu::attention_cores::fits`.
    fn flash(
        rows: &Rows<Float<Self>>,
        sizes: Heads,
        half: bool,
    ) -> Option<(Float<Self>, Float<Self>)>;
    /// dq, dk and dv in the form of `rows`, from output, logsumexp and the output's gradient. With `tables`, cos and sin, the gradients
    /// are those of q and k before their rotation by these tables.
    fn flash_backward(
        rows: &Rows<Float<Self>>,
        saved: [Float<Self>; 3],
        sizes: Heads,
        tables: Option<[Float<Self>; 2]>,
    ) -> Rows<Float<Self>>;
    /// q `[b, h, t, dh]`, k and v `[b, kv, t, dh]`, views with any strides → `[n, heads·dh]`. `a.layout` decides whether the kernel
    /// reads a contiguous copy, the strides of the view, or wrongly the strides of a contiguous tensor.
    fn strided_attention(qkv: [Float<Self>; 3], a: &Attention) -> Float<Self>;

    /// `[n, d]`
    fn embedding_own(
        weight: Float<Self>,
        tokens: Ints<Self>,
        pending: Option<&ForNorm>,
    ) -> Float<Self>;
    /// `[vocab, d]`
    fn embedding_backward_own(
        weight: Float<Self>,
        tokens: Ints<Self>,
        dy: Float<Self>,
    ) -> Float<Self>;

    /// Loss `[1, 1]`, and dlogits `[n, vocab]`, times `scale` `[1, 1]`. `of` are the rows of the whole batch: both are these rows'
    /// share of its mean.
    fn cross_entropy(
        logits: Float<Self>,
        targets: Ints<Self>,
        scale: Option<Float<Self>>,
        of: usize,
    ) -> (Float<Self>, Float<Self>);

    /// Σx² of each tensor; NaN if the device does not answer.
    fn squares(tensors: &[Float<Self>]) -> Vec<f64>;
    /// How many elements of each tensor have each exponent, from all elements or a sample.
    fn exponents(tensors: &[Float<Self>]) -> Vec<[u64; 256]>;

    /// The outputs of a learner's kernel, with these shapes; `None` if this device does not support the kernel. Inputs are in the
    /// order of the kernel's bindings.
    fn learner(
        _use: LiveKernel<'_>,
        _inputs: Vec<Float<Self>>,
        _outputs: &[[usize; 2]],
    ) -> Option<Vec<Float<Self>>> {
        None
    }
}

/// The backend's tensor inside a high-level one.
pub fn primitive<B: Backend>(tensor: Tensor<2>) -> Float<B>
where
    burn::backend::DispatchTensor: burn::backend::DispatchKindConversion<B>,
{
    tensor
        .try_into_primitive::<B>()
        .expect("the device was checked by the caller")
}

/// Whether this is our CPU device, with or without autodiff.
pub fn is_cpu(device: &Device) -> bool {
    let device = device.clone().inner();
    matches!(device.as_dispatch(), DispatchDevice::Flex(_))
}

/// Whether a product as large as x `[n, d]` is computed in parts of its inner dimension. With one part the product adds the residual,
/// because then the norm need not write x.
pub fn in_parts(x: &Tensor<2>, inner: usize, format: Format) -> bool {
    !is_cpu(&x.device()) && gpu::linear::number_of_parts(&Cube::constant(x), inner, format) > 1
}

/// Whether a product of a normed x of these `[n, d]` with a W `[outputs, d]` may apply the norm.
pub fn applies_norm(device: &Device, sizes: [usize; 2], outputs: usize, format: Format) -> bool {
    !is_cpu(device) && gpu::linear::applies_norm(sizes, outputs, format)
}

/// Whether products in f32 rotate q and k of x `[n, d]`, and attention in f32 rotates their gradients back.
pub fn rotates_in_f32(x: &Tensor<2>, sizes: &Heads) -> bool {
    !is_cpu(&x.device()) && gpu::attention::rotates(sizes, &Cube::constant(x))
}

/// Strides of a plain tensor in elements, as its backend stores them.
pub fn strides(x: Tensor<4>) -> Vec<usize> {
    let strides = if is_cpu(&x.device()) {
        x.try_into_primitive::<Flex>().map(|x| flex_strides(&x))
    } else {
        let x = x.try_into_primitive::<Cube>();
        x.map(|x| x.meta.strides().iter().copied().collect())
    };
    strides.unwrap_or_default()
}

/// The same of the CPU device's tensor.
fn flex_strides(x: &Float<Flex>) -> Vec<usize> {
    let strides = x.layout().strides().iter();
    strides.map(|s| s.unsigned_abs()).collect()
}

/// The two halves of `[n, 2f]`, `[n, f]` each, contiguous. On a view, the CPU library's sigmoid branches on the sign of each value,
/// which processors cannot predict: twice the time of a copy and a sigmoid.
pub fn halves<B: Kernels>(packed: Float<B>) -> [Float<B>; 2] {
    let [rows, both] = packed.shape().dims();
    let width = both / 2;
    let half = |from: usize| {
        let columns = Slice::from(from..from + width);
        let view = B::float_slice(packed.clone(), &[Slice::full(), columns]); // [n, f]
        let flat = B::float_reshape(view, Shape::from([rows * width]));
        B::float_reshape(flat, Shape::from([rows, width]))
    };
    [half(0), half(width)]
}
