//! The values that fill in `wgsl/matmul.wgsl`: products in f32, tiled by a plan, in one launch.

use super::epilogue::Store;
use super::matmul_plan::{Problem, TilePlan, padding};
use super::wgsl::{self, Binding, Program};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use serde::{Serialize, Serializer};

/// A product whose inner dimension is in `splits` parts, each stored by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TiledProduct {
    pub problem: Problem,
    pub splits: usize,
    pub store: Store,
}

/// Products in one launch. Bindings: for each product A, B, the result and the inputs of its store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TiledProducts {
    pub plan: TilePlan,
    pub products: Vec<TiledProduct>,
}

impl TiledProducts {
    pub fn program(self) -> Program<Self> {
        Program::new("matmul.wgsl", self.plan.threads(), self)
    }

    /// Workgroups along each axis.
    pub fn groups(&self) -> [usize; 3] {
        match self.products.as_slice() {
            [one] => one.groups(&self.plan),
            all => {
                let all = all.iter().map(|it| it.groups(&self.plan));
                wgsl::groups(all.map(|groups| groups.iter().product::<usize>()).sum())
            }
        }
    }
}

/// An item of the file's `products`.
#[derive(Serialize)]
struct TiledValues {
    #[serde(flatten)]
    problem: Problem,
    /// Inner values of a workgroup.
    share: usize,
    /// Workgroups along each axis, the first workgroup of this product in the launch, and the one after its last.
    groups: [usize; 3],
    begin: usize,
    end: usize,
    /// Whether other workgroups follow.
    bounded: bool,
    store: Store,
    /// Values of a store.
    width: usize,
    /// Whether tiles extend past an edge of the result.
    ragged: bool,
    /// Whether inner values have the order 0, 4, 8, …, 1, 5, 9, …, because an operand is transposed.
    reordered: bool,
    a: TiledOperand,
    b: TiledOperand,
}

/// The part of an operand that a workgroup stages in a step: `side` rows of A or columns of B, for each of the step's inner values.
#[derive(Serialize)]
struct TiledOperand {
    name: &'static str,
    /// First row or column of the tile.
    outer: &'static str,
    /// Whether inner values are adjacent in memory. An invocation then loads pieces of four lines by four inner values.
    transposed: bool,
    /// Values of a load, the distance between lines in memory, and the ends of lines and of a line's values.
    width: usize,
    stride: usize,
    lines: String,
    values: String,
    /// Whether steps and tiles end where the matrix ends.
    even: bool,
    /// Whether the first half of a tile's lines are gates, and the other half their ups, `lines` further.
    gated: bool,
    /// Vectors of a line in workgroup memory, the distance between lines, and the first line.
    line: usize,
    pitch: usize,
    first: usize,
    /// Pieces that are loaded in a step, the most that an invocation loads, and their vectors.
    pieces: usize,
    shares: usize,
    held: usize,
}

impl Serialize for TiledProducts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Values {
            bindings: Vec<Binding>,
            /// Vectors of workgroup memory.
            vectors: usize,
            threads: usize,
            groups: [usize; 3],
            tile: (usize, usize),
            block: (usize, usize),
            /// Blocks of a tile along each axis.
            blocks: [usize; 2],
            /// Whether 32 invocations can have 4 × 8 blocks.
            in_fours: bool,
            step: usize,
            /// Vectors of a step's inner values.
            quads: usize,
            unroll: usize,
            slices: usize,
            per_slice: usize,
            /// Half of the slices, a quarter, … 1.
            halves: Vec<usize>,
            products: Vec<TiledValues>,
        }
        let plan = &self.plan;
        let launched: usize = self.groups().iter().product();
        let mut end = 0;
        let products = self.products.iter().enumerate().map(|(i, product)| {
            let begin = end;
            end += product.groups(plan).iter().product::<usize>();
            let bounded = i + 1 < self.products.len() || end < launched;
            product.values(plan, begin, end, bounded)
        });
        let products: Vec<TiledValues> = products.collect();
        let bindings = self.products.iter().zip(&products).enumerate();
        let bindings = bindings.flat_map(|(n, (product, values))| product.bindings(n, values));
        let bindings = bindings.collect();
        let blocks = [plan.tile.0 / plan.block.0, plan.tile.1 / plan.block.1];
        let values = Values {
            bindings,
            vectors: plan.shared_vectors(),
            threads: plan.threads(),
            groups: self.groups(),
            tile: plan.tile,
            block: plan.block,
            blocks,
            in_fours: blocks[0].is_multiple_of(4) && blocks[1].is_multiple_of(8),
            step: plan.step,
            quads: plan.step / 4,
            unroll: plan.unroll.min(plan.step / plan.slices),
            slices: plan.slices,
            per_slice: plan.slice_threads(),
            halves: (1..=plan.slices.ilog2())
                .map(|i| plan.slices >> i)
                .collect(),
            products,
        };
        values.serialize(serializer)
    }
}

