//! Splits products on matrix cores into blocks, and computes a plan's values for `wgsl/matmul_matrix_cores.wgsl`.

use super::epilogue::Store;
use super::matmul_plan::Problem;
use super::wgsl::{self, Binding, Program};
use crate::config::NORM_EPS;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use serde::{Serialize, Serializer};
use std::ops::Range;

/// Side of the matrices that one instruction multiplies.
pub const TILE: usize = 16;
/// Values per vector of a load.
pub const LANES: usize = 4;
/// Padding between rows of workgroup memory, in values, against bank conflicts.
const PADDING: usize = 8;
/// Invocations of a subgroup.
const SUBGROUP: usize = 32;

/// The blocking of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct BlockPlan {
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
    pub fn block(&self) -> (usize, usize) {
        (
            self.tiles.0 * self.subgroups.0 * TILE,
            self.tiles.1 * self.subgroups.1 * TILE,
        )
    }

    /// Whether blocks extend past an edge of the result.
    pub fn is_ragged(&self, problem: &Problem) -> bool {
        let (height, width) = self.block();
        !problem.rows.is_multiple_of(height) || !problem.columns.is_multiple_of(width)
    }

    pub fn groups(&self, problem: &Problem) -> usize {
        let (rows, columns) = self.block();
        problem.rows.div_ceil(rows) * problem.columns.div_ceil(columns)
    }

    pub fn invocations(&self) -> usize {
        self.slices * self.subgroups.0 * self.subgroups.1 * SUBGROUP
    }

    /// Inner values of one part: whole steps.
    pub fn share(&self, problem: &Problem) -> usize {
        problem
            .inner
            .div_ceil(self.splits)
            .next_multiple_of(self.step)
    }

    /// The plan with the inner dimension in about `splits` parts of whole steps.
    pub fn in_parts(self, splits: usize, problem: &Problem) -> Self {
        let share = Self { splits, ..self }.share(problem);
        let splits = problem.inner.div_ceil(share);
        Self { splits, ..self }
    }
}

/// How an operand is converted when it is staged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Staged {
    /// f16, unchanged.
    Short,
    /// f32 rounded to f16.
    Rounded,
    /// f32 as two f16; the operand's largest magnitude is the largest of these values.
    Halves(Range<usize>),
}

/// A problem with its plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockedProduct {
    pub problem: Problem,
    pub plan: BlockPlan,
    pub store: Store,
    /// How A and B are staged.
    pub staged: [Staged; 2],
    /// Parts of the sums of squares of A's rows, if A is the input of a norm whose output is multiplied; otherwise 0.
    pub norm_parts: usize,
}

/// Products in one launch, whose plans have equally many invocations and whose operands have one format. Bindings: for each product
/// A, B, the result, the buffers of its store, and for a norm gain, squares, 1/rms and its output; then the largest magnitudes of f32
/// operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockedProducts(pub Vec<BlockedProduct>);

impl BlockedProducts {
    pub fn program(self) -> Program<Self> {
        let name = match (&self.0[..], self.halves()) {
            ([_], false) => "matmul_matrix_cores",
            ([_], true) => "matmul_split_matrix_cores",
            (_, false) => "matmul_pair_matrix_cores",
            (_, true) => "matmul_pair_split_matrix_cores",
        };
        let invocations = self.invocations();
        Program {
            name,
            ..Program::new("matmul_matrix_cores.wgsl", invocations, self)
        }
    }

    /// Workgroups along each axis.
    pub fn groups(&self) -> [usize; 3] {
        match &self.0[..] {
            [one] => one.groups(),
            several => wgsl::groups(several.iter().map(BlockedProduct::count).sum()),
        }
    }

    fn halves(&self) -> bool {
        self.0.iter().any(BlockedProduct::halves)
    }

    fn invocations(&self) -> usize {
        self.0.first().map_or(1, |it| it.plan.invocations())
    }

    fn bindings(&self) -> Vec<Binding> {
        let mut bindings = Vec::new();
        let mut bind = |name: String, of| bindings.push(Binding { name, of });
        for (i, product) in self.0.iter().enumerate() {
            for operand in product.operands() {
                bind(format!("{}{i}", operand.name), operand.vector);
            }
            let of = product.stored();
            bind(format!("out{i}"), of);
            let of_norm = [
                ("gain", "vec4<f32>"),
                ("squares_of_a", "f32"),
                ("inverse", "f32"),
                ("normed", "vec4<f16>"),
            ];
            let of_norm = of_norm.into_iter().filter(|_| product.norm_parts > 0);
            for (name, of) in product.store.buffers(of).into_iter().chain(of_norm) {
                bind(format!("{name}{i}"), of);
            }
        }
        if self.halves() {
            bind("largest".to_owned(), "f32");
        }
        bindings
    }
}

/// An item of the file's `products`.
#[derive(Serialize)]
struct ProductValues {
    #[serde(flatten)]
    problem: Problem,
    #[serde(flatten)]
    plan: BlockPlan,
    block: (usize, usize),
    /// Inner values of a workgroup.
    share: usize,
    /// Workgroups along each axis, the first workgroup of this product in the launch, and the one after its last.
    groups: [usize; 3],
    begin: usize,
    end: usize,
    /// Whether other workgroups follow.
    bounded: bool,
    store: Store,
    norm_parts: usize,
    /// Whether results pass through workgroup memory, where an invocation reads four adjacent values of a row.
    by_vectors: bool,
    ragged: bool,
    a: Operand,
    b: Operand,
}

