//! What the kernels of attention and of the rotary embedding are told: sizes, versions, tables. Plain data; the operations are in
//! `attention.rs` and `rope.rs`.

use std::ops::Range;

use burn::tensor::Tensor;

use crate::config::{Attention as Version, KvLayout};

/// Sizes of one causal attention with grouped key and value heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heads {
    pub batch: usize,
    pub context: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
}

impl Heads {
    /// Query heads that read one key and value head.
    pub const fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// The query heads that read key and value head `kv_head`.
    pub fn queries_of(&self, kv_head: usize) -> Range<usize> {
        kv_head * self.group()..(kv_head + 1) * self.group()
    }

    /// Rows of all sequences.
    pub const fn rows(&self) -> usize {
        self.batch * self.context
    }

    /// 1/√dh, by which scores are multiplied.
    pub fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

/// Sizes and version of one attention.
#[derive(Clone, Debug)]
pub struct Attention {
    pub context: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub version: Version,
    pub layout: KvLayout,
    /// [`causal_mask`](super::attention::causal_mask) as `[context, context]`, kept from step to step; flash attention needs none.
    pub mask: Option<Tensor<2>>,
}

impl Attention {
    /// The sizes for this number of rows.
    pub fn sizes(&self, rows: usize) -> Heads {
        Heads {
            batch: rows / self.context,
            context: self.context,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
        }
    }
}

/// A kernel's view of q, k and v: three buffers, or one buffer three times, with the column where each begins.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    pub q: T,
    pub k: T,
    pub v: T,
    /// First column of q, k and v in their buffers.
    pub offsets: [usize; 3],
    /// True when the three are one buffer and the gradient is wanted in the same form.
    pub packed: bool,
}

/// Rotates the first `rotated` columns of `[n, w]` as heads of width `head_dim`; the rest passes through.
#[derive(Clone, Debug)]
pub struct Rope {
    /// cos and sin, `[context, head_dim / 2]` each.
    pub tables: [Tensor<2>; 2],
    pub context: usize,
    pub head_dim: usize,
    pub rotated: usize,
    pub fused: bool,
}
