//! The text of products on matrix cores (see `matrix_cores`): which block a workgroup has, and what its subgroups compute.

use super::matmul_plan::Problem;
use super::matrix_cores_stage::{Operand, Staged, TILE};
use super::wgsl::{Program, line};
use super::{MAX_GROUPS, empty};
use burn_cubecl::tensor::CubeTensor;
use std::fmt::Write as _;
use std::ops::Range;

/// Invocations of a subgroup.
const SUBGROUP: usize = 32;
/// Inner values whose products are written out one after the other; a step has as many, or twice as many.
const TOGETHER: usize = 32;

/// The blocking of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// 16×16 tiles of the result that a subgroup holds, rows by columns.
    pub tiles: (usize, usize),
    /// Subgroups of a workgroup, rows by columns.
    pub subgroups: (usize, usize),
    /// Inner values staged at a time.
    pub step: usize,
    /// Workgroups along the inner dimension, whose results a second launch adds.
    pub splits: usize,
}

impl Plan {
    /// Values of the result of one workgroup, rows by columns.
    pub fn block(&self) -> (usize, usize) {
        (
            self.tiles.0 * self.subgroups.0 * TILE,
            self.tiles.1 * self.subgroups.1 * TILE,
        )
    }

    /// Whether blocks reach over an edge of the result.
    pub fn is_ragged(&self, problem: &Problem) -> bool {
        let (height, width) = self.block();
        !problem.rows.is_multiple_of(height) || !problem.columns.is_multiple_of(width)
    }

    pub fn groups(&self, problem: &Problem) -> usize {
        let (rows, columns) = self.block();
        problem.rows.div_ceil(rows) * problem.columns.div_ceil(columns)
    }

    pub fn invocations(&self) -> usize {
        self.subgroups.0 * self.subgroups.1 * SUBGROUP
    }

    /// Inner values of one part: whole steps.
    pub fn share(&self, problem: &Problem) -> usize {
        problem
            .inner
            .div_ceil(self.splits)
            .next_multiple_of(self.step)
    }

    /// The inner dimension in about `splits` parts: as many as there are of whole steps.
    pub fn in_parts(self, splits: usize, problem: &Problem) -> Self {
        let share = Self { splits, ..self }.share(problem);
        let splits = problem.inner.div_ceil(share);
        Self { splits, ..self }
    }
}

/// One problem by one plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub problem: Problem,
    pub plan: Plan,
    /// Whether a matrix of the result's shape is added.
    pub residual: bool,
    /// How A is staged, and B.
    pub staged: [Staged; 2],
}

/// The kernel of some products, whose plans have as many invocations and whose operands one format. Bindings: A, B, the
/// results (and the residual) of each, and then the largest magnitudes of f32 operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Products(pub Vec<Product>);

impl Program for Products {
    fn name(&self) -> &'static str {
        match (&self.0[..], self.halves()) {
            ([_], false) => "matmul_matrix_cores",
            ([_], true) => "matmul_split_matrix_cores",
            (_, false) => "matmul_pair_matrix_cores",
            (_, true) => "matmul_pair_split_matrix_cores",
        }
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.invocations() as u32, 1, 1]
    }

    fn text(&self) -> String {
        let mut text = String::from("enable f16;\nenable wgpu_cooperative_matrix;\n");
        // Declared as written, the operands are read where the text says so. A driver moves the loads of a buffer that is only
        // read down to their use, behind the products that were to hide them.
        let mut bindings = Vec::new();
        for (i, product) in self.0.iter().enumerate() {
            let operands = product
                .operands()
                .map(|it| (format!("{}{i}", it.name), it.vector()));
            bindings.extend(operands);
            bindings.push((format!("out{i}"), "f32"));
            bindings.extend(product.residual.then(|| (format!("residual{i}"), "f32")));
        }
        bindings.extend(self.halves().then(|| ("largest".to_owned(), "f32")));
        for (i, (name, of)) in bindings.iter().enumerate() {
            line!(
                text,
                "@group(0) @binding({i}) var<storage, read_write> {name}: array<{of}>;"
            );
        }
        // Workgroup memory is that of the product that takes the most.
        let operands: Vec<Operand> = self.0.iter().flat_map(Product::operands).collect();
        for (name, half) in operands.iter().take(2).flat_map(Operand::parts) {
            let same = operands.iter().filter(|it| it.name == name.name);
            let vectors = same.map(|it| it.part.0 * it.pitch()).max().unwrap_or(0);
            let name = name.name;
            line!(
                text,
                "var<workgroup> {name}_{half}: array<vec4<f16>, {vectors}>;"
            );
        }
        if self.halves() {
            // Two are used. Loads of matrices take addresses that are multiples of 16 bytes, wherever a driver puts these.
            line!(text, "var<workgroup> bits: array<atomic<u32>, 4>;");
        }
        if self.0.iter().any(Product::is_ragged) {
            let values = TILE * TILE * self.invocations() / SUBGROUP;
            line!(text, "var<workgroup> edge: array<f32, {values}>;");
        }
        line!(
            text,
            "@compute @workgroup_size({})\nfn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{",
            self.invocations()
        );
        let [across, down, deep] = self.groups();
        let launched = across * down * deep;
        line!(
            text,
            "let place = (id.z * {down}u + id.y) * {across}u + id.x;"
        );
        let mut begin = 0;
        for (i, product) in self.0.iter().enumerate() {
            let [across, down, deep] = product.groups();
            let end = begin + across * down * deep;
            // Control flow that naga knows to be the same for a whole workgroup.
            let bounded = i + 1 < self.0.len() || end < launched;
            let last = i + 1 == self.0.len();
            line!(
                text,
                "{}{{\n  let at = place - {begin}u;",
                if bounded {
                    format!("if place < {end}u ")
                } else {
                    String::new()
                }
            );
            line!(
                text,
                "  let group = vec3<u32>(at % {across}u, at / {across}u % {down}u, at / {}u);",
                across * down
            );
            product.multiply(i, &mut text);
            line!(text, "}}{}", if last { "" } else { " else " });
            begin = end;
        }
        line!(text, "}}");
        text
    }
}

