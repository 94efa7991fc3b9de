//! The trait that a device implements so that the operations run on it. Each operation has a trait of its own, such as `FusedNorm`, which
//! its `fused_cpu.rs` implements for the CPU device (flex) and its `fused_gpu.rs` for every CubeCL device. `reference.rs` uses burn's
//! primitives, which every device has.

use burn::backend::{Backend, Cube, DispatchDevice, Flex, TensorMetadata as _};
use burn::tensor::{DType, Device, Int, Tensor};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use protocol::config::Precision;

use super::format::Format;
use super::learner_kernel::LiveKernel;
use super::{attention, cross_entropy, embedding, grad_norm, linear, rms_norm, rope, swiglu};
use super::{cpu, gpu};

/// A backend's tensor of floats.
pub type Float<B> = burn::backend::tensor::FloatTensor<B>;
/// A backend's tensor of integers.
pub type Ints<B> = burn::backend::tensor::IntTensor<B>;

/// A device with kernels of every operation. Matrices are `[rows, columns]`, row-major; formulas are in the operations' files.
pub trait Kernels:
    Backend
    + attention::FusedAttention
    + attention::NaiveAttention
    + cross_entropy::FusedLoss
    + embedding::FusedEmbedding
    + grad_norm::FusedGradNorm
    + linear::FusedLinear
    + rms_norm::FusedNorm
    + rope::FusedRope
    + swiglu::FusedSwiglu
    + swiglu::NaiveGates
{
    /// Returns the backend's tensor of token numbers.
    fn indices(tokens: &Tensor<1, Int>) -> Ints<Self>;
    /// Returns the backend's tensor of a constant table.
    fn constant(table: &Tensor<2>) -> Float<Self>;
    /// Returns the tensor itself, or a copy if its values are not adjacent.
    fn contiguous(x: Float<Self>) -> Float<Self>;

    /// Rounds values to a short format and stores them as f32.
    fn rounded(x: Float<Self>, format: Precision) -> Float<Self>;
    /// Converts values to f16. Few values stay f32, because the product that reads them rounds them faster than a launch of its own.
    fn half(x: Float<Self>) -> Float<Self>;

    /// Converts an operand of a product to the run's format. The shape stays.
    fn operand(x: Float<Self>, format: Format) -> Float<Self> {
        match format {
            Format::Native => Self::half(x),
            Format::Full | Format::Split | Format::Emulated(_) => Self::rounded_operand(x, format),
        }
    }
    /// Converts an operand for a kernel without matrix cores: values of the format are stored as f32.
    fn rounded_operand(x: Float<Self>, format: Format) -> Float<Self> {
        match format {
            Format::Full | Format::Split => x,
            Format::Emulated(short) => Self::rounded(x, short),
            Format::Native => Self::rounded(x, Precision::F16),
        }
    }

    /// Returns the outputs of a learner's kernel, with these shapes; `None` if this device does not support the kernel. Inputs are in the
    /// order of the kernel's bindings.
    fn learner(
        _use: LiveKernel<'_>,
        _inputs: Vec<Float<Self>>,
        _outputs: &[[usize; 2]],
    ) -> Option<Vec<Float<Self>>> {
        None
    }
}

impl Kernels for Flex {
    fn indices(tokens: &Tensor<1, Int>) -> Ints<Self> {
        integer_primitive::<Self>(tokens)
    }

    fn constant(table: &Tensor<2>) -> Float<Self> {
        primitive::<Self>(table.clone().without_autodiff())
    }

    fn contiguous(x: Float<Self>) -> Float<Self> {
        x.to_contiguous()
    }

    fn rounded(x: Float<Self>, format: Precision) -> Float<Self> {
        let contiguous = x.to_contiguous();
        let values = cpu::format::rounded(cpu::values(&contiguous), format);
        cpu::tensor(values, contiguous.shape())
    }

    fn half(x: Float<Self>) -> Float<Self> {
        Self::rounded(x, Precision::F16)
    }
}

impl Kernels for Cube {
    fn indices(tokens: &Tensor<1, Int>) -> Ints<Self> {
        integer_primitive::<Self>(tokens)
    }

    fn constant(table: &Tensor<2>) -> CubeTensor {
        primitive::<Self>(table.clone().without_autodiff())
    }

    fn contiguous(x: CubeTensor) -> CubeTensor {
        into_contiguous(x)
    }

    fn rounded(x: CubeTensor, format: Precision) -> CubeTensor {
        gpu::format::rounded(&into_contiguous(x), format)
    }

    fn half(x: CubeTensor) -> CubeTensor {
        let x = into_contiguous(x);
        if linear::fused_gpu::is_copied(x.meta.num_elements()) {
            gpu::format::converted(x, DType::F16)
        } else {
            x
        }
    }

    fn learner(
        kernel: LiveKernel<'_>,
        inputs: Vec<CubeTensor>,
        outputs: &[[usize; 2]],
    ) -> Option<Vec<CubeTensor>> {
        let contiguous: Vec<CubeTensor> = inputs.into_iter().map(into_contiguous).collect();
        let first = contiguous.first()?;
        let results: Vec<CubeTensor> = outputs
            .iter()
            .map(|shape| gpu::empty(first, *shape))
            .collect();
        let buffers: Vec<&CubeTensor> = contiguous.iter().chain(&results).collect();
        kernel.launch(&buffers).then_some(results)
    }
}

/// Returns the backend's tensor inside a high-level one.
pub fn primitive<B: Backend>(tensor: Tensor<2>) -> Float<B>
where
    burn::backend::DispatchTensor: burn::backend::DispatchKindConversion<B>,
{
    tensor
        .try_into_primitive::<B>()
        .expect("the device was checked by the caller")
}

/// Returns the backend's tensor inside a high-level tensor of integers.
fn integer_primitive<B: Backend>(tensor: &Tensor<1, Int>) -> Ints<B>
where
    burn::backend::DispatchTensor: burn::backend::DispatchKindConversion<B>,
{
    tensor
        .clone()
        .without_autodiff()
        .try_into_primitive::<B>()
        .expect("tokens live on the model's device")
}

/// Returns true if this is our CPU device, with or without autodiff.
pub fn is_cpu(device: &Device) -> bool {
    matches!(
        device.clone().inner().as_dispatch(),
        DispatchDevice::Flex(_)
    )
}

/// Returns the strides of a plain tensor in elements, as its backend stores them.
pub fn strides(x: Tensor<4>) -> Vec<usize> {
    let strides = if is_cpu(&x.device()) {
        x.try_into_primitive::<Flex>()
            .map(|flex| cpu::strides(&flex))
    } else {
        x.try_into_primitive::<Cube>()
            .map(|cube| cube.meta.strides().to_vec())
    };
    strides.unwrap_or_default()
}
