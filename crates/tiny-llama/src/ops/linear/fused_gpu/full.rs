//! Matrix products in f32 for every transposition and any sizes, with an epilogue. The text is `matmul.wgsl`, with `matmul_body.wgsl` and
//! the functions of the other files for each product of a launch; loops and choices are made here, and fill in their named parts.

use super::epilogue::Store;
use super::products::{Product, Products};
use crate::ops::gpu::wgsl::filled;
use crate::ops::linear::planner::{Plan, Problem, padding};
use minijinja::{Error, Value, context};

/// Names and elements of A, B, the result and the buffers of its store.
pub(super) fn buffers(it: &Product) -> Vec<(&'static str, &'static str)> {
    let of = |width| if width == 4 { "vec4<f32>" } else { "f32" };
    let [a, b, out] = it.problem.lanes().map(of);
    let all = [("a", a), ("b", b), ("out", out)].into_iter();
    all.chain(it.store.buffers(out)).collect()
}

/// What fills in `matmul.wgsl`.
///
/// # Errors
/// When a file does not fit its values.
pub(super) fn values(all: &Products) -> Result<Value, Error> {
    let plan = &all.0[0].plan;
    let mut functions = functions_of_launch(all)?;
    let mut bodies = Vec::new();
    for (n, it) in all.0.iter().enumerate() {
        let product = FullProduct { it, n };
        functions += &product.functions()?;
        bodies.push(product.body()?);
    }
    let (down, across) = groups_of_four(plan);
    let [a_step, b_step] = strides_of_block(plan);
    let rows = (0..down).map(|i| format!("let rows{i} = staged[a_at + {}u];", i * a_step));
    let columns = (0..across).map(|j| format!("let columns{j} = staged[b_at + {}u];", j * b_step));
    let product = |i, j| {
        let sum = format!("(*sums).b{i}{j}");
        format!("{sum} = plus_product({sum}, rows{i}, columns{j});")
    };
    Ok(context! {
        bindings => all.bindings(),
        // Vectors of workgroup memory.
        vectors => plan.shared_vectors(),
        threads => plan.threads(),
        fields => flowed(pairs(plan, |i, j| format!("b{i}{j}: mat4x4<f32>")), ",", 15),
        lines_of_block => flowed(rows.chain(columns), "", 2),
        products_of_block => flowed(pairs(plan, product), "", 2),
        functions,
        position => position(plan),
        products => all.dispatched(&bodies),
    })
}

/// Texts with `between` them, as lines of at most 118 columns that begin at column `indent`.
pub(super) fn flowed(texts: impl IntoIterator<Item = String>, between: &str, indent: usize) -> String {
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

/// A block's groups of four rows and of four columns.
fn groups_of_four(plan: &Plan) -> (usize, usize) {
    (plan.block.0 / 4, plan.block.1 / 4)
}

/// The distances between a block's groups of four rows, and of four columns, in groups of the tile.
fn strides_of_block(plan: &Plan) -> [usize; 2] {
    let (down, across) = groups_of_four(plan);
    [plan.tile.0 / 4 / down, plan.tile.1 / 4 / across]
}

/// A value for each matrix of a block.
fn pairs<T>(plan: &Plan, of: impl Fn(usize, usize) -> T) -> Vec<T> {
    let (down, across) = groups_of_four(plan);
    let all = 0..down * across;
    all.map(|i| of(i / across, i % across)).collect()
}

/// Where an invocation's block is in the tile.
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

/// The functions that all products of a launch share.
fn functions_of_launch(all: &Products) -> Result<String, Error> {
    let plan = &all.0[0].plan;
    let any = |of: fn(&Product) -> bool| all.0.iter().any(of);
    let mut text = String::new();
    if any(|it| matches!(it.store, Store::Rope(_))) {
        text += &["\n\n", &filled("rope/rotated.wgsl", &())?].concat();
    }
    if any(|it| matches!(it.store, Store::Swiglu | Store::SwigluBackward)) {
        text += &["\n\n", &filled("swiglu/swiglu.wgsl", &())?].concat();
    }
    if any(|it| is_reordered(&it.problem)) {
        let line = format!("inner % 4u * {}u + inner / 4u", plan.step / 4);
        text += &format!(
            "\n\n// The line of an inner value of a step.\nfn line_of(inner: u32) -> u32 {{ return {line}; }}"
        );
    }
    if plan.slices > 1 {
        let at = |i| format!("staged[at + {}u]", i * plan.slice_threads());
        let put = (0..4).map(|i| format!("{} = sum[{i}];", at(i)));
        let get = flowed((0..4).map(at), ",", 27);
        let values = context! { put => flowed(put, "", 2), get };
        text += &filled("linear/matmul_slices.wgsl", &values)?;
    }
    Ok(text)
}

/// Returns true if a step's inner values have the order 0, 4, 8, …, 1, 5, 9, …, because an operand is transposed.
fn is_reordered(problem: &Problem) -> bool {
    !problem.a_transposed || problem.b_transposed
}

/// A product in f32, and its number in the launch.
struct FullProduct<'a> {
    it: &'a Product,
    n: usize,
}

