//! Rotary position embedding (Su et al., 2021, arXiv 2104.09864), interleaved pairs (2i, 2i+1):
//! (a, b) → (a·cos − b·sin, a·sin + b·cos) with angle t·θ^(−2i/dh). The backward pass rotates by the opposite angle.

mod fused_cpu;
pub(crate) mod fused_gpu;
mod reference;

use burn::backend::{Backend, TensorMetadata};

use super::format::Format;
use super::learner_kernel::{LiveKernel, LivePart, WorkgroupCount};
pub use super::shapes::{Rope, Rotation};
use super::{Cost, Float, Kernels, Operation};

/// A device's own kernel for the rotation.
pub trait FusedRope: Backend {
    /// Rotates the first `rotated` columns of `[n, w]` by cos and sin. The result `[n, w]` is an operand of products in `format`.
    fn forward(
        x: Float<Self>,
        tables: [Float<Self>; 2],
        rotation: Rotation,
        format: Format,
    ) -> Float<Self>;
}

impl Operation<1> for Rope {
    const NAME: &'static str = "rope";

    type Saved<B: Kernels> = ();

    fn version(&self) -> &'static str {
        if self.fused { "own" } else { "library" }
    }

    fn forward<B: Kernels>(&self, [x]: [Float<B>; 1]) -> (Float<B>, ()) {
        (self.rotate::<B>(x, false, Format::Full), ())
    }

    fn backward<B: Kernels>(&self, (): (), dy: Float<B>) -> [Float<B>; 1] {
        [self.rotate::<B>(dy, true, self.format)]
    }

    /// Rotates with the learner's kernel, one launch for each sequence, because the kernel computes the angle from the row's number. The
    /// kernel rotates every column, so it does not fit rows that also hold values. The backward pass uses our own kernel.
    fn forward_live<B: Kernels>(
        &self,
        live: &LivePart,
        [x]: &[Float<B>; 1],
    ) -> Option<(Float<B>, ())> {
        let [rows, width] = x.shape().dims();
        if self.rotated != width || !rows.is_multiple_of(self.context) {
            return None;
        }
        let heads = width / self.head_dim;
        let kernel = LiveKernel {
            live,
            which: 0,
            sizes: &[
                ("T", self.context as u64),
                ("H", heads as u64),
                ("D", self.head_dim as u64),
            ],
            cover: WorkgroupCount::Invocations((self.context * width) as u64),
            shares: (rows / self.context) as u64,
        };
        let y = B::learner(kernel, vec![x.clone()], &[[rows, width]])?.pop()?;
        Some((y, ()))
    }

    fn cost(&self, [x]: &[Vec<usize>; 1]) -> (Cost, Cost) {
        let n = x.iter().product::<usize>() as f64;
        let rotated = n * self.rotated as f64 / x[1] as f64;
        let written = n * self.format.written(self.fused);
        (
            Cost::new(3.0 * rotated, 2.0 * n),
            Cost::new(3.0 * rotated, n + written),
        )
    }
}

impl Rope {
    /// Returns the tables cos and sin.
    pub(super) fn tables<B: Kernels>(&self) -> [Float<B>; 2] {
        self.tables.each_ref().map(B::constant)
    }

    /// Returns the forward rotation of rows of this width.
    pub(super) fn rotation(&self, width: usize) -> Rotation {
        Rotation {
            width,
            rotated: self.rotated,
            head_dim: self.head_dim,
            context: self.context,
            inverse: false,
        }
    }

    /// Rotates x `[n, w]`, or rotates it back if `inverse`. The result is an operand of products in `format`.
    fn rotate<B: Kernels>(&self, x: Float<B>, inverse: bool, format: Format) -> Float<B> {
        let tables = self.tables::<B>();
        let rotation = Rotation {
            inverse,
            ..self.rotation(x.shape()[1])
        };
        if self.fused {
            <B as FusedRope>::forward(x, tables, rotation, format)
        } else {
            reference::forward::<B>(x, tables, rotation)
        }
    }
}

/// Returns cos and sin of t·θ^(−2i/dh), `[context, head_dim / 2]` each, row-major.
pub fn tables(context: usize, head_dim: usize, theta: f64) -> (Vec<f32>, Vec<f32>) {
    let half = head_dim / 2;
    let angle = |index: usize| {
        let (t, i) = (index / half, index % half);
        t as f64 * theta.powf(-2.0 * i as f64 / head_dim as f64)
    };
    (0..context * half)
        .map(|index| (angle(index).cos() as f32, angle(index).sin() as f32))
        .unzip()
}
