//! Causal grouped-query attention in blocks with an online softmax, forward and backward.
//! Memory grows with T, not with T²: scores exist one block at a time, and the backward pass computes them again.
//! Dao et al., "`FlashAttention`", 2022. The plain way, with all scores in memory, is `strided_attention`.

mod backward;

use std::ops::Range;

pub use backward::{Gradients, backward};

use rayon::prelude::*;

use super::matmul::{Product, Write};
use super::reduce::STEP;
use super::transpose::transpose_serial;
use super::{Shared, exp, max, sum};

/// Queries and keys in one block: two blocks of scores and a block of values fit in a core's first-level cache.
const BLOCK: usize = 64;

/// The sizes of one attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sequences.
    pub batch: usize,
    /// Positions in a sequence (T).
    pub time: usize,
    /// Query heads (H).
    pub heads: usize,
    /// Key and value heads (KV); each serves `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Elements in a head (dh).
    pub head_dim: usize,
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

impl Shape {
    fn check(self) {
        assert!(
            self.kv_heads > 0 && self.heads.is_multiple_of(self.kv_heads),
            "{self:?}"
        );
    }

    fn rows(self) -> usize {
        self.batch * self.time
    }

    /// The query heads that read key and value head `kv_head`.
    fn group(self, kv_head: usize) -> Range<usize> {
        let group = self.heads / self.kv_heads;
        kv_head * group..(kv_head + 1) * group
    }

