//! Copies the operands of the register-tiled matmul to workgroup memory. The products are in `matmul_register`.

use super::Float4;
use super::matmul_plan::{Problem, TilePlan, padding};
use burn::cubecl::{self, prelude::*};

/// Compile-time parameters of the kernel, besides the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    pub a_transposed: bool,
    pub b_transposed: bool,
    pub has_residual: bool,
    /// Whether the tile does not divide the side, which requires a check at every access.
    pub ragged_rows: bool,
    pub ragged_columns: bool,
    pub ragged_inner: bool,
}

impl Form {
    pub fn of(problem: &Problem, plan: &TilePlan, splits: usize, has_residual: bool) -> Self {
        Self {
            a_transposed: problem.a_transposed,
            b_transposed: problem.b_transposed,
            has_residual,
            ragged_rows: !problem.rows.is_multiple_of(plan.tile.0),
            ragged_columns: !problem.columns.is_multiple_of(plan.tile.1),
            ragged_inner: !problem.inner.is_multiple_of(splits * plan.step),
        }
    }
}

/// Position of this workgroup's tile, and the ends of its operands.
#[derive(CubeType)]
pub struct TilePosition {
    pub row: usize,
    pub column: usize,
    pub rows: usize,
    pub columns: usize,
    pub inner: usize,
    /// This workgroup's share of the inner dimension.
    pub begin: usize,
    pub end: usize,
    /// First row of this share's result in the output.
    pub first_out: usize,
}

/// One operand's part of a step: `side` rows of A or columns of B, times the plan's `step`. In workgroup memory the side is
/// contiguous: the inner loop reads four rows, or four columns, of one inner value at a time. If one operand is transposed, inner
/// values have the order 0, 4, 8, …, 1, 5, 9, … in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    pub side: usize,
    pub step: usize,
    pub threads: usize,
    /// Whether the inner dimension is contiguous in memory. An invocation then reads blocks of four rows by four inner values and
    /// transposes them.
    pub transposed: bool,
    /// Whether this or the other operand is transposed.
    pub reordered: bool,
    pub ragged: bool,
    /// Offset of its tile in workgroup memory, in vectors.
    pub at: usize,
    /// The invocation with the first share: shares of B go first to invocations without a share of A.
    pub first: usize,
}

impl Operand {
    pub fn a(form: &Form, plan: &TilePlan) -> Self {
        Self {
            side: plan.tile.0,
            step: plan.step,
            threads: plan.threads(),
            transposed: !form.a_transposed,
            reordered: !form.a_transposed || form.b_transposed,
            ragged: form.ragged_rows || form.ragged_inner,
            at: 0,
            first: 0,
        }
    }

    pub fn b(form: &Form, plan: &TilePlan) -> Self {
        let a = Self::a(form, plan);
        Self {
            side: plan.tile.1,
            transposed: form.b_transposed,
            ragged: form.ragged_columns || form.ragged_inner,
            at: a.pitch() * plan.step,
            first: a.pieces() % a.threads,
            ..a
        }
    }

    /// Vectors of four rows (or columns) in the line of one inner value.
    pub fn line(&self) -> usize {
        self.side / 4
    }

    /// Distance between lines in workgroup memory. Eight invocations that transpose neighbouring blocks of the same rows write
    /// consecutive lines: the padding puts these in different banks.
    pub fn pitch(&self) -> usize {
        self.line()
            + if self.transposed {
                padding(self.step)
            } else {
                0
            }
    }

    /// Number of pieces: an invocation reads one piece at a time, a block of four vectors or one vector.
    pub fn pieces(&self) -> usize {
        self.side * self.step / if self.transposed { 16 } else { 4 }
    }

    /// Most pieces of one invocation.
    pub fn shares(&self) -> usize {
        self.pieces().div_ceil(self.threads)
    }

    /// Vectors that an invocation holds in registers between global and workgroup memory.
    pub fn held(&self) -> usize {
        self.shares() * if self.transposed { 4 } else { 1 }
    }

    /// Whether no invocation has shares of both operands.
    pub fn apart(a: &Self, b: &Self) -> bool {
        a.pieces() + b.pieces() <= a.threads
    }
}

/// The index of this invocation's piece for a share; it may exceed the number of pieces.
#[cube]
fn piece_of(#[comptime] share: usize, #[comptime] operand: Operand) -> usize {
    let unit = UNIT_POS as usize;
    let shifted = if comptime!(operand.first == 0) {
        unit
    } else {
        (unit + comptime!(operand.threads - operand.first)) % operand.threads
    };
    shifted + comptime!(share * operand.threads)
}

/// Row group of a block, and its group of four inner values: neighbouring invocations read neighbouring groups of a row, and
/// therefore whole lines of memory.
#[cube]
fn block_of(piece: usize, #[comptime] operand: Operand) -> (usize, usize) {
    let quads = comptime!(operand.step / 4);
    (piece / quads, piece % quads)
}

/// Reads this invocation's share of the step that starts at inner value `from` into registers. `outer` is the tile's first row (or
/// column), `outer_end` the operand's number of rows, `inner_end` the end of the inner values to use, `inner_size` their total number.
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
    #[unroll]
    for share in 0..comptime!(operand.shares()) {
        let piece = piece_of(share, operand);
        if comptime!((share + 1) * operand.threads <= operand.pieces())
            || piece < comptime!(operand.pieces())
        {
            if operand.transposed {
                let (group, quad) = block_of(piece, operand);
                #[unroll]
                for i in 0..4usize {
                    held[comptime!(share * 4 + i)] = read4::<N>(
                        source,
                        outer + group * 4 + i,
                        outer_end,
                        from + quad * 4,
                        inner_end,
                        inner_size,
                        operand.ragged,
                    );
                }
            } else {
                let line = comptime!(operand.line());
                held[share] = read4::<N>(
                    source,
                    from + piece / line,
                    inner_end,
                    outer + piece % line * 4,
                    outer_end,
                    outer_end,
                    operand.ragged,
                );
            }
        }
    }
}

/// Writes the fetched values to workgroup memory, transposed if necessary: this renames registers and moves nothing.
#[cube]
pub fn stage(
    shared: &mut Shared<[Float4]>,
    held: &Array<Float4>,
    buffer: usize,
    #[comptime] operand: Operand,
) {
    #[unroll]
    for share in 0..comptime!(operand.shares()) {
        let piece = piece_of(share, operand);
        if comptime!((share + 1) * operand.threads <= operand.pieces())
            || piece < comptime!(operand.pieces())
        {
            if operand.transposed {
                let (group, quad) = block_of(piece, operand);
                #[unroll]
                for k in 0..4usize {
                    let mut value = held[comptime!(share * 4)];
                    #[unroll]
                    for i in 0..4usize {
                        value.insert(i, held[comptime!(share * 4 + i)].extract(k));
                    }
                    let line = comptime!(k * operand.step / 4) + quad;
                    let at = line * comptime!(operand.pitch()) + group;
                    shared[buffer + at + comptime!(operand.at)] = value;
                }
            } else {
                let mut at = piece;
                if operand.reordered {
                    let line = piece / comptime!(operand.line());
                    let line = line % 4 * comptime!(operand.step / 4) + line / 4;
                    at = line * comptime!(operand.line()) + piece % comptime!(operand.line());
                }
                shared[buffer + at + comptime!(operand.at)] = held[share];
            }
        }
    }
}

/// Four adjacent values of a line of length `stride`; zeros past its end or past the last line.
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
