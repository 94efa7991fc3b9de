//! Parameters of the kernels for attention and rotary embedding: sizes, versions, tables. Plain data; the operations are in
//! `attention.rs` and `rope.rs`.

use std::ops::Range;

use burn::tensor::Tensor;
use serde::Serialize;

use super::format::Format;
use protocol::config::{Attention as Version, KvLayout};

/// The sizes of a causal attention with grouped key and value heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Heads {
    pub batch: usize,
    pub context: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
}

impl Heads {
    /// Returns the number of query heads that read one key and value head.
    pub const fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Returns the query heads that read key and value head `kv_head`.
    pub fn queries_of(&self, kv_head: usize) -> Range<usize> {
        kv_head * self.group()..(kv_head + 1) * self.group()
    }

    /// Returns the number of rows of all sequences.
    pub const fn rows(&self) -> usize {
        self.batch * self.context
    }

    /// Returns the number of columns of q, k and v.
    pub const fn widths(&self) -> [usize; 3] {
        let narrow = self.kv_heads * self.head_dim;
        [self.heads * self.head_dim, narrow, narrow]
    }

    /// Returns the factor of the scores, 1/√dh.
    pub fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

/// The sizes and the version of an attention.
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
    /// Returns the sizes for this number of rows.
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

/// The rows of q, k and v, or of their gradients.
#[derive(Clone, Copy, Debug)]
pub enum QkvRows<T> {
    /// Three buffers hold q `[n, heads·dh]`, k `[n, kv_heads·dh]` and v `[n, kv_heads·dh]`.
    Separate([T; 3]),
    /// One buffer `[n, (heads + 2·kv_heads)·dh]` holds the three side by side.
    Packed(T),
}

impl<T> QkvRows<T> {
    /// Returns the buffer that holds q.
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

    /// Returns the buffers of q, k and v, and their columns in these buffers.
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

/// This operation rotates the first `rotated` columns of `[n, w]` as heads of width `head_dim`. The other columns do not change.
#[derive(Clone, Debug)]
pub struct Rope {
    /// The tables are cos and sin, `[context, head_dim / 2]` each.
    pub tables: [Tensor<2>; 2],
    pub context: usize,
    pub head_dim: usize,
    pub rotated: usize,
    pub fused: bool,
    /// This is the format of the products that read the gradient.
    pub format: Format,
}

/// A product x·Wᵀ on a GPU can do the forward pass of the operation after it when it stores its result. This saves a launch. The operation
/// does its own backward pass. The results are f16 on matrix cores.
#[derive(Clone, Debug, Default)]
pub enum NextOperation {
    #[default]
    Nothing,
    /// The product rotates its first columns.
    Rope(Box<Rope>),
    /// The product's result is gates and ups side by side, `[n, 2f]`. It stores gates, ups and silu(gate)·up one below the other, `[3n,
    /// f]`.
    Swiglu,
}

/// A rotation says which columns rotate, and which rows of the tables belong to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Rotation {
    /// This is the width of a row.
    pub width: usize,
    /// This many columns are rotated, from the left; a multiple of `head_dim`.
    pub rotated: usize,
    pub head_dim: usize,
    /// Rows per sequence: the position of row n is n mod context.
    pub context: usize,
    /// This is true if the rotation is by the opposite angle, as in the backward pass.
    pub inverse: bool,
}