    fn scale(self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

impl<'a> View<'a> {
    /// Heads that fill their buffer.
    #[must_use]
    pub fn separate(data: &'a [f32], shape: Shape, heads: usize) -> Self {
        assert_eq!(data.len(), shape.rows() * heads * shape.head_dim);
        Self {
            data,
            offset: 0,
            row_stride: heads * shape.head_dim,
        }
    }

    /// The queries, keys and values of one buffer of B·T × (H + 2·KV)·dh.
    #[must_use]
    pub fn packed(data: &'a [f32], shape: Shape) -> [Self; 3] {
        let (heads, kv_heads, head_dim) = (shape.heads, shape.kv_heads, shape.head_dim);
        let row_stride = (heads + 2 * kv_heads) * head_dim;
        assert_eq!(data.len(), shape.rows() * row_stride);
        [0, heads * head_dim, (heads + kv_heads) * head_dim].map(|offset| Self {
            data,
            offset,
            row_stride,
        })
    }

    fn check(self, shape: Shape, heads: usize) {
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

    fn place(self, shape: Shape) -> Place<*const f32> {
        Place {
            start: self.data.as_ptr().wrapping_add(self.offset),
            row_stride: self.row_stride,
            shape,
        }
    }
}

/// A raw place of heads, shared by tasks.
#[derive(Clone, Copy)]
struct Place<P> {
    start: P,
    row_stride: usize,
    shape: Shape,
}

#[expect(unsafe_code, reason = "tasks share the views")]
// SAFETY: a `Place` is only a place; the tasks read what nothing writes, and write parts of their own.
unsafe impl<P> Sync for Place<P> {}

impl Place<*const f32> {
    /// Head `head` of row `time` of sequence `batch`.
    fn at(&self, batch: usize, time: usize, head: usize) -> *const f32 {
        self.start.wrapping_add(
            (batch * self.shape.time + time) * self.row_stride + head * self.shape.head_dim,
        )
    }

    /// One row of one head.
    fn row(&self, batch: usize, time: usize, head: usize) -> &[f32] {
        #[expect(unsafe_code, reason = "views are kept as raw places")]
        // SAFETY: the view was checked against the shape, and nothing writes it while the place is used.
        unsafe {
            std::slice::from_raw_parts(self.at(batch, time, head), self.shape.head_dim)
        }
    }

    /// Copies `count` rows of one head to the columns of `to`, whose rows are [`BLOCK`] long.
    fn turn(&self, to: &mut [f32], (batch, first, head): (usize, usize, usize), count: usize) {
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
    fn at(&self, batch: usize, time: usize, head: usize) -> *mut f32 {
        self.start.wrapping_add(
            (batch * self.shape.time + time) * self.row_stride + head * self.shape.head_dim,
        )
    }
}

/// `out = softmax(q · kᵀ / √dh) · v` over the keys up to each query's own position.
///
/// out is B·T × H·dh. `lse`, B × H × T, is the logarithm of the sum of exponentials, for the backward pass.
///
/// # Panics
/// If the buffers do not fit the shape.
pub fn forward(out: &mut [f32], lse: &mut [f32], shape: Shape, q: View, k: View, v: View) {
    shape.check();
    q.check(shape, shape.heads);
    k.check(shape, shape.kv_heads);
    v.check(shape, shape.kv_heads);
    assert_eq!(
        (out.len(), lse.len()),
        (
            shape.rows() * shape.heads * shape.head_dim,
            shape.rows() * shape.heads
        )
    );
    let row_stride = shape.heads * shape.head_dim;
    let out = Place {
        start: out.as_mut_ptr(),
        row_stride,
        shape,
    };
    let (q, k, v) = (q.place(shape), k.place(shape), v.place(shape));
    let lse = Shared::new(lse);
    let blocks = shape.time.div_ceil(BLOCK);
    let tasks = (0..shape.batch * shape.kv_heads * blocks).into_par_iter();
    tasks.for_each_init(
        || Workspace::new(shape),
        |workspace, index| {
            let (batch, kv_head) = (
                index / blocks / shape.kv_heads,
                index / blocks % shape.kv_heads,
            );
            forward_block(
                &out,
                lse,
                [&q, &k, &v],
                workspace,
                (batch, kv_head, index % blocks * BLOCK),
            );
        },
    );
}

/// What one task needs besides the views.
struct Workspace {
    scores: Vec<f32>,
    dscores: Vec<f32>,
    /// A block of keys, and one of values, with the head's elements as rows.
    keys: Vec<f32>,
    values: Vec<f32>,
    /// Per query head and row: the largest score so far and the sum of exponentials.
    most: Vec<f32>,
    total: Vec<f32>,
}

impl Workspace {
    fn new(shape: Shape) -> Self {
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

/// The outputs of a block of queries, of all the query heads that share one key and value head.
fn forward_block(
    out: &Place<*mut f32>,
    lse: Shared,
    [q, k, v]: [&Place<*const f32>; 3],
    workspace: &mut Workspace,
    (batch, kv_head, first): (usize, usize, usize),
) {
    let shape = q.shape;
    let Workspace {
        scores,
        keys: turned,
        most,
        total,
        ..
    } = workspace;
    let (rows, width) = (BLOCK.min(shape.time - first), shape.head_dim);
    most.fill(f32::NEG_INFINITY);
    total.fill(0.0);
    for key in (0..=first).step_by(BLOCK) {
        let keys = BLOCK.min(shape.time - key);
        k.turn(turned, (batch, key, kv_head), keys);
        for (index, head) in shape.group(kv_head).enumerate() {
            let (most, total) = (
                &mut most[index * BLOCK..][..rows],
                &mut total[index * BLOCK..][..rows],
            );
            let to_scores = Product {
                m: rows,
                n: keys,
                k: width,
                a: q.at(batch, first, head),
                a_strides: (q.row_stride, 1),
                b: turned.as_ptr(),
                b_strides: (BLOCK, 1),
                out: scores.as_mut_ptr(),
                out_stride: BLOCK,
                write: Write::Replace,
            };
            let to_out = Product {
                m: rows,
                n: width,
                k: keys,
                a: scores.as_ptr(),
                a_strides: (BLOCK, 1),
                b: v.at(batch, key, kv_head),
                b_strides: (v.row_stride, 1),
                out: out.at(batch, first, head),
                out_stride: out.row_stride,
                write: if key == 0 { Write::Replace } else { Write::Add },
            };
            #[expect(unsafe_code, reason = "tasks write disjoint parts of one output")]
            // SAFETY: the views were checked against the shape; these rows of these heads are this task's alone.
            unsafe {
                to_scores.run();
                let rescale = softmax_rows(scores, most, total, keys, key == first, shape.scale());
                if key > 0 {
                    scale_rows(out, (batch, head, first), &rescale[..rows]);
                }
                to_out.run();
            }
        }
    }
    for (index, head) in shape.group(kv_head).enumerate() {
        let (most, total) = (
            &most[index * BLOCK..][..rows],
            &mut total[index * BLOCK..][..rows],
        );
        #[expect(unsafe_code, reason = "tasks write disjoint parts of one output")]
        // SAFETY: as above.
        unsafe {
            let lse = lse.part((batch * shape.heads + head) * shape.time + first, rows);
            for ((total, most), lse) in total.iter_mut().zip(most).zip(lse) {
                *lse = most + total.ln();
                *total = 1.0 / *total;
            }
            scale_rows(out, (batch, head, first), total);
        }
    }
}

/// Multiplies the rows of one head from `first` on by one factor each.
///
/// # Safety
/// Nothing else uses these rows of this head meanwhile, and they are in bounds.
#[expect(unsafe_code, reason = "tasks write disjoint parts of one output")]
unsafe fn scale_rows(
    out: &Place<*mut f32>,
    (batch, head, first): (usize, usize, usize),
    factors: &[f32],
) {
    for (row, factor) in factors.iter().enumerate() {
        // SAFETY: passed on to the caller.
        let row = unsafe {
            std::slice::from_raw_parts_mut(out.at(batch, first + row, head), out.shape.head_dim)
        };
        scale_row(row, *factor);
    }
}

simd! {
    fn scale_row(row: &mut [f32], factor: f32) {
        for x in row {
            *x *= factor;
        }
    }
}

simd! {
    /// Turns a block of scores into exponentials less the largest so far; returns the factors for earlier results.
    ///
    /// With `diagonal`, row r has the keys 0..=r only.
    fn softmax_rows(
        scores: &mut [f32],
        most: &mut [f32],
        total: &mut [f32],
        keys: usize,
        diagonal: bool,
        scale: f32,
    ) -> [f32; BLOCK] {
        // Whole vectors: hidden scores become exponentials of zero, which costs less than rows cut short.
        let width = keys.next_multiple_of(STEP).min(BLOCK);
        // One thing at a time for all rows: a row's chain of maximum, exponential and sum is long, rows are independent.
        let mut rescale = [0.0; BLOCK];
        let rows = scores.chunks_exact_mut(BLOCK).zip(most.iter_mut()).zip(&mut rescale).enumerate();
        for (row, ((scores, most), rescale)) in rows {
            let visible = if diagonal { row + 1 } else { keys };
            scores[visible..width].fill(f32::NEG_INFINITY);
            let larger = most.max(max::<L>(&scores[..width]) * scale);
            *rescale = *most - larger;
            *most = larger;
        }
        for rescale in &mut rescale {
            *rescale = exp(*rescale);
        }
        for (scores, most) in scores.chunks_exact_mut(BLOCK).zip(most.iter()) {
            for score in &mut scores[..width] {
                *score = exp(*score * scale - most);
            }
        }
        for ((scores, total), rescale) in scores.chunks_exact(BLOCK).zip(total).zip(&rescale) {
            *total = *total * rescale + sum::<L>(&scores[..width], |x| x);
        }
        rescale
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{numbers, on_threads};
    use super::*;

    #[test]
    fn packed_or_separate_and_on_any_number_of_threads_the_bits_are_the_same() {
        let shape = Shape {
            batch: 2,
            time: 150,
            heads: 4,
            kv_heads: 2,
            head_dim: 6,
        };
        let (rows, wide, narrow) = (shape.rows(), 4 * 6, 2 * 6);
        let packed = numbers(1, rows * (wide + 2 * narrow));
        let dout = numbers(2, rows * wide);
        let columns = |from: usize, width: usize| -> Vec<f32> {
            let rows = packed.chunks(wide + 2 * narrow);
            rows.flat_map(|row| row[from..from + width].to_vec())
                .collect()
        };
        let (q, k) = (columns(0, wide), columns(wide, narrow));
        let v = columns(wide + narrow, narrow);
        let run = |threads: usize, views: [View; 3]| {
            on_threads(threads, || {
                let [q, k, v] = views;
                let (mut out, mut lse) = (vec![f32::NAN; rows * wide], vec![f32::NAN; rows * 4]);
                forward(&mut out, &mut lse, shape, q, k, v);
                let mut gradient = vec![f32::NAN; packed.len()];
                let to = Gradients::Packed(&mut gradient);
                backward(to, shape, q, k, v, &out, &lse, &dout);
                (out, lse, gradient)
            })
        };
        let separate = [
            View::separate(&q, shape, 4),
            View::separate(&k, shape, 2),
            View::separate(&v, shape, 2),
        ];
        let one = run(1, View::packed(&packed, shape));
        assert!(one.2.iter().all(|x| x.is_finite()));
        assert!(one == run(3, View::packed(&packed, shape)));
        assert!(one == run(1, separate));
    }
}
