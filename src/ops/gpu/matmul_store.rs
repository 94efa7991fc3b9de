//! The position of an invocation's block of outputs in its tile, and its stores to memory. The products are in `matmul_register`.

use super::Float4;
use super::matmul_plan::TilePlan;
use super::matmul_stage::{Form, TilePosition};
use burn::cubecl::{self, prelude::*};

/// An invocation's slice, its number in the slice, and its block's row and column in the tile, in blocks.
#[derive(CubeType)]
pub struct BlockPosition {
    pub slice: usize,
    pub id: usize,
    pub row: usize,
    pub column: usize,
}

#[cube]
impl BlockPosition {
    /// 32 neighbouring invocations take 4 block rows by 8 block columns if the tile allows it: together they read 12 vectors per inner
    /// value instead of 18 or 33. Among these, invocations n and n + 1 have the same column, and n and n + 2 the same row, which
    /// lets the hardware serve the reads of 16 invocations at once.
    pub fn of(unit: usize, #[comptime] plan: TilePlan) -> BlockPosition {
        let across = comptime!(plan.tile.1 / plan.block.1);
        let down = comptime!(plan.tile.0 / plan.block.0);
        let id = unit % comptime!(across * down);
        let mut row = id / across;
        let mut column = id % across;
        if comptime!(across.is_multiple_of(8) && down.is_multiple_of(4)) {
            let group = id / 32;
            let lane = id % 32;
            row = lane / 16 * 2 + lane % 2;
            column = lane / 2 % 8;
            row += group / comptime!(across / 8) * 4;
            column += group % comptime!(across / 8) * 8;
        }
        BlockPosition {
            slice: unit / comptime!(across * down),
            id,
            row,
            column,
        }
    }
}

/// Row and column of vector `j` of an invocation's row `i`.
#[cube]
fn at_output(
    source: &TilePosition,
    place: &BlockPosition,
    #[comptime] i: usize,
    #[comptime] j: usize,
    #[comptime] plan: TilePlan,
) -> (usize, usize) {
    let (down, across) = comptime!((plan.block.0 / 4, plan.block.1 / 4));
    (
        source.row + place.row * 4 + comptime!(i / 4 * (plan.tile.0 / down) + i % 4),
        source.column + place.column * 4 + comptime!(j * (plan.tile.1 / across)),
    )
}

/// Whether a vector of outputs exists; there is no test if the tile divides the matrix.
#[cube]
fn inside(row: usize, column: usize, source: &TilePosition, #[comptime] form: Form) -> bool {
    let rows = comptime!(!form.ragged_rows) || row < source.rows;
    let columns = comptime!(!form.ragged_columns) || column < source.columns;
    rows && columns
}

/// Adds the invocation's part of `residual` to its block.
#[cube]
pub fn add_residual<VO: Size>(
    residual: &[Vector<f32, VO>],
    acc: &mut Array<Float4>,
    source: &TilePosition,
    place: &BlockPosition,
    #[comptime] form: Form,
    #[comptime] plan: TilePlan,
) {
    let width = VO::value();
    let across = comptime!(plan.block.1 / 4);
    #[unroll]
    for i in 0..plan.block.0 {
        #[unroll]
        for j in 0..across {
            let (row, column) = at_output(source, place, i, j, plan);
            let at = (source.first_out + row) * source.columns + column;
            let mut value = acc[comptime!(i * across + j)];
            if comptime!(width == 4) {
                if inside(row, column, source, form) {
                    value += Float4::cast_from(residual[at / 4]);
                }
            } else {
                #[unroll]
                for c in 0..4usize {
                    if row < source.rows && column + c < source.columns {
                        value.insert(c, value.extract(c) + residual[at + c].extract(0usize));
                    }
                }
            }
            acc[comptime!(i * across + j)] = value;
        }
    }
}

/// Writes the invocation's block.
#[cube]
pub fn store<VO: Size>(
    out: &mut [Vector<f32, VO>],
    acc: &Array<Float4>,
    source: &TilePosition,
    place: &BlockPosition,
    #[comptime] form: Form,
    #[comptime] plan: TilePlan,
) {
    let width = VO::value();
    let across = comptime!(plan.block.1 / 4);
    #[unroll]
    for i in 0..plan.block.0 {
        #[unroll]
        for j in 0..across {
            let (row, column) = at_output(source, place, i, j, plan);
            let at = (source.first_out + row) * source.columns + column;
            let value = acc[comptime!(i * across + j)];
            if comptime!(width == 4) {
                if inside(row, column, source, form) {
                    out[at / 4] = Vector::<f32, VO>::cast_from(value);
                }
            } else {
                #[unroll]
                for c in 0..4usize {
                    if row < source.rows && column + c < source.columns {
                        out[at + c] = Vector::<f32, VO>::new(value.extract(c));
                    }
                }
            }
        }
    }
}
