//! The parts of flash attention on the CPU: where the rows of a head are in memory, and the buffers in which a task works.

use crate::ops::cpu::transpose::transpose_serial;
use crate::ops::shapes::{Columns, Heads, QkvRows};

/// The number of queries of a block, and of keys. Two blocks of scores and a block of values fit in a core's first-level cache.
pub(super) const BLOCK: usize = 64;

/// The address of the rows of all heads. Value (b, t, h, d) is at `start + (b·T + t)·row_stride + h·dh + d`.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<P> {
    start: P,
    row_stride: usize,
    pub shape: Heads,
}

// SAFETY: `HeadRows` is only an address. Tasks read values that no task writes, and each writes its own part.
unsafe impl<P> Sync for HeadRows<P> {}

impl<P> HeadRows<P> {
    /// Returns the number of elements before head `head` of row `time` of sequence `batch`.
    fn offset(&self, batch: usize, time: usize, head: usize) -> usize {
        (batch * self.shape.context + time) * self.row_stride + head * self.shape.head_dim
    }
}

impl HeadRows<*mut f32> {
    /// Returns the rows of these columns of a buffer.
    pub(super) fn new(buffer: *mut f32, columns: Columns, shape: Heads) -> Self {
        Self {
            start: buffer.wrapping_add(columns.offset),
            row_stride: columns.stride,
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
    /// Returns the rows of these columns of a buffer, whose length must fit the shape.
    pub(super) fn from_data(data: &[f32], columns: Columns, shape: Heads) -> Self {
        assert_eq!(data.len(), shape.rows() * columns.stride, "{shape:?}");
        Self {
            start: data.as_ptr().wrapping_add(columns.offset),
            row_stride: columns.stride,
            shape,
        }
    }

    /// Returns the rows of queries, keys and values.
    pub(super) fn of_rows(rows: QkvRows<&[f32]>, shape: Heads) -> [Self; 3] {
        assert!(shape.heads.is_multiple_of(shape.kv_heads), "{shape:?}");
        rows.columns(&shape)
            .map(|(data, columns)| Self::from_data(data, columns, shape))
    }

    /// Returns the address of head `head` of row `time` of sequence `batch`.
    fn address(&self, batch: usize, time: usize, head: usize) -> *const f32 {
        self.start.wrapping_add(self.offset(batch, time, head))
    }

    /// Returns the rows of a head from row `time` on, as the factor of a product.
    pub(super) fn factor(
        &self,
        batch: usize,
        time: usize,
        head: usize,
    ) -> (*const f32, (usize, usize)) {
        (self.address(batch, time, head), (self.row_stride, 1))
    }

    /// Returns one row of one head.
    pub(super) fn row(&self, batch: usize, time: usize, head: usize) -> &[f32] {
        // SAFETY: the view was checked against the shape, and nothing writes it while it is read.
        unsafe { std::slice::from_raw_parts(self.address(batch, time, head), self.shape.head_dim) }
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
        let from = unsafe { std::slice::from_raw_parts(self.address(batch, first, head), len) };
        let size = [count, self.shape.head_dim];
        transpose_serial(to, BLOCK, from, self.row_stride, size);
    }
}

/// The buffers in which a task works.
pub(super) struct BlockWorkspace {
    pub scores: Vec<f32>,
    pub dscores: Vec<f32>,
    /// A block of keys, transposed: the head's elements are rows.
    pub keys: Vec<f32>,
    /// A block of values, transposed.
    pub values: Vec<f32>,
    /// The largest score so far of each query head and row.
    pub most: Vec<f32>,
    /// The sum of exponentials so far of each query head and row.
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
