//! Two matrix products in one launch: the two gradients of a linear layer. Apart, each often has too few tiles for a large
//! GPU; together they share it, and one launch is saved.

use super::matmul_plan::{Plan, Problem};
use super::matmul_register::multiply_tile;
use super::matmul_stage::{Form, Source};
use super::{Float4, arg, groups, vector_width};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// An operand pair, an optional matrix to add, and where the product goes.
pub struct Product<'a> {
    pub a: &'a CubeTensor,
    pub b: &'a CubeTensor,
    pub add: Option<&'a CubeTensor>,
    pub out: &'a CubeTensor,
    pub problem: Problem,
}

/// Both products, not split. The first one's tiles start first: give the one with the longer inner dimension first.
pub fn launch(first: &Product, second: &Product, plan: Plan) {
    let widths = |p: &Problem| {
        [
            vector_width(&[if p.a_transposed { p.rows } else { p.inner }]),
            vector_width(&[if p.b_transposed { p.inner } else { p.columns }]),
            vector_width(&[p.columns]),
        ]
    };
    let sizes = |p: &Problem| {
        let across = p.columns.div_ceil(plan.tile.1);
        SizesLaunch::new(
            p.rows,
            p.columns,
            p.inner,
            across,
            p.rows.div_ceil(plan.tile.0) * across,
        )
    };
    let [a1, b1, o1] = widths(&first.problem);
    let [a2, b2, o2] = widths(&second.problem);
    unsafe {
        matmul_register_tile_pair::launch_unchecked(
            &first.a.client,
            groups(plan.groups(&first.problem) + plan.groups(&second.problem)),
            CubeDim::new_1d(plan.threads() as u32),
            a1,
            b1,
            o1,
            a2,
            b2,
            o2,
            arg(first.a),
            arg(first.b),
            arg(first.add.unwrap_or(first.out)),
            arg(first.out),
            arg(second.a),
            arg(second.b),
            arg(second.add.unwrap_or(second.out)),
            arg(second.out),
            sizes(&first.problem),
            sizes(&second.problem),
            Form::of(&first.problem, &plan, first.add.is_some()),
            Form::of(&second.problem, &plan, second.add.is_some()),
            plan,
        );
    }
}

/// A product's sizes, its tiles across and its tiles in all.
#[derive(CubeType, CubeLaunch)]
struct Sizes {
    rows: usize,
    columns: usize,
    inner: usize,
    across: usize,
    tiles: usize,
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
    sizes1: Sizes,
    sizes2: Sizes,
    #[comptime] form1: Form,
    #[comptime] form2: Form,
    #[comptime] plan: Plan,
) {
    let mut shared = Shared::<[Float4]>::new_slice(comptime!(plan.shared_vectors()));
    if CUBE_POS < sizes1.tiles {
        let source = place_tile(CUBE_POS, &sizes1, plan);
        multiply_tile::<VA1, VB1, VO1>(a1, b1, add1, out1, &mut shared, &source, form1, plan);
    } else {
        let tile = CUBE_POS - sizes1.tiles;
        if tile < sizes2.tiles {
            let source = place_tile(tile, &sizes2, plan);
            multiply_tile::<VA2, VB2, VO2>(a2, b2, add2, out2, &mut shared, &source, form2, plan);
        }
    }
}

#[cube]
fn place_tile(tile: usize, sizes: &Sizes, #[comptime] plan: Plan) -> Source {
    Source {
        row: tile / sizes.across * plan.tile.0,
        column: tile % sizes.across * plan.tile.1,
        rows: sizes.rows,
        columns: sizes.columns,
        inner: sizes.inner,
        begin: 0usize.runtime(),
        end: sizes.inner,
        first_out: 0usize.runtime(),
    }
}
