//! Stage 2's kernel on the CPU: causal grouped-query attention for any strides, with all scores of one head in memory. It is fast only if
//! neighbouring elements are adjacent in memory.

use super::{Attention, NaiveAttention};
use crate::ops::Float;
use crate::ops::cpu::exp::exp;
use crate::ops::cpu::reduce::{max, sum, sum2};
use crate::ops::cpu::{SharedSlice, strides, tensor};
use burn::backend::{Flex, TensorMetadata as _};
use protocol::config::KvLayout;
use rayon::prelude::*;

type T = Float<Flex>;

impl NaiveAttention for Flex {
    /// Computes `out = softmax(q · kᵀ / √dh) · v` over the keys up to each query's own position.
    fn forward(qkv: [T; 3], a: &Attention) -> T {
        let [batches, heads, time, head_dim] = qkv[0].shape().dims();
        let shape = a.sizes(batches * time);
        let qkv = match a.layout {
            KvLayout::Contiguous => qkv.map(|view| view.to_contiguous()),
            KvLayout::Strided | KvLayout::Assumed => qkv,
        };
        let [q, k, v] = qkv
            .each_ref()
            .map(|view| Strided::from_view(view, a.layout));
        let mut result = vec![0.0; shape.rows() * heads * head_dim];
        let out = SharedSlice::new(&mut result);
        (0..batches * heads).into_par_iter().for_each(|index| {
            let (batch, head) = (index / heads, index % heads);
            let kv_head = head / shape.group();
            let head_q = q.head(batch, head);
            let [head_k, head_v] = [k, v].map(|rows| rows.head(batch, kv_head));
            let mut scores = vec![0.0; time * time];
            for (query, row) in scores.chunks_exact_mut(time).enumerate() {
                score(&mut row[..=query], head_q, head_k, head_dim);
            }
            for (query, row) in scores.chunks_exact_mut(time).enumerate() {
                softmax(&mut row[..=query]);
            }
            for (query, row) in scores.chunks_exact(time).enumerate() {
                let start = ((batch * time + query) * heads + head) * head_dim;
                // SAFETY: only this task writes this row of this head.
                let out = unsafe { out.part(start, head_dim) };
                mix(out, &row[..=query], head_v);
            }
        });
        tensor(result, [shape.rows(), heads * head_dim])
    }
}

/// Heads anywhere in a buffer. Element (b, t, h, d) is `data[offset + b·sb + t·st + h·sh + d·sd]`.
#[derive(Clone, Copy, Debug)]
struct Strided<'a> {
    data: &'a [f32],
    /// The index of element (0, 0, 0, 0).
    offset: usize,
    /// The distances between neighbours along b, t, h and d.
    strides: [usize; 4],
}

impl<'a> Strided<'a> {
    /// Returns the heads as the kernel reads a `[b, h, t, dh]` view.
    fn from_view(view: &'a T, layout: KvLayout) -> Self {
        let (offset, strides) = if layout == KvLayout::Strided {
            (view.layout().start_offset(), strides(view))
        } else {
            // The strides of a contiguous [b, h, t, dh] are right for a copy and wrong for a view.
            let [_, h, t, dh] = view.shape().dims();
            (0, vec![h * t * dh, t * dh, dh, 1])
        };
        Self {
            data: view.storage::<f32>(),
            offset,
            strides: [strides[0], strides[2], strides[1], strides[3]],
        }
    }

    /// Returns one head of one sequence.
    fn head(&self, batch: usize, head: usize) -> Head<'a> {
        let [sb, st, sh, sd] = self.strides;
        Head {
            data: &self.data[self.offset + batch * sb + head * sh..],
            st,
            sd,
        }
    }
}

/// One head of one sequence. Element (t, d) is `data[t · st + d · sd]`.
#[derive(Clone, Copy)]
struct Head<'a> {
    data: &'a [f32],
    st: usize,
    sd: usize,
}

simd! {
    /// Writes the scores of the last query of `row` with each key up to its position.
    fn score(row: &mut [f32], q: Head, k: Head, head_dim: usize) {
        let query = &q.data[(row.len() - 1) * q.st..];
        for (key, score) in row.iter_mut().enumerate() {
            let key = &k.data[key * k.st..];
            // Only adjacent elements can be loaded as vectors.
            let product = if q.sd == 1 && k.sd == 1 {
                sum2::<L>(&query[..head_dim], &key[..head_dim], |q, k| q * k)
            } else {
                (0..head_dim).map(|d| query[d * q.sd] * key[d * k.sd]).sum()
            };
            *score = product / (head_dim as f32).sqrt();
        }
    }
}

simd! {
    /// Replaces scores by probabilities.
    fn softmax(scores: &mut [f32]) {
        let most = max::<L>(scores);
        for score in scores.iter_mut() {
            *score = exp(*score - most);
        }
        let total = sum::<L>(scores, |x| x);
        for score in scores.iter_mut() {
            *score /= total;
        }
    }
}

simd! {
    /// Writes the sum of a head's values, weighted by probabilities, to `out`.
    fn mix(out: &mut [f32], probabilities: &[f32], v: Head) {
        out.fill(0.0);
        for (key, probability) in probabilities.iter().enumerate() {
            let value = &v.data[key * v.st..];
            if v.sd == 1 {
                for (out, value) in out.iter_mut().zip(value) {
                    *out += probability * value;
                }
            } else {
                for (d, out) in out.iter_mut().enumerate() {
                    *out += probability * value[d * v.sd];
                }
            }
        }
    }
}
