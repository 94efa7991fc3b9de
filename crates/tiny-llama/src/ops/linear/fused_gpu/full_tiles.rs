//! The values that fill in `matmul.wgsl`: products in f32, tiled by a plan, in one launch.

use crate::ops::gpu::wgsl::Program;
use crate::ops::linear::fused_gpu::epilogue::Store;
use crate::ops::linear::fused_gpu::products::{Product, Products};
use crate::ops::linear::planner::{Problem, TilePlan, padding};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use minijinja::{Value, context};

/// A product whose inner dimension is in `plan.splits` parts, each stored by itself. Plans of one launch differ in nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TiledProduct {
    pub problem: Problem,
    pub plan: TilePlan,
    pub store: Store,
}

impl Product for TiledProduct {
    fn program(all: Products<Self>) -> Program<Products<Self>> {
        Program::new("linear/matmul.wgsl", all.0[0].plan.threads(), all)
    }

    fn groups(&self) -> [usize; 3] {
        self.problem.groups(self.plan.tile, self.plan.splits)
    }

    /// Whole steps.
    fn length(&self) -> usize {
        let share = self.problem.inner.div_ceil(self.plan.splits);
        share.next_multiple_of(self.plan.step)
    }

    fn empty(&self, like: &CubeTensor) -> CubeTensor {
        let splits = self.plan.splits;
        self.store.empty(DType::F32, like, &self.problem, splits)
    }

    fn buffers(&self) -> Vec<(&'static str, &'static str)> {
        let of = |width| if width == 4 { "vec4<f32>" } else { "f32" };
        let [a, b, out] = self.problem.lanes().map(of);
        let all = [("a", a), ("b", b), ("out", out)].into_iter();
        all.chain(self.store.buffers(out)).collect()
    }

    fn values(&self) -> Value {
        let Problem { rows, columns, .. } = self.problem;
        let (a_turned, b_turned) = (!self.problem.a_transposed, self.problem.b_transposed);
        let [a_width, b_width, width] = self.problem.lanes();
        let (height, across) = self.plan.tile;
        let after_a = self.pitch(height, a_turned) * self.plan.step;
        context! {
            // Inner values of a workgroup.
            share => self.length(),
            store => self.store,
            // Values of a store.
            width,
            // Whether tiles extend past an edge of the result.
            ragged => self.problem.is_ragged(self.plan.tile),
            // Whether inner values have the order 0, 4, 8, …, 1, 5, 9, …, because an operand is transposed.
            reordered => a_turned || b_turned,
            a => self.operand(("a", "row"), [height, rows], a_turned, a_width, 0),
            b => self.operand(("b", "column"), [across, columns], b_turned, b_width, after_a),
            ..Value::from_serialize(self.problem),
        }
    }

    fn values_of_launch(all: &Products<Self>) -> Value {
        let plan = &all.0[0].plan;
        let blocks = [plan.tile.0 / plan.block.0, plan.tile.1 / plan.block.1];
        let halves = (1..=plan.slices.ilog2()).map(|i| plan.slices >> i);
        context! {
            bindings => all.bindings(),
            // Vectors of workgroup memory.
            vectors => plan.shared_vectors(),
            threads => plan.threads(),
            tile => plan.tile,
            block => plan.block,
            // Blocks of a tile along each axis, and whether 32 invocations can have 4 × 8 blocks.
            blocks,
            in_fours => blocks[0].is_multiple_of(4) && blocks[1].is_multiple_of(8),
            step => plan.step,
            // Vectors of a step's inner values.
            quads => plan.step / 4,
            unroll => plan.unroll.min(plan.step / plan.slices),
            slices => plan.slices,
            per_slice => plan.slice_threads(),
            // Half of the slices, a quarter, … 1.
            halves => halves.collect::<Vec<_>>(),
        }
    }
}

impl TiledProduct {
    /// Vectors between lines in workgroup memory.
    fn pitch(&self, side: usize, transposed: bool) -> usize {
        side / 4 + usize::from(transposed) * padding(self.plan.step)
    }

    /// The part of an operand that a workgroup stages in a step: `side` of `whole` rows of A or columns of B from `outer` on, for each of
    /// the step's inner values. If these are adjacent in memory (`transposed`), an invocation loads pieces of four lines by four of them.
    fn operand(
        &self,
        (name, outer): (&str, &str),
        [side, whole]: [usize; 2],
        transposed: bool,
        width: usize,
        first: usize,
    ) -> Value {
        let (step, inner) = (self.plan.step, self.problem.inner);
        let gated = name == "b" && self.store == Store::Swiglu;
        let ends = (format!("{whole}u"), "end".to_owned());
        let (stride, (lines, values), vectors) = match transposed {
            true => (inner, ends, 4),
            false => (whole, (ends.1, ends.0), 1),
        };
        let pieces = side / 4 * step / vectors;
        let shares = pieces.div_ceil(self.plan.threads());
        context! {
            name,
            outer,
            transposed,
            // Values of a load, the distance between lines in memory, and the ends of lines and of a line's values.
            width,
            stride,
            lines,
            values,
            // Whether steps and tiles end where the matrix ends.
            even => whole.is_multiple_of(side) && inner.is_multiple_of(self.plan.splits * step),
            // Whether the first half of a tile's lines are gates, and the other half their ups, half of all columns further.
            gated,
            // Vectors of a line in workgroup memory, the distance between lines, and the first line.
            line => side / 4,
            pitch => self.pitch(side, transposed),
            first,
            // Pieces that are loaded in a step, the most that an invocation loads, and their vectors.
            pieces,
            shares,
            held => shares * vectors,
        }
    }
}