impl Products {
    /// Workgroups along each axis.
    pub fn groups(&self) -> [usize; 3] {
        match &self.0[..] {
            [one] => one.groups(),
            several => {
                let counts = several
                    .iter()
                    .map(|it| it.groups().iter().product::<usize>());
                let all: usize = counts.sum();
                let rows = all.div_ceil(MAX_GROUPS);
                [all.div_ceil(rows), rows, 1]
            }
        }
    }

    fn halves(&self) -> bool {
        self.0.iter().any(Product::halves)
    }

    fn invocations(&self) -> usize {
        self.0.first().map_or(1, |it| it.plan.invocations())
    }
}

impl Product {
    fn groups(&self) -> [usize; 3] {
        let (height, width) = self.plan.block();
        let Problem { rows, columns, .. } = self.problem;
        [
            columns.div_ceil(width),
            rows.div_ceil(height),
            self.plan.splits,
        ]
    }

    fn is_ragged(&self) -> bool {
        self.plan.is_ragged(&self.problem)
    }

    fn halves(&self) -> bool {
        matches!(self.staged, [Staged::Halves(_), _])
    }

    /// Its result in as many parts as the plan has, on the device of `like`.
    pub fn empty(&self, like: &CubeTensor) -> CubeTensor {
        let Problem { rows, columns, .. } = self.problem;
        empty(like, [self.plan.splits, rows, columns])
    }

