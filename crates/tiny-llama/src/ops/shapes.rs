//! The parameters of attention and rotary embedding, which several operations and their kernels share: sizes, versions, tables. The
//! operations themselves are in `attention.rs` and `rope.rs`.

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
    /// The rotation of q and k, if the products before the attention have done it ([`NextOperation::Rope`]). The attention then rotates the
    /// gradients of q and k back. For kernels on matrix cores, q, k and v are then f16.
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
    /// Returns the buffer that holds q, alone or with k and v.
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
            Self::Separate([q_rows, k_rows, v_rows]) => [(q_rows, q), (k_rows, k), (v_rows, v)]
                .map(|(buffer, stride)| (buffer, Columns { offset: 0, stride })),
            Self::Packed(buffer) => [0, q, q + k].map(|offset| {
                let stride = q + k + v;
                (buffer, Columns { offset, stride })
            }),
        }
    }
}

/// The operation that rotates the first `rotated` columns of `[n, w]` as heads of width `head_dim`. The other columns do not change.
#[derive(Clone, Debug)]
pub struct Rope {
    /// cos and sin of the angles, `[context, head_dim / 2]` each.
    pub tables: [Tensor<2>; 2],
    pub context: usize,
    pub head_dim: usize,
    pub rotated: usize,
    pub fused: bool,
    /// The format of the products that read the gradient.
    pub format: Format,
}

/// The operation after a product x·Wᵀ whose forward pass the product does when it stores its result. This saves a launch on a GPU. The
/// backward pass of the operation stays a launch of its own. On matrix cores the results are f16.
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

/// The columns of a matrix that rotate, and the rows of the tables that belong to its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Rotation {
    /// The number of columns of a row.
    pub width: usize,
    /// The number of columns that are rotated, from the left; a multiple of `head_dim`.
    pub rotated: usize,
    pub head_dim: usize,
    /// The number of rows of a sequence: the position of row n is n mod context.
    pub context: usize,
    /// True if the rotation is by the opposite angle, as in the backward pass.
    pub inverse: bool,
}
