//! The number format of matrix products: f32, or 16-bit operands with f32 sums as in mixed precision (Micikevicius et al., 2017,
//! arXiv 1710.03740). Norms, softmax, loss and optimizer use f32 in every format; only the operands of products
//! are rounded, among them the output of a norm.
//!
//! Where an adapter multiplies 16×16 matrices of f16 with sums in f32 (`engine::adapters`), products and attention are WGSL texts with
//! cooperative matrices (`matrix_cores` of `linear` and of `attention`). Elsewhere operands are rounded and stored as f32, and the run is
//! marked "emulated"; the probabilities of an emulated attention are not rounded. Products read f16 copies of the weights, which AdamW
//! writes together with the weights. Gradients are scaled so that f16 can hold them (`loss_scale`).

use protocol::config::{Matmul, Precision, RunConfig};

/// How the operands of a product are converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Full,
    /// Operands are f32, which matrix cores multiply as two f16 halves.
    Split,
    /// Operands are rounded to 16 bits and stored as f32, which gives the numbers of the short format at the speed of f32.
    Emulated(Precision),
    /// Operands are multiplied as f16 on matrix cores. They are f16 in memory, except for small ones, which are f32 and which the kernel
    /// rounds.
    Native,
}

impl Format {
    /// Returns the format of a run on a device; `matrix_cores` means that the device multiplies f16 with f32 sums.
    pub fn for_run(config: &RunConfig, matrix_cores: bool) -> Self {
        match config.train.precision {
            Precision::F32 if matrix_cores && config.model.matmul == Matmul::Split => Self::Split,
            Precision::F32 => Self::Full,
            Precision::F16 if matrix_cores && config.model.matmul != Matmul::Library => {
                Self::Native
            }
            short => Self::Emulated(short),
        }
    }

    /// Returns the size of an operand in memory relative to f32. Small operands of [`Format::Native`], which stay f32, are counted as f16.
    pub fn bytes_per_f32_byte(self) -> f64 {
        if self == Self::Native { 0.5 } else { 1.0 }
    }

    /// Returns the size relative to f32 of an operation's output that products read. A fused kernel writes the format of the products.
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
