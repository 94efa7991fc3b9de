//! Matrix products in f32 for every transposition and any sizes, with an epilogue. The text is `matmul.wgsl`, with `matmul_body.wgsl` and
//! the functions of the other files for each product of a launch. Loops and choices are made here; they fill in the named parts of the text.

use super::epilogue::Store;
use super::products::{Product, Products};
use crate::ops::gpu::wgsl::filled;
use crate::ops::linear::planner::{Plan, Problem, padding};
use minijinja::{Error, Value, context};

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
    let plan = &all.0[0].plan;
    let block = Block::new(plan);
    let mut functions = functions_of_launch(all)?;
    let mut bodies = Vec::new();
    for (n, product) in all.0.iter().enumerate() {
        let product = FullProduct { product, n, block };
        functions += &product.functions()?;
        bodies.push(product.body()?);
    }
    Ok(context! {
        bindings => all.bindings(),
        // Vectors of workgroup memory.
        vectors => plan.shared_vectors(),
        threads => plan.threads(),
        sums => block.sums(),
        lines_of_block => flowed(block.reads(), "", 2),
        products_of_block => flowed(block.multiplications(), "", 2),
        functions,
        position => position(plan),
        products => all.dispatched(&bodies),
    })
}

/// Texts with `between` them, as lines of at most 118 columns that begin at column `indent`.
pub(super) fn flowed(
    texts: impl IntoIterator<Item = String>,
    between: &str,
    indent: usize,
) -> String {
    let (mut all, mut wide) = (String::new(), indent);
    for text in texts {
        if !all.is_empty() {
            all += between;
            if text.contains('\n') || wide + text.len() > 118 {
                all = format!("{}\n{:indent$}", all.trim_end(), "");
                wide = indent;
            } else {
                all += " ";
            }
        }
        wide += text.len() + between.len() + 1;
        all += &text;
    }
    all
}

/// The block of C of one invocation: `rows` rows of `across` vectors of four columns. Every four rows and every vector are a fixed
/// distance apart in the tile.
#[derive(Clone, Copy)]
struct Block {
    rows: usize,
    across: usize,
    /// The distances in the tile between groups of four rows, and between vectors, both counted in fours.
    strides: [usize; 2],
}

impl Block {
    fn new(plan: &Plan) -> Self {
        let (rows, across) = (plan.block.0, plan.block.1 / 4);
        Self {
            rows,
            across,
            strides: [plan.tile.0 / rows, plan.tile.1 / 4 / across],
        }
    }

    /// Returns the number of vectors in which an invocation adds up its products.
    fn sums(&self) -> usize {
        self.rows * self.across
    }

    /// Returns the row and the vector of each sum.
    fn places(self) -> impl Iterator<Item = (usize, usize)> + Clone {
        (0..self.sums()).map(move |sum| (sum / self.across, sum % self.across))
    }

    /// Returns the name of the sum of a row and a vector.
    fn sum(&self, row: usize, vector: usize) -> String {
        format!("sums[{}]", row * self.across + vector)
    }

    /// Returns the row and the column of C of a sum, as arguments of a function.
    fn place(&self, row: usize, vector: usize) -> String {
        let [down, across] = self.strides;
        let from = |start: &str, far: usize| match far {
            0 => start.to_owned(),
            _ => format!("{start} + {far}u"),
        };
        let row = from("top", row / 4 * 4 * down + row % 4);
        let column = from("left", 4 * vector * across);
        format!("{row}, {column}")
    }

    /// Reads the rows of A and the columns of B of one inner value from workgroup memory.
    fn reads(&self) -> Vec<String> {
        let [down, across] = self.strides;
        let rows =
            (0..self.rows / 4).map(|i| format!("let rows{i} = staged[a_at + {}u];", i * down));
        let columns =
            (0..self.across).map(|j| format!("let columns{j} = staged[b_at + {}u];", j * across));
        rows.chain(columns).collect()
    }

    /// Adds the products of one inner value to the sums.
    fn multiplications(&self) -> Vec<String> {
        let one = |(row, vector): (usize, usize)| {
            let sum = format!("(*sums)[{}]", row * self.across + vector);
            let a = format!("rows{}.{}", row / 4, ["x", "y", "z", "w"][row % 4]);
            format!("{sum} = fma(vec4<f32>({a}), columns{vector}, {sum});")
        };
        self.places().map(one).collect()
    }
}

