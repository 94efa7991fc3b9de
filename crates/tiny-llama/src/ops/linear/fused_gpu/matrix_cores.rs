//! Matrix products on matrix cores, with f16 operands and f32 sums, as WGSL with cooperative matrices. A subgroup holds a block of
//! 16×16 tiles of the result, and a workgroup stages the operands that its subgroups share. Plans were measured on an H200 over Vulkan
//! (`docs/notes/gpu.md`).
//!
//! The text is `matmul_matrix_cores.wgsl`. For each product of a launch it contains `matmul_matrix_cores_functions.wgsl` and
//! `matmul_matrix_cores_body.wgsl`, filled in with the values of a [`ProductText`].
//!
//! An f32 operand is split into two f16, x·s = high + low, where s is a power of two that brings the tensor's largest value just below
//! f16's largest number. A·B is then high·high + high·low + low·high; the omitted term is below 2⁻²² of a product. Matrix cores round sums
//! towards zero, so the products of a step start from zero and are added to the sums with an f32 addition (Ootomo and Yokota, 2022,
//! arXiv 2203.03341).

#[cfg(test)]
mod tests;

use super::epilogue::Store;
use super::products::{Product, Products, Staged};
use crate::ops::gpu::wgsl::{Binding, filled};
use crate::ops::linear::planner::Problem;
use minijinja::{Error, Value, context};
use serde::Serialize;
use std::ops::Range;

pub(super) const FILE: &str = "linear/matmul_matrix_cores.wgsl";

/// The side of the matrices that one instruction multiplies.
const TILE: usize = 16;
/// The number of values of a vector, which one load reads.
const LANES: usize = 4;
/// The number of unused values between two rows in workgroup memory, which avoid bank conflicts.
const PADDING: usize = 8;

/// Returns true if the rows of all operands start at whole vectors, which matrix cores need.
pub(super) fn fits(problem: &Problem) -> bool {
    problem.lanes().iter().all(|lanes| *lanes == LANES)
}

/// Returns the WGSL type of four values of an operand in memory.
fn vector(staged: &Staged) -> &'static str {
    match staged {
        Staged::Short => "vec4<f16>",
        Staged::Full | Staged::Rounded | Staged::Halves(_) => "vec4<f32>",
    }
}

/// Returns the names and elements of A, B, the result, the buffers of the store, and the buffers of a norm: squares, 1/rms and output.
pub(super) fn buffers(product: &Product) -> Vec<(&'static str, &'static str)> {
    let [a, b] = product.staged.each_ref().map(vector);
    let out = match (product.store.is_linear(), by_vectors(product)) {
        (true, false) => "f32",
        (true, true) => "vec4<f32>",
        (false, _) => "vec4<f16>",
    };
    let mut all = vec![("a", a), ("b", b), ("out", out)];
    all.extend(product.store.buffers(out));
    if product.norm_parts > 0 {
        all.extend([
            ("squares_of_a", "f32"),
            ("inverse", "f32"),
            ("normed", "vec4<f16>"),
        ]);
    }
    all
}

/// Returns true if results pass through workgroup memory, where an invocation reads four adjacent values of a row.
fn by_vectors(product: &Product) -> bool {
    product.problem.is_ragged(product.plan.tile)
        || product.plan.slices > 1
        || product.norm_parts > 0
        || !product.store.is_linear()
        || product.store == FOR_NORM
}

/// The store that adds a matrix and does a part of the norm that follows.
const FOR_NORM: Store = Store::Onto { for_norm: true };

/// Returns the values that fill in the file. The largest magnitudes of f32 operands are the last binding.
///
/// # Errors
/// When a file does not fit its values.
pub(super) fn values(all: &Products) -> Result<Value, Error> {
    let texts: Vec<ProductText> = all.0.iter().enumerate().map(ProductText::new).collect();
    let mut functions = String::new();
    let mut bodies = Vec::new();
    for text in &texts {
        functions += &filled("linear/matmul_matrix_cores_functions.wgsl", text)?;
        bodies.push(filled("linear/matmul_matrix_cores_body.wgsl", text)?);
    }
    let mut bindings = all.bindings();
    if texts[0].halves {
        bindings.push(Binding {
            name: "largest".to_owned(),
            element: "f32",
        });
    }
    let products = all.dispatched(&bodies);
    Ok(context! { texts, bindings, functions, products })
}