/// An operand in memory: lines of adjacent values, which are copied to workgroup memory in this layout.
#[derive(Serialize)]
struct Operand {
    name: &'static str,
    /// The matrix's role in an instruction.
    role: &'static str,
    /// Vector of four values in memory.
    vector: &'static str,
    /// Whether a line belongs to one inner value; otherwise it belongs to one row of A or column of B.
    inner_lines: bool,
    /// Whether the rows of a matrix are lines.
    by_rows: bool,
    /// Lines that a workgroup stages in a step, vectors of each line, and in workgroup memory the distance between lines in vectors
    /// and the vectors of all.
    lines: usize,
    across: usize,
    pitch: usize,
    vectors: usize,
    /// Vectors that each invocation loads, and lines between one and the next.
    loads: usize,
    lines_of_load: usize,
    /// Lines and values of the whole operand, and whether they are whole steps.
    whole: (usize, usize),
    even: bool,
    /// First row of A or column of B.
    outer: &'static str,
    /// Whether its lines are gates and ups, which are interleaved.
    in_turns: bool,
    /// The largest magnitude is the largest of these values.
    largest: Range<usize>,
}

impl Serialize for BlockedProducts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Values {
            bindings: Vec<Binding>,
            halves: bool,
            by_vectors: bool,
            eps: f64,
            threads: usize,
            groups: [usize; 3],
            products: Vec<ProductValues>,
        }
        let launched: usize = self.groups().iter().product();
        let mut end = 0;
        let products = self.0.iter().enumerate().map(|(i, product)| {
            let begin = end;
            end += product.count();
            let bounded = i + 1 < self.0.len() || end < launched;
            product.values(begin, end, bounded)
        });
        let products = products.collect();
        let values = Values {
            bindings: self.bindings(),
            halves: self.halves(),
            by_vectors: self.0.iter().any(BlockedProduct::by_vectors),
            eps: NORM_EPS,
            threads: self.invocations(),
            groups: self.groups(),
            products,
        };
        values.serialize(serializer)
    }
}

impl BlockedProduct {
    fn groups(&self) -> [usize; 3] {
        let (height, width) = self.plan.block();
        let Problem { rows, columns, .. } = self.problem;
        [
            columns.div_ceil(width),
            rows.div_ceil(height),
            self.plan.splits,
        ]
    }

    /// Number of workgroups.
    fn count(&self) -> usize {
        self.groups().iter().product()
    }

    fn is_ragged(&self) -> bool {
        self.plan.is_ragged(&self.problem)
    }

    fn by_vectors(&self) -> bool {
        let sums = self.plan.slices > 1 || self.store == Store::Onto { squares: true };
        self.is_ragged() || !self.store.is_linear() || sums || self.norm_parts > 0
    }

    /// Element type of the stored result.
    fn stored(&self) -> &'static str {
        match (self.store.is_linear(), self.by_vectors()) {
            (true, false) => "f32",
            (true, true) => "vec4<f32>",
            (false, _) => "vec4<f16>",
        }
    }

    fn halves(&self) -> bool {
        matches!(self.staged, [Staged::Halves(_), _])
    }

    /// An empty tensor for the stored result with the plan's parts, on the device of `like`.
    pub fn empty(&self, like: &CubeTensor) -> CubeTensor {
        let dtype = if self.store.is_linear() {
            DType::F32
        } else {
            DType::F16
        };
        self.store
            .empty(dtype, like, &self.problem, self.plan.splits)
    }

    fn values(&self, begin: usize, end: usize, bounded: bool) -> ProductValues {
        let [a, b] = self.operands();
        ProductValues {
            problem: self.problem,
            plan: self.plan,
            block: self.plan.block(),
            share: self.plan.share(&self.problem),
            groups: self.groups(),
            begin,
            end,
            bounded,
            store: self.store,
            norm_parts: self.norm_parts,
            by_vectors: self.by_vectors(),
            ragged: self.is_ragged(),
            a,
            b,
        }
    }

    /// A and B.
    fn operands(&self) -> [Operand; 2] {
        let (problem, (height, width)) = (&self.problem, self.plan.block());
        let [of_a, of_b] = &self.staged;
        // In an untransposed A and a transposed B, the inner values of a row or column are adjacent.
        let (a_lines, b_lines) = (problem.a_transposed, !problem.b_transposed);
        [
            self.operand("a", a_lines, ("row", height, problem.rows), of_a),
            self.operand("b", b_lines, ("column", width, problem.columns), of_b),
        ]
    }

    fn operand(
        &self,
        name: &'static str,
        inner_lines: bool,
        (outer, block, whole): (&'static str, usize, usize),
        staged: &Staged,
    ) -> Operand {
        let part = (block, self.plan.step);
        let size = (whole, self.problem.inner);
        let (part, whole) = if inner_lines {
            ((part.1, part.0), (size.1, size.0))
        } else {
            (part, size)
        };
        let pitch = (part.1 + PADDING) / LANES;
        Operand {
            name,
            role: if name == "a" { "A" } else { "B" },
            vector: match staged {
                Staged::Short => "vec4<f16>",
                Staged::Rounded | Staged::Halves(_) => "vec4<f32>",
            },
            inner_lines,
            by_rows: inner_lines == (name == "b"),
            lines: part.0,
            across: part.1 / LANES,
            pitch,
            vectors: part.0 * pitch,
            loads: part.0 * part.1 / LANES / self.plan.invocations(),
            lines_of_load: self.plan.invocations() * LANES / part.1,
            whole,
            even: whole.0.is_multiple_of(part.0) && whole.1.is_multiple_of(part.1),
            outer,
            in_turns: name == "b" && self.store == Store::Swiglu,
            largest: match staged {
                Staged::Halves(range) => range.clone(),
                Staged::Short | Staged::Rounded => 0..0,
            },
        }
    }
}
