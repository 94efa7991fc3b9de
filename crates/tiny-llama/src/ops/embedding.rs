//! Token embedding: y[i] = W[token[i]]. Backward adds each row of dy to the row of its token.

use burn::backend::TensorMetadata;
use burn::tensor::{FloatDType, IndexingUpdateOp, Int, Tensor};

use super::pending::ForNorm;
use super::{Cost, Float, Kernels, Operation};
use protocol::config::Matmul;

/// W `[vocab, d]` → `[n, d]` for n tokens.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// `[n]`
    pub tokens: Tensor<1, Int>,
    pub version: Matmul,
    /// For the norm that follows, with our own kernel.
    pub pending: Option<ForNorm>,
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
            Matmul::Library => B::float_select(weight.clone(), 0, tokens),
            _ => B::embedding_own(weight.clone(), tokens, self.pending.as_ref()),
        };
        (y, weight)
    }

    fn backward<B: Kernels>(&self, weight: Float<B>, dy: Float<B>) -> [Float<B>; 1] {
        let tokens = B::indices(&self.tokens);
        [match self.version {
            Matmul::Library => backward::<B>(weight, tokens, dy),
            _ => B::embedding_backward_own(weight, tokens, dy),
        }]
    }

    fn cost(&self, [weight]: &[Vec<usize>; 1]) -> (Cost, Cost) {
        let rows = self.tokens.dims()[0] as f64 * weight[1] as f64;
        let table = (weight[0] * weight[1]) as f64;
        let mut forward = Cost::new(0.0, 2.0 * rows);
        if let Some(norm) = &self.pending {
            norm.add_work(&mut forward, rows);
        }
        (forward, Cost::new(rows, 2.0 * rows + table))
    }
}

/// The plain reference: zeros `[vocab, d]`, then one addition for each token.
pub fn backward<B: Kernels>(
    weight: Float<B>,
    tokens: B::IntTensorPrimitive,
    dy: Float<B>,
) -> Float<B> {
    let zeros = B::float_zeros(weight.shape(), &weight.device(), FloatDType::F32);
    B::float_select_assign(zeros, 0, tokens, dy, IndexingUpdateOp::Add)
}
