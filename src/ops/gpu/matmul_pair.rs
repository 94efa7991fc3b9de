//! Two matrix products in one launch: the two gradients of a linear layer. Alone, each often has too few tiles for a large GPU;
//! together they fill it and save a launch. Each can be split along its inner dimension to give all workgroups about the same work.

use super::matmul_plan::{Problem, TilePlan};
use super::matmul_register::multiply_tile;
use super::matmul_stage::{Form, TilePosition};
use super::{Float4, arg, groups};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// Two operands, and the output: `[rows, columns]`, or `[splits, rows, columns]` partial products.
pub struct PairedProduct<'a> {
    pub a: &'a CubeTensor,
    pub b: &'a CubeTensor,
    pub out: &'a CubeTensor,
    pub problem: Problem,
    pub splits: usize,
}

impl PairedProduct<'_> {
    fn inner_per_split(&self, plan: &TilePlan) -> usize {
        self.problem
            .inner
            .div_ceil(self.splits)
            .next_multiple_of(plan.step)
    }

    fn groups(&self, plan: &TilePlan) -> usize {
        plan.splits(self.splits).groups(&self.problem)
    }
}

/// Launches both products. The one with more work per workgroup starts first.
pub fn launch(first: &PairedProduct, second: &PairedProduct, plan: TilePlan) {
    if first.inner_per_split(&plan) < second.inner_per_split(&plan) {
        return launch(second, first, plan);
    }
    let sizes = |product: &PairedProduct| {
        let p = &product.problem;
        let across = p.columns.div_ceil(plan.tile.1);
        PairSizesLaunch::new(
            p.rows,
            p.columns,
            p.inner,
            product.inner_per_split(&plan),
            across,
            p.rows.div_ceil(plan.tile.0) * across,
            product.groups(&plan),
        )
    };
    let form = |product: &PairedProduct| Form::of(&product.problem, &plan, product.splits, false);
    let [a1, b1, o1] = first.problem.lanes();
    let [a2, b2, o2] = second.problem.lanes();
    unsafe {
        matmul_register_tile_pair::launch_unchecked(
            &first.a.client,
            groups(first.groups(&plan) + second.groups(&plan)),
            CubeDim::new_1d(plan.threads() as u32),
            a1,
            b1,
            o1,
            a2,
            b2,
            o2,
            arg(first.a),
            arg(first.b),
            // Nothing is added: the kernel needs a buffer here and does not read it.
            arg(first.out),
            arg(first.out),
            arg(second.a),
            arg(second.b),
            arg(second.out),
            arg(second.out),
            sizes(first),
            sizes(second),
            form(first),
            form(second),
            plan,
        );
    }
}

/// A product's sizes, its tiles along a row, the tiles of one split, and the tiles of all splits.
#[derive(CubeType, CubeLaunch)]
struct PairSizes {
    rows: usize,
    columns: usize,
    inner: usize,
    inner_per_split: usize,
    across: usize,
    tiles: usize,
    all: usize,
}

#[cube(launch_unchecked)]
fn matmul_register_tile_pair<VA1: Size, VB1: Size, VO1: Size, VA2: Size, VB2: Size, VO2: Size>(
    a1: &[Vector<f32, VA1>],
    b1: &[Vector<f32, VB1>],
    add1: &[Vector<f32, VO1>],
    out1: &mut [Vector<f32, VO1>],
    a2: &[Vector<f32, VA2>],
    b2: &[Vector<f32, VB2>],
    add2: &[Vector<f32, VO2>],
    out2: &mut [Vector<f32, VO2>],
    sizes1: PairSizes,
    sizes2: PairSizes,
    #[comptime] form1: Form,
    #[comptime] form2: Form,
    #[comptime] plan: TilePlan,
) {
    let mut shared = Shared::<[Float4]>::new_slice(comptime!(plan.shared_vectors()));
    if CUBE_POS < sizes1.all {
        let source = place_tile(CUBE_POS, &sizes1, plan);
        multiply_tile::<VA1, VB1, VO1>(a1, b1, add1, out1, &mut shared, &source, form1, plan);
    } else {
        let tile = CUBE_POS - sizes1.all;
        if tile < sizes2.all {
            let source = place_tile(tile, &sizes2, plan);
            multiply_tile::<VA2, VB2, VO2>(a2, b2, add2, out2, &mut shared, &source, form2, plan);
        }
    }
}

#[cube]
fn place_tile(tile: usize, sizes: &PairSizes, #[comptime] plan: TilePlan) -> TilePosition {
    let split = tile / sizes.tiles;
    let within = tile % sizes.tiles;
    let begin = split * sizes.inner_per_split;
    TilePosition {
        row: within / sizes.across * plan.tile.0,
        column: within % sizes.across * plan.tile.1,
        rows: sizes.rows,
        columns: sizes.columns,
        inner: sizes.inner,
        begin,
        end: min(begin + sizes.inner_per_split, sizes.inner),
        first_out: split * sizes.rows,
    }
}
