//! Splits products on matrix cores into blocks, and computes a plan's values for `matmul_matrix_cores.wgsl`.

use crate::ops::gpu::wgsl::{Binding, Program};
use crate::ops::linear::fused_gpu::epilogue::Store;
use crate::ops::linear::fused_gpu::products::{Product, Products};
use crate::ops::linear::planner::Problem;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use minijinja::{Value, context};
use std::ops::Range;

/// Side of the matrices that one instruction multiplies.
pub(super) const TILE: usize = 16;
/// Values per vector of a load.
pub(super) const LANES: usize = 4;
/// Padding between rows of workgroup memory, in values, against bank conflicts.
const PADDING: usize = 8;
/// Invocations of a subgroup.
const SUBGROUP: usize = 32;

/// The blocking of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockPlan {
    /// 16×16 tiles of the result that a subgroup holds, rows by columns.
    pub tiles: (usize, usize),
    /// Subgroups of a workgroup, rows by columns.
    pub subgroups: (usize, usize),
    /// Groups of these subgroups, which compute the same block from different inner values of each step: 1 or 2.
    pub slices: usize,
    /// Inner values staged together.
    pub step: usize,
    /// Workgroups along the inner dimension, whose results a second launch or the next kernel adds.
    pub splits: usize,
}

impl BlockPlan {
    /// Values of the result of one workgroup, rows by columns.
    pub(super) fn block(&self) -> (usize, usize) {
        (
            self.tiles.0 * self.subgroups.0 * TILE,
            self.tiles.1 * self.subgroups.1 * TILE,
        )
    }

    /// Workgroups for a problem in one part.
    pub(super) fn groups(&self, problem: &Problem) -> usize {
        problem.groups(self.block(), 1).iter().product()
    }

    pub(super) fn invocations(&self) -> usize {
        self.slices * self.subgroups.0 * self.subgroups.1 * SUBGROUP
    }

    /// Inner values of one part: whole steps.
    pub(super) fn share(&self, problem: &Problem) -> usize {
        problem
            .inner
            .div_ceil(self.splits)
            .next_multiple_of(self.step)
    }

    /// The plan with the inner dimension in about `splits` parts of whole steps.
    pub(super) fn in_parts(self, splits: usize, problem: &Problem) -> Self {
        let share = Self { splits, ..self }.share(problem);
        let splits = problem.inner.div_ceil(share);
        Self { splits, ..self }
    }
}

/// How an operand is converted when it is staged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Staged {
    /// f16, unchanged.
    Short,
    /// f32 rounded to f16.
    Rounded,
    /// f32 as two f16; the operand's largest magnitude is the largest of these values.
    Halves(Range<usize>),
}

impl Staged {
    /// Four values in memory.
    fn vector(&self) -> &'static str {
        match self {
            Self::Short => "vec4<f16>",
            Self::Rounded | Self::Halves(_) => "vec4<f32>",
        }
    }
}

/// A problem with its plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockedProduct {
    pub problem: Problem,
    pub plan: BlockPlan,
    pub store: Store,
    /// How A and B are staged.
    pub staged: [Staged; 2],
    /// Parts of the sums of squares of x's rows, if A is x·gain of a norm whose output is multiplied; otherwise 0.
    pub norm_parts: usize,
}

impl Product for BlockedProduct {
    fn program(all: Products<Self>) -> Program<Products<Self>> {
        let name = match &all.0[..] {
            [one] if !one.halves() => "matmul_matrix_cores",
            [_] => "matmul_split_matrix_cores",
            [one, ..] if !one.halves() => "matmul_pair_matrix_cores",
            _ => "matmul_pair_split_matrix_cores",
        };
        let invocations = all.0[0].plan.invocations();
        Program {
            name,
            ..Program::new("linear/matmul_matrix_cores.wgsl", invocations, all)
        }
    }

    fn groups(&self) -> [usize; 3] {
        self.problem.groups(self.plan.block(), self.plan.splits)
    }

    fn length(&self) -> usize {
        self.problem.inner / self.plan.splits
    }

    fn empty(&self, like: &CubeTensor) -> CubeTensor {
        let dtype = match self.store.is_linear() {
            true => DType::F32,
            false => DType::F16,
        };
        let splits = self.plan.splits;
        self.store.empty(dtype, like, &self.problem, splits)
    }