impl TiledProduct {
    /// An empty tensor for the stored result, on the device of `like`.
    pub fn empty(&self, like: &CubeTensor) -> CubeTensor {
        self.store
            .empty(DType::F32, like, &self.problem, self.splits)
    }

    fn bindings(&self, n: usize, values: &TiledValues) -> Vec<Binding> {
        let of = |width| if width == 4 { "vec4<f32>" } else { "f32" };
        let (a, b, out) = (of(values.a.width), of(values.b.width), of(values.width));
        let all = [("a", a), ("b", b), ("out", out)].into_iter();
        let binding = |(name, of)| Binding {
            name: format!("{name}{n}"),
            of,
        };
        all.chain(self.store.buffers(out)).map(binding).collect()
    }

    fn groups(&self, plan: &TilePlan) -> [usize; 3] {
        let Problem { rows, columns, .. } = self.problem;
        [
            columns.div_ceil(plan.tile.1),
            rows.div_ceil(plan.tile.0),
            self.splits,
        ]
    }

    /// Inner values of one part: whole steps.
    pub fn share(&self, plan: &TilePlan) -> usize {
        let share = self.problem.inner.div_ceil(self.splits);
        share.next_multiple_of(plan.step)
    }

    fn values(&self, plan: &TilePlan, begin: usize, end: usize, bounded: bool) -> TiledValues {
        let problem = self.problem;
        let Problem { rows, columns, .. } = problem;
        let [a_width, b_width, width] = problem.lanes();
        let (a_side, b_side) = ([plan.tile.0, rows], [plan.tile.1, columns]);
        let (a_turned, b_turned) = (!problem.a_transposed, problem.b_transposed);
        let a = self.operand(plan, ("a", "row"), a_side, a_turned, a_width);
        let mut b = self.operand(plan, ("b", "column"), b_side, b_turned, b_width);
        b.first = a.pitch * plan.step;
        b.gated = self.store == Store::Swiglu;
        if b.gated {
            b.lines = format!("{}u", columns / 2);
        }
        TiledValues {
            problem,
            share: self.share(plan),
            groups: self.groups(plan),
            begin,
            end,
            bounded,
            store: self.store,
            width,
            ragged: !rows.is_multiple_of(plan.tile.0) || !columns.is_multiple_of(plan.tile.1),
            reordered: a.transposed || b.transposed,
            a,
            b,
        }
    }

    /// The operand with `side` of `whole` rows or columns in a tile, from line 0 on.
    fn operand(
        &self,
        plan: &TilePlan,
        (name, outer): (&'static str, &'static str),
        [side, whole]: [usize; 2],
        transposed: bool,
        width: usize,
    ) -> TiledOperand {
        let (line, inner) = (side / 4, self.problem.inner);
        let (of_side, of_inner) = (format!("{whole}u"), "end".to_owned());
        let (stride, lines, values, vectors) = if transposed {
            (inner, of_side, of_inner, 4)
        } else {
            (whole, of_inner, of_side, 1)
        };
        let pieces = line * plan.step / vectors;
        let shares = pieces.div_ceil(plan.threads());
        TiledOperand {
            name,
            outer,
            transposed,
            width,
            stride,
            lines,
            values,
            gated: false,
            even: whole.is_multiple_of(side) && inner.is_multiple_of(self.splits * plan.step),
            line,
            pitch: line + if transposed { padding(plan.step) } else { 0 },
            first: 0,
            pieces,
            shares,
            held: shares * vectors,
        }
    }
}
