//! The register-tiled matmul kernel, for all four transpositions, any sizes and any [`TilePlan`].

use super::matmul_plan::{Buffering, Problem, TilePlan};
use super::matmul_stage::{Form, Operand, TilePosition, fetch, stage};
use super::matmul_store::{BlockPosition, add_residual, store};
use super::{Float4, arg};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// Writes `splits` partial products, one after the other, or the product plus `residual` to `out`.
pub fn launch(
    a: &CubeTensor,
    b: &CubeTensor,
    residual: Option<&CubeTensor>,
    out: &CubeTensor,
    problem: Problem,
    plan: TilePlan,
) {
    let Problem {
        rows,
        columns,
        inner,
        ..
    } = problem;
    let [lanes_a, lanes_b, lanes_out] = problem.lanes();
    debug_assert!(plan.is_sound(), "{plan:?} breaks the rules of its fields");
    let inner_per_split = inner.div_ceil(plan.splits).next_multiple_of(plan.step);
    let form = Form::of(&problem, &plan, plan.splits, residual.is_some());
    unsafe {
        matmul_register_tile::launch_unchecked(
            &a.client,
            CubeCount::Static(
                columns.div_ceil(plan.tile.1) as u32,
                rows.div_ceil(plan.tile.0) as u32,
                plan.splits as u32,
            ),
            CubeDim::new_1d(plan.threads() as u32),
            lanes_a,
            lanes_b,
            lanes_out,
            arg(a),
            arg(b),
            arg(residual.unwrap_or(out)),
            arg(out),
            rows,
            columns,
            inner,
            inner_per_split,
            form,
            // The number of parts is in the grid: one compiled kernel handles all.
            plan.splits(1),
        );
    }
}

/// Each workgroup computes one tile of the product.
#[cube(launch_unchecked)]
fn matmul_register_tile<VA: Size, VB: Size, VO: Size>(
    a: &[Vector<f32, VA>],
    b: &[Vector<f32, VB>],
    residual: &[Vector<f32, VO>],
    out: &mut [Vector<f32, VO>],
    rows: usize,
    columns: usize,
    inner: usize,
    inner_per_split: usize,
    #[comptime] form: Form,
    #[comptime] plan: TilePlan,
) {
    let mut shared = Shared::<[Float4]>::new_slice(comptime!(plan.shared_vectors()));
    let begin = CUBE_POS_Z as usize * inner_per_split;
    let source = TilePosition {
        row: CUBE_POS_Y as usize * plan.tile.0,
        column: CUBE_POS_X as usize * plan.tile.1,
        rows,
        columns,
        inner,
        begin,
        end: min(begin + inner_per_split, inner),
        first_out: CUBE_POS_Z as usize * rows,
    };
    multiply_tile::<VA, VB, VO>(a, b, residual, out, &mut shared, &source, form, plan);
}

/// The work of one workgroup on one tile.
#[cube]
pub fn multiply_tile<VA: Size, VB: Size, VO: Size>(
    a: &[Vector<f32, VA>],
    b: &[Vector<f32, VB>],
    residual: &[Vector<f32, VO>],
    out: &mut [Vector<f32, VO>],
    shared: &mut Shared<[Float4]>,
    source: &TilePosition,
    #[comptime] form: Form,
    #[comptime] plan: TilePlan,
) {
    let of_a = comptime!(Operand::a(&form, &plan));
    let of_b = comptime!(Operand::b(&form, &plan));
    let accumulators = comptime!(plan.block.0 * plan.block.1 / 4);
    let mut acc = Array::<Float4>::new(accumulators);
    #[unroll]
    for i in 0..accumulators {
        acc[i] = Float4::new(0.0);
    }
    // This invocation's share of a step, in registers between global and workgroup memory. If no invocation has shares of both
    // operands, they use the same array.
    let apart = comptime!(Operand::apart(&of_a, &of_b));
    let mut left = Array::<Float4>::new(comptime!(of_a.held().max(of_b.held())));
    let mut right = Array::<Float4>::new(comptime!(if apart { 1 } else { of_b.held() }));
    let place = BlockPosition::of(UNIT_POS as usize, plan);
    let double = comptime!(plan.buffering == Buffering::Double);
    let single = comptime!(plan.buffering == Buffering::Single);
    let half = comptime!(plan.step * (of_a.pitch() + of_b.pitch()));

    if !single {
        let first = source.begin;
        fetch_both::<VA, VB>(a, b, &mut left, &mut right, source, first, of_a, of_b);
    }
    if double {
        stage_both(shared, &left, &right, 0usize, of_a, of_b);
        sync_cube();
    }
    let mut from = source.begin;
    let mut buffer = 0usize;
    while from < source.end {
        let next = from + plan.step;
        if double {
            if next < source.end {
                fetch_both::<VA, VB>(a, b, &mut left, &mut right, source, next, of_a, of_b);
            }
            multiply(shared, &mut acc, buffer, &place, of_a, of_b, plan);
            buffer = half - buffer;
            if next < source.end {
                stage_both(shared, &left, &right, buffer, of_a, of_b);
            }
            sync_cube();
        } else {
            if single {
                fetch_both::<VA, VB>(a, b, &mut left, &mut right, source, from, of_a, of_b);
            }
            stage_both(shared, &left, &right, 0usize, of_a, of_b);
            sync_cube();
            if !single && next < source.end {
                fetch_both::<VA, VB>(a, b, &mut left, &mut right, source, next, of_a, of_b);
            }
            multiply(shared, &mut acc, 0usize, &place, of_a, of_b, plan);
            sync_cube();
        }
        from = next;
    }
    add_slices(shared, &mut acc, &place, plan);
    if place.slice == 0 {
        // All reads come before the first write: a driver that cannot prove the matrices distinct would otherwise wait for each read.
        if form.has_residual {
            add_residual::<VO>(residual, &mut acc, source, &place, form, plan);
        }
        store::<VO>(out, &acc, source, &place, form, plan);
    }
}

