//! What the kernels of attention and of the rotary embedding are told: sizes, versions, tables. Plain data; the operations are in
//! `attention.rs` and `rope.rs`.

use burn::tensor::Tensor;

use crate::config::{Attention as Version, KvLayout};

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
