//! Matrix products in f32 for every transposition and any sizes, with an epilogue. The text is `matmul.wgsl`. For each product of a launch it
//! contains `matmul_functions.wgsl` and `matmul_body.wgsl`, which a [`ProductText`] fills in.

#[cfg(test)]
mod tests;

use super::epilogue::Store;
use super::products::{Product, Products};
use crate::ops::gpu::wgsl::filled;
use crate::ops::linear::planner::{Plan, padding};
use minijinja::{Error, Value, context};
use serde::Serialize;

/// Returns the names and the elements of A, B, the result and the buffers of its store.
pub(super) fn buffers(product: &Product) -> Vec<(&'static str, &'static str)> {
    let [a, b, out] = product.problem.lanes().map(|width| match width {
        4 => "vec4<f32>",
        _ => "f32",
    });
    let mut buffers = vec![("a", a), ("b", b), ("out", out)];
    buffers.extend(product.store.buffers(out));
    buffers
}

/// Returns the values that fill in `matmul.wgsl`.
///
/// # Errors
/// When a file does not fit its values.
pub(super) fn values(all: &Products) -> Result<Value, Error> {
    let texts: Vec<ProductText> = all.0.iter().enumerate().map(ProductText::new).collect();
    let mut functions = String::new();
    let mut bodies = Vec::new();
    for text in &texts {
        functions += &filled("linear/matmul_functions.wgsl", text)?;
        bodies.push(filled("linear/matmul_body.wgsl", text)?);
    }
    let plan = &all.0[0].plan;
    Ok(context! {
        texts,
        bindings => all.bindings(),
        // The number of vectors of workgroup memory.
        vectors => plan.shared_vectors(),
        threads => plan.threads(),
        blocks => plan.blocks(),
        functions,
        products => all.dispatched(&bodies),
        ..Value::from_serialize(Block::new(plan))
    })
}

/// The block of C of one invocation, and the parts of a step that several invocations compute. All products of a launch have one block.
#[derive(Serialize)]
struct Block {
    rows_of_block: usize,
    /// The number of vectors of four columns.
    across: usize,
    /// The distances in the tile between groups of four rows, and between vectors, both counted in fours.
    strides: [usize; 2],
    slices: usize,
    slice_threads: usize,
    /// The number of inner values of a step.
    step: usize,
}

impl Block {
    fn new(plan: &Plan) -> Self {
        let rows_of_block = plan.block.0;
        let across = plan.block.1 / 4;
        Self {
            rows_of_block,
            across,
            strides: [plan.tile.0 / rows_of_block, plan.tile.1 / 4 / across],
            slices: plan.slices,
            slice_threads: plan.slice_threads(),
            step: plan.step,
        }
    }
}

/// The values that fill in the text of one product.
#[derive(Serialize)]
struct ProductText<'a> {
    /// The number of the product in its launch, with which the names of its buffers and functions end.
    n: usize,
    rows: usize,
    columns: usize,
    inner: usize,
    /// The sides of a workgroup's tile of C.
    tile: (usize, usize),
    /// True if tiles extend past an edge of C.
    ragged: bool,
    /// The number of values of a store: 4 or 1.
    lanes: usize,
    store: &'a Store,
    /// True if a step's inner values have the order 0, 4, 8, …, 1, 5, 9, …, because an operand is transposed.
    is_reordered: bool,
    /// The number of inner values of a workgroup, and of a slice in a step.
    share: usize,
    per_slice: usize,
    /// The number of inner values whose products are written out.
    unroll: usize,
    /// The numbers of slices to which others pass their sums, one after the other: half of all slices, a quarter, …, 1.
    halves_of_slices: Vec<usize>,
    a: StagedOperand,
    b: StagedOperand,
    #[serde(flatten)]
    block: Block,
}

impl<'a> ProductText<'a> {
    fn new((n, product): (usize, &'a Product)) -> Self {
        let Product {
            problem,
            plan,
            store,
            ..
        } = product;
        let (height, width) = plan.tile;
        let a_sides = [height, problem.rows];
        let a = StagedOperand::new(product, ["a", "row"], a_sides, !problem.a_transposed, 0);
        let after_a = a.pitch * plan.step;
        let b_sides = [width, problem.columns];
        let b_names = ["b", "column"];
        let b = StagedOperand::new(product, b_names, b_sides, problem.b_transposed, after_a);
        let per_slice = plan.step / plan.slices;
        Self {
            n,
            rows: problem.rows,
            columns: problem.columns,
            inner: problem.inner,
            tile: plan.tile,
            ragged: problem.is_ragged(plan.tile),
            lanes: problem.lanes()[2],
            store,
            is_reordered: !problem.a_transposed || problem.b_transposed,
            share: plan.share(problem),
            per_slice,
            unroll: plan.unroll.min(per_slice),
            halves_of_slices: (0..plan.slices.ilog2()).rev().map(|i| 1 << i).collect(),
            a,
            b,
            block: Block::new(plan),
        }
    }
}

/// The part of an operand that a workgroup stages in a step: `line` vectors of rows of A or columns of B from `outer` on, for each of the step's
/// inner values. If these are adjacent in memory (`transposed`), an invocation loads pieces of four lines by four of them.
#[derive(Serialize)]
struct StagedOperand {
    name: &'static str,
    outer: &'static str,
    transposed: bool,
    /// The number of values of a load: 4 or 1.
    width: usize,
    /// True if every load is of four values that are inside of the matrix.
    whole: bool,
    /// The distance between lines in memory.
    stride: usize,
    /// The ends of lines and of a line's values, as WGSL.
    ends: [String; 2],
    /// The distance between gates and ups, if the first half of a tile's lines are gates and the other half their ups.
    ups: Option<usize>,
    /// The number of vectors of a line in workgroup memory.
    line: usize,
    /// The distance between lines in workgroup memory.
    pitch: usize,
    /// The place of the first line in workgroup memory.
    first: usize,
    /// The number of pieces that are loaded in a step, by the workgroup and by one invocation.
    pieces: usize,
    held: usize,
    /// The number of vectors of a piece.
    vectors: usize,
    /// The number of invocations of a workgroup, of which each loads one piece at a time.
    threads: usize,
    /// The number of pieces of a line that is transposed.
    quads: usize,
}

impl StagedOperand {
    /// Makes the staged part of A or B. `side` and `whole` are the number of its rows or columns in a tile, and in all; `first` is the place of
    /// its first line in workgroup memory.
    fn new(
        product: &Product,
        [name, outer]: [&'static str; 2],
        [side, whole]: [usize; 2],
        transposed: bool,
        first: usize,
    ) -> Self {
        let Product { problem, plan, .. } = product;
        let all = format!("{whole}u");
        let end = "end".to_owned();
        let (stride, ends, vectors) = if transposed {
            (problem.inner, [all, end], 4)
        } else {
            (whole, [end, all], 1)
        };
        let is_b = name == "b";
        let width = problem.lanes()[usize::from(is_b)];
        let is_even =
            whole.is_multiple_of(side) && problem.inner.is_multiple_of(plan.splits * plan.step);
        let pieces = side / 4 * plan.step / vectors;
        Self {
            name,
            outer,
            transposed,
            width,
            whole: width == 4 && is_even,
            stride,
            ends,
            ups: (is_b && product.store == Store::Swiglu).then_some(problem.columns / 2),
            line: side / 4,
            pitch: side / 4 + usize::from(transposed) * padding(plan.step),
            first,
            pieces,
            held: pieces.div_ceil(plan.threads()),
            vectors,
            threads: plan.threads(),
            quads: plan.step / 4,
        }
    }
}