#[cube]
fn fetch_both<VA: Size, VB: Size>(
    a: &[Vector<f32, VA>],
    b: &[Vector<f32, VB>],
    left: &mut Array<Float4>,
    right: &mut Array<Float4>,
    source: &TilePosition,
    from: usize,
    #[comptime] of_a: Operand,
    #[comptime] of_b: Operand,
) {
    let (row, rows, end, inner) = (source.row, source.rows, source.end, source.inner);
    fetch::<VA>(a, left, row, rows, from, end, inner, of_a);
    let (column, columns) = (source.column, source.columns);
    if comptime!(Operand::apart(&of_a, &of_b)) {
        fetch::<VB>(b, left, column, columns, from, end, inner, of_b);
    } else {
        fetch::<VB>(b, right, column, columns, from, end, inner, of_b);
    }
}

#[cube]
fn stage_both(
    shared: &mut Shared<[Float4]>,
    left: &Array<Float4>,
    right: &Array<Float4>,
    buffer: usize,
    #[comptime] of_a: Operand,
    #[comptime] of_b: Operand,
) {
    stage(shared, left, buffer, of_a);
    if comptime!(Operand::apart(&of_a, &of_b)) {
        stage(shared, left, buffer, of_b);
    } else {
        stage(shared, right, buffer, of_b);
    }
}

/// Adds one step's products to the block: for each inner value, an outer product of the block's rows and columns. A block's rows and
/// columns are spread over the tile in groups of four, and neighbouring invocations read neighbouring groups.
#[cube]
fn multiply(
    shared: &mut Shared<[Float4]>,
    acc: &mut Array<Float4>,
    buffer: usize,
    place: &BlockPosition,
    #[comptime] of_a: Operand,
    #[comptime] of_b: Operand,
    #[comptime] plan: TilePlan,
) {
    let (rows, columns) = comptime!((plan.block.0 / 4, plan.block.1 / 4));
    let inner = comptime!(plan.step / plan.slices);
    let mut left = Array::<Float4>::new(rows);
    let mut right = Array::<Float4>::new(columns);
    let written = comptime!(plan.unroll.min(inner));
    for part in 0..comptime!(inner / written) {
        let first = place.slice * inner + part * written;
        #[unroll]
        for value in 0..written {
            let k = first + value;
            let row = buffer + k * comptime!(of_a.pitch()) + place.row;
            let column = buffer + k * comptime!(of_b.pitch()) + place.column + comptime!(of_b.at);
            #[unroll]
            for i in 0..rows {
                left[i] = shared[row + comptime!(i * (of_a.line() / rows))];
            }
            #[unroll]
            for j in 0..columns {
                right[j] = shared[column + comptime!(j * (of_b.line() / columns))];
            }
            #[unroll]
            for i in 0..comptime!(rows * 4) {
                let row = Float4::new(left[comptime!(i / 4)].extract(comptime!(i % 4)));
                #[unroll]
                for j in 0..columns {
                    let at = comptime!(i * columns + j);
                    acc[at] = fma(row, right[j], acc[at]);
                }
            }
        }
    }
}

/// Adds the slices' blocks pairwise until slice 0 holds the sum. Ends with a barrier.
#[cube]
fn add_slices(
    shared: &mut Shared<[Float4]>,
    acc: &mut Array<Float4>,
    place: &BlockPosition,
    #[comptime] plan: TilePlan,
) {
    let accumulators = comptime!(plan.block.0 * plan.block.1 / 4);
    let threads = comptime!(plan.slice_threads());
    #[unroll]
    for round in 0..comptime!(plan.slices.ilog2() as usize) {
        let half = comptime!(plan.slices >> (round + 1));
        if place.slice >= half && place.slice < comptime!(2 * half) {
            #[unroll]
            for i in 0..accumulators {
                shared[(place.slice - half) * comptime!(threads * accumulators)
                    + i * threads
                    + place.id] = acc[i];
            }
        }
        sync_cube();
        if place.slice < half {
            #[unroll]
            for i in 0..accumulators {
                acc[i] += shared
                    [place.slice * comptime!(threads * accumulators) + i * threads + place.id];
            }
        }
        sync_cube();
    }
}
