//! Matrix products on matrix cores: f16 operands, f32 sums, as WGSL with cooperative matrices. A subgroup holds a block of
//! 16×16 tiles of the result; a workgroup stages what its subgroups share. Measured on an H200 over Vulkan
//! (`docs/performance.md`).
//!
//! An f32 operand is split into two f16, x·s = high + low, s a power of two that brings the tensor's largest value just below
//! f16's. A·B is then high·high + high·low + low·high; what is left out is below 2⁻²² of a product. Matrix cores round sums
//! towards zero, so each step's products start from zero and are added to the sums by an f32 addition
//! (Ootomo and Yokota, 2022, arXiv 2203.03341).

use super::matmul_plan::Problem;
use super::wgsl::{self, Program, line};
use super::{empty, grad_norm, reduce, shaped};
use burn_cubecl::tensor::CubeTensor;
use std::fmt::Write as _;
use std::ops::Range;

/// Side of the matrices that one instruction multiplies.
const TILE: usize = 16;
/// Values per vector of a load.
const LANES: usize = 4;
/// Values between the rows of workgroup memory, against bank conflicts.
const PADDING: usize = 8;
/// Invocations of a subgroup.
const SUBGROUP: usize = 32;
/// Workgroups that keep a large GPU busy.
const FULL: usize = 128;
/// The least share of the inner dimension for one workgroup.
const SHORTEST: usize = 256;

/// The blocking of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Plan {
    /// 16×16 tiles of the result that a subgroup holds, rows by columns.
    tiles: (usize, usize),
    /// Subgroups of a workgroup, rows by columns.
    subgroups: (usize, usize),
    /// Inner values staged at a time.
    step: usize,
    /// Workgroups along the inner dimension, whose results a second launch adds.
    splits: usize,
}

const LARGE: Plan = Plan {
    tiles: (4, 4),
    subgroups: (2, 2),
    step: 32,
    splits: 1,
};

/// For results with too few tiles for a large GPU.
const SMALL: Plan = Plan {
    tiles: (2, 2),
    ..LARGE
};

/// For f32 operands, whose halves take the registers of twice as many matrices.
const LARGE_HALVES: Plan = Plan {
    tiles: (2, 4),
    subgroups: (4, 2),
    ..LARGE
};

impl Plan {
    /// Large blocks where the result has enough of them. `halves`: of f32 operands.
    fn choose(problem: &Problem, halves: bool) -> Self {
        let splits = |plan: Self| {
            let wanted = FULL.div_ceil(plan.groups(problem));
            let splits = wanted.min(problem.inner / SHORTEST).clamp(1, 8);
            Self { splits, ..plan }
        };
        let large = splits(if halves { LARGE_HALVES } else { LARGE });
        let enough = 4 * large.groups(problem) * large.splits >= 3 * FULL;
        // The large blocks of halves leave no workgroup memory for edges.
        if enough && !(halves && large.is_ragged(problem)) {
            large
        } else {
            splits(SMALL)
        }
    }

    /// Values of the result of one workgroup, rows by columns.
    fn block(&self) -> (usize, usize) {
        (
            self.tiles.0 * self.subgroups.0 * TILE,
            self.tiles.1 * self.subgroups.1 * TILE,
        )
    }

    /// Whether blocks reach over an edge of the result.
    fn is_ragged(&self, problem: &Problem) -> bool {
        let (height, width) = self.block();
        !problem.rows.is_multiple_of(height) || !problem.columns.is_multiple_of(width)
    }

    fn groups(&self, problem: &Problem) -> usize {
        let (rows, columns) = self.block();
        problem.rows.div_ceil(rows) * problem.columns.div_ceil(columns)
    }

    fn invocations(&self) -> usize {
        self.subgroups.0 * self.subgroups.1 * SUBGROUP
    }
}

/// Whether the operands' rows begin at whole vectors.
pub fn fits(problem: &Problem) -> bool {
    problem.lanes().iter().all(|lanes| *lanes == LANES)
}

/// The largest magnitudes of tensors, each as the largest of some values.
pub struct Largest {
    values: CubeTensor,
    of: Vec<Range<usize>>,
}

