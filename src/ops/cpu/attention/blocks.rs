//! Where the heads of an attention lie in memory, and what a task of the blocked attention works in.

use super::super::transpose::transpose_serial;
use crate::ops::shapes::Heads;

/// Queries and keys in one block: two blocks of scores and a block of values fit in a core's first-level cache.
pub(super) const BLOCK: usize = 64;

/// Panics if heads do not divide, or a view ends past its buffer.
pub(super) fn check(shape: Heads, [q, k, v]: [View; 3]) {
    assert!(
        shape.kv_heads > 0 && shape.heads.is_multiple_of(shape.kv_heads),
        "{shape:?}"
    );
    q.check(shape, shape.heads);
    k.check(shape, shape.kv_heads);
    v.check(shape, shape.kv_heads);
}

/// Heads inside a buffer of rows: element (b, t, h, d) is `data[offset + (b·T + t)·row_stride + h·dh + d]`.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The buffer.
    pub data: &'a [f32],
    /// Where the first head of the first row starts.
    pub offset: usize,
    /// Elements between rows.
    pub row_stride: usize,
}

impl<'a> View<'a> {
    /// Heads that fill their buffer.
    #[must_use]
    pub fn separate(data: &'a [f32], shape: Heads, heads: usize) -> Self {
        assert_eq!(data.len(), shape.rows() * heads * shape.head_dim);
        Self {
            data,
            offset: 0,
            row_stride: heads * shape.head_dim,
        }
    }

    /// The queries, keys and values of one buffer of B·T × (H + 2·KV)·dh.
    #[must_use]
    pub fn packed(data: &'a [f32], shape: Heads) -> [Self; 3] {
        let (heads, kv_heads, head_dim) = (shape.heads, shape.kv_heads, shape.head_dim);
        let row_stride = (heads + 2 * kv_heads) * head_dim;
        assert_eq!(data.len(), shape.rows() * row_stride);
        [0, heads * head_dim, (heads + kv_heads) * head_dim].map(|offset| Self {
            data,
            offset,
            row_stride,
        })
    }

    fn check(self, shape: Heads, heads: usize) {
        assert!(
            heads * shape.head_dim <= self.row_stride || shape.rows() <= 1,
            "rows overlap: {shape:?}"
        );
        if shape.rows() > 0 {
            let end = self.offset + (shape.rows() - 1) * self.row_stride + heads * shape.head_dim;
            assert!(
                end <= self.data.len(),
                "{end} elements of {}",
                self.data.len()
            );
        }
    }

    pub(super) fn place(self, shape: Heads) -> Place<*const f32> {
        Place {
            start: self.data.as_ptr().wrapping_add(self.offset),
            row_stride: self.row_stride,
            shape,
        }
    }
}

/// A raw place of heads, shared by tasks.
#[derive(Clone, Copy)]
pub(super) struct Place<P> {
    pub start: P,
    pub row_stride: usize,
    pub shape: Heads,
}

#[expect(unsafe_code, reason = "tasks share the views")]
// SAFETY: a `Place` is only a place; the tasks read what nothing writes, and write parts of their own.
unsafe impl<P> Sync for Place<P> {}

impl Place<*const f32> {
    /// Head `head` of row `time` of sequence `batch`.
    pub fn at(&self, batch: usize, time: usize, head: usize) -> *const f32 {
        self.start.wrapping_add(
            (batch * self.shape.context + time) * self.row_stride + head * self.shape.head_dim,
        )
    }

    /// One row of one head.
    pub fn row(&self, batch: usize, time: usize, head: usize) -> &[f32] {
        #[expect(unsafe_code, reason = "views are kept as raw places")]
        // SAFETY: the view was checked against the shape, and nothing writes it while the place is used.
        unsafe {
            std::slice::from_raw_parts(self.at(batch, time, head), self.shape.head_dim)
        }
    }

    /// Copies `count` rows of one head to the columns of `to`, whose rows are [`BLOCK`] long.
    pub fn turn(&self, to: &mut [f32], (batch, first, head): (usize, usize, usize), count: usize) {
        let len = (count - 1) * self.row_stride + self.shape.head_dim;
        #[expect(unsafe_code, reason = "views are kept as raw places")]
        // SAFETY: as in `row`; the last row ends inside the view.
        let from = unsafe { std::slice::from_raw_parts(self.at(batch, first, head), len) };
        transpose_serial(
            to,
            BLOCK,
            from,
            self.row_stride,
            [count, self.shape.head_dim],
        );
    }
}

impl Place<*mut f32> {
    /// Head `head` of row `time` of sequence `batch`.
    pub fn at(&self, batch: usize, time: usize, head: usize) -> *mut f32 {
        self.start.wrapping_add(
            (batch * self.shape.context + time) * self.row_stride + head * self.shape.head_dim,
        )
    }
}

/// What one task needs besides the views.
pub(super) struct Workspace {
    pub scores: Vec<f32>,
    pub dscores: Vec<f32>,
    /// A block of keys, and one of values, with the head's elements as rows.
    pub keys: Vec<f32>,
    pub values: Vec<f32>,
    /// Per query head and row: the largest score so far and the sum of exponentials.
    pub most: Vec<f32>,
    pub total: Vec<f32>,
}

impl Workspace {
    pub fn new(shape: Heads) -> Self {
        let group = shape.heads / shape.kv_heads;
        Self {
            scores: vec![0.0; BLOCK * BLOCK],
            dscores: vec![0.0; BLOCK * BLOCK],
            keys: vec![0.0; shape.head_dim * BLOCK],
            values: vec![0.0; shape.head_dim * BLOCK],
            most: vec![0.0; group * BLOCK],
            total: vec![0.0; group * BLOCK],
        }
    }
}
