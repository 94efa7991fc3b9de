//! RMSNorm: y = x / √(mean(x²) + ε) · γ over the last dimension (Zhang and Sennrich, 2019, arXiv 1910.07467).
//!
//! With r = 1/√(mean(x²)+ε), x̂ = x·r and ĝ = dy·γ: dγ = Σ_rows dy·x̂, dx = r·(ĝ − x̂·mean(ĝ·x̂)).

use burn::backend::TensorMetadata;
use burn::tensor::{Shape, Tensor};

use super::format::Format;
use super::learner_kernel::{LiveKernel, LivePart, WorkgroupCount};
use super::pending::{ForNorm, Pending, UnfinishedNorm};
use super::{Cost, Float, Kernels, Operation};
use protocol::config::{NORM_EPS, Norm};

/// x `[n, d]`, γ `[1, d]` → y `[n, d]`.
#[derive(Clone, Debug, Default)]
pub struct RmsNorm {
    pub version: Norm,
    /// Whether x also continues past the norm in a residual connection. The gradient of that path then arrives first, and the fused
    /// backward pass adds it.
    pub on_trunk: bool,
    /// Format of the products that take y.
    pub format: Format,
    /// From the operation before it.
    pub pending: Option<ForNorm>,
    /// For the product that reads y, if it applies this norm.
    pub unfinished: Option<Pending<UnfinishedNorm>>,
    /// For the product that gave x: dx in f16 ([`LinearResidual::gradient`](super::linear::LinearResidual::gradient)).
    pub gradient: Option<Pending<Tensor<2>>>,
}

impl Operation<2> for RmsNorm {
    const NAME: &'static str = "rms-norm";

    /// x, γ and 1/rms.
    type Saved<B: Kernels> = [Float<B>; 3];

    fn version(&self) -> &'static str {
        match self.version {
            Norm::Composed => "library",
            Norm::Fused => "own",
        }
    }

    fn forward<B: Kernels>(&self, [x, gain]: [Float<B>; 2]) -> (Float<B>, [Float<B>; 3]) {
        let (y, inverse) = match self.version {
            Norm::Composed => forward::<B>(x.clone(), gain.clone()),
            Norm::Fused => {
                let (pending, unfinished) = (self.pending.as_ref(), self.unfinished.as_ref());
                B::rms_norm(x.clone(), gain.clone(), self.format, pending, unfinished)
            }
        };
        (y, [x, gain, inverse])
    }

    fn backward<B: Kernels>(&self, saved: [Float<B>; 3], dy: Float<B>) -> [Float<B>; 2] {
        self.backward_onto::<B>(saved, dy, None)
    }

    fn adds_onto(&self) -> Option<usize> {
        (self.on_trunk && self.version == Norm::Fused).then_some(0)
    }

    fn backward_onto<B: Kernels>(
        &self,
        [x, gain, inverse]: [Float<B>; 3],
        dy: Float<B>,
        earlier: Option<Float<B>>,
    ) -> [Float<B>; 2] {
        let (dx, dgain) = match self.version {
            Norm::Composed => backward::<B>(x, gain, inverse, dy),
            Norm::Fused => {
                // The gradient is complete only with that of the residual path.
                let complete = earlier.is_some() || !self.on_trunk;
                let left = self.gradient.as_ref().filter(|_| complete);
                B::rms_norm_backward(x, gain, inverse, dy, earlier, left)
            }
        };
        [dx, dgain]
    }

    /// The learner's kernel writes only y; ours computes 1/rms, which the backward pass needs.
    fn forward_live<B: Kernels>(
        &self,
        live: &LivePart,
        [x, gain]: &[Float<B>; 2],
    ) -> Option<(Float<B>, [Float<B>; 3])> {
        if self.pending.as_ref().is_some_and(ForNorm::is_sum_due) {
            return None;
        }
        let [rows, columns] = x.shape().dims();
        let it = LiveKernel {
            live,
            which: 0,
            sizes: &[("ROWS", rows as u64), ("COLS", columns as u64)],
            cover: WorkgroupCount::Groups(rows as u64),
            shares: 1,
        };
        let y = B::learner(it, vec![x.clone(), gain.clone()], &[[rows, columns]])?.pop()?;
        let (_, inverse) = B::rms_norm(x.clone(), gain.clone(), self.format, None, None);
        Some((y, [x.clone(), gain.clone(), inverse]))
    }

    fn cost(&self, [x, _]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let n = x.iter().product::<usize>() as f64;
        let written = n * self.format.written(self.version == Norm::Fused);
        // The sum is one addition; the product and the residual are read, and x is written.
        let forward = match (&self.pending, &self.unfinished) {
            (_, Some(_)) => Cost::nothing("the operations around it do its work"),
            (Some(ForNorm::Sum(_)), None) => Cost::new(5.0 * n, 3.0 * n + written),
            _ => Cost::new(4.0 * n, n + written),
        };
        let copy = self.gradient.as_ref().map_or(0.0, |_| 0.5 * n);
        (forward, Cost::new(9.0 * n, 3.0 * n + copy))
    }
}

/// The plain reference, one primitive after the other: y `[n, d]` and r `[n, 1]`.
pub fn forward<B: Kernels>(x: Float<B>, gain: Float<B>) -> (Float<B>, Float<B>) {
    let squares = B::float_mul(x.clone(), x.clone()); // [n, d]
    let mean = B::float_mean_dim(squares, 1); // [n, 1]
    let inverse = B::float_recip(B::float_sqrt(B::float_add_scalar(mean, NORM_EPS.into()))); // [n, 1]
    let scaled = B::float_mul(x, inverse.clone()); // [n, d]
    (B::float_mul(scaled, gain), inverse)
}

/// dx `[n, d]` and dγ `[1, d]`, from primitives.
pub fn backward<B: Kernels>(
    x: Float<B>,
    gain: Float<B>,
    inverse: Float<B>,
    dy: Float<B>,
) -> (Float<B>, Float<B>) {
    let width = gain.shape().num_elements();
    let normal = B::float_mul(x, inverse.clone()); // [n, d]
    let dgain = B::float_sum_dim(B::float_mul(dy.clone(), normal.clone()), 0); // [1, d]
    let scaled = B::float_mul(dy, gain); // [n, d]
    let mean = B::float_mean_dim(B::float_mul(scaled.clone(), normal.clone()), 1); // [n, 1]
    let dx = B::float_mul(B::float_sub(scaled, B::float_mul(normal, mean)), inverse); // [n, d]
    (dx, B::float_reshape(dgain, Shape::from([1, width])))
}