impl FullProduct<'_> {
    fn body(&self) -> Result<String, Error> {
        let plan = &self.it.plan;
        let [a, b] = self.operands();
        let per_slice = plan.step / plan.slices;
        let unroll = plan.unroll.min(per_slice);
        let of = |it: &StagedOperand| {
            let (begin, load) = (it.begin(plan.step / 4), it.call(self.n));
            context! { begin, load, pitch => it.pitch, first => it.first }
        };
        let add = |u: usize| {
            let [a, b] = [&a, &b].map(|it| u * it.pitch);
            format!("add_value(&sums, a_at + {a}u, b_at + {b}u);")
        };
        let values = context! {
            n => self.n,
            tile => plan.tile,
            // Inner values of a workgroup.
            share => plan.share(&self.it.problem),
            inner => self.it.problem.inner,
            step => plan.step,
            a => of(&a),
            b => of(&b),
            line => match plan.slices {
                1 => "value".to_owned(),
                _ => format!("slice * {per_slice}u + value"),
            },
            per_slice,
            unroll,
            values => flowed((0..unroll).map(add), "", 6),
            slices => self.slices()?,
            size => self.it.problem.rows * self.it.problem.columns,
            store => self.store(),
        };
        filled("linear/matmul_body.wgsl", &values)
    }

    /// The functions that load, stage and store.
    fn functions(&self) -> Result<String, Error> {
        let [a, b] = self.operands();
        Ok(a.functions(self)? + &b.functions(self)? + &self.store_functions()?)
    }

    fn operands(&self) -> [StagedOperand; 2] {
        let Problem {
            rows,
            columns,
            a_transposed,
            b_transposed,
            ..
        } = self.it.problem;
        let (height, across) = self.it.plan.tile;
        let a = StagedOperand::new(self, ["a", "row"], [height, rows], !a_transposed, 0);
        let first = a.pitch * self.it.plan.step;
        let b = StagedOperand::new(
            self,
            ["b", "column"],
            [across, columns],
            b_transposed,
            first,
        );
        [a, b]
    }

    /// Adds the sums of the slices.
    fn slices(&self) -> Result<String, Error> {
        let plan = &self.it.plan;
        let (_, across) = groups_of_four(plan);
        let of_matrix = 4 * plan.slice_threads();
        let place = |i, j| format!("sums.b{i}{j}, at + {}u", (i * across + j) * of_matrix);
        let values = context! {
            half => plan.slices / 2,
            of_slice => plan.tile.0 * plan.tile.1 / 4,
            put => flowed(pairs(plan, |i, j| format!("put_sums({});", place(i, j))), "", 6),
            add => flowed(pairs(plan, |i, j| format!("plus_sums({})", place(i, j))), ",", 19),
        };
        match plan.slices {
            1 => Ok(String::new()),
            _ => filled("linear/matmul_sums.wgsl", &values),
        }
    }

    /// Applies the epilogue to each matrix of the block, and stores it.
    fn store(&self) -> String {
        let (n, plan, p) = (self.n, &self.it.plan, &self.it.problem);
        let [down, across] = strides_of_block(plan);
        let place = |i, j| {
            format!(
                "first_row + {}u, first_column + {}u",
                i * down * 4,
                j * across * 4
            )
        };
        let changed = |name: &str| {
            let one = |i, j| format!("{name}{n}({}, sums.b{i}{j})", place(i, j));
            format!("sums = Block({});", flowed(pairs(plan, one), ",", 15))
        };
        let stored = pairs(plan, |i, j| {
            format!("store{n}(first, {}, sums.b{i}{j});", place(i, j))
        });
        let mut lines = Vec::new();
        match self.it.store {
            Store::Plain => lines.extend(stored),
            // A driver that does not know that C is another matrix would wait for each read.
            Store::Onto { .. } => {
                let read = changed("plus_residual");
                lines.push(format!(
                    "// All of R is read before the first store.\n  {read}"
                ));
                lines.extend(stored);
            }
            Store::Rope(_) => {
                lines.push(changed("turned"));
                lines.extend(stored);
            }
            Store::Swiglu => lines.extend(
                (0..groups_of_four(plan).0)
                    .map(|i| format!("store{n}({}, sums.b{i}0, sums.b{i}1);", place(i, 0))),
            ),
            Store::SwigluBackward => {
                let ups = p.rows * p.columns / 4;
                let loads = pairs(plan, |i, j| {
                    let of = |name, first| {
                        let at = place(i, j);
                        format!("let {name}{i}{j} = gated_at{n}({first}u, {at});")
                    };
                    [of("gates", 0), of("ups", ups)]
                });
                let stores = pairs(plan, |i, j| {
                    let at = place(i, j);
                    format!("store{n}({at}, sums.b{i}{j}, gates{i}{j}, ups{i}{j});")
                });
                // Each matrix of gates and ups is on its way while the one before is used.
                let mut loads = loads.into_iter();
                lines.extend(loads.next().into_iter().flatten());
                for store in stores {
                    lines.extend(loads.next().into_iter().flatten());
                    lines.push(store);
                }
            }
        }
        let column = match self.it.store {
            Store::Swiglu => "column / 2u",
            _ => "column",
        };
        let lines = flowed(lines, "", 2);
        format!("  let first_column = {column} + block_column * 4u;\n  {lines}")
    }

    /// The functions of the epilogue, for four columns of C and one or four rows.
    fn store_functions(&self) -> Result<String, Error> {
        let (n, p) = (self.n, &self.it.problem);
        let (height, columns) = (p.rows, p.columns);
        let width = match self.it.store {
            Store::Swiglu => columns / 2,
            _ => columns,
        };
        let guard = match p.is_ragged(self.it.plan.tile) {
            true => format!("if row < {height}u && column < {width}u "),
            false => String::new(),
        };
        // Each value of a row that is inside.
        let by_value = |text: &dyn Fn(usize, String) -> String| {
            let line = |e| {
                let inside = format!("row < {height}u && column + {e}u < {columns}u");
                let at = format!("row * {columns}u + column + {e}u");
                format!("if {inside} {{ {} }}", text(e, at))
            };
            flowed((0..4).map(line), "", 2)
        };
        let at = format!("row * {columns}u + column) / 4u");
        let (read, put) = match p.lanes()[2] {
            4 if guard.is_empty() => (
                format!("return residual{n}[({at}];"),
                format!("out{n}[(first + {at}] = value;"),
            ),
            4 => (
                format!("{guard}{{ return residual{n}[({at}]; }}\n  return vec4<f32>();"),
                format!("{guard}{{ out{n}[(first + {at}] = value; }}"),
            ),
            _ => {
                let read = by_value(&|e, at| format!("value[{e}] = residual{n}[{at}];"));
                let put = by_value(&|e, at| format!("out{n}[first + {at}] = value[{e}];"));
                (
                    format!("var value = vec4<f32>();\n  {read}\n  return value;"),
                    put,
                )
            }
        };
        let of = context! { n, height, width, guard, read };
        let epilogue = match self.it.store {
            Store::Swiglu => return filled("linear/matmul_swiglu.wgsl", &of),
            Store::SwigluBackward => return filled("linear/matmul_swiglu_backward.wgsl", &of),
            Store::Onto { .. } => filled("linear/matmul_onto.wgsl", &of)?,
            Store::Rope(rotation) => {
                let of = context! { n, ..Value::from_serialize(rotation) };
                filled("linear/matmul_rope.wgsl", &of)?
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
    /// Values of a load, and whether steps and tiles end where the matrix ends.
    width: usize,
    even: bool,
    /// The distance between lines in memory, and the ends of lines and of a line's values.
    stride: usize,
    ends: [String; 2],
    /// The distance between gates and ups, if the first half of a tile's lines are gates, and the other half their ups.
    ups: Option<usize>,
    /// Vectors of a line in workgroup memory, the distance between lines, and the first line.
    line: usize,
    pitch: usize,
    first: usize,
    /// Pieces that are loaded in a step.
    pieces: usize,
}

impl StagedOperand {
    fn new(
        of: &FullProduct,
        [name, outer]: [&'static str; 2],
        [side, whole]: [usize; 2],
        transposed: bool,
        first: usize,
    ) -> Self {
        let (plan, problem) = (&of.it.plan, &of.it.problem);
        let ends = (format!("{whole}u"), "end".to_owned());
        let (stride, ends, vectors) = match transposed {
            true => (problem.inner, [ends.0, ends.1], 4),
            false => (whole, [ends.1, ends.0], 1),
        };
        let is_b = name == "b";
        Self {
            name,
            outer,
            transposed,
            width: problem.lanes()[usize::from(is_b)],
            even: whole.is_multiple_of(side)
                && problem.inner.is_multiple_of(plan.splits * plan.step),
            stride,
            ends,
            ups: (is_b && of.it.store == Store::Swiglu).then_some(problem.columns / 2),
            line: side / 4,
            pitch: side / 4 + usize::from(transposed) * padding(plan.step),
            first,
            pieces: side / 4 * plan.step / vectors,
        }
    }

    /// The place of an invocation's first piece.
    fn begin(&self, quads: usize) -> String {
        let Self {
            name, outer, line, ..
        } = self;
        let four = format!("lane / {quads}u * 4u");
        let half = line * 2;
        let first = match (self.ups, self.transposed) {
            (Some(ups), _) => {
                format!("{outer} / 2u + {four} % {half}u + {four} / {half}u * {ups}u")
            }
            (None, true) => format!("{outer} + {four}"),
            (None, false) => format!("lane / {line}u"),
        };
        let vector = match self.transposed {
            true => format!("lane % {quads}u"),
            false => format!("{outer} / 4u + lane % {line}u"),
        };
        format!("let {name}_line = {first};\n  let {name}_vector = {vector};")
    }

    /// Loads the pieces of the step at `next`.
    fn call(&self, n: usize) -> String {
        let name = self.name;
        match self.transposed {
            true => format!("load_{name}{n}({name}_line, {name}_vector + next / 4u, end, lane)"),
            false => format!("load_{name}{n}({name}_line + next, {name}_vector, end, lane)"),
        }
    }

    /// The functions that load and stage this invocation's pieces.
    fn functions(&self, of: &FullProduct) -> Result<String, Error> {
        let (n, threads, quads) = (of.n, of.it.plan.threads(), of.it.plan.step / 4);
        let Self {
            name,
            stride,
            line,
            pitch,
            first,
            ..
        } = self;
        let (shares, vectors) = (
            self.pieces.div_ceil(threads),
            if self.transposed { 4 } else { 1 },
        );
        let [lines, values] = &self.ends;
        let vector = |line: &str| format!("{name}{n}[{line} * {}u + vector]", stride / 4);
        // What a line of an operand with edges gives past its ends is zero.
        let four = match self.width {
            4 => format!(
                "if line < {lines} && vector * 4u < {values} {{ four = {}; }}",
                vector("line")
            ),
            _ => {
                let each = (0..4).map(|e| {
                    let at = format!("vector * 4u + {e}u");
                    let inside = format!("line < {lines} && {at} < {values}");
                    format!("if {inside} {{ four[{e}] = {name}{n}[line * {stride}u + {at}]; }}")
                });
                flowed(each, "", 2)
            }
        };
        let is_whole = self.width == 4 && self.even;
        let reads = match is_whole {
            true => String::new(),
            false => filled("linear/matmul_read.wgsl", &context! { n, name, four })?,
        };
        // A text for each piece of an invocation; with a condition where not every invocation has one.
        let each = |text: &dyn Fn(usize) -> String| {
            let each = (0..shares).map(|share| match self.pieces - share * threads {
                rest if rest < threads => format!("if lane < {rest}u {{ {} }}", text(share)),
                _ => text(share),
            });
            flowed(each, "", 2)
        };
        // Lines between the first vector and another.
        let far = |vector: usize| {
            let far = match self.transposed {
                true => vector / 4 * threads / quads * 4 + vector % 4,
                false => vector * threads / line,
            };
            self.ups
                .map_or(far, |ups| far % (line * 2) + far / (line * 2) * ups)
        };
        let read = |at: usize| match is_whole {
            true => vector(&format!("(line + {}u)", far(at))),
            false => format!("read_{name}{n}(line + {}u, vector, end)", far(at)),
        };
        let of_share = |share| vectors * share..vectors * (share + 1);
        let held = shares * vectors;
        let loads = if self.pieces.is_multiple_of(threads) {
            let all = flowed((0..held).map(read), ",", 4);
            format!("return array<vec4<f32>, {held}>(\n    {all});")
        } else {
            let load = |at| format!("next[{at}] = {};", read(at));
            let all = each(&|share| flowed(of_share(share).map(load), "", 4));
            format!("var next = array<vec4<f32>, {held}>();\n  {all}\n  return next;")
        };
        let turned = |share: usize| {
            let of = flowed(of_share(share).map(|i| format!("next[{i}]")), ",", 0);
            let at = |v: usize| share * threads / quads + v * quads * pitch;
            let put = (0..4).map(|v| format!("staged[to + {}u] = t[{v}];", at(v)));
            let put = flowed(put, "", 4);
            format!("{{ let t = transpose(mat4x4<f32>({of}));\n    {put} }}")
        };
        let put = |share: usize| {
            let name = if is_reordered(&of.it.problem) {
                "line_of"
            } else {
                ""
            };
            let inner = format!("(lane / {line}u + {}u)", share * threads / line);
            format!("staged[to + {name}{inner} * {pitch}u] = next[{share}];")
        };
        let (place, stages) = match self.transposed {
            true => (
                format!("lane % {quads}u * {pitch}u + lane / {quads}u"),
                each(&turned),
            ),
            false => (format!("lane % {line}u"), each(&put)),
        };
        let values = context! {
            n, name, reads, loads, stages, held,
            upper => name.to_uppercase(),
            place => format!("let to = {first}u + {place};"),
        };
        filled("linear/matmul_operand.wgsl", &values)
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
