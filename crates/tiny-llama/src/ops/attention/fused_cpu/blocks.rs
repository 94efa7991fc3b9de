//! Addresses of attention heads in memory, and the workspace of a task of blocked attention.

use crate::ops::cpu::transpose::transpose_serial;
use crate::ops::shapes::{Columns, Heads, QkvRows};

/// A block has this many queries and keys. Two blocks of scores and a block of values fit in a core's first-level cache.
pub(super) const BLOCK: usize = 64;

/// The address of heads, which tasks share. Value (b, t, h, d) is at `start + (b·T + t)·row_stride + h·dh + d`.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<P> {
    start: P,
    row_stride: usize,
    pub shape: Heads,
}

// SAFETY: `HeadRows` is only an address; tasks read what nothing writes, and write their own parts.
unsafe impl<P> Sync for HeadRows<P> {}

impl<P> HeadRows<P> {
    /// Returns the number of elements before head `head` of row `time` of sequence `batch`.
    fn offset(&self, batch: usize, time: usize, head: usize) -> usize {
        (batch * self.shape.context + time) * self.row_stride + head * self.shape.head_dim
    }
}

impl HeadRows<*mut f32> {
    /// Returns the address of heads in a buffer that starts at `buffer`.
    pub(super) fn new(buffer: *mut f32, at: Columns, shape: Heads) -> Self {
        Self {
            start: buffer.wrapping_add(at.offset),
            row_stride: at.stride,
            shape,
        }
    }

    /// Returns the rows of a head from row `time` on, as the result of a product.
    pub(super) fn result(&self, batch: usize, time: usize, head: usize) -> (*mut f32, usize) {
        let start = self.start.wrapping_add(self.offset(batch, time, head));
        (start, self.row_stride)
    }
}

impl HeadRows<*const f32> {
    pub(super) fn from_data(data: &[f32], at: Columns, shape: Heads) -> Self {
        assert_eq!(data.len(), shape.rows() * at.stride, "{shape:?}");
        Self {
            start: data.as_ptr().wrapping_add(at.offset),
            row_stride: at.stride,
            shape,
        }
    }

    /// Returns the addresses of queries, keys and values.
    pub(super) fn of_rows(rows: QkvRows<&[f32]>, shape: Heads) -> [Self; 3] {
        assert!(shape.heads.is_multiple_of(shape.kv_heads), "{shape:?}");
        rows.columns(&shape)
            .map(|(data, at)| Self::from_data(data, at, shape))
    }

    /// Returns head `head` of row `time` of sequence `batch`.
    fn at(&self, batch: usize, time: usize, head: usize) -> *const f32 {
        self.start.wrapping_add(self.offset(batch, time, head))
    }

    /// Returns the rows of a head from row `time` on, as the factor of a product.
    pub(super) fn factor(
        &self,
        batch: usize,
        time: usize,
        head: usize,
    ) -> (*const f32, (usize, usize)) {
        (self.at(batch, time, head), (self.row_stride, 1))
    }

    /// Returns one row of one head.
    pub(super) fn row(&self, batch: usize, time: usize, head: usize) -> &[f32] {
        // SAFETY: the view was checked against the shape, and nothing writes it while it is read.
        unsafe { std::slice::from_raw_parts(self.at(batch, time, head), self.shape.head_dim) }
    }

    /// Copies `count` rows of one head to the columns of `to`, whose rows are [`BLOCK`] long.
    pub(super) fn copy_transposed(
        &self,
        to: &mut [f32],
        (batch, first, head): (usize, usize, usize),
        count: usize,
    ) {
        let len = (count - 1) * self.row_stride + self.shape.head_dim;
        // SAFETY: as in `row`; the last row ends inside the view.
        let from = unsafe { std::slice::from_raw_parts(self.at(batch, first, head), len) };
        let size = [count, self.shape.head_dim];
        transpose_serial(to, BLOCK, from, self.row_stride, size);
    }
}

/// A task works in these buffers.
pub(super) struct BlockWorkspace {
    pub scores: Vec<f32>,
    pub dscores: Vec<f32>,
    /// These are a block of keys and a block of values, with the head's elements as rows.
    pub keys: Vec<f32>,
    pub values: Vec<f32>,
    /// For each query head and row, these are the largest score so far and the sum of exponentials.
    pub most: Vec<f32>,
    pub total: Vec<f32>,
}

impl BlockWorkspace {
    pub(super) fn new(shape: Heads) -> Self {
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
