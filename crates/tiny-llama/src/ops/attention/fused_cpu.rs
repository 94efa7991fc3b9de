//! Flash attention on the CPU: causal grouped-query attention in blocks with an online softmax, forward and backward. Memory grows with T, not
//! with T², because scores exist one block at a time and the backward pass recomputes them. `naive_cpu` is the plain version, which has all
//! scores of a head in memory.

mod backward;
mod blocks;

pub(crate) use backward::backward;

use super::FusedAttention;
use crate::ops::Float;
use burn::backend::Flex;
use rayon::prelude::*;

use crate::ops::cpu::exp::exp;
use crate::ops::cpu::reduce::{STEP, max, sum};
use crate::ops::cpu::{SharedSlice, tensor, values};
use crate::ops::linear::fused_cpu::multiply;
use crate::ops::shapes::{Columns, Heads, QkvRows};
use blocks::{BLOCK, BlockWorkspace, HeadRows};

type T = Float<Flex>;

impl FusedAttention for Flex {
    fn forward(rows: &QkvRows<T>, sizes: Heads, _half: bool) -> Option<[T; 2]> {
        let (out, lse) = forward(rows.as_ref().map(values), sizes);
        let [n, width] = [sizes.rows(), sizes.heads * sizes.head_dim];
        Some([tensor(out, [n, width]), tensor(lse, [n, sizes.heads])])
    }

    fn backward(
        rows: &QkvRows<T>,
        saved: [T; 3],
        sizes: Heads,
        tables: Option<[T; 2]>,
    ) -> QkvRows<T> {
        debug_assert!(tables.is_none(), "no product rotates on the CPU");
        let [out, lse, dy] = saved.each_ref().map(values);
        backward(rows.as_ref().map(values), out, lse, dy, sizes).map(|gradient| {
            let width = gradient.len() / sizes.rows();
            tensor(gradient, [sizes.rows(), width])
        })
    }
}

/// Returns `out = softmax(q · kᵀ / √dh) · v`, B·T × H·dh, over the keys up to each query's own position, and `lse`, B × H × T, the logarithm of
/// the sum of exponentials, which the backward pass needs.
pub(crate) fn forward(rows: QkvRows<&[f32]>, shape: Heads) -> (Vec<f32>, Vec<f32>) {
    let [q, k, v] = HeadRows::of_rows(rows, shape);
    let offset = 0;
    let stride = shape.heads * shape.head_dim;
    let len = shape.rows() * stride;
    let mut result = Vec::with_capacity(len);
    let mut logarithms = vec![0.0; shape.rows() * shape.heads];
    let out = HeadRows::new(result.as_mut_ptr(), Columns { offset, stride }, shape);
    let lse = SharedSlice::new(&mut logarithms);
    let blocks = shape.context.div_ceil(BLOCK);
    (0..shape.batch * shape.kv_heads * blocks)
        .into_par_iter()
        .for_each_init(
            || BlockWorkspace::new(shape),
            |workspace, index| {
                let (head, first) = (index / blocks, index % blocks * BLOCK);
                let place = (head / shape.kv_heads, head % shape.kv_heads, first);
                forward_block(&out, lse, [&q, &k, &v], workspace, place);
            },
        );
    // SAFETY: the first block of keys writes every row of every head.
    unsafe { result.set_len(len) };
    (result, logarithms)
}

/// Computes the outputs of the block of queries from row `first` of a sequence on, for all query heads that share one key and value head.
fn forward_block(
    out: &HeadRows<*mut f32>,
    lse: SharedSlice,
    [q, k, v]: [&HeadRows<*const f32>; 3],
    workspace: &mut BlockWorkspace,
    (batch, kv_head, first): (usize, usize, usize),
) {
    let shape = q.shape;
    let BlockWorkspace {
        scores,
        keys: transposed,
        most,
        total,
        ..
    } = workspace;
    let rows = BLOCK.min(shape.context - first);
    let width = shape.head_dim;
    most.fill(f32::NEG_INFINITY);
    total.fill(0.0);
    for key in (0..=first).step_by(BLOCK) {
        let keys = BLOCK.min(shape.context - key);
        k.copy_transposed(transposed, (batch, key, kv_head), keys);
        for (index, head) in shape.queries_of(kv_head).enumerate() {
            let head_most = &mut most[index * BLOCK..][..rows];
            let head_total = &mut total[index * BLOCK..][..rows];
            // SAFETY: the views were checked against the shape; these rows of these heads are this task's alone.
            unsafe {
                multiply(
                    [rows, keys, width],
                    q.factor(batch, first, head),
                    (transposed.as_ptr(), (BLOCK, 1)),
                    (scores.as_mut_ptr(), BLOCK),
                    false,
                );
                let is_diagonal = key == first;
                let rescale = softmax_rows(
                    scores,
                    head_most,
                    head_total,
                    keys,
                    is_diagonal,
                    shape.scale(),
                );
                if key > 0 {
                    scale_rows(out, (batch, head, first), &rescale[..rows]);
                }
                multiply(
                    [rows, width, keys],
                    (scores.as_ptr(), (BLOCK, 1)),
                    v.factor(batch, key, kv_head),
                    out.result(batch, first, head),
                    key > 0,
                );
            }
        }
    }
    for (index, head) in shape.queries_of(kv_head).enumerate() {
        let head_most = &most[index * BLOCK..][..rows];
        let head_total = &mut total[index * BLOCK..][..rows];
        // SAFETY: as above.
        unsafe {
            let head_lse = lse.part((batch * shape.heads + head) * shape.context + first, rows);
            for ((total, most), lse) in head_total.iter_mut().zip(head_most).zip(head_lse) {
                *lse = most + total.ln();
                *total = 1.0 / *total;
            }
            scale_rows(out, (batch, head, first), head_total);
        }
    }
}