/// Returns the lines that say where an invocation's block is in the tile.
fn position(plan: &Plan) -> String {
    let (down, across) = plan.blocks();
    let per_slice = plan.slice_threads();
    let slice = match plan.slices {
        1 => "let number = lane;".to_owned(),
        _ => format!("let slice = lane / {per_slice}u;\n  let number = lane % {per_slice}u;"),
    };
    let [row, column] = if down.is_multiple_of(4) && across.is_multiple_of(8) {
        let wide = across / 8;
        // 32 neighbours have 4 × 8 blocks, so that they read few different vectors for an inner value.
        [
            format!("number % 32u / 16u * 2u + number % 2u + number / 32u / {wide}u * 4u"),
            format!("number / 2u % 8u + number / 32u % {wide}u * 8u"),
        ]
    } else {
        [format!("number / {across}u"), format!("number % {across}u")]
    };
    format!("{slice}\n  let block_row = {row};\n  let block_column = {column};")
}

/// Returns the functions that all products of a launch share.
fn functions_of_launch(all: &Products) -> Result<String, Error> {
    let mut text = String::new();
    let mut stores = all.0.iter().map(|product| product.store);
    if stores.clone().any(|store| matches!(store, Store::Rope(_))) {
        text += &["\n\n", &filled("rope/rotated.wgsl", &())?].concat();
    }
    if stores.any(|store| matches!(store, Store::Swiglu | Store::SwigluBackward)) {
        text += &["\n\n", &filled("swiglu/swiglu.wgsl", &())?].concat();
    }
    let plan = &all.0[0].plan;
    if plan.slices > 1 {
        let sums = Block::new(plan).sums();
        let staged = |sum: usize| format!("staged[at + {}u]", sum * plan.slice_threads());
        let put = (0..sums).map(|sum| format!("{} = (*sums)[{sum}];", staged(sum)));
        let add = (0..sums).map(|sum| format!("(*sums)[{sum}] += {};", staged(sum)));
        let values = context! { sums, put => flowed(put, "", 2), add => flowed(add, "", 2) };
        text += &filled("linear/matmul_slices.wgsl", &values)?;
    }
    if all.0.iter().any(|product| is_reordered(&product.problem)) {
        let line = format!("inner % 4u * {}u + inner / 4u", plan.step / 4);
        text += &format!(
            "\n\n// The line of an inner value of a step.\nfn line_of(inner: u32) -> u32 {{ return {line}; }}"
        );
    }
    Ok(text)
}

/// Returns true if a step's inner values have the order 0, 4, 8, …, 1, 5, 9, …, because an operand is transposed.
fn is_reordered(problem: &Problem) -> bool {
    !problem.a_transposed || problem.b_transposed
}

/// A product in f32, and its number in the launch.
struct FullProduct<'a> {
    product: &'a Product,
    n: usize,
    block: Block,
}

