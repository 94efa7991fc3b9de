//! Mean cross-entropy in nats: L = mean(logsumexp(z) − z[target]). Backward: dz = (softmax(z) − onehot(target))·s/n, where s is the
//! factor of loss scaling: the loss is the root of the graph, so that dL is 1.

use burn::backend::TensorMetadata;
use burn::tensor::{FloatDType, IndexingUpdateOp, Int, Shape, Tensor};

use super::{Cost, Float, Kernels, Operation};
use protocol::config::Loss;

/// logits `[n, vocab]` → loss `[1, 1]`.
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    /// `[n]`
    pub targets: Tensor<1, Int>,
    pub version: Loss,
    /// The factor of loss scaling, `[1, 1]`, where there is one. Gradients are multiplied by it; the loss is not.
    pub scale: Option<Tensor<2>>,
}

impl Operation<1> for CrossEntropy {
    const NAME: &'static str = "cross-entropy";

    /// Log-probabilities, or from the fused version dlogits.
    type Saved<B: Kernels> = Float<B>;

    fn version(&self) -> &'static str {
        match self.version {
            Loss::Composed => "library",
            Loss::Fused | Loss::InParts => "own",
        }
    }

    fn forward<B: Kernels>(&self, [logits]: [Float<B>; 1]) -> (Float<B>, Float<B>) {
        let targets = B::indices(&self.targets);
        match self.version {
            Loss::Composed => forward::<B>(logits, targets),
            Loss::Fused | Loss::InParts => {
                let rows = logits.shape()[0];
                B::cross_entropy(logits, targets, self.scale.as_ref().map(B::constant), rows)
            }
        }
    }

    fn backward<B: Kernels>(&self, saved: Float<B>, dy: Float<B>) -> [Float<B>; 1] {
        let factor = self.scale.as_ref().map_or(dy, B::constant);
        [match self.version {
            Loss::Composed => backward::<B>(saved, B::indices(&self.targets), factor),
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

/// The plain reference: loss `[1, 1]` and log-probabilities `[n, vocab]`.
pub fn forward<B: Kernels>(
    logits: Float<B>,
    targets: B::IntTensorPrimitive,
) -> (Float<B>, Float<B>) {
    let rows = logits.shape()[0];
    let logs = B::log_softmax(logits, 1); // [n, vocab]
    let column = B::int_reshape(targets, Shape::from([rows, 1]));
    let picked = B::float_gather(1, logs.clone(), column); // [n, 1]
    let mean = B::float_mean_dim(picked, 0); // [1, 1]
    (B::float_neg(mean), logs)
}

/// dlogits `[n, vocab]` from the log-probabilities, times `factor` `[1, 1]`.
pub fn backward<B: Kernels>(
    logs: Float<B>,
    targets: B::IntTensorPrimitive,
    factor: Float<B>,
) -> Float<B> {
    let rows = logs.shape()[0];
    let column = B::int_reshape(targets, Shape::from([rows, 1]));
    let zeros = B::float_zeros(Shape::from([rows, 1]), &logs.device(), FloatDType::F32);
    let minus = B::float_add_scalar(zeros, (-1.0).into()); // [n, 1]
    let difference = B::float_scatter(1, B::float_exp(logs), column, minus, IndexingUpdateOp::Add); // [n, vocab]
    let mean = B::float_mul_scalar(difference, (1.0 / rows as f64).into()); // [n, vocab]
    B::float_mul(mean, factor)
}
