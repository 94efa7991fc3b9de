//! How the register-tiled matmul brings its operands into workgroup memory. The products are in `matmul_register`.

use super::Float4;
use super::matmul_plan::{Plan, Problem};
use burn::cubecl::{self, prelude::*};

/// What is fixed when the kernel is compiled, besides the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    pub a_transposed: bool,
    pub b_transposed: bool,
    pub has_residual: bool,
    /// A side that its tile does not divide is checked at every access.
    pub ragged_rows: bool,
    pub ragged_columns: bool,
    pub ragged_inner: bool,
}

impl Form {
    pub fn of(problem: &Problem, plan: &Plan, has_residual: bool) -> Self {
        Self {
            a_transposed: problem.a_transposed,
            b_transposed: problem.b_transposed,
            has_residual,
            ragged_rows: !problem.rows.is_multiple_of(plan.tile.0),
            ragged_columns: !problem.columns.is_multiple_of(plan.tile.1),
            ragged_inner: !problem.inner.is_multiple_of(plan.splits * plan.step),
        }
    }
}

/// Where this workgroup's tile lies, and where its operands end.
#[derive(CubeType)]
pub struct Source {
    pub row: usize,
    pub column: usize,
    pub rows: usize,
    pub columns: usize,
    pub inner: usize,
    /// This workgroup's share of the inner dimension.
    pub begin: usize,
    pub end: usize,
    /// Rows of the output before this share's result.
    pub first_out: usize,
}

/// 4×4 blocks of both operands in one step.
pub fn blocks_per_step(plan: Plan) -> usize {
    plan.step * (plan.tile.0 + plan.tile.1) / 16
}

/// A 4×4 block's place in its operand's tile: (vector of four rows or columns, group of four inner values).
/// Where the inner dimension is contiguous, 8 neighbouring invocations take different rows, so that their transposed
/// stores fall into different banks, and the next 8 the following inner values, so that a row's reads stay together.
#[cube]
fn block_place(block: usize, #[comptime] inner_contiguous: bool, #[comptime] side: usize, #[comptime] step: usize) -> (usize, usize) {
    let vectors = comptime!(side / 4);
    if inner_contiguous {
        let near = comptime!(if vectors.is_multiple_of(8) { 8 } else { vectors });
        let quads = comptime!(step / 4);
        (block / comptime!(near * quads) * near + block % near, block / near % quads)
    } else {
        (block % vectors, block / vectors)
    }
}

/// Reads this invocation's blocks of the step that starts at `from` into registers.
#[cube]
pub fn fetch<A: Size, B: Size>(
    a: &[Vector<f32, A>],
    b: &[Vector<f32, B>],
    held: &mut Array<Float4>,
    source: &Source,
    from: usize,
    unit: usize,
    #[comptime] form: Form,
    #[comptime] plan: Plan,
) {
    let threads = comptime!(plan.threads());
    let of_a = comptime!(plan.step * plan.tile.0 / 16);
    let all = comptime!(blocks_per_step(plan));
    #[unroll]
    for share in 0..comptime!(all.div_ceil(threads)) {
        let first = comptime!(share * threads);
        let block = unit + first;
        if comptime!(first < of_a) {
            if comptime!(first + threads <= of_a) || block < of_a {
                let (outer, quad) = block_place(block, comptime!(!form.a_transposed), plan.tile.0, plan.step);
                fetch_block::<A>(
                    a,
                    held,
                    share,
                    source.row + outer * 4,
                    source.rows,
                    from + quad * 4,
                    source.end,
                    source.inner,
                    comptime!(!form.a_transposed),
                    comptime!(form.ragged_rows || form.ragged_inner),
                );
            }
        }
        if comptime!(first + threads > of_a) {
            let inside = comptime!(first >= of_a) || block >= of_a;
            let real = comptime!(first + threads <= all) || block < all;
            if inside && real {
                let (outer, quad) = block_place(block - of_a, form.b_transposed, plan.tile.1, plan.step);
                fetch_block::<B>(
                    b,
                    held,
                    share,
                    source.column + outer * 4,
                    source.columns,
                    from + quad * 4,
                    source.end,
                    source.inner,
                    form.b_transposed,
                    comptime!(form.ragged_columns || form.ragged_inner),
                );
            }
        }
    }
}