impl Largest {
    /// 1 launch.
    pub fn of(tensors: &[&CubeTensor]) -> Self {
        let (values, parts) = grad_norm::largest(tensors);
        let mut end = 0;
        let of = parts.into_iter().map(|count| {
            end += count;
            end - count..end
        });
        Self {
            of: of.collect(),
            values,
        }
    }
}

/// How operands lie in memory.
pub enum Operands<'a> {
    F16,
    /// f32, and which of these A's largest magnitude is, and B's.
    F32(&'a Largest, [usize; 2]),
}

/// A·B (+ `residual`), `[rows, columns]` in f32. 1 launch, or 2 when the inner dimension is split.
pub fn matmul(
    a: &CubeTensor,
    b: &CubeTensor,
    operands: &Operands,
    residual: Option<&CubeTensor>,
    problem: Problem,
) -> CubeTensor {
    let (largest, halves) = match operands {
        Operands::F16 => (None, None),
        Operands::F32(largest, which) => {
            let of = which.map(|i| largest.of[i].clone());
            (Some(&largest.values), Some(of))
        }
    };
    let plan = Plan::choose(&problem, halves.is_some());
    let (height, width) = plan.block();
    let Problem { rows, columns, .. } = problem;
    // Where a tile reaches over an edge, the residual is added by the second launch.
    let first = residual.filter(|_| !plan.is_ragged(&problem) && plan.splits == 1);
    let out = empty(a, [plan.splits, rows, columns]);
    let program = Product {
        problem,
        plan,
        residual: first.is_some(),
        halves,
    };
    let groups = [columns.div_ceil(width), rows.div_ceil(height), plan.splits];
    let all = [a, b, &out].into_iter().chain(largest).chain(first);
    let buffers: Vec<&CubeTensor> = all.collect();
    wgsl::launch(program, groups, &buffers);
    let rest = residual.filter(|_| first.is_none());
    if plan.splits == 1 && rest.is_none() {
        return shaped(out, [rows, columns]);
    }
    let sum = reduce::sum_rows(&out, plan.splits, rows * columns, rest);
    shaped(sum, [rows, columns])
}

/// The kernel of one problem by one plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Product {
    problem: Problem,
    plan: Plan,
    /// Whether a matrix of the result's shape is added.
    residual: bool,
    /// Of f32 operands: which values A's largest magnitude is the largest of, and B's.
    halves: Option<[Range<usize>; 2]>,
}