    /// Multiplies the block of `group`, from the bindings numbered `number`.
    fn multiply(&self, number: usize, text: &mut String) {
        let Plan {
            tiles: (down, across),
            subgroups,
            step,
            ..
        } = self.plan;
        let (height, width) = self.plan.block();
        let Problem {
            rows,
            columns,
            inner,
            ..
        } = self.problem;
        let share = self.plan.share(&self.problem);
        let threads = self.plan.invocations();
        let operands = self.operands();
        let blocks = || (0..down).flat_map(|i| (0..across).map(move |j| (i, j)));
        let ragged = self.is_ragged();

        line!(
            text,
            "  let row = group.y * {height}u;\n  let column = group.x * {width}u;"
        );
        line!(text, "  let subgroup = lane / {SUBGROUP}u;");
        line!(
            text,
            "  let a_first = subgroup / {}u * {}u;",
            subgroups.1,
            down * TILE
        );
        line!(
            text,
            "  let b_first = subgroup % {}u * {}u;",
            subgroups.1,
            across * TILE
        );
        line!(
            text,
            "  let target_first = group.z * {}u + (row + a_first) * {columns}u + column + b_first;",
            rows * columns
        );
        if let [Staged::Halves(a), Staged::Halves(b)] = &self.staged {
            text.push_str(
                "  if lane < 2u { atomicStore(&bits[lane], 0u); }\n  workgroupBarrier();\n",
            );
            for (i, Range { start, end }) in [a, b].into_iter().enumerate() {
                line!(
                    text,
                    "  for (var i = {start}u + lane; i < {end}u; i += {threads}u) {{ atomicMax(&bits[{i}], bitcast<u32>(largest[i])); }}"
                );
            }
            text.push_str("  workgroupBarrier();\n");
            // 2^(14 - e) for a largest value of exponent e, and its inverse.
            for (i, operand) in operands.iter().enumerate() {
                let name = operand.name;
                line!(
                    text,
                    "  let {name}_exponent = clamp(atomicLoad(&bits[{i}]) >> 23u, 15u, 254u);"
                );
                line!(
                    text,
                    "  let {name}_scale = bitcast<f32>((268u - {name}_exponent) << 23u);\n  let {name}_inverse = bitcast<f32>(({name}_exponent - 14u) << 23u);"
                );
            }
        }
        for (i, j) in blocks() {
            line!(text, "  var sum{i}_{j} = coop_mat16x16<f32, C>();");
        }
        line!(
            text,
            "  let begin = group.z * {share}u;\n  let end = min(begin + {share}u, {inner}u);\n  var k = begin;\n  var next = begin;"
        );
        for operand in &operands {
            for load in 0..operand.loads(threads) {
                line!(
                    text,
                    "  var {}_{load} = {}();",
                    operand.name,
                    operand.vector()
                );
            }
            operand.fetch(text, number, threads);
        }
        line!(text, "  while k < end {{");
        for operand in &operands {
            operand.stage(text, threads);
        }
        // The next step's values are on their way while this one's are multiplied. After the last step that is the first one's.
        line!(
            text,
            "    workgroupBarrier();\n    k += {step}u;\n    next = select(k, begin, k >= end);"
        );
        for operand in &operands {
            operand.fetch(text, number, threads);
        }
        let [of_a, of_b] = &operands;
        // In training another kernel follows each launch, and the longer the programs are, the longer each waits for its
        // instructions: a loop, which the driver leaves one, is shorter.
        let inner = || (0..TOGETHER).step_by(TILE);
        line!(
            text,
            "    for (var slice = 0u; slice < {step}u; slice += {TOGETHER}u) {{"
        );
        for (operand, half) in of_a.parts() {
            for (i, at) in (0..down).flat_map(|i| inner().map(move |at| (i, at))) {
                operand.load(text, half, i, at);
            }
        }
        for j in 0..across {
            for (operand, half) in of_b.parts() {
                inner().for_each(|at| operand.load(text, half, j, at));
            }
            for i in 0..down {
                let add = |a: &str, b: &str, at: usize, sum: String| {
                    format!("coopMultiplyAdd(a_{a}{i}_{at}, b_{b}{j}_{at}, {sum})")
                };
                let sum = format!("sum{i}_{j}");
                let products = if !self.halves() {
                    inner().fold(sum.clone(), |sum, at| add("high", "high", at, sum))
                } else {
                    let zero = "coop_mat16x16<f32, C>()".to_owned();
                    let step = inner().fold(zero, |sum, at| {
                        let low = add("high", "low", at, add("low", "high", at, sum));
                        add("high", "high", at, low)
                    });
                    format!("{sum} + {step}")
                };
                line!(text, "      {sum} = {products};");
            }
        }
        line!(text, "    }}");
        line!(text, "    workgroupBarrier();\n  }}");
        let unscaled = if self.halves() {
            " * a_inverse * b_inverse"
        } else {
            ""
        };
        for (i, j) in blocks() {
            let (down, across) = (i * TILE, j * TILE);
            let at = format!("target_first + {}u", down * columns + across);
            if self.residual {
                line!(
                    text,
                    "  sum{i}_{j} = sum{i}_{j}{unscaled} + coopLoadT<coop_mat16x16<f32, C>>(&residual{number}[{at}], {columns}u);"
                );
            } else if self.halves() {
                line!(text, "  sum{i}_{j} = sum{i}_{j}{unscaled};");
            }
            if !ragged {
                line!(
                    text,
                    "  coopStoreT(sum{i}_{j}, &out{number}[{at}], {columns}u);"
                );
                continue;
            }
            // Through workgroup memory, so that what lies past the edges is left out.
            line!(
                text,
                "  coopStoreT(sum{i}_{j}, &edge[subgroup * {}u], {TILE}u);\n  workgroupBarrier();",
                TILE * TILE
            );
            line!(
                text,
                "  for (var e = lane % {SUBGROUP}u; e < {}u; e += {SUBGROUP}u) {{",
                TILE * TILE
            );
            line!(
                text,
                "    let r = e / {TILE}u + {down}u;\n    let c = e % {TILE}u + {across}u;"
            );
            line!(
                text,
                "    if row + a_first + r < {rows}u && column + b_first + c < {columns}u {{ out{number}[target_first + r * {columns}u + c] = edge[subgroup * {}u + e]; }}",
                TILE * TILE
            );
            line!(text, "  }}\n  workgroupBarrier();");
        }
    }

    /// A and B as they lie in memory.
    fn operands(&self) -> [Operand<'_>; 2] {
        let (problem, (height, width)) = (&self.problem, self.plan.block());
        let operand = |name, transposed: bool, outer: &'static str, block, whole, staged| {
            let (part, size, at) = (
                (block, self.plan.step),
                (whole, problem.inner),
                (outer, "next"),
            );
            let turn = |(x, y)| (y, x);
            // A as it is and B transposed have the inner values of a row or column side by side.
            let inner_lines = (name == 'a') == transposed;
            Operand {
                name,
                staged,
                inner_lines,
                part: if inner_lines { turn(part) } else { part },
                whole: if inner_lines { turn(size) } else { size },
                at: if inner_lines { (at.1, at.0) } else { at },
            }
        };
        let [a, b] = &self.staged;
        let Problem { rows, columns, .. } = *problem;
        let (a_turned, b_turned) = (problem.a_transposed, problem.b_transposed);
        [
            operand('a', a_turned, "row", height, rows, a),
            operand('b', b_turned, "column", width, columns, b),
        ]
    }
}