impl FullProduct<'_> {
    fn body(&self) -> Result<String, Error> {
        let (plan, problem) = (&self.product.plan, &self.product.problem);
        let [a, b] = self.operands();
        let per_slice = plan.step / plan.slices;
        let unroll = plan.unroll.min(per_slice);
        let multiply = (0..unroll).map(|value| {
            let [a_at, b_at] = [value * a.pitch, value * b.pitch];
            format!("add_value(&sums, a_at + {a_at}u, b_at + {b_at}u);")
        });
        let values = context! {
            tile => plan.tile,
            // Inner values of a workgroup.
            share => plan.share(problem),
            inner => problem.inner,
            step => plan.step,
            sums => self.block.sums(),
            begin => [a.begin(), b.begin()].join("\n  "),
            declare => flowed(a.declarations().chain(b.declarations()), "", 2),
            stage => [a.stage(self), b.stage(self)].join("\n    "),
            load => [a.load(self), b.load(self)].join("\n    "),
            a_pitch => a.pitch,
            b_pitch => b.pitch,
            b_first => b.first,
            line => match plan.slices {
                1 => "value".to_owned(),
                _ => format!("slice * {per_slice}u + value"),
            },
            per_slice,
            unroll,
            multiply => flowed(multiply, "", 6),
            add_slices => self.add_slices()?,
            size => problem.rows * problem.columns,
            store => self.store(),
        };
        filled("linear/matmul_body.wgsl", &values)
    }

    /// Returns the functions that load and store.
    fn functions(&self) -> Result<String, Error> {
        let [a, b] = self.operands();
        Ok(a.function(self.n)? + &b.function(self.n)? + &self.store_functions()?)
    }

    fn operands(&self) -> [StagedOperand; 2] {
        let Problem {
            rows,
            columns,
            a_transposed,
            b_transposed,
            ..
        } = self.product.problem;
        let (height, width) = self.product.plan.tile;
        let a = StagedOperand::new(self.product, ["a", "row"], [height, rows], !a_transposed, 0);
        let after_a = a.pitch * self.product.plan.step;
        let sides = [width, columns];
        let b = StagedOperand::new(self.product, ["b", "column"], sides, b_transposed, after_a);
        [a, b]
    }

    /// Returns the lines that add the sums of the slices.
    fn add_slices(&self) -> Result<String, Error> {
        let plan = &self.product.plan;
        let of_slice = plan.slice_threads() * self.block.sums();
        let mut text = String::new();
        for half in (0..plan.slices.ilog2()).rev().map(|i| 1_usize << i) {
            text += &filled("linear/matmul_half.wgsl", &context! { half, of_slice })?;
            text += "\n";
        }
        if plan.slices > 1 {
            text += "  if slice > 0u { return; }\n";
        }
        Ok(text)
    }

    /// Returns the lines that apply the epilogue to each sum and store it.
    fn store(&self) -> String {
        let (n, block, problem) = (self.n, self.block, &self.product.problem);
        let each = |text: &dyn Fn(String, String) -> String| {
            let places = block.places();
            let texts =
                places.map(|(row, vector)| text(block.place(row, vector), block.sum(row, vector)));
            flowed(texts, "", 2)
        };
        let stored = each(&|place, sum| format!("put{n}(first, {place}, {sum});"));
        let lines = match self.product.store {
            Store::Plain => stored,
            // A driver that does not know that C is another matrix would wait for each read.
            Store::Onto { .. } => {
                let read = each(&|place, sum| format!("{sum} += residual_at{n}({place});"));
                format!("// All of R is read before the first store.\n  {read}\n  {stored}")
            }
            Store::Rope(_) => {
                let turned = each(&|place, sum| format!("{sum} = turned{n}({place}, {sum});"));
                format!("{turned}\n  {stored}")
            }
            Store::Swiglu => {
                let rows = (0..block.rows).map(|row| {
                    let [gate, up] = [block.sum(row, 0), block.sum(row, 1)];
                    format!("put{n}({}, {gate}, {up});", block.place(row, 0))
                });
                flowed(rows, "", 2)
            }
            Store::SwigluBackward => {
                let ups = problem.rows * problem.columns / 4;
                let load = |row: usize| {
                    let loads = (0..block.across).flat_map(move |j| {
                        let place = block.place(row, j);
                        [("gate", 0), ("up", ups)].map(|(name, first)| {
                            format!("let {name}{row}_{j} = gated_at{n}({first}u, {place});")
                        })
                    });
                    loads.collect::<Vec<_>>()
                };
                // The gates and ups of a row are on their way while the row before is stored.
                let mut lines = load(0);
                for row in 0..block.rows {
                    if row + 1 < block.rows {
                        lines.extend(load(row + 1));
                    }
                    lines.extend((0..block.across).map(|j| {
                        let (place, sum) = (block.place(row, j), block.sum(row, j));
                        format!("put{n}({place}, {sum}, gate{row}_{j}, up{row}_{j});")
                    }));
                }
                flowed(lines, "", 2)
            }
        };
        let column = match self.product.store {
            Store::Swiglu => "column / 2u",
            _ => "column",
        };
        format!("  let left = {column} + block_column * 4u;\n  {lines}")
    }

    /// Returns the functions of the epilogue, for four columns of a row of C.
    fn store_functions(&self) -> Result<String, Error> {
        let (n, problem) = (self.n, &self.product.problem);
        let (height, columns) = (problem.rows, problem.columns);
        let width = match self.product.store {
            Store::Swiglu => columns / 2,
            _ => columns,
        };
        let guard = if problem.is_ragged(self.product.plan.tile) {
            format!("if row < {height}u && column < {width}u ")
        } else {
            String::new()
        };
        // A line for each of the four values, which says that the value is inside of C.
        let by_value = |text: &dyn Fn(usize, String) -> String| {
            let line = |value| {
                let inside = format!("row < {height}u && column + {value}u < {columns}u");
                let at = format!("row * {columns}u + column + {value}u");
                format!("if {inside} {{ {} }}", text(value, at))
            };
            flowed((0..4).map(line), "", 2)
        };
        let at = format!("(row * {columns}u + column) / 4u");
        let (read, put) = match problem.lanes()[2] {
            4 if guard.is_empty() => (
                format!("return residual{n}[{at}];"),
                format!("out{n}[(first + row * {columns}u + column) / 4u] = value;"),
            ),
            4 => (
                format!("{guard}{{ return residual{n}[{at}]; }}\n  return vec4<f32>();"),
                format!("{guard}{{ out{n}[(first + row * {columns}u + column) / 4u] = value; }}"),
            ),
            _ => {
                let read = by_value(&|value, at| format!("four[{value}] = residual{n}[{at}];"));
                (
                    format!("var four = vec4<f32>();\n  {read}\n  return four;"),
                    by_value(&|value, at| format!("out{n}[first + {at}] = value[{value}];")),
                )
            }
        };
        let values = context! { n, height, width, guard, read };
        let epilogue = match self.product.store {
            Store::Swiglu => return filled("linear/matmul_swiglu.wgsl", &values),
            Store::SwigluBackward => return filled("linear/matmul_swiglu_backward.wgsl", &values),
            Store::Onto { .. } => filled("linear/matmul_onto.wgsl", &values)?,
            Store::Rope(rotation) => {
                let values = context! { n, ..Value::from_serialize(rotation) };
                filled("linear/matmul_rope.wgsl", &values)?
            }
            Store::Plain => String::new(),
        };
        filled("linear/matmul_store.wgsl", &context! { n, epilogue, put })
    }
}

