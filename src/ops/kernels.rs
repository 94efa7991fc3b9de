//! The versions of operations that differ by device, behind one trait: `kernels/on_cpu.rs` for the CPU device (flex),
//! `kernels/on_gpu.rs` for every CubeCL device. The plain references that need no device of their own are in the
//! operations' files, written over burn's primitives.

mod on_cpu;
mod on_gpu;

use burn::backend::{Backend, Cube, DispatchDevice, Flex, TensorMetadata};
use burn::tensor::{Device, Int, Shape, Slice, Tensor};

use crate::config::Precision;

use super::format::Format;
use super::live::LiveKernel;
use super::shapes::{Attention, Heads, Rotation, Rows};

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

    /// The nearest numbers of a short format, in f32.
    fn rounded(x: Float<Self>, format: Precision) -> Float<Self>;
    /// The nearest f16, in f16, or as it is where `linear_own` rounds it.
    fn half(x: Float<Self>) -> Float<Self>;
    /// The same of many tensors at once.
    fn halves(all: Vec<Float<Self>>) -> Vec<Float<Self>> {
        all.into_iter().map(Self::half).collect()
    }

    /// An operand of a product in the run's format, of the same shape.
    fn operand(x: Float<Self>, format: Format) -> Float<Self> {
        match format {
            Format::Native => Self::half(x),
            Format::Full | Format::Split | Format::Emulated(_) => Self::rounded_operand(x, format),
        }
    }
    /// The same for a kernel without matrix cores: values of the format, in f32.
    fn rounded_operand(x: Float<Self>, format: Format) -> Float<Self> {
        match format {
            Format::Full | Format::Split => x,
            Format::Emulated(short) => Self::rounded(x, short),
            Format::Native => Self::rounded(x, Precision::F16),
        }
    }

    /// y `[n, m]` = x `[n, k]` · Wᵀ, W `[m, k]`, plus the residual `[n, m]` where there is one.
    fn linear_own(
        x: Float<Self>,
        w: Float<Self>,
        residual: Option<Float<Self>>,
        format: Format,
    ) -> Float<Self>;
    /// dx `[n, k]` = dy `[n, m]` · W and dW `[m, k]` = dyᵀ · x.
    fn linear_backward_own(
        dy: Float<Self>,
        x: Float<Self>,
        w: Float<Self>,
        format: Format,
    ) -> [Float<Self>; 2];

    /// x·Wᵀ rotated, in f16 where it comes from matrix cores.
    fn linear_rope(
        x: Float<Self>,
        w: Float<Self>,
        [cos, sin]: [Float<Self>; 2],
        rotation: Rotation,
    ) -> Float<Self> {
        let y = Self::linear_own(x, w, None, Format::Full); // [n, m]
        Self::rope(y, cos, sin, rotation, Format::Full)
    }
    /// x·Wᵀ `[n, 2f]` as gates, ups and silu(gate)·up one under another, `[3n, f]`; in f16 where they come from matrix cores.
    fn linear_swiglu(x: Float<Self>, w: Float<Self>) -> Float<Self> {
        let packed = Self::linear_own(x, w, None, Format::Full); // [n, 2f]
        let active = Self::swiglu_packed(packed.clone(), Format::Full); // [n, f]
        let [gate, up] = halves::<Self>(packed); // [n, f] each
        Self::float_cat(vec![gate, up, active], 0)
    }
    /// Of dy `[n, m]`, the above, silu(gate)·up `[n, f]` and W `[m, f]`: gradients `[n, 2f]` of gate and up, and dW.
    fn linear_backward_swiglu(
        dy: Float<Self>,
        gated: Float<Self>,
        active: Float<Self>,
        w: Float<Self>,
    ) -> [Float<Self>; 2] {
        let [n, _] = active.shape().dims();
        let half = |from: usize| {
            let rows = Slice::from(from..from + n);
            Self::float_slice(gated.clone(), &[rows, Slice::full()]) // [n, f]
        };
        let packed = Self::float_cat(vec![half(0), half(n)], 1); // [n, 2f]
        let [dx, dw] = Self::linear_backward_own(dy, active, w, Format::Full);
        [Self::swiglu_packed_backward(packed, dx, Format::Full), dw]
    }

    /// y `[n, d]`, for products in `format`, and 1/rms `[n, 1]`.
    fn rms_norm(x: Float<Self>, gain: Float<Self>, format: Format) -> (Float<Self>, Float<Self>);
    /// dx (+ `earlier`) `[n, d]` and dγ `[1, d]`.
    fn rms_norm_backward(
        x: Float<Self>,
        gain: Float<Self>,
        inverse: Float<Self>,
        dy: Float<Self>,
        earlier: Option<Float<Self>>,
    ) -> (Float<Self>, Float<Self>);

    /// `[n, w]` → `[n, w]`, the first `rotated` columns rotated; for products in `format`.
    fn rope(
        x: Float<Self>,
        cos: Float<Self>,
        sin: Float<Self>,
        rotation: Rotation,
        format: Format,
    ) -> Float<Self>;

    /// `[n, 2f]` → `[n, f]`, for products in `format`.
    fn swiglu_packed(packed: Float<Self>, format: Format) -> Float<Self>;
    /// `[n, 2f]`, for products in `format`.
    fn swiglu_packed_backward(packed: Float<Self>, dy: Float<Self>, format: Format) -> Float<Self>;
    /// The activation `[n, f]` and the two products it came from.
    fn naive_swiglu(x: Float<Self>, w_gate: Float<Self>, w_up: Float<Self>) -> [Float<Self>; 3];

    /// Whether attention of these sizes has a kernel for matrix cores.
    fn flash_takes_f16(_sizes: &Heads) -> bool {
        false
    }

    /// Output `[n, heads·dh]` and logsumexp of the scores, one per row and head.
    /// `half`: its products take f16, which `flash_takes_f16` has to allow. None where no kernel fits the sizes.
    fn flash(
        rows: &Rows<Float<Self>>,
        sizes: Heads,
        half: bool,
    ) -> Option<(Float<Self>, Float<Self>)>;
    /// dq, dk and dv in the form of `rows`, from output, logsumexp and the output's gradient. Where products took f16: of q and
    /// k before they were rotated by these tables.
    fn flash_backward(
        rows: &Rows<Float<Self>>,
        saved: [Float<Self>; 3],
        sizes: Heads,
        half: Option<[Float<Self>; 2]>,
    ) -> Rows<Float<Self>>;
    /// q `[b, h, t, dh]`, k and v `[b, kv, t, dh]`, views with any strides → `[n, heads·dh]`, by a kernel that reads
    /// them as `a.layout` says: one contiguous copy first, the strides as they are, or wrongly taken for contiguous.
    fn strided_attention(qkv: [Float<Self>; 3], a: &Attention) -> Float<Self>;

    /// `[n, d]`
    fn embedding_own(weight: Float<Self>, tokens: Ints<Self>) -> Float<Self>;
    /// `[vocab, d]`
    fn embedding_backward_own(
        weight: Float<Self>,
        tokens: Ints<Self>,
        dy: Float<Self>,
    ) -> Float<Self>;

    /// Loss `[1, 1]` and d logits `[n, vocab]` for dL = 1.
    fn cross_entropy(logits: Float<Self>, targets: Ints<Self>) -> (Float<Self>, Float<Self>);

    /// d logits for another dL `[1, 1]` than 1; costs next to nothing where it is 1.
    fn cross_entropy_backward(slope: Float<Self>, dy: Float<Self>) -> Float<Self>;

    /// Σx² of each tensor; NaN where the device does not answer.
    fn squares(tensors: &[Float<Self>]) -> Vec<f64>;
    /// How many elements of each tensor have each exponent in their bits: all elements, or a sample.
    fn exponents(tensors: &[Float<Self>]) -> Vec<[u64; 256]>;

    /// The outputs of a learner's kernel, of these shapes, or of nothing where this device does not take it. The inputs
    /// come in the order of the kernel's bindings.
    fn learner(
        _use: LiveKernel<'_>,
        _inputs: Vec<Float<Self>>,
        _outputs: &[[usize; 2]],
    ) -> Option<Vec<Float<Self>>> {
        None
    }

    /// Strides of a tensor in elements, as a kernel receives it.
    fn strides(x: &Float<Self>) -> Vec<usize>;
}

/// The backend's own tensor behind a high-level one.
pub(crate) fn primitive<B: Backend>(tensor: Tensor<2>) -> Float<B>
where
    burn::backend::DispatchTensor: burn::backend::DispatchKindConversion<B>,
{
    tensor
        .try_into_primitive::<B>()
        .expect("the device was checked by the caller")
}

/// Whether this is the CPU device of ours, behind autodiff or not.
pub fn is_cpu(device: &Device) -> bool {
    matches!(
        device.clone().inner().as_dispatch(),
        DispatchDevice::Flex(_)
    )
}

/// Strides of a plain tensor in elements, as its backend holds it.
pub fn strides(x: Tensor<4>) -> Vec<usize> {
    let strides = if is_cpu(&x.device()) {
        x.try_into_primitive::<Flex>().map(|x| Flex::strides(&x))
    } else {
        x.try_into_primitive::<Cube>().map(|x| Cube::strides(&x))
    };
    strides.unwrap_or_default()
}

/// The two halves of `[n, 2f]`, `[n, f]` each, contiguous. Through a view of every second half-row, the CPU library's
/// sigmoid takes one branch a value by its sign, which no processor predicts: twice the time of a copy and a sigmoid.
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
