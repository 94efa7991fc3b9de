//! Matrix products in f32 for every transposition and any sizes, with an epilogue. The text is `matmul.wgsl`, with `matmul_body.wgsl` and
//! the functions of the other files for each product of a launch. Loops and choices are made here; they fill in the named parts of the text.

mod operand;
#[cfg(test)]
mod tests;

use super::epilogue::Store;
use super::products::{Product, Products};
use crate::ops::gpu::wgsl::{filled, flowed};
use crate::ops::linear::planner::{Plan, Problem};
use minijinja::{Error, Value, context};
use operand::StagedOperand;

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
