//! The number format of matrix products: f32, or operands of 16 bits with sums in f32, as mixed precision does it
//! (Micikevicius et al., 2017, arXiv 1710.03740). Norms, softmax, loss and optimizer stay in f32 in every format.

use crate::config::{Matmul, Precision, RunConfig};

/// How the operands of a product are brought to the run's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Full,
    /// f32, multiplied by matrix cores as two f16 halves.
    Split,
    /// Rounded to 16 bits and kept in f32: the numbers are those of the short format, the speed is that of f32.
    Emulated(Precision),
    /// Multiplied by matrix cores as f16: in memory, or rounded on the way where an operand is small.
    Native,
}

impl Format {
    /// The format of a run on a device with or without matrix cores that take f16 and add in f32.
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

    /// The bytes of an operand over those of the same values in f32; small operands that are rounded on the way have more.
    pub fn bytes_per_f32_byte(self) -> f64 {
        if self == Self::Native { 0.5 } else { 1.0 }
    }

    /// f32 values' worth of bytes for each value that an operation writes for products: its fused kernel writes their format.
    pub fn written(self, fused: bool) -> f64 {
        if fused {
            self.bytes_per_f32_byte()
        } else {
            1.0
        }
    }

    /// Whether products run on matrix cores.
    pub fn on_matrix_cores(self) -> bool {
        matches!(self, Self::Split | Self::Native)
    }
}
