//! The backward pass of blocked attention. Probabilities are not stored; each block is recomputed from `lse`.
//! A task owns one key and value head, so sums over the query heads that share it have a fixed order.

use rayon::prelude::*;

use super::super::matmul::{Product, Write};
use super::super::{exp, sum2, zeros};
use super::blocks::{BLOCK, BlockWorkspace, HeadRows};
use crate::ops::shapes::{Columns, Heads, Rows};

/// The gradients of [`forward`](super::forward) in the form of `rows`, from its inputs, its outputs and `dout`, B·T × H·dh.
///
/// With P the probabilities: `dv = Pᵀ·dout`, `dP = dout·vᵀ`, `dS = P·(dP - Σ dout·out) / √dh`, `dq = dS·k`, `dk = dSᵀ·q`.
pub fn backward(
    rows: Rows<&[f32]>,
    out: &[f32],
    lse: &[f32],
    dout: &[f32],
    shape: Heads,
) -> Rows<Vec<f32>> {
    let from = HeadRows::of_rows(rows, shape);
    assert_eq!(lse.len(), shape.rows() * shape.heads);
    let mut gradients = rows.map(|x| zeros(x.len()));
    let starts = gradients.as_mut().map(|x| x.as_mut_ptr());
    let dense = Columns {
        offset: 0,
        stride: shape.heads * shape.head_dim,
    };
    let context = Backward {
        to: starts.columns(&shape).map(|(start, at)| HeadRows {
            start: start.wrapping_add(at.offset),
            row_stride: at.stride,
            shape,
        }),
        from,
        out: HeadRows::new(out, dense, shape),
        dout: HeadRows::new(dout, dense, shape),
        lse,
        shape,
    };
    (0..shape.batch * shape.kv_heads)
        .into_par_iter()
        .for_each_init(
            || BlockWorkspace::new(shape),
            |workspace, index| {
                context.kv_head(workspace, index / shape.kv_heads, index % shape.kv_heads);
            },
        );
    gradients
}

/// Inputs and outputs of the backward pass.
struct Backward<'a> {
    to: [HeadRows<*mut f32>; 3],
    from: [HeadRows<*const f32>; 3],
    out: HeadRows<*const f32>,
    dout: HeadRows<*const f32>,
    lse: &'a [f32],
    shape: Heads,
}

impl Backward<'_> {
    /// The gradients of one key and value head, and of its query heads.
    fn kv_head(&self, workspace: &mut BlockWorkspace, batch: usize, kv_head: usize) {
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
                    let write = if index == 0 && query == key {
                        Write::Replace
                    } else {
                        Write::Add
                    };
                    let delta = &delta[index * time..][query..time];
                    self.block(
                        workspace,
                        delta,
                        (batch, head, kv_head),
                        (query, key),
                        write,
                    );
                }
            }
        }
    }

    /// `Σ dout · out` over each row of one head.
    fn delta(&self, batch: usize, head: usize) -> impl Iterator<Item = f32> {
        (0..self.shape.context).map(move |time| {
            dot(
                self.dout.row(batch, time, head),
                self.out.row(batch, time, head),
            )
        })
    }

    /// One block of queries and one block of keys; `write` applies to the gradients of keys and values.
    fn block(
        &self,
        workspace: &mut BlockWorkspace,
        delta: &[f32],
        (batch, head, kv_head): (usize, usize, usize),
        (query, key): (usize, usize),
        write: Write,
    ) {
        let BlockWorkspace {
            scores,
            dscores,
            keys: turned_keys,
            values: turned_values,
            ..
        } = workspace;
        let time = self.shape.context;
        let (queries, keys, width) = (
            BLOCK.min(time - query),
            BLOCK.min(time - key),
            self.shape.head_dim,
        );
        let [dq, dk, dv] = &self.to;
        let [q, k, _] = &self.from;
        let to_block = |a: &HeadRows<*const f32>, transposed: &[f32], out: &mut [f32]| Product {
            m: queries,
            n: keys,
            k: width,
            a: a.at(batch, query, head),
            a_strides: (a.row_stride, 1),
            b: transposed.as_ptr(),
            b_strides: (BLOCK, 1),
            out: out.as_mut_ptr(),
            out_stride: BLOCK,
            write: Write::Replace,
        };
        let to_keys = |block: &[f32], b: &HeadRows<*const f32>, out: &HeadRows<*mut f32>| Product {
            m: keys,
            n: width,
            k: queries,
            a: block.as_ptr(),
            a_strides: (1, BLOCK),
            b: b.at(batch, query, head),
            b_strides: (b.row_stride, 1),
            out: out.at(batch, key, kv_head),
            out_stride: out.row_stride,
            write,
        };
        let lse = &self.lse[(batch * self.shape.heads + head) * time + query..][..queries];
        // SAFETY: the views were checked against the shape; only this task writes this key head and its query heads.
        unsafe {
            to_block(q, turned_keys, scores).run();
            to_block(&self.dout, turned_values, dscores).run();
            softmax_backward(
                scores,
                dscores,
                lse,
                delta,
                keys,
                query == key,
                self.shape.scale(),
            );
            to_keys(scores, &self.dout, dv).run();
            to_keys(dscores, q, dk).run();
            let to_queries = Product {
                m: queries,
                n: width,
                k: keys,
                a: dscores.as_ptr(),
                a_strides: (BLOCK, 1),
                b: k.at(batch, key, kv_head),
                b_strides: (k.row_stride, 1),
                out: dq.at(batch, query, head),
                out_stride: dq.row_stride,
                write: if key == 0 { Write::Replace } else { Write::Add },
            };
            to_queries.run();
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
        let ((scores, _), (dscores, _)) = (scores.as_chunks_mut::<BLOCK>(), dscores.as_chunks_mut::<BLOCK>());
        for (row, (((scores, dscores), lse), delta)) in scores.iter_mut().zip(dscores).zip(lse).zip(delta).enumerate()
        {
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
