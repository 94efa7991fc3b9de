//! The backward pass of flash attention on the CPU. Probabilities are not stored; each block is recomputed from `lse`. A task has one key and
//! value head, so the sums over the query heads that share it have a fixed order.

use rayon::prelude::*;

use crate::ops::attention::fused_cpu::blocks::{BLOCK, BlockWorkspace, HeadRows};
use crate::ops::cpu::exp::exp;
use crate::ops::cpu::reduce::sum2;
use crate::ops::cpu::zeros;
use crate::ops::linear::fused_cpu::multiply;
use crate::ops::shapes::{Columns, Heads, QkvRows};

/// Returns the gradients of [`forward`](crate::ops::attention::fused_cpu::forward) in the form of `rows`, from its inputs, its outputs and
/// `dout`, B·T × H·dh.
///
/// With P the probabilities: `dv = Pᵀ·dout`, `dP = dout·vᵀ`, `dS = P·(dP - Σ dout·out) / √dh`, `dq = dS·k`, `dk = dSᵀ·q`.
pub(crate) fn backward(
    rows: QkvRows<&[f32]>,
    out: &[f32],
    lse: &[f32],
    dout: &[f32],
    shape: Heads,
) -> QkvRows<Vec<f32>> {
    let from = HeadRows::of_rows(rows, shape);
    assert_eq!(lse.len(), shape.rows() * shape.heads);
    let mut gradients = rows.map(|x| zeros(x.len()));
    let starts = gradients.as_mut().map(|x| x.as_mut_ptr());
    let dense = Columns {
        offset: 0,
        stride: shape.heads * shape.head_dim,
    };
    let context = Backward {
        to: starts
            .columns(&shape)
            .map(|(start, columns)| HeadRows::new(*start, columns, shape)),
        from,
        out: HeadRows::from_data(out, dense, shape),
        dout: HeadRows::from_data(dout, dense, shape),
        lse,
        shape,
    };
    (0..shape.batch * shape.kv_heads)
        .into_par_iter()
        .for_each_init(
            || BlockWorkspace::new(shape),
            |workspace, index| {
                context.compute_kv_head(workspace, index / shape.kv_heads, index % shape.kv_heads);
            },
        );
    gradients
}

/// The inputs and outputs of the backward pass.
struct Backward<'a> {
    /// dq, dk and dv.
    to: [HeadRows<*mut f32>; 3],
    /// q, k and v.
    from: [HeadRows<*const f32>; 3],
    out: HeadRows<*const f32>,
    dout: HeadRows<*const f32>,
    lse: &'a [f32],
    shape: Heads,
}

impl Backward<'_> {
    /// Computes the gradients of one key and value head, and of its query heads.
    fn compute_kv_head(&self, workspace: &mut BlockWorkspace, batch: usize, kv_head: usize) {
        let time = self.shape.context;
        let [_, k, v] = &self.from;
        let delta: Vec<f32> = self
            .shape
            .queries_of(kv_head)
            .flat_map(|head| self.delta(batch, head))
            .collect();
        for key in (0..time).step_by(BLOCK) {
            let keys = BLOCK.min(time - key);
            k.copy_transposed(&mut workspace.keys, (batch, key, kv_head), keys);
            v.copy_transposed(&mut workspace.values, (batch, key, kv_head), keys);
            for (index, head) in self.shape.queries_of(kv_head).enumerate() {
                for query in (key..time).step_by(BLOCK) {
                    let block_delta = &delta[index * time..][query..time];
                    let heads = (batch, head, kv_head);
                    let adds = index > 0 || query > key;
                    self.compute_block(workspace, block_delta, heads, (query, key), adds);
                }
            }
        }
    }

    /// Returns `Σ dout · out` of each row of one head.
    fn delta(&self, batch: usize, head: usize) -> impl Iterator<Item = f32> {
        (0..self.shape.context).map(move |time| {
            dot(
                self.dout.row(batch, time, head),
                self.out.row(batch, time, head),
            )
        })
    }

    /// Computes the share of one block of queries and one block of keys in all gradients. With `adds`, the gradients of keys and values are
    /// added to earlier ones; without it they are the first.
    fn compute_block(
        &self,
        workspace: &mut BlockWorkspace,
        delta: &[f32],
        (batch, head, kv_head): (usize, usize, usize),
        (query, key): (usize, usize),
        adds: bool,
    ) {
        let BlockWorkspace {
            scores,
            dscores,
            keys: transposed_keys,
            values: transposed_values,
            ..
        } = workspace;
        let time = self.shape.context;
        let width = self.shape.head_dim;
        let [queries, keys] = [query, key].map(|first| BLOCK.min(time - first));
        let [dq, dk, dv] = &self.to;
        let [q, k, _] = &self.from;
        // SAFETY of all products: the views were checked against the shape; only this task writes this key head and its query heads.
        let to_block = |a: &HeadRows<*const f32>, transposed: &[f32], out: &mut [f32]| unsafe {
            multiply(
                [queries, keys, width],
                a.factor(batch, query, head),
                (transposed.as_ptr(), (BLOCK, 1)),
                (out.as_mut_ptr(), BLOCK),
                false,
            );
        };
        let to_keys = |block: &[f32], b: &HeadRows<*const f32>, out: &HeadRows<*mut f32>| unsafe {
            multiply(
                [keys, width, queries],
                (block.as_ptr(), (1, BLOCK)),
                b.factor(batch, query, head),
                out.result(batch, key, kv_head),
                adds,
            );
        };
        let lse = &self.lse[(batch * self.shape.heads + head) * time + query..][..queries];
        to_block(q, transposed_keys, scores);
        to_block(&self.dout, transposed_values, dscores);
        let scale = self.shape.scale();
        softmax_backward(scores, dscores, lse, delta, keys, query == key, scale);
        to_keys(scores, &self.dout, dv);
        to_keys(dscores, q, dk);
        // SAFETY: as above.
        unsafe {
            multiply(
                [queries, width, keys],
                (dscores.as_ptr(), (BLOCK, 1)),
                k.factor(batch, key, kv_head),
                dq.result(batch, query, head),
                key > 0,
            );
        }
    }
}

simd! {
    /// Replaces scores by probabilities, and gradients of probabilities by gradients of scores.
    fn softmax_backward(
        scores: &mut [f32],
        dscores: &mut [f32],
        lse: &[f32],
        delta: &[f32],
        keys: usize,
        diagonal: bool,
        scale: f32,
    ) {
        let (scores, _) = scores.as_chunks_mut::<BLOCK>();
        let (dscores, _) = dscores.as_chunks_mut::<BLOCK>();
        let rows = scores.iter_mut().zip(dscores).zip(lse).zip(delta);
        for (row, (((scores, dscores), lse), delta)) in rows.enumerate() {
            let visible = if diagonal { row + 1 } else { keys };
            scores[visible..].fill(f32::NEG_INFINITY);
            for (score, dscore) in scores.iter_mut().zip(dscores) {
                *score = exp(*score * scale - lse);
                *dscore = *score * (*dscore - delta) * scale;
            }
        }
    }
}

simd! {
    fn dot(a: &[f32], b: &[f32]) -> f32 {
        sum2::<L>(a, b, |a, b| a * b)
    }
}
