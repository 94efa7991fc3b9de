//! Token embedding: y[i] = W[token[i]]. The backward pass adds each row of dy to the row of its token.

mod fused_cpu;
mod fused_gpu;
mod reference;

use burn::backend::Backend;
use burn::tensor::{Int, Tensor};

use super::backend::Ints;
use super::shared_work::SharedWork;
use super::{Cost, Float, Kernels, Operation};
use protocol::config::Matmul;

/// The operation that takes a table W `[vocab, d]` and gives the rows `[n, d]` of n tokens.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// The tokens `[n]`.
    pub tokens: Tensor<1, Int>,
    pub version: Matmul,
    /// The work that our own kernel shares with the norm that follows.
    pub shared: SharedWork,
}

/// A device's own kernels for the embedding.
pub trait FusedEmbedding: Backend {
    /// Returns the rows of the table for the tokens, `[n, d]`.
    fn forward(weight: Float<Self>, tokens: Ints<Self>, shared: &SharedWork) -> Float<Self>;
    /// Returns the gradient of the table, `[vocab, d]`.
    fn backward(weight: Float<Self>, tokens: Ints<Self>, dy: Float<Self>) -> Float<Self>;
}

impl Operation<1> for Embedding {
    const NAME: &'static str = "embedding";

    type Saved<B: Kernels> = Float<B>;

    fn version(&self) -> &'static str {
        self.version.into_str()
    }

    fn forward<B: Kernels>(&self, [weight]: [Float<B>; 1]) -> (Float<B>, Float<B>) {
        let tokens = B::indices(&self.tokens);
        let y = match self.version {
            Matmul::Library => reference::forward::<B>(weight.clone(), tokens),
            _ => <B as FusedEmbedding>::forward(weight.clone(), tokens, &self.shared),
        };
        (y, weight)
    }

    fn backward<B: Kernels>(&self, weight: Float<B>, dy: Float<B>) -> [Float<B>; 1] {
        let tokens = B::indices(&self.tokens);
        [match self.version {
            Matmul::Library => reference::backward::<B>(weight, tokens, dy),
            _ => <B as FusedEmbedding>::backward(weight, tokens, dy),
        }]
    }

    fn cost(&self, [weight]: &[Vec<usize>; 1]) -> (Cost, Cost) {
        let rows = self.tokens.dims()[0] as f64 * weight[1] as f64;
        let table = (weight[0] * weight[1]) as f64;
        let mut forward = Cost::new(0.0, 2.0 * rows);
        self.shared.add_cost(&mut forward, rows);
        (forward, Cost::new(rows, 2.0 * rows + table))
    }
}