    /// And those of a norm: squares, 1/rms and its output.
    fn buffers(&self) -> Vec<(&'static str, &'static str)> {
        let [a, b] = self.staged.each_ref().map(Staged::vector);
        let out = match (self.store.is_linear(), self.by_vectors()) {
            (true, false) => "f32",
            (true, true) => "vec4<f32>",
            (false, _) => "vec4<f16>",
        };
        let mut all = vec![("a", a), ("b", b), ("out", out)];
        all.extend(self.store.buffers(out));
        if self.norm_parts > 0 {
            all.extend([("squares_of_a", "f32"), ("inverse", "f32")]);
            all.push(("normed", "vec4<f16>"));
        }
        all
    }

    fn values(&self) -> Value {
        let (problem, plan) = (&self.problem, &self.plan);
        let (height, width) = plan.block();
        // In an untransposed A and a transposed B, the inner values of a row or column are adjacent.
        let (a_lines, b_lines) = (problem.a_transposed, !problem.b_transposed);
        context! {
            tiles => plan.tiles,
            subgroups => plan.subgroups,
            slices => plan.slices,
            step => plan.step,
            block => plan.block(),
            // Inner values of a workgroup.
            share => plan.share(problem),
            store => self.store,
            norm_parts => self.norm_parts,
            by_vectors => self.by_vectors(),
            ragged => problem.is_ragged(plan.block()),
            a => self.operand("a", a_lines, ("row", height, problem.rows)),
            b => self.operand("b", b_lines, ("column", width, problem.columns)),
            ..Value::from_serialize(problem),
        }
    }

    /// The largest magnitudes of f32 operands are the last binding.
    fn values_of_launch(all: &Products<Self>) -> Value {
        let mut bindings = all.bindings();
        let halves = all.0[0].halves();
        bindings.extend(halves.then(|| Binding {
            name: "largest".to_owned(),
            of: "f32",
        }));
        context! {
            bindings,
            halves,
            by_vectors => all.0.iter().any(Self::by_vectors),
            threads => all.0[0].plan.invocations(),
        }
    }
}

impl BlockedProduct {
    /// Whether results pass through workgroup memory, where an invocation reads four adjacent values of a row.
    fn by_vectors(&self) -> bool {
        let sums = self.plan.slices > 1 || self.store == Store::Onto { for_norm: true };
        let ragged = self.problem.is_ragged(self.plan.block());
        ragged || !self.store.is_linear() || sums || self.norm_parts > 0
    }

    fn halves(&self) -> bool {
        matches!(self.staged, [Staged::Halves(_), _])
    }

    /// An operand in memory: lines of adjacent values, which are copied to workgroup memory in this layout. A line belongs to one inner
    /// value (`inner_lines`), or to one row of A or column of B.
    fn operand(
        &self,
        name: &str,
        inner_lines: bool,
        (outer, block, whole): (&str, usize, usize),
    ) -> Value {
        let is_b = name == "b";
        let staged = &self.staged[usize::from(is_b)];
        // Each with the number in a step and in the whole operand.
        let (of_outer, of_inner) = ((block, whole), (self.plan.step, self.problem.inner));
        let [lines, values] = if inner_lines {
            [of_inner, of_outer]
        } else {
            [of_outer, of_inner]
        };
        let invocations = self.plan.invocations();
        let pitch = (values.0 + PADDING) / LANES;
        context! {
            name,
            // The matrix's role in an instruction, and whether the matrix's rows are lines.
            role => if is_b { "B" } else { "A" },
            by_rows => inner_lines == is_b,
            // Vector of four values in memory.
            vector => staged.vector(),
            inner_lines,
            // Vectors of a line, and in workgroup memory the distance between lines in vectors and the vectors of all.
            across => values.0 / LANES,
            pitch,
            vectors => lines.0 * pitch,
            // Vectors that each invocation loads, and lines between one and the next.
            loads => lines.0 * values.0 / LANES / invocations,
            lines_of_load => invocations * LANES / values.0,
            // First row of A or column of B.
            outer,
            whole => [lines.1, values.1],
            // Whether the operand is whole steps.
            even => lines.1.is_multiple_of(lines.0) && values.1.is_multiple_of(values.0),
            // Whether its lines are gates and ups, which are interleaved.
            in_turns => is_b && self.store == Store::Swiglu,
            // The largest magnitude is the largest of these values.
            largest => match staged {
                Staged::Halves(range) => range.clone(),
                Staged::Short | Staged::Rounded => 0..0,
            },
        }
    }
}