/// The values that fill in the text of one product.
#[derive(Serialize)]
struct ProductText<'a> {
    /// The number of the product in its launch, with which the names of its buffers and functions end.
    n: usize,
    rows: usize,
    columns: usize,
    inner: usize,
    /// The sides of a workgroup's block of the result.
    block: (usize, usize),
    /// The number of a subgroup's tiles, one below the other.
    down: usize,
    /// The number of a subgroup's tiles side by side.
    across: usize,
    /// The number of subgroups of a slice, down and across.
    subgroups: (usize, usize),
    threads: usize,
    slices: usize,
    slice_threads: usize,
    /// True if two groups of subgroups compute the block.
    sliced: bool,
    /// True if f32 operands are staged as two f16.
    halves: bool,
    /// The names of an operand's staged matrices.
    parts: &'static [&'static str],
    /// The number of inner values that a step takes.
    step: usize,
    /// The number of inner values of a workgroup's part of the product.
    share: usize,
    by_vectors: bool,
    /// True if blocks extend past an edge of the result.
    ragged: bool,
    store: &'a Store,
    for_norm: bool,
    norm_parts: usize,
    /// The number of blocks side by side, which share the work of writing the norm before the product.
    blocks_across: usize,
    /// The number of vectors of a row of the norm's output that a block writes.
    share_of_norm: usize,
    a: Operand,
    b: Operand,
}

impl<'a> ProductText<'a> {
    fn new((n, product): (usize, &'a Product)) -> Self {
        let Product {
            problem,
            plan,
            store,
            staged,
            norm_parts,
        } = product;
        let halves = matches!(staged, [Staged::Halves(_), _]);
        let [blocks_across, ..] = product.groups();
        let (height, width) = plan.tile;
        // In an untransposed A and a transposed B, the inner values of a row or column are adjacent.
        let a_sides = ("row", height, problem.rows);
        let b_sides = ("column", width, problem.columns);
        Self {
            n,
            rows: problem.rows,
            columns: problem.columns,
            inner: problem.inner,
            block: plan.tile,
            down: plan.block.0 / TILE,
            across: plan.block.1 / TILE,
            subgroups: plan.blocks(),
            threads: plan.threads(),
            slices: plan.slices,
            slice_threads: plan.slice_threads(),
            sliced: plan.slices > 1,
            halves,
            parts: if halves {
                &["high", "low"]
            } else {
                &["staged"]
            },
            step: plan.step,
            share: plan.share(problem),
            by_vectors: by_vectors(product),
            ragged: problem.is_ragged(plan.tile),
            store,
            for_norm: *store == FOR_NORM,
            norm_parts: *norm_parts,
            blocks_across,
            share_of_norm: (problem.inner / LANES).div_ceil(blocks_across),
            a: Operand::new(product, "a", problem.a_transposed, a_sides),
            b: Operand::new(product, "b", !problem.b_transposed, b_sides),
        }
    }
}

/// The layout of an operand. In memory it has lines of adjacent values, and it is copied to workgroup memory in this layout. A line belongs to
/// one inner value (`inner_lines`), or to one row of A or column of B.
#[derive(Serialize)]
struct Operand {
    name: &'static str,
    /// The variable that holds the block's first row of A or column of B.
    outer: &'static str,
    inner_lines: bool,
    /// The WGSL type of four values in memory.
    vector: &'static str,
    /// The number of vectors of a line in a step.
    across: usize,
    /// The number of vectors between the starts of lines in workgroup memory.
    pitch: usize,
    /// The number of vectors in workgroup memory.
    size: usize,
    /// The number of vectors that an invocation loads in a step.
    loads: usize,
    /// The number of lines from one load of an invocation to the next.
    lines_of_load: usize,
    /// The number of lines of the whole operand, and of values of a line.
    whole: [usize; 2],
    /// True if the operand consists of whole steps.
    even: bool,
    /// True if the lines are gates and ups, which are interleaved.
    in_turns: bool,
    /// The range in the last binding whose largest value is the operand's largest magnitude.
    largest: Range<usize>,
}

impl Operand {
    /// Makes the layout of A or B. `block` is the number of its rows or columns in a block, `whole` their number in all.
    fn new(
        product: &Product,
        name: &'static str,
        inner_lines: bool,
        (outer, block, whole): (&'static str, usize, usize),
    ) -> Self {
        let is_b = name == "b";
        let staged = &product.staged[usize::from(is_b)];
        // The number of lines and of values of a line, each in a step and in the whole operand.
        let outer_sizes = [block, whole];
        let inner_sizes = [product.plan.step, product.problem.inner];
        let [[lines, all_lines], [values, all_values]] = if inner_lines {
            [inner_sizes, outer_sizes]
        } else {
            [outer_sizes, inner_sizes]
        };
        let pitch = (values + PADDING) / LANES;
        let lines_of_load = product.plan.threads() * LANES / values;
        Self {
            name,
            outer,
            inner_lines,
            vector: vector(staged),
            across: values / LANES,
            pitch,
            size: lines * pitch,
            loads: lines / lines_of_load,
            lines_of_load,
            whole: [all_lines, all_values],
            even: all_lines.is_multiple_of(lines) && all_values.is_multiple_of(values),
            in_turns: is_b && product.store == Store::Swiglu,
            largest: match staged {
                Staged::Halves(range) => range.clone(),
                Staged::Full | Staged::Short | Staged::Rounded => 0..0,
            },
        }
    }
}
