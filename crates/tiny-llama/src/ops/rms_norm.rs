//! RMSNorm: y = x / √(mean(x²) + ε) · γ over the last dimension (Zhang and Sennrich, 2019, arXiv 1910.07467).
//!
//! With r = 1/√(mean(x²)+ε), x̂ = x·r and ĝ = dy·γ: dγ = Σ_rows dy·x̂, dx = r·(ĝ − x̂·mean(ĝ·x̂)).

mod fused_cpu;
pub(crate) mod fused_gpu;
pub mod reference;

use burn::backend::{Backend, TensorMetadata};

use super::format::Format;
use super::learner_kernel::{LiveKernel, LivePart, WorkgroupCount};
use super::shared_work::SharedWork;
use super::{Cost, Float, Kernels, Operation};
use protocol::config::Norm;

/// The operation that takes x `[n, d]` and γ `[1, d]` and gives y `[n, d]`.
#[derive(Clone, Debug, Default)]
pub struct RmsNorm {
    pub version: Norm,
    /// True if x also continues past the norm in a residual connection. The gradient of that path then arrives first, and the fused
    /// backward pass adds it.
    pub on_trunk: bool,
    /// The format of the products that read y.
    pub format: Format,
    /// The work that the norm shares with the operations before and behind it.
    pub shared: SharedWork,
}

/// A device's own kernels for the norm.
pub trait FusedNorm: Backend {
    /// Returns y `[n, d]`, as an operand of products in `format`, and 1/rms `[n, 1]`, from x and γ. If the operations around the norm do
    /// its work, the product after the norm writes both later.
    fn forward(inputs: [Float<Self>; 2], format: Format, shared: &SharedWork) -> [Float<Self>; 2];
    /// Returns dx (+ `earlier`) `[n, d]` and dγ `[1, d]`, from x, γ, 1/rms and dy `[n, d]`.
    fn backward(
        saved: [Float<Self>; 3],
        dy: Float<Self>,
        earlier: Option<Float<Self>>,
    ) -> [Float<Self>; 2];
}

impl Operation<2> for RmsNorm {
    const NAME: &'static str = "rms-norm";

    /// The backward pass needs x, γ and 1/rms.
    type Saved<B: Kernels> = [Float<B>; 3];

    fn version(&self) -> &'static str {
        match self.version {
            Norm::Composed => "library",
            Norm::Fused => "own",
        }
    }

    fn forward<B: Kernels>(&self, [x, gain]: [Float<B>; 2]) -> (Float<B>, [Float<B>; 3]) {
        let inputs = [x.clone(), gain.clone()];
        let [y, inverse] = match self.version {
            Norm::Composed => reference::forward::<B>(inputs),
            Norm::Fused => <B as FusedNorm>::forward(inputs, self.format, &self.shared),
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
        saved: [Float<B>; 3],
        dy: Float<B>,
        earlier: Option<Float<B>>,
    ) -> [Float<B>; 2] {
        if self.version == Norm::Composed {
            return reference::backward::<B>(saved, dy);
        }
        <B as FusedNorm>::backward(saved, dy, earlier)
    }

    /// Computes y with the learner's kernel, and with our own 1/rms, which the backward pass needs and the learner's kernel does not write.
    fn forward_live<B: Kernels>(
        &self,
        live: &LivePart,
        [x, gain]: &[Float<B>; 2],
    ) -> Option<(Float<B>, [Float<B>; 3])> {
        let [rows, columns] = x.shape().dims();
        let kernel = LiveKernel {
            live,
            which: 0,
            sizes: &[("ROWS", rows as u64), ("COLS", columns as u64)],
            cover: WorkgroupCount::Groups(rows as u64),
            shares: 1,
        };
        let inputs = [x.clone(), gain.clone()];
        let y = B::learner(kernel, inputs.to_vec(), &[[rows, columns]])?.pop()?;
        let nothing_shared = SharedWork::default();
        let [_, inverse] = <B as FusedNorm>::forward(inputs, self.format, &nothing_shared);
        Some((y, [x.clone(), gain.clone(), inverse]))
    }

    fn cost(&self, [x, _]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let elements = x.iter().product::<usize>() as f64;
        let written = elements * self.format.written(self.version == Norm::Fused);
        let forward = match self.shared.gain {
            Some(_) => Cost::nothing("the operations around it do its work"),
            None => Cost::new(4.0 * elements, elements + written),
        };
        (forward, Cost::new(9.0 * elements, 3.0 * elements))
    }
}