/// Multiplies the rows of one head, starting at `first`, by one factor each.
///
/// # Safety
/// Nothing else uses these rows of this head meanwhile, and they are in bounds.
unsafe fn scale_rows(
    out: &HeadRows<*mut f32>,
    (batch, head, first): (usize, usize, usize),
    factors: &[f32],
) {
    for (row, factor) in factors.iter().enumerate() {
        let (row, _) = out.result(batch, first + row, head);
        // SAFETY: passed on to the caller.
        let values = unsafe { std::slice::from_raw_parts_mut(row, out.shape.head_dim) };
        scale_row(values, *factor);
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
    /// Replaces each score of a block by exp(score − the row's maximum so far). Returns the factors for the results of earlier blocks. With
    /// `diagonal`, row r has the keys 0..=r only.
    fn softmax_rows(
        scores: &mut [f32],
        most: &mut [f32],
        total: &mut [f32],
        keys: usize,
        diagonal: bool,
        scale: f32,
    ) -> [f32; BLOCK] {
        // Rows end with whole vectors. The exponentials of hidden scores are 0, which costs less than shorter rows.
        let width = keys.next_multiple_of(STEP).min(BLOCK);
        // Each loop runs over all rows, because the maximum, the exponentials and the sum of one row wait for each other, but rows do not.
        let mut rescale = [0.0; BLOCK];
        let rows = scores.chunks_exact_mut(BLOCK).zip(most.iter_mut()).zip(&mut rescale);
        for (row, ((scores, most), rescale)) in rows.enumerate() {
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
    use super::*;
    use crate::ops::cpu::testing::{numbers, on_threads};

    #[test]
    fn the_form_of_the_rows_and_the_number_of_threads_change_no_bit() {
        let shape = Heads {
            batch: 2,
            context: 150,
            heads: 4,
            kv_heads: 2,
            head_dim: 6,
        };
        let rows = shape.rows();
        let wide = 4 * 6;
        let narrow = 2 * 6;
        let packed = numbers(1, rows * (wide + 2 * narrow));
        let dout = numbers(2, rows * wide);
        let columns = |from: usize, width: usize| -> Vec<f32> {
            let rows = packed.chunks(wide + 2 * narrow);
            rows.flat_map(|row| row[from..from + width].to_vec())
                .collect()
        };
        let separate = [(0, wide), (wide, narrow), (wide + narrow, narrow)]
            .map(|(from, width)| columns(from, width));
        let run = |threads: usize, rows: QkvRows<&[f32]>| {
            on_threads(threads, || {
                let (out, lse) = forward(rows, shape);
                let gradients = backward(rows, &out, &lse, &dout, shape);
                (out, lse, gradients)
            })
        };
        let (out, lse, QkvRows::Packed(gradient)) = run(1, QkvRows::Packed(&packed)) else {
            panic!("gradients have the form of the rows")
        };
        assert!(gradient.iter().all(|x| x.is_finite()));
        let on_three_threads = run(3, QkvRows::Packed(&packed));
        assert!((&out, &lse) == (&on_three_threads.0, &on_three_threads.1));
        assert!(*on_three_threads.2.first() == gradient);
        let separate_rows = QkvRows::Separate(separate.each_ref().map(|x| &x[..]));
        let (separate_out, separate_lse, QkvRows::Separate(parts)) = run(1, separate_rows) else {
            panic!("gradients have the form of the rows")
        };
        assert!((out, lse) == (separate_out, separate_lse));
        for (row, gradient) in gradient.chunks(wide + 2 * narrow).enumerate() {
            let joined = parts
                .iter()
                .zip([wide, narrow, narrow])
                .flat_map(|(part, width)| &part[row * width..][..width]);
            assert!(joined.eq(gradient));
        }
    }
}
