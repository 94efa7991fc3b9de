//! How the register-tiled matmul brings its operands into workgroup memory and out again. The products are in
//! `matmul_register`.

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

/// One operand's share of a step: `side` rows of A or columns of B, times the plan's `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    pub side: usize,
    pub step: usize,
    pub threads: usize,
    /// Whether neighbours in memory are neighbours along the inner dimension, or rows (or columns).
    pub inner_contiguous: bool,
    pub ragged: bool,
    /// Place of its tile in workgroup memory, in vectors.
    pub at: usize,
}

impl Operand {
    pub fn a(form: &Form, plan: &Plan) -> Self {
        Self {
            side: plan.tile.0,
            step: plan.step,
            threads: plan.threads(),
            inner_contiguous: !form.a_transposed,
            ragged: form.ragged_rows || form.ragged_inner,
            at: 0,
        }
    }

    pub fn b(form: &Form, plan: &Plan) -> Self {
        Self {
            side: plan.tile.1,
            step: plan.step,
            threads: plan.threads(),
            inner_contiguous: form.b_transposed,
            ragged: form.ragged_columns || form.ragged_inner,
            at: plan.tile.0 * plan.step / 4,
        }
    }

    /// Vectors of four in a step.
    pub fn vectors(&self) -> usize {
        self.side * self.step / 4
    }

    /// The same, per invocation.
    pub fn shares(&self) -> usize {
        self.vectors().div_ceil(self.threads)
    }

    /// Vectors in a line of the tile: inner values of one row (or column), or all rows (or columns) of one inner value.
    pub fn line(&self) -> usize {
        if self.inner_contiguous {
            self.step / 4
        } else {
            self.side / 4
        }
    }
}

/// Reads this invocation's vectors of the step that starts at inner value `from` into registers. `outer` is the tile's first row
/// (or column), `outer_end` the operand's number of them, `inner_end` the end of the inner values to use, `inner_size` of all.
#[cube]
pub fn fetch<N: Size>(
    source: &[Vector<f32, N>],
    held: &mut Array<Float4>,
    outer: usize,
    outer_end: usize,
    from: usize,
    inner_end: usize,
    inner_size: usize,
    #[comptime] operand: Operand,
) {
    let line = comptime!(operand.line());
    #[unroll]
    for share in 0..comptime!(operand.shares()) {
        let e = UNIT_POS as usize + comptime!(share * operand.threads);
        if comptime!((share + 1) * operand.threads <= operand.vectors())
            || e < comptime!(operand.vectors())
        {
            held[share] = if operand.inner_contiguous {
                read4::<N>(
                    source,
                    outer + e / line,
                    outer_end,
                    from + e % line * 4,
                    inner_end,
                    inner_size,
                    operand.ragged,
                )
            } else {
                read4::<N>(
                    source,
                    from + e / line,
                    inner_end,
                    outer + e % line * 4,
                    outer_end,
                    outer_end,
                    operand.ragged,
                )
            };
        }
    }
}

/// Puts the fetched vectors into workgroup memory, in the order they have in global memory.
#[cube]
pub fn stage(
    shared: &mut Shared<[Float4]>,
    held: &Array<Float4>,
    buffer: usize,
    #[comptime] operand: Operand,
) {
    let line = comptime!(operand.line());
    #[unroll]
    for share in 0..comptime!(operand.shares()) {
        let e = UNIT_POS as usize + comptime!(share * operand.threads);
        if comptime!((share + 1) * operand.threads <= operand.vectors())
            || e < comptime!(operand.vectors())
        {
            let mut place = e;
            if operand.inner_contiguous {
                place = spread(e, e / line);
            }
            shared[buffer + place + comptime!(operand.at)] = held[share];
        }
    }
}

/// Moves a vector within its group of eight, by its row: invocations that read the same inner values of rows four apart
/// then use different banks. With at least two vectors per row, the four rows of a group move alike.
#[cube]
fn spread(vector: usize, row: usize) -> usize {
    vector ^ (row / 4 % 8)
}

/// Four inner values of row (or column) `4·group + c` of an operand staged with its inner dimension contiguous.
#[cube]
pub fn along_inner(
    shared: &mut Shared<[Float4]>,
    buffer: usize,
    group: usize,
    #[comptime] c: usize,
    quad: usize,
    #[comptime] operand: Operand,
) -> Float4 {
    let row = group * 4 + c;
    shared[buffer + spread(row * comptime!(operand.line()) + quad, row) + comptime!(operand.at)]
}

/// Rows (or columns) 4·group to 4·group + 3 at inner value `k` of an operand staged with those contiguous.
#[cube]
pub fn across_inner(
    shared: &mut Shared<[Float4]>,
    buffer: usize,
    group: usize,
    k: usize,
    #[comptime] operand: Operand,
) -> Float4 {
    shared[buffer + k * comptime!(operand.line()) + group + comptime!(operand.at)]
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
