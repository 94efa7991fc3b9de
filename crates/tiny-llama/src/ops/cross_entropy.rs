//! Mean cross-entropy in nats: L = mean(logsumexp(z) − z[target]). Its gradient is dz = (softmax(z) − onehot(target))·s/n, where s is the
//! factor of loss scaling. The gradient of L itself is 1, because the loss is the root of the graph.

mod fused_cpu;
mod fused_gpu;
mod reference;

use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Int, Tensor};

use super::backend::Ints;
use super::{Cost, Float, Kernels, Operation};
use protocol::config::Loss;

/// The operation that takes logits `[n, vocab]` and gives their mean cross-entropy `[1, 1]`.
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    /// The targets `[n]`.
    pub targets: Tensor<1, Int>,
    pub version: Loss,
    /// The factor of loss scaling, `[1, 1]`, if the run has one. It multiplies the gradients, not the loss.
    pub scale: Option<Tensor<2>>,
}

/// A device's own kernel for the loss.
pub trait FusedLoss: Backend {
    /// Returns the loss `[1, 1]`, and dlogits `[n, vocab]` times `scale` `[1, 1]`. The logits may be some rows of a batch of `batch_rows`
    /// rows. Both results are then the share of these rows in the mean over the batch.
    fn forward(
        logits: Float<Self>,
        targets: Ints<Self>,
        scale: Option<Float<Self>>,
        batch_rows: usize,
    ) -> [Float<Self>; 2];
}

impl Operation<1> for CrossEntropy {
    const NAME: &'static str = "cross-entropy";

    /// The backward pass needs the log-probabilities, or dlogits from the fused version.
    type Saved<B: Kernels> = Float<B>;

    fn version(&self) -> &'static str {
        match self.version {
            Loss::Composed => "library",
            Loss::Fused | Loss::InParts => "own",
        }
    }

    fn forward<B: Kernels>(&self, [logits]: [Float<B>; 1]) -> (Float<B>, Float<B>) {
        let targets = B::indices(&self.targets);
        let [loss, saved] = match self.version {
            Loss::Composed => reference::forward::<B>(logits, targets),
            Loss::Fused | Loss::InParts => {
                let rows = logits.shape()[0];
                let scale = self.scale.as_ref().map(B::constant);
                <B as FusedLoss>::forward(logits, targets, scale, rows)
            }
        };
        (loss, saved)
    }

    fn backward<B: Kernels>(&self, saved: Float<B>, dy: Float<B>) -> [Float<B>; 1] {
        let factor = self.scale.as_ref().map_or(dy, B::constant);
        [match self.version {
            Loss::Composed => reference::backward::<B>(saved, B::indices(&self.targets), factor),
            Loss::Fused | Loss::InParts => saved,
        }]
    }

    fn cost(&self, [logits]: &[Vec<usize>; 1]) -> (Cost, Cost) {
        let n = logits.iter().product::<usize>() as f64;
        match self.version {
            Loss::Composed => (Cost::new(5.0 * n, 2.0 * n), Cost::new(2.0 * n, 2.0 * n)),
            Loss::Fused | Loss::InParts => (
                Cost::new(6.0 * n, 2.0 * n),
                Cost::nothing("the forward pass computed the gradient"),
            ),
        }
    }
}
