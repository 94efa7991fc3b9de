//! The number format of matrix products: f32, or 16-bit operands with f32 sums as in mixed precision (Micikevicius et al., 2017,
//! arXiv 1710.03740). Norms, softmax, loss and optimizer use f32 in every format; what a product reads of a norm is rounded.
//!
//! Where an adapter multiplies 16×16 matrices of f16 with sums in f32 (`engine::adapters`), products and attention are WGSL texts with cooperative
//! matrices (`matrix_cores` of `linear` and of `attention`). Elsewhere operands are rounded in f32, and the run says "emulated"; the weights
//! of an emulated attention, its probabilities, are not rounded. Both gradients of a product are one launch, and one more where an inner dimension
//! is in parts. Products read f16 copies of the weights, which AdamW writes with them. The loss scale lives where the gradients do
//! (`loss_scale`).

use protocol::config::{Matmul, Precision, RunConfig};

/// How the operands of a product are converted to the run's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Full,
    /// f32 operands that matrix cores multiply as two f16 halves.
    Split,
    /// Operands rounded to 16 bits and stored as f32: the numbers of the short format at the speed of f32.
    Emulated(Precision),
    /// f16 operands on matrix cores: f16 in memory, or small f32 operands that the kernel rounds.
    Native,
}

impl Format {
    /// The format of a run on a device; `matrix_cores` means that it multiplies f16 with f32 sums.
    pub fn of(config: &RunConfig, matrix_cores: bool) -> Self {
        match config.train.precision {
            Precision::F32 if matrix_cores && config.model.matmul == Matmul::Split => Self::Split,
            Precision::F32 => Self::Full,
            Precision::F16 if matrix_cores && config.model.matmul != Matmul::Library => {
                Self::Native
            }
            short => Self::Emulated(short),
        }
    }

    /// Bytes of an operand over the bytes of the same values in f32. Small operands that the kernel rounds have more.
    pub fn bytes_per_f32_byte(self) -> f64 {
        if self == Self::Native { 0.5 } else { 1.0 }
    }

    /// Size of an operation's output relative to f32, if it is an operand of products: a fused kernel writes their format.
    pub fn written(self, fused: bool) -> f64 {
        if fused {
            self.bytes_per_f32_byte()
        } else {
            1.0
        }
    }

    /// Returns true if products run on matrix cores.
    pub fn on_matrix_cores(self) -> bool {
        matches!(self, Self::Split | Self::Native)
    }
}
