//! The head's product and the loss in one operation, for some rows at a time: logits `[n, vocab]` of the whole batch never exist,
//! forward or backward. (Hsu et al., 2024, Liger Kernel, arXiv 2410.10989, section 3.2.)
//!
//! For each part of r rows: z = x·Wᵀ `[r, vocab]`; the loss and dz in one kernel; dx = dz·W; dW += dzᵀ·x. The loss is the root of
//! the graph, so that dL is 1 and the forward pass can compute all gradients. Parts are rows, not columns: a row's softmax needs all
//! of its logits, and nothing is computed twice.

use burn::backend::TensorMetadata;
use burn::tensor::Slice;

use super::cross_entropy::{CrossEntropy, FusedLoss};
use super::linear::{self, Linear};
use super::{Cost, Float, Kernels, Operation};

/// The operation that takes x `[n, d]` and W `[vocab, d]` and gives the loss `[1, 1]` of the logits x·Wᵀ.
#[derive(Clone, Debug)]
pub struct HeadLoss {
    pub head: Linear,
    /// The version of the loss decides how many rows a part has.
    pub loss: CrossEntropy,
    /// True if there will be a backward pass, for which the forward pass then computes the gradients.
    pub with_gradients: bool,
}

impl HeadLoss {
    /// Returns the first row and the end of each part.
    fn parts(&self, rows: usize, width: usize, vocab: usize) -> impl Iterator<Item = [usize; 2]> {
        let at_once = self.loss.version.rows_at_once(rows, width, vocab);
        let starts = (0..rows).step_by(at_once.max(1));
        starts.map(move |start| [start, rows.min(start + at_once)])
    }
}

impl Operation<2> for HeadLoss {
    const NAME: &'static str = "linear+cross-entropy";

    /// The backward pass needs dx `[n, d]` and dW `[vocab, d]`.
    type Saved<B: Kernels> = Option<[Float<B>; 2]>;

    /// Returns the version of the products.
    fn version(&self) -> &'static str {
        self.head.version()
    }

    fn forward<B: Kernels>(&self, [x, w]: [Float<B>; 2]) -> (Float<B>, Option<[Float<B>; 2]>) {
        let Linear { matmul, format, .. } = self.head;
        let ([n, d], [vocab, _]) = (x.shape().dims(), w.shape().dims());
        let [x, w] = linear::operands::<B>([x, w], self.head.operand.as_ref(), format);
        let targets = B::indices(&self.loss.targets); // [n]
        let scale = self.loss.scale.as_ref().map(B::constant); // [1, 1]
        let parts = self.parts(n, d, vocab).map(|[start, end]| {
            let rows = Slice::from(start..end);
            let x = B::contiguous(B::float_slice(x.clone(), &[rows, Slice::full()])); // [r, d]
            let targets = B::int_slice(targets.clone(), &[rows]); // [r]
            let logits = self.head.product::<B>(x.clone(), w.clone(), None); // [r, vocab]
            let [loss, dlogits] = <B as FusedLoss>::forward(logits, targets, scale.clone(), n); // [1, 1], [r, vocab]
            let gradients = self.with_gradients.then(|| {
                let operands = [x, w.clone(), B::operand(dlogits, format)];
                linear::backward::<B>(matmul, format, operands) // [r, d], [vocab, d]
            });
            (loss, gradients)
        });
        let mut loss = None;
        let mut dw = None;
        let mut dx = Vec::new();
        let add = |sum: Option<Float<B>>, more| match sum {
            Some(sum) => Some(B::float_add(sum, more)),
            None => Some(more),
        };
        for (part, gradients) in parts {
            loss = add(loss, part); // [1, 1]
            if let Some([dx_part, dw_part]) = gradients {
                dx.push(dx_part); // [r, d]
                dw = add(dw, dw_part); // [vocab, d]
            }
        }
        (
            loss.expect("a batch has rows"),
            dw.map(|dw| [B::float_cat(dx, 0), dw]), // [n, d], [vocab, d]
        )
    }

    fn backward<B: Kernels>(&self, saved: Option<[Float<B>; 2]>, _dy: Float<B>) -> [Float<B>; 2] {
        saved.expect("asked for with gradients")
    }

    fn cost(&self, [x, w]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let mut total = Cost::default();
        let mut add = |more: Cost| {
            total.flops += more.flops;
            total.bytes += more.bytes;
        };
        for [start, end] in self.parts(x[0], x[1], w[0]) {
            let rows = end - start;
            let (product, gradients) = linear::cost(&[rows, x[1]], w, self.head.format);
            add(product);
            add(self.loss.cost(&[vec![rows, w[0]]]).0);
            if self.with_gradients {
                add(gradients);
                // The first part's dW is stored; the others are added to it.
                if start > 0 {
                    let weights = (w[0] * w[1]) as f64;
                    add(Cost::new(weights, 3.0 * weights));
                }
            }
        }
        (
            total,
            Cost::nothing("the forward pass computed the gradients"),
        )
    }
}