impl Program for Product {
    fn name(&self) -> &'static str {
        match self.halves {
            None => "matmul_matrix_cores",
            Some(_) => "matmul_split_matrix_cores",
        }
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.plan.invocations() as u32, 1, 1]
    }

    fn text(&self) -> String {
        let Plan {
            tiles: (down, across),
            subgroups,
            step,
            splits,
        } = self.plan;
        let (height, width) = self.plan.block();
        let Problem {
            rows,
            columns,
            inner,
            ..
        } = self.problem;
        let share = inner.div_ceil(splits).next_multiple_of(step);
        let threads = self.plan.invocations();
        let operands = self.operands();
        let blocks = || (0..down).flat_map(|i| (0..across).map(move |j| (i, j)));
        let ragged = self.plan.is_ragged(&self.problem);

        let mut text = String::from("enable f16;\nenable wgpu_cooperative_matrix;\n");
        // Declared as written, the operands are read where the text says so. A driver moves the loads of a buffer that is only
        // read down to their use, behind the products that were to hide them.
        let format = operands[0].format();
        let mut bindings = vec![
            ("a", format!("vec4<{format}>")),
            ("b", format!("vec4<{format}>")),
            ("out", "f32".to_owned()),
        ];
        bindings.extend(self.halves.as_ref().map(|_| ("largest", "f32".to_owned())));
        bindings.extend(self.residual.then(|| ("residual", "f32".to_owned())));
        for (i, (name, of)) in bindings.iter().enumerate() {
            line!(
                text,
                "@group(0) @binding({i}) var<storage, read_write> {name}: array<{of}>;"
            );
        }
        for (operand, half) in operands.iter().flat_map(|it| it.staged()) {
            let (name, vectors) = (operand.name, operand.part.0 * operand.pitch());
            line!(
                text,
                "var<workgroup> {name}_{half}: array<vec4<f16>, {vectors}>;"
            );
        }
        if self.halves.is_some() {
            // Two are used. Loads of matrices take addresses that are multiples of 16 bytes, wherever a driver puts these.
            line!(text, "var<workgroup> bits: array<atomic<u32>, 4>;");
        }
        if ragged {
            let values = TILE * TILE * threads / SUBGROUP;
            line!(text, "var<workgroup> edge: array<f32, {values}>;");
        }
        line!(text, "@compute @workgroup_size({threads})");
        line!(
            text,
            "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{"
        );
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
        if let Some(halves) = &self.halves {
            text.push_str(
                "  if lane < 2u { atomicStore(&bits[lane], 0u); }\n  workgroupBarrier();\n",
            );
            for (i, Range { start, end }) in halves.iter().enumerate() {
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
                line!(text, "  var {}{load} = vec4<{format}>();", operand.name);
            }
            operand.fetch(&mut text, threads);
        }
        line!(text, "  while k < end {{");
        for operand in &operands {
            operand.stage(&mut text, threads);
        }
        // The next step's values are on their way while this one's are multiplied. After the last step that is the first one's.
        line!(
            text,
            "    workgroupBarrier();\n    k += {step}u;\n    next = select(k, begin, k >= end);"
        );
        for operand in &operands {
            operand.fetch(&mut text, threads);
        }
        let [of_a, of_b] = &operands;
        let inner = || (0..step).step_by(TILE);
        line!(text, "    {{");
        for (operand, half) in of_a.staged() {
            for (i, at) in (0..down).flat_map(|i| inner().map(move |at| (i, at))) {
                operand.load(&mut text, half, i, at);
            }
        }
        for j in 0..across {
            for (operand, half) in of_b.staged() {
                inner().for_each(|at| operand.load(&mut text, half, j, at));
            }
            for i in 0..down {
                let add = |a: &str, b: &str, at: usize, sum: String| {
                    format!("coopMultiplyAdd(a_{a}{i}_{at}, b_{b}{j}_{at}, {sum})")
                };
                let sum = format!("sum{i}_{j}");
                let products = if self.halves.is_none() {
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
        let unscaled = self
            .halves
            .as_ref()
            .map_or("", |_| " * a_inverse * b_inverse");
        for (i, j) in blocks() {
            let (down, across) = (i * TILE, j * TILE);
            let at = format!("target_first + {}u", down * columns + across);
            if self.residual {
                line!(
                    text,
                    "  sum{i}_{j} = sum{i}_{j}{unscaled} + coopLoadT<coop_mat16x16<f32, C>>(&residual[{at}], {columns}u);"
                );
            } else if self.halves.is_some() {
                line!(text, "  sum{i}_{j} = sum{i}_{j}{unscaled};");
            }
            if !ragged {
                line!(text, "  coopStoreT(sum{i}_{j}, &out[{at}], {columns}u);");
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
                "    if row + a_first + r < {rows}u && column + b_first + c < {columns}u {{ out[target_first + r * {columns}u + c] = edge[subgroup * {}u + e]; }}",
                TILE * TILE
            );
            line!(text, "  }}\n  workgroupBarrier();");
        }
        line!(text, "}}");
        text
    }
}

impl Product {
    /// A and B as they lie in memory.
    fn operands(&self) -> [Operand; 2] {
        let (problem, (height, width)) = (&self.problem, self.plan.block());
        let operand = |name, transposed: bool, outer: &'static str, staged, whole| {
            let (part, size, at) = (
                (staged, self.plan.step),
                (whole, problem.inner),
                (outer, "next"),
            );
            let turn = |(x, y)| (y, x);
            // A as it is and B turned have the inner values of a row or column side by side.
            let inner_lines = (name == 'a') == transposed;
            Operand {
                name,
                halves: self.halves.is_some(),
                inner_lines,
                part: if inner_lines { turn(part) } else { part },
                whole: if inner_lines { turn(size) } else { size },
                at: if inner_lines { (at.1, at.0) } else { at },
            }
        };
        [
            operand('a', problem.a_transposed, "row", height, problem.rows),
            operand('b', problem.b_transposed, "column", width, problem.columns),
        ]
    }
}

/// An operand as it lies in memory: lines of neighbouring values, which go to workgroup memory as they are.
struct Operand {
    name: char,
    /// Whether it is f32, staged as two f16.
    halves: bool,
    /// Whether a line belongs to one inner value, and not to one row of A or column of B.
    inner_lines: bool,
    /// Lines and values that a workgroup stages in a step.
    part: (usize, usize),
    /// Lines and values of the whole operand.
    whole: (usize, usize),
    /// Where the staged part begins.
    at: (&'static str, &'static str),
}

impl Operand {
    /// Vectors from line to line in workgroup memory.
    fn pitch(&self) -> usize {
        (self.part.1 + PADDING) / LANES
    }

    /// Loads of a vector for each invocation.
    fn loads(&self, invocations: usize) -> usize {
        self.part.0 * self.part.1 / LANES / invocations
    }

    /// Reads this invocation's share of the step at `next` into registers; zeros past the operand's ends.
    fn fetch(&self, text: &mut String, invocations: usize) {
        let (across, name) = (self.part.1 / LANES, self.name);
        let (lines, values) = self.whole;
        let whole = lines.is_multiple_of(self.part.0) && values.is_multiple_of(self.part.1);
        for load in 0..self.loads(invocations) {
            let at = format!("(lane + {}u)", load * invocations);
            let of_line = format!("{} + {at} / {across}u", self.at.0);
            let value = format!("{} + {at} % {across}u * {LANES}u", self.at.1);
            let read = format!("{name}[(({of_line}) * {values}u + {value}) / {LANES}u]");
            if whole {
                line!(text, "    {name}{load} = {read};");
            } else {
                line!(text, "    {name}{load} = vec4<{}>();", self.format());
                line!(
                    text,
                    "    if {of_line} < {lines}u && {value} < {values}u {{ {name}{load} = {read}; }}"
                );
            }
        }
    }

    /// What is staged of it: the one part of f16, both of f32.
    fn staged(&self) -> impl Iterator<Item = (&Self, &'static str)> {
        let low = self.halves.then_some((self, "low"));
        [(self, "high")].into_iter().chain(low)
    }

    /// Of a value in memory.
    fn format(&self) -> &'static str {
        if self.halves { "f32" } else { "f16" }
    }

    /// Writes the registers to workgroup memory.
    fn stage(&self, text: &mut String, invocations: usize) {
        let (across, pitch, name) = (self.part.1 / LANES, self.pitch(), self.name);
        for load in 0..self.loads(invocations) {
            let at = format!("(lane + {}u)", load * invocations);
            let to = format!("{at} / {across}u * {pitch}u + {at} % {across}u");
            if !self.halves {
                line!(text, "    {name}_high[{to}] = {name}{load};");
                continue;
            }
            // The 11 leading bits of the significand are f16's. Written as a conversion there and back, drivers leave them out.
            line!(
                text,
                "    {{ let value = {name}{load} * {name}_scale;\n      let high = bitcast<vec4<f32>>(bitcast<vec4<u32>>(value) & vec4<u32>(0xffffe000u));"
            );
            line!(
                text,
                "      {name}_high[{to}] = vec4<f16>(high);\n      {name}_low[{to}] = vec4<f16>(value - high); }}"
            );
        }
    }

    /// Loads the subgroup's matrix `index` of the 16 inner values from `inner` on. A matrix whose lines are its rows is
    /// loaded by `coopLoadT`, one whose lines are its columns by `coopLoad`.
    fn load(&self, text: &mut String, half: &str, index: usize, inner: usize) {
        let (name, pitch) = (self.name, self.pitch());
        let role = name.to_ascii_uppercase();
        let by_rows = self.inner_lines == (name == 'b');
        let load = if by_rows { "coopLoadT" } else { "coopLoad" };
        let outer = format!("({name}_first + {}u)", index * TILE);
        let place = if self.inner_lines {
            format!("{inner}u * {pitch}u + {outer} / {LANES}u")
        } else {
            format!("{outer} * {pitch}u + {}u", inner / LANES)
        };
        line!(
            text,
            "      let {name}_{half}{index}_{inner} = {load}<coop_mat16x16<f16, {role}>>(&{name}_{half}[{place}], {pitch}u);"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{self, Device};
    use super::super::format::half;
    use super::*;
    use crate::config::Precision;
    use crate::ops::cpu::format::nearest;
    use crate::ops::cpu::testing::numbers;

    #[test]
    fn every_text_is_valid_wgsl() {
        let heads = [[1024, 1000, 512], [4096, 1000, 1024]];
        let heads = heads.map(|sizes| Problem::new(sizes, false, true));
        for problem in problems().into_iter().chain(heads) {
            for halves in [None, Some([0..1, 1..300])] {
                let plan = Plan::choose(&problem, halves.is_some());
                for splits in [1, 3] {
                    let program = Product {
                        problem,
                        plan: Plan { splits, ..plan },
                        residual: splits == 1,
                        halves: halves.clone(),
                    };
                    check::valid_wgsl(&program.text());
                }
            }
        }
    }

    fn problems() -> Vec<Problem> {
        let sizes = [
            [128, 128, 64],
            [256, 384, 512],
            [100, 72, 68],
            [300, 1000, 200],
            [2048, 1024, 64],
        ];
        let turned = [(false, true), (false, false), (true, false)];
        let all = sizes
            .iter()
            .flat_map(|size| turned.map(|(a, b)| Problem::new(*size, a, b)));
        all.collect()
    }

    #[test]
    fn products_agree_with_the_definition() {
        let Some(device) = Device::any() else { return };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        for problem in problems() {
            let Problem {
                rows,
                columns,
                inner,
                ..
            } = problem;
            let (a, b) = (numbers(1, rows * inner), numbers(2, inner * columns));
            // Values as small as gradients, and as large as no f16: their scales bring them into its range.
            let small: Vec<f32> = a.iter().map(|x| x * 1e-9).collect();
            let large: Vec<f32> = b.iter().map(|x| x * 1e7).collect();
            let residual = numbers(3, rows * columns);
            let added = device.tensor(&residual, [rows, columns]);
            let want = |a: &[f32], b: &[f32]| -> Vec<f32> {
                let product = definition(&problem, a, b).into_iter().zip(&residual);
                product.map(|(x, r)| (x + f64::from(*r)) as f32).collect()
            };
            let on_device =
                |a: &[f32], b: &[f32]| [a, b].map(|values| device.tensor(values, [values.len()]));

            let [a16, b16] = [&a, &b].map(|all| -> Vec<f32> {
                all.iter().map(|x| nearest(*x, Precision::F16)).collect()
            });
            let [x, y] = on_device(&a16, &b16).map(half);
            let got = device.read(&matmul(&x, &y, &Operands::F16, Some(&added), problem));
            check::close(&format!("{problem:?}"), &got, &want(&a16, &b16), 1e-5);

            for (a, b) in [(&a, &b), (&small, &large), (&vec![0.0; a.len()], &b)] {
                let [x, y] = on_device(a, b);
                let largest = Largest::of(&[&x, &y]);
                let operands = Operands::F32(&largest, [0, 1]);
                let got = device.read(&matmul(&x, &y, &operands, Some(&added), problem));
                check::close(&format!("{problem:?}, split"), &got, &want(a, b), 1e-6);
            }
        }
    }

    /// A·B, added up in f64.
    fn definition(problem: &Problem, a: &[f32], b: &[f32]) -> Vec<f64> {
        let Problem {
            rows,
            columns,
            inner,
            a_transposed,
            b_transposed,
        } = *problem;
        let x = |i: usize, k: usize| {
            a[if a_transposed {
                k * rows + i
            } else {
                i * inner + k
            }]
        };
        let y = |k: usize, j: usize| {
            b[if b_transposed {
                j * inner + k
            } else {
                k * columns + j
            }]
        };
        let places = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
        places
            .map(|(i, j)| {
                let products = (0..inner).map(|k| f64::from(x(i, k)) * f64::from(y(k, j)));
                products.sum()
            })
            .collect()
    }
}
