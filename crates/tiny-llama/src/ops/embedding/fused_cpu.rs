//! The embedding on the CPU: copies of the table's rows by token number, and sums of the rows' gradients in a fixed order.

use super::FusedEmbedding;
use crate::ops::Float;
use crate::ops::backend::Ints;
use crate::ops::cpu::{add, filled, integers, rows_per_task, tensor, values};
use crate::ops::shared_work::SharedWork;
use burn::backend::{Flex, TensorMetadata as _};

type T = Float<Flex>;

impl FusedEmbedding for Flex {
    /// Computes `out[n] = weight[tokens[n]]`.
    fn forward(weight: T, tokens: Ints<Self>, _: &SharedWork) -> T {
        let width = weight.shape()[1];
        let tokens = integers(tokens);
        let table = values(&weight);
        let rows = rows_per_task(width);
        let out = filled(tokens.len() * width, rows * width, |task, out| {
            let task_tokens = &tokens[task * rows..];
            for (out, token) in out.chunks_exact_mut(width).zip(task_tokens) {
                let row = usize::try_from(*token).expect("a token number is not negative");
                out.copy_from_slice(&table[row * width..][..width]);
            }
        });
        tensor(out, [tokens.len(), width])
    }

    fn backward(weight: T, tokens: Ints<Self>, dy: T) -> T {
        let shape = weight.shape();
        let dw = backward(values(&dy), &integers(tokens), shape.dims());
        tensor(dw, shape)
    }
}

/// Returns `dw[v] = Σ dy[n]` over all n with `tokens[n] = v`, which is zero if there are none; dy is N × D, dw V × D. Every task has a range of
/// table rows and searches all tokens for them, so no two tasks write one row.
pub(crate) fn backward(dy: &[f32], tokens: &[i32], [vocabulary, width]: [usize; 2]) -> Vec<f32> {
    assert_eq!(dy.len(), tokens.len() * width);
    for token in tokens {
        assert!(
            usize::try_from(*token).is_ok_and(|token| token < vocabulary),
            "token {token} of {vocabulary}"
        );
    }
    // Every task searches all tokens. With at most 64 tasks the search is short compared with the additions.
    let rows = rows_per_task(width).max(vocabulary.div_ceil(64));
    filled(vocabulary * width, rows * width, |task, dw| {
        let first = task * rows;
        let owned = dw.len() / width;
        for (token, dy) in tokens.iter().zip(dy.chunks_exact(width)) {
            let row = (*token as usize).wrapping_sub(first);
            if row < owned {
                add(&mut dw[row * width..][..width], dy);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(expected = "token 5 of 5")]
    fn a_token_outside_the_table_is_refused() {
        super::backward(&[0.0; 2], &[5], [5, 2]);
    }
}