/// One 4×4 block: four lines of four neighbours, as they lie in memory.
#[cube]
fn fetch_block<N: Size>(
    source: &[Vector<f32, N>],
    held: &mut Array<Float4>,
    #[comptime] share: usize,
    outer: usize,
    outer_end: usize,
    inner: usize,
    inner_end: usize,
    inner_size: usize,
    #[comptime] inner_contiguous: bool,
    #[comptime] ragged: bool,
) {
    #[unroll]
    for i in 0..4usize {
        held[comptime!(share * 4 + i)] = if inner_contiguous {
            read4::<N>(source, outer + i, outer_end, inner, inner_end, inner_size, ragged)
        } else {
            read4::<N>(source, inner + i, inner_end, outer, outer_end, outer_end, ragged)
        };
    }
}

/// Four outer values at the block's inner value `i`. Turning the block here and not where it was read leaves the reads
/// in flight until now.
#[cube]
fn outer4(held: &Array<Float4>, #[comptime] share: usize, #[comptime] i: usize, #[comptime] inner_contiguous: bool) -> Float4 {
    let mut value = held[comptime!(share * 4 + i)];
    if inner_contiguous {
        #[unroll]
        for j in 0..4usize {
            value.insert(j, held[comptime!(share * 4 + j)].extract(i));
        }
    }
    value
}

/// Four neighbours of a line `stride` long, zeros where the line or its end is passed.
#[cube]
fn read4<N: Size>(
    source: &[Vector<f32, N>],
    line: usize,
    lines: usize,
    at: usize,
    end: usize,
    stride: usize,
    #[comptime] ragged: bool,
) -> Float4 {
    let width = N::value();
    let mut value = Float4::new(0.0);
    let first = line * stride + at;
    if comptime!(width == 4) {
        if comptime!(!ragged) || (line < lines && at < end) {
            value = Float4::cast_from(source[first / 4]);
        }
    } else {
        #[unroll]
        for i in 0..4usize {
            if line < lines && at + i < end {
                value.insert(i, source[first + i].extract(0usize));
            }
        }
    }
    value
}

/// Puts the fetched blocks into workgroup memory, turned where needed, from vector `buffer` on: A's tile, then B's.
#[cube]
pub fn stage(
    shared: &mut Shared<[Float4]>,
    held: &Array<Float4>,
    buffer: usize,
    unit: usize,
    #[comptime] form: Form,
    #[comptime] plan: Plan,
) {
    let threads = comptime!(plan.threads());
    let of_a = comptime!(plan.step * plan.tile.0 / 16);
    let all = comptime!(blocks_per_step(plan));
    #[unroll]
    for share in 0..comptime!(all.div_ceil(threads)) {
        let first = comptime!(share * threads);
        let block = unit + first;
        if comptime!(first < of_a) {
            if comptime!(first + threads <= of_a) || block < of_a {
                let (outer, quad) = block_place(block, comptime!(!form.a_transposed), plan.tile.0, plan.step);
                #[unroll]
                for i in 0..4usize {
                    shared[buffer + (quad * 4 + i) * comptime!(plan.tile.0 / 4) + outer] =
                        outer4(held, share, i, comptime!(!form.a_transposed));
                }
            }
        }
        if comptime!(first + threads > of_a) {
            let inside = comptime!(first >= of_a) || block >= of_a;
            let real = comptime!(first + threads <= all) || block < all;
            if inside && real {
                let (outer, quad) = block_place(block - of_a, form.b_transposed, plan.tile.1, plan.step);
                let tile = buffer + comptime!(of_a * 4);
                #[unroll]
                for i in 0..4usize {
                    shared[tile + (quad * 4 + i) * comptime!(plan.tile.1 / 4) + outer] =
                        outer4(held, share, i, form.b_transposed);
                }
            }
        }
    }
}