/// The part of an operand that a workgroup stages in a step: `line` vectors of rows of A or columns of B from `outer` on, for each of
/// the step's inner values. If these are adjacent in memory (`transposed`), an invocation loads pieces of four lines by four of them.
struct StagedOperand {
    name: &'static str,
    outer: &'static str,
    transposed: bool,
    /// Values of a load.
    width: usize,
    /// True if steps and tiles end where the matrix ends.
    is_even: bool,
    /// The distance between lines in memory.
    stride: usize,
    /// The ends of lines and of a line's values.
    ends: [String; 2],
    /// The distance between gates and ups, if the first half of a tile's lines are gates and the other half their ups.
    ups: Option<usize>,
    /// Vectors of a line in workgroup memory.
    line: usize,
    /// The distance between lines in workgroup memory.
    pitch: usize,
    /// The place of the first line in workgroup memory.
    first: usize,
    /// Pieces that are loaded in a step.
    pieces: usize,
    /// Invocations of a workgroup, of which each loads a piece at a time.
    threads: usize,
    /// Pieces of a line that is transposed.
    quads: usize,
}

impl StagedOperand {
    fn new(
        product: &Product,
        [name, outer]: [&'static str; 2],
        [side, whole]: [usize; 2],
        transposed: bool,
        first: usize,
    ) -> Self {
        let (plan, problem) = (&product.plan, &product.problem);
        let (all, inner) = (format!("{whole}u"), "end".to_owned());
        let (stride, ends, vectors) = if transposed {
            (problem.inner, [all, inner], 4)
        } else {
            (whole, [inner, all], 1)
        };
        let is_b = name == "b";
        Self {
            name,
            outer,
            transposed,
            width: problem.lanes()[usize::from(is_b)],
            is_even: whole.is_multiple_of(side)
                && problem.inner.is_multiple_of(plan.splits * plan.step),
            stride,
            ends,
            ups: (is_b && product.store == Store::Swiglu).then_some(problem.columns / 2),
            line: side / 4,
            pitch: side / 4 + usize::from(transposed) * padding(plan.step),
            first,
            pieces: side / 4 * plan.step / vectors,
            threads: plan.threads(),
            quads: plan.step / 4,
        }
    }

    /// Returns true if every load is of four values that are inside of the matrix.
    fn is_whole(&self) -> bool {
        self.width == 4 && self.is_even
    }

    /// Returns the number of pieces that an invocation loads in a step, and the vectors of a piece.
    fn held(&self) -> (usize, usize) {
        let vectors = if self.transposed { 4 } else { 1 };
        (self.pieces.div_ceil(self.threads), vectors)
    }

    /// Returns the lines that say where an invocation's first piece is, in memory and in workgroup memory.
    fn begin(&self) -> String {
        let Self {
            name,
            outer,
            line,
            quads,
            first,
            pitch,
            ..
        } = self;
        let four = format!("lane / {quads}u * 4u");
        let half = line * 2;
        let line_in_memory = match (self.ups, self.transposed) {
            (Some(ups), _) => {
                format!("{outer} / 2u + {four} % {half}u + {four} / {half}u * {ups}u")
            }
            (None, true) => format!("{outer} + {four}"),
            (None, false) => format!("lane / {line}u"),
        };
        let (vector, to) = if self.transposed {
            (
                format!("lane % {quads}u"),
                format!("{first}u + lane % {quads}u * {pitch}u + lane / {quads}u"),
            )
        } else {
            (
                format!("{outer} / 4u + lane % {line}u"),
                format!("{first}u + lane % {line}u"),
            )
        };
        let from = match self.is_whole() {
            true => format!(
                "\n  let {name}_from = {name}_line * {}u + {name}_vector;",
                self.stride / 4
            ),
            false => String::new(),
        };
        format!(
            "let {name}_line = {line_in_memory};\n  let {name}_vector = {vector};{from}\n  let {name}_to = {to};"
        )
    }

    /// Returns a register for each vector of an invocation.
    fn declarations(&self) -> impl Iterator<Item = String> {
        let (pieces, vectors) = self.held();
        let name = self.name;
        (0..pieces * vectors).map(move |at| format!("var {name}_next{at} = vec4<f32>();"))
    }

    /// Joins a text for each piece of an invocation, with a condition where not every invocation has the piece.
    fn each_piece(&self, text: impl Fn(usize) -> Vec<String>) -> String {
        let mut lines = Vec::new();
        for piece in 0..self.held().0 {
            let rest = self.pieces - piece * self.threads;
            if rest < self.threads {
                lines.push(format!(
                    "if lane < {rest}u {{ {} }}",
                    flowed(text(piece), "", 6)
                ));
            } else {
                lines.extend(text(piece));
            }
        }
        flowed(lines, "", 4)
    }

    /// Returns the lines that load an invocation's pieces of the step at `next` into its registers.
    fn load(&self, product: &FullProduct) -> String {
        let (_, vectors) = self.held();
        self.each_piece(|piece| {
            let of_piece = vectors * piece..vectors * (piece + 1);
            of_piece.map(|at| self.load_vector(product, at)).collect()
        })
    }

    fn load_vector(&self, product: &FullProduct, at: usize) -> String {
        let (name, n, far) = (self.name, product.n, self.lines_to(at));
        if self.is_whole() {
            let step = match self.transposed {
                true => "next / 4u".to_owned(),
                false => format!("next * {}u", self.stride / 4),
            };
            let far = far * self.stride / 4;
            return format!("{name}_next{at} = {name}{n}[{name}_from + {step} + {far}u];");
        }
        let place = match self.transposed {
            true => format!("{name}_line + {far}u, {name}_vector + next / 4u"),
            false => format!("{name}_line + next + {far}u, {name}_vector"),
        };
        format!("{name}_next{at} = read_{name}{n}({place}, end);")
    }

    /// Returns the number of lines between an invocation's first vector and the vector `at`.
    fn lines_to(&self, at: usize) -> usize {
        let far = match self.transposed {
            true => at / 4 * self.threads / self.quads * 4 + at % 4,
            false => at * self.threads / self.line,
        };
        let half = self.line * 2;
        match self.ups {
            Some(ups) => far % half + far / half * ups,
            None => far,
        }
    }

    /// Returns the lines that copy an invocation's registers to workgroup memory.
    fn stage(&self, product: &FullProduct) -> String {
        let (name, pitch, quads) = (self.name, self.pitch, self.quads);
        self.each_piece(|piece| {
            if self.transposed {
                let one = |(value, component): (usize, &str)| {
                    let four =
                        [0, 1, 2, 3].map(|i| format!("{name}_next{}.{component}", 4 * piece + i));
                    let place = piece * self.threads / quads + value * quads * pitch;
                    format!(
                        "staged[{name}_to + {place}u] = vec4<f32>({});",
                        four.join(", ")
                    )
                };
                return ["x", "y", "z", "w"]
                    .into_iter()
                    .enumerate()
                    .map(one)
                    .collect();
            }
            let inner = format!(
                "lane / {}u + {}u",
                self.line,
                piece * self.threads / self.line
            );
            let line = match is_reordered(&product.product.problem) {
                true => format!("line_of({inner})"),
                false => format!("({inner})"),
            };
            vec![format!(
                "staged[{name}_to + {line} * {pitch}u] = {name}_next{piece};"
            )]
        })
    }

    /// Returns the function that reads four values of an operand with edges; an empty text for others.
    fn function(&self, n: usize) -> Result<String, Error> {
        let Self {
            name, stride, ends, ..
        } = self;
        if self.is_whole() {
            return Ok(String::new());
        }
        let [lines, values] = ends;
        let four = if self.width == 4 {
            let from = format!("{name}{n}[line * {}u + vector]", stride / 4);
            format!("if line < {lines} && vector * 4u < {values} {{ four = {from}; }}")
        } else {
            let each = (0..4).map(|value| {
                let at = format!("vector * 4u + {value}u");
                let inside = format!("line < {lines} && {at} < {values}");
                format!("if {inside} {{ four[{value}] = {name}{n}[line * {stride}u + {at}]; }}")
            });
            flowed(each, "", 2)
        };
        filled("linear/matmul_read.wgsl", &context! { n, name, four })
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::wgsl::Wgsl as _;
    use crate::ops::linear::fused_gpu::by_plans;
    use crate::ops::linear::fused_gpu::epilogue::{Epilogue, Store};
    use crate::ops::linear::fused_gpu::products::{Product, Products, Staged};
    use crate::ops::linear::planner::{Limits, Plan, Planner, Problem, SMALLEST};
    use burn_cubecl::tensor::CubeTensor;

    fn multiply<const N: usize>(
        plans: [Plan; N],
        pairs: [[&CubeTensor; 2]; N],
        thens: [Epilogue; N],
        problems: [Problem; N],
    ) -> [CubeTensor; N] {
        assert!(plans.iter().all(Plan::is_sound), "{plans:?}");
        let limits = Limits {
            shared_bytes: 0,
            threads: 0,
            is_cpu: true,
        };
        by_plans(Planner::Full(limits), plans, pairs, thens, problems)
    }

    fn reference(a: &[f32], b: &[f32], p: Problem) -> Vec<f32> {
        let mut out = vec![];
        for (row, column) in (0..p.rows).flat_map(|r| (0..p.columns).map(move |c| (r, c))) {
            let product = |k: usize| {
                let left = a[if p.a_transposed {
                    k * p.rows + row
                } else {
                    row * p.inner + k
                }];
                let right = b[if p.b_transposed {
                    column * p.inner + k
                } else {
                    k * p.columns + column
                }];
                f64::from(left) * f64::from(right)
            };
            out.push((0..p.inner).map(product).sum::<f64>() as f32);
        }
        out
    }

    fn check_all(device: &TestDevice, plans: &[Plan], sizes: &[(usize, usize, usize)]) {
        for &(rows, columns, inner) in sizes {
            let (a, b) = (numbers(1, rows * inner), numbers(2, inner * columns));
            let extra = numbers(3, rows * columns);
            let (ga, gb) = (
                device.tensor(&a, [rows * inner]),
                device.tensor(&b, [inner * columns]),
            );
            let gextra = device.tensor(&extra, [rows, columns]);
            for (a_transposed, b_transposed) in
                [(false, true), (false, false), (true, false), (true, true)]
            {
                let problem = Problem::new([rows, columns, inner], a_transposed, b_transposed);
                let plain = reference(&a, &b, problem);
                let more: Vec<f32> = plain.iter().zip(&extra).map(|(x, y)| x + y).collect();
                for &plan in plans {
                    let name = format!("{plan:?} {problem:?}");
                    let then = Epilogue::Onto(&gextra, None);
                    let [got] = multiply([plan], [[&ga, &gb]], [then], [problem]);
                    check::close(&name, &device.read(&got), &more, 1e-5);
                }
            }
        }
    }

    const SIZES: [(usize, usize, usize); 3] = [(33, 47, 19), (64, 128, 32), (68, 132, 100)];

    #[test]
    fn every_plan_agrees_with_the_definition() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let plans = [
            SMALLEST,
            Plan::new((32, 64), 16, (4, 8)),
            Plan::new((64, 32), 8, (8, 4)).unroll(1),
            Plan::new((32, 32), 16, (8, 8)).slices(4),
            Plan::new((64, 64), 16, (8, 4)).slices(2).splits(3),
        ];
        check_all(&device, &plans, &SIZES);
    }

    /// Gates beside their ups, and gradients of both, by each tile; sizes with and without edges.
    #[test]
    fn every_plan_has_the_epilogues_of_swiglu() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let plans = [
            SMALLEST,
            Plan::new((32, 64), 32, (8, 8)).slices(4),
            Plan::new((64, 64), 32, (8, 8)).slices(2),
            Plan::new((128, 128), 32, (8, 8)),
        ];
        for (n, f, inner) in [(33, 48, 20), (128, 128, 64)] {
            let (x, w) = (numbers(1, n * inner), numbers(2, 2 * f * inner));
            let (dy, down) = (numbers(3, n * inner), numbers(4, inner * f));
            let gates = Problem::new([n, 2 * f, inner], false, true);
            let of_active = Problem::new([n, f, inner], false, false);
            let of_down = Problem::new([inner, f, n], true, false);
            let [packed, d] =
                [(&x, &w, gates), (&dy, &down, of_active)].map(|(a, b, p)| reference(a, b, p));
            let (mut stacked, mut slopes) = (vec![0.0; 3 * n * f], vec![0.0; 2 * n * f]);
            for (r, c) in (0..n).flat_map(|r| (0..f).map(move |c| (r, c))) {
                let (at, both) = (r * f + c, r * 2 * f + c);
                let (g, u) = (packed[both], packed[both + f]);
                let s = 1.0 / (1.0 + (-g).exp());
                (stacked[at], stacked[n * f + at], stacked[2 * n * f + at]) = (g, u, g * s * u);
                slopes[both] = d[at] * u * s * (1.0 + g * (1.0 - s));
                slopes[both + f] = d[at] * g * s;
            }
            let [x, w] = [(x, n), (w, 2 * f)].map(|(it, rows)| device.tensor(&it, [rows, inner]));
            let (dy, down) = (
                device.tensor(&dy, [n, inner]),
                device.tensor(&down, [inner, f]),
            );
            for plan in plans {
                let [got] = multiply([plan], [[&x, &w]], [Epilogue::Swiglu], [gates]);
                check::close(&format!("{plan:?}"), &device.read(&got), &stacked, 1e-5);
                let plain = Epilogue::Plain;
                let [active] = multiply([plan], [[&dy, &down]], [plain], [of_active]);
                let pairs = [[&dy, &down], [&dy, &active]];
                let thens = [Epilogue::SwigluBackward(&got), plain];
                let problems = [of_active, of_down];
                let plans = [1, 2].map(|splits| plan.splits(splits));
                let [got, _] = multiply(plans, pairs, thens, problems);
                check::close(
                    &format!("{plan:?}, back"),
                    &device.read(&got),
                    &slopes,
                    1e-5,
                );
            }
        }
    }

