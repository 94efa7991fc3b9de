//! Parameters of the kernels for attention and rotary embedding: sizes, versions, tables. Plain data; the operations are in
//! `attention.rs` and `rope.rs`.

use std::ops::Range;

use burn::tensor::Tensor;
use serde::Serialize;

use super::format::Format;
use protocol::config::{Attention as Version, KvLayout};

/// Sizes of a causal attention with grouped key and value heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
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

    /// Columns of q, k and v.
    pub const fn widths(&self) -> [usize; 3] {
        let narrow = self.kv_heads * self.head_dim;
        [self.heads * self.head_dim, narrow, narrow]
    }

    /// Factor of the scores, 1/√dh.
    pub fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

/// Sizes and version of an attention.
#[derive(Clone, Debug)]
pub struct Attention {
    pub context: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub version: Version,
    pub layout: KvLayout,
    pub format: Format,
    /// [`causal_mask`](super::attention::causal_mask) as `[context, context]`, kept between steps; flash attention needs none.
    pub mask: Option<Tensor<2>>,
    /// The rotation of q and k if the products before it did it ([`NextOperation::Rope`]), in f16 for kernels on matrix cores; gradients then have
    /// the form that those products expect.
    pub rope: Option<Rope>,
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

/// Columns inside a row-major buffer: value (row, column) is at `offset + row·stride + column`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Columns {
    pub offset: usize,
    pub stride: usize,
}

/// q, k and v, or their gradients.
#[derive(Clone, Copy, Debug)]
pub enum QkvRows<T> {
    /// `[n, heads·dh]`, `[n, kv_heads·dh]` and `[n, kv_heads·dh]`.
    Separate([T; 3]),
    /// Side by side in one `[n, (heads + 2·kv_heads)·dh]`.
    Packed(T),
}

impl<T> QkvRows<T> {
    /// The buffer that holds q.
    pub fn first(&self) -> &T {
        let (Self::Separate([first, ..]) | Self::Packed(first)) = self;
        first
    }

    pub fn as_ref(&self) -> QkvRows<&T> {
        match self {
            Self::Separate(all) => QkvRows::Separate(all.each_ref()),
            Self::Packed(one) => QkvRows::Packed(one),
        }
    }

    pub fn as_mut(&mut self) -> QkvRows<&mut T> {
        match self {
            Self::Separate(all) => QkvRows::Separate(all.each_mut()),
            Self::Packed(one) => QkvRows::Packed(one),
        }
    }

    /// Applies `f` to each buffer.
    pub fn map<U>(self, f: impl Fn(T) -> U) -> QkvRows<U> {
        match self {
            Self::Separate(all) => QkvRows::Separate(all.map(f)),
            Self::Packed(one) => QkvRows::Packed(f(one)),
        }
    }

    /// The buffers of q, k and v, and their columns in them.
    pub fn columns(&self, sizes: &Heads) -> [(&T, Columns); 3] {
        let [q, k, v] = sizes.widths();
        match self {
            Self::Separate([of_q, of_k, of_v]) => [(of_q, q), (of_k, k), (of_v, v)]
                .map(|(buffer, stride)| (buffer, Columns { offset: 0, stride })),
            Self::Packed(one) => [0, q, q + k].map(|offset| {
                let stride = q + k + v;
                (one, Columns { offset, stride })
            }),
        }
    }
}

/// Rotates the first `rotated` columns of `[n, w]` as heads of width `head_dim`; the other columns do not change.
#[derive(Clone, Debug)]
pub struct Rope {
    /// cos and sin, `[context, head_dim / 2]` each.
    pub tables: [Tensor<2>; 2],
    pub context: usize,
    pub head_dim: usize,
    pub rotated: usize,
    pub fused: bool,
    /// Format of the products that take its gradient.
    pub format: Format,
}

/// What a product x·Wᵀ on a GPU does with its result before it stores it, in place of a launch: the forward pass of the operation after
/// it, which does its own backward pass. The results are f16 on matrix cores.
#[derive(Clone, Debug, Default)]
pub enum NextOperation {
    #[default]
    Nothing,
    /// Rotates the first columns.
    Rope(Box<Rope>),
    /// The result is gates and ups side by side, `[n, 2f]`. Stores gates, ups and silu(gate)·up stacked, `[3n, f]`.
    Swiglu,
}

/// The columns to rotate, and the rows of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Rotation {
    /// Width of a row.
    pub width: usize,
    /// Number of columns, from the left, that are rotated; a multiple of `head_dim`.
    pub rotated: usize,
    pub head_dim: usize,
    /// Rows per sequence: the position of row n is n mod context.
    pub context: usize,
    /// True if the rotation is by the opposite angle, as in the backward pass.
    pub inverse: bool,
}