    #[test]
    fn every_text_is_valid_wgsl() {
        let limits = [
            (false, 1 << 16),
            (false, 1 << 14),
            (true, 1 << 15),
            (true, 1),
        ];
        for (rows, columns, inner) in SIZES.into_iter().chain([(1024, 4096, 512)]) {
            for (is_cpu, shared_bytes) in limits {
                let limits = Limits {
                    shared_bytes,
                    threads: 256,
                    is_cpu,
                };
                let problems = [(false, true), (true, false)];
                let problems = problems.map(|(a, b)| Problem::new([rows, columns, inner], a, b));
                let plans = Planner::Full(limits).pair(&problems);
                let products = [0, 1].map(|i| Product {
                    problem: problems[i],
                    plan: plans[i],
                    store: if plans[i].splits == 1 {
                        Store::Onto { for_norm: false }
                    } else {
                        Store::Plain
                    },
                    staged: [Staged::Full, Staged::Full],
                    norm_parts: 0,
                });
                let text = Products(products.to_vec()).program().text();
                check::valid_wgsl(&text);
                // Two products, with edges on all sides.
                assert!(text.lines().count() <= 360, "{text}");
                assert!(
                    text.lines().all(|line| line.chars().count() <= 120),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn the_text_of_a_product_is_as_long_as_one_written_by_hand() {
        let problem = Problem::new([4096, 1024, 4096], false, true);
        let product = Product {
            problem,
            plan: Plan::new((128, 128), 32, (8, 8)),
            store: Store::Onto { for_norm: false },
            staged: [Staged::Full, Staged::Full],
            norm_parts: 0,
        };
        let text = Products(vec![product]).program().text();
        assert!(text.lines().count() <= 150, "{text}");
    }
}
