//! Flash attention in f32 for wide heads: the algorithm of `attention` and `attention_backward` with larger tiles, whose scores and
//! sums stay in registers. While a part of a tile is multiplied, the next one is on its way from memory.
//! A workgroup of 256 owns 64 rows of one head and walks over the other side in tiles of 64.

use super::attention_shape::{Lines, Shape};
use super::empty;
use super::wgsl::{self, Program, line};
use crate::ops::shapes::{Heads, Rows};
use burn_cubecl::tensor::CubeTensor;
use std::fmt::Write as _;

/// Rows that a workgroup owns.
const OWN: usize = 64;
/// Rows of the other side in a tile.
const OTHER: usize = 64;
/// Invocation (y, x) has rows y, y + 16, …, columns x, x + 16, … of a tile, and vectors x, x + 16, … of a head.
const DOWN: usize = 16;
const ACROSS: usize = 16;
const INVOCATIONS: usize = DOWN * ACROSS;
/// Rows of a tile that an invocation has.
const EACH: usize = OWN / DOWN;
/// Columns of a tile that an invocation has.
const COLUMNS: usize = OTHER / ACROSS;
/// Vectors of a row that are staged at once.
const PART: usize = 16;
/// Rows of the other side that are staged whole.
const SLICE: usize = 32;
/// Vectors from row to row of a staged part, and of the weights: neighbouring invocations read different banks.
const PITCH: usize = PART + 1;
const WEIGHTS: usize = OTHER / 4 + 1;

/// Up to here the kernels with smaller tiles are as fast.
const NARROW: usize = 64;
/// The widest head whose gradients fit into registers.
const WIDEST: usize = 128;

/// Whether the tiles fit a problem and the device's workgroup memory.
pub fn fits(sizes: &Heads, tensor: &CubeTensor) -> bool {
    let available = tensor.client.properties().hardware.max_shared_memory_size;
    sizes.head_dim.is_multiple_of(4)
        && (NARROW + 1..=WIDEST).contains(&sizes.head_dim)
        && 16 * (staged(sizes.head_dim / 4) + OWN * ACROSS / 4) <= available
}

/// Vectors of workgroup memory: own rows and the other side's by parts, or weights and a slice of the other side.
fn staged(vectors: usize) -> usize {
    ((OWN + OTHER) * PITCH).max(OWN * WEIGHTS + SLICE * vectors + ACROSS)
}

/// As [`super::attention::forward`]. 1 launch.
pub fn forward(rows: &Rows<CubeTensor>, sizes: Heads) -> (CubeTensor, CubeTensor) {
    let [(q, of_q), (k, of_k), (v, of_v)] = rows.columns(&sizes);
    let out = empty(q, [sizes.rows(), sizes.heads * sizes.head_dim]);
    let lse = empty(q, [sizes.rows(), sizes.heads]);
    let program = Forward(Tiles(Shape {
        sizes,
        columns: [of_q, of_k, of_v],
    }));
    let groups = [sizes.context.div_ceil(OWN), sizes.batch * sizes.heads, 1];
    wgsl::launch(program, groups, &[q, k, v, &out, &lse]);
    (out, lse)
}

/// As [`super::attention_backward::backward`]. 2 launches.
pub fn backward(
    dout: &CubeTensor,
    rows: &Rows<CubeTensor>,
    out: &CubeTensor,
    lse: &CubeTensor,
    sizes: Heads,
) -> Rows<CubeTensor> {
    let gradients = rows
        .as_ref()
        .map(|x| empty::<2>(dout, x.meta.shape().dims()));
    let [(q, of_q), (k, of_k), (v, of_v)] = rows.columns(&sizes);
    let [dq, dk, dv] = gradients.columns(&sizes).map(|(buffer, _)| buffer);
    let delta = empty(dout, [sizes.rows(), sizes.heads]);
    let tiles = Tiles(Shape {
        sizes,
        columns: [of_q, of_k, of_v],
    });
    let groups = |heads: usize| [sizes.context.div_ceil(OWN), sizes.batch * heads, 1];
    let of_queries = [q, k, v, dout, out, dq, lse, &delta];
    let of_keys = [q, k, v, dout, dk, dv, lse, &delta];
    wgsl::launch(Queries(tiles.clone()), groups(sizes.heads), &of_queries);
    wgsl::launch(Keys(tiles), groups(sizes.kv_heads), &of_keys);
    gradients
}

/// The output and the logarithms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Forward(Tiles);

/// δ = rowsum(dout∘out), and dq.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Queries(Tiles);

/// dk and dv.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Keys(Tiles);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Tiles(Shape);

/// Rows that are brought to workgroup memory together.
struct Stage {
    /// The first vector in workgroup memory, and vectors from row to row there.
    at: usize,
    pitch: usize,
    rows: usize,
    /// Vectors of a row that are staged, and the first of them.
    wide: usize,
    from: usize,
    source: &'static str,
    lines: Lines,
    first: String,
}

impl Stage {
    /// Vectors of each invocation.
    fn loads(&self) -> usize {
        (self.rows * self.wide).div_ceil(INVOCATIONS)
    }
}

/// What is staged, and the text that computes from it.
struct Step {
    stages: Vec<Stage>,
    compute: String,
    /// Whether what is computed is read by all after the next step's staging: it goes to where this step's operands were.
    weighs: bool,
}

impl Step {
    fn loads(&self) -> usize {
        self.stages.iter().map(Stage::loads).sum()
    }
}

impl Program for Forward {
    fn name(&self) -> &'static str {
        "flash_attention_registers"
    }

    fn workgroup(&self) -> [u32; 3] {
        [INVOCATIONS as u32, 1, 1]
    }

    fn text(&self) -> String {
        let tiles = &self.0;
        let Heads { heads, context, .. } = tiles.0.sizes;
        let scale = tiles.0.sizes.scale();
        let mut text = tiles.begin(&["q", "k", "v", "out"], &["lse"], heads);
        line!(text, "  let first = (tiles - 1u - group.x) * {OWN}u;");
        tiles.zeros(&mut text, "sum");
        for i in 0..EACH {
            line!(text, "  var top{i} = lowest;\n  var total{i} = 0.0;");
        }
        let mut steps = Vec::new();
        tiles.scores(
            &mut steps,
            "s",
            ("q", tiles.0.lines(0, "head")),
            ("k", tiles.0.lines(1, "kv_head")),
        );
        let softmax = weighing(&mut steps);
        for (i, j) in pairs() {
            line!(
                softmax,
                "    s{i}{j} = select(lowest, s{i}{j} * {scale:?}, other + x + {}u <= first + y + {}u);",
                j * ACROSS,
                i * DOWN
            );
        }
        for i in 0..EACH {
            let all = (1..COLUMNS).fold(format!("s{i}0"), |m, j| format!("max({m}, s{i}{j})"));
            line!(softmax, "    let most{i} = {all};");
        }
        tiles.over_rows(softmax, "most", "high", |a, b| format!("max({a}, {b})"));
        for i in 0..EACH {
            line!(
                softmax,
                "    let new{i} = max(top{i}, high{i});\n    let shrink{i} = exp(top{i} - new{i});\n    top{i} = new{i};\n    total{i} *= shrink{i};"
            );
            for j in 0..COLUMNS {
                line!(
                    softmax,
                    "    let p{i}{j} = exp(s{i}{j} - new{i});\n    total{i} += p{i}{j};"
                );
                tiles.put_weight(softmax, i, j, &format!("p{i}{j}"));
            }
            for j in 0..tiles.owned() {
                line!(softmax, "    sum{i}{j} *= shrink{i};");
            }
        }
        tiles.accumulate(&mut steps, "sum", ("v", tiles.0.lines(2, "kv_head")));
        tiles.tile(&mut text, "s");
        tiles.registers(&mut text, &steps);
        let end = format!("min(first + {OWN}u, {context}u)");
        line!(text, "  {{ let other = 0u;");
        tiles.fetch(&mut text, &steps[0]);
        line!(text, "  }}");
        line!(
            text,
            "  for (var tile = 0u; tile < {end}; tile += {OTHER}u) {{\n    let other = tile;"
        );
        tiles.run(
            &mut text,
            &steps,
            &format!("let other = select(0u, tile + {OTHER}u, tile + {OTHER}u < {end});"),
        );
        line!(text, "  }}");
        tiles.over_rows(&mut text, "total", "whole", |a, b| format!("({a} + {b})"));
        for i in 0..EACH {
            line!(text, "  let inverse{i} = 1.0 / whole{i};");
            line!(
                text,
                "  if x == 0u && first + y + {0}u < {context}u {{ lse[(sequence + first + y + {0}u) * {heads}u + head] = top{i} + log(whole{i}); }}",
                i * DOWN
            );
        }
        tiles.store(&mut text, "sum", "out", &tiles.0.dense(), Some("inverse"));
        line!(text, "}}");
        text
    }
}

impl Program for Queries {
    fn name(&self) -> &'static str {
        "flash_attention_backward_q_registers"
    }

    fn workgroup(&self) -> [u32; 3] {
        [INVOCATIONS as u32, 1, 1]
    }

    fn text(&self) -> String {
        let tiles = &self.0;
        let Heads { heads, context, .. } = tiles.0.sizes;
        let scale = tiles.0.sizes.scale();
        let mut text = tiles.begin(
            &["q", "k", "v", "dout", "out", "dq"],
            &["lse", "delta"],
            heads,
        );
        line!(text, "  let first = (tiles - 1u - group.x) * {OWN}u;");
        for i in 0..EACH {
            line!(
                text,
                "  var log{i} = 0.0;\n  var part{i} = 0.0;\n  if first + y + {}u < {context}u {{",
                i * DOWN
            );
            line!(
                text,
                "    log{i} = lse[(sequence + first + y + {}u) * {heads}u + head];",
                i * DOWN
            );
            line!(
                text,
                "    let at = ({} + (first + y + {}u) * {}u) / 4u;",
                tiles.0.dense().start,
                i * DOWN,
                tiles.0.dense().stride
            );
            line!(
                text,
                "    for (var v = x; v < {}u; v += {ACROSS}u) {{ part{i} += dot(out[at + v], dout[at + v]); }}\n  }}",
                tiles.vectors()
            );
        }
        tiles.over_rows(&mut text, "part", "delta_row", |a, b| {
            format!("({a} + {b})")
        });
        for i in 0..EACH {
            line!(
                text,
                "  if x == 0u && first + y + {0}u < {context}u {{ delta[(sequence + first + y + {0}u) * {heads}u + head] = delta_row{i}; }}",
                i * DOWN
            );
        }
        tiles.zeros(&mut text, "sum");
        let mut steps = Vec::new();
        tiles.scores(
            &mut steps,
            "s",
            ("q", tiles.0.lines(0, "head")),
            ("k", tiles.0.lines(1, "kv_head")),
        );
        tiles.scores(
            &mut steps,
            "g",
            ("dout", tiles.0.dense()),
            ("v", tiles.0.lines(2, "kv_head")),
        );
        let slopes = weighing(&mut steps);
        for (i, j) in pairs() {
            line!(
                slopes,
                "    s{i}{j} = select(0.0, exp(s{i}{j} * {scale:?} - log{i}), other + x + {}u <= first + y + {}u);",
                j * ACROSS,
                i * DOWN
            );
            tiles.put_weight(
                slopes,
                i,
                j,
                &format!("s{i}{j} * (g{i}{j} - delta_row{i}) * {scale:?}"),
            );
        }
        tiles.accumulate(&mut steps, "sum", ("k", tiles.0.lines(1, "kv_head")));
        tiles.tile(&mut text, "s");
        tiles.tile(&mut text, "g");
        tiles.registers(&mut text, &steps);
        let end = format!("min(first + {OWN}u, {context}u)");
        line!(text, "  {{ let other = 0u;");
        tiles.fetch(&mut text, &steps[0]);
        line!(text, "  }}");
        line!(
            text,
            "  for (var tile = 0u; tile < {end}; tile += {OTHER}u) {{\n    let other = tile;"
        );
        tiles.run(
            &mut text,
            &steps,
            &format!("let other = select(0u, tile + {OTHER}u, tile + {OTHER}u < {end});"),
        );
        line!(text, "  }}");
        tiles.store(&mut text, "sum", "dq", &tiles.0.lines(0, "head"), None);
        line!(text, "}}");
        text
    }
}

impl Program for Keys {
    fn name(&self) -> &'static str {
        "flash_attention_backward_kv_registers"
    }

    fn workgroup(&self) -> [u32; 3] {
        [INVOCATIONS as u32, 1, 1]
    }

    fn text(&self) -> String {
        let tiles = &self.0;
        let Heads {
            heads,
            kv_heads,
            context,
            ..
        } = tiles.0.sizes;
        let scale = tiles.0.sizes.scale();
        let group = tiles.0.sizes.group();
        let mut text = tiles.begin(
            &["q", "k", "v", "dout", "dk", "dv"],
            &["lse", "delta"],
            kv_heads,
        );
        line!(text, "  let first = group.x * {OWN}u;");
        tiles.zeros(&mut text, "dkey");
        tiles.zeros(&mut text, "dvalue");
        let mut steps = Vec::new();
        tiles.scores(
            &mut steps,
            "s",
            ("k", tiles.0.lines(1, "kv_head")),
            ("q", tiles.0.lines(0, "head")),
        );
        let weigh = weighing(&mut steps);
        for j in 0..COLUMNS {
            line!(
                weigh,
                "    let line{j} = (sequence + min(other + x + {}u, {}u)) * {heads}u + head;",
                j * ACROSS,
                context - 1
            );
            line!(weigh, "    let log{j} = lse[line{j}];");
        }
        for (i, j) in pairs() {
            let column = format!("other + x + {}u", j * ACROSS);
            let guard = if context.is_multiple_of(OWN) {
                String::new()
            } else {
                format!(" && {column} < {context}u")
            };
            line!(
                weigh,
                "    s{i}{j} = select(0.0, exp(s{i}{j} * {scale:?} - log{j}), first + y + {}u <= {column}{guard});",
                i * DOWN
            );
            tiles.put_weight(weigh, i, j, &format!("s{i}{j}"));
        }
        tiles.accumulate(&mut steps, "dvalue", ("dout", tiles.0.dense()));
        tiles.scores(
            &mut steps,
            "g",
            ("v", tiles.0.lines(2, "kv_head")),
            ("dout", tiles.0.dense()),
        );
        let slopes = weighing(&mut steps);
        for j in 0..COLUMNS {
            line!(
                slopes,
                "    let delta{j} = delta[(sequence + min(other + x + {}u, {}u)) * {heads}u + head];",
                j * ACROSS,
                context - 1
            );
        }
        for (i, j) in pairs() {
            tiles.put_weight(
                slopes,
                i,
                j,
                &format!("s{i}{j} * (g{i}{j} - delta{j}) * {scale:?}"),
            );
        }
        tiles.accumulate(&mut steps, "dkey", ("q", tiles.0.lines(0, "head")));
        tiles.tile(&mut text, "s");
        tiles.tile(&mut text, "g");
        tiles.registers(&mut text, &steps);
        let per = format!("({context}u - first + {}u) / {OTHER}u", OTHER - 1);
        line!(
            text,
            "  let tiles_after = {per};\n  let rounds = tiles_after * {group}u;"
        );
        line!(
            text,
            "  {{ let other = first; let head = kv_head * {group}u;"
        );
        tiles.fetch(&mut text, &steps[0]);
        line!(text, "  }}");
        line!(
            text,
            "  for (var round = 0u; round < rounds; round += 1u) {{\n    let head = kv_head * {group}u + round / tiles_after;\n    let other = first + round % tiles_after * {OTHER}u;"
        );
        tiles.run(&mut text, &steps, &format!("let next = select(0u, round + 1u, round + 1u < rounds); let head = kv_head * {group}u + next / tiles_after; let other = first + next % tiles_after * {OTHER}u;"));
        line!(text, "  }}");
        tiles.store(&mut text, "dkey", "dk", &tiles.0.lines(1, "kv_head"), None);
        tiles.store(
            &mut text,
            "dvalue",
            "dv",
            &tiles.0.lines(2, "kv_head"),
            None,
        );
        line!(text, "}}");
        text
    }
}

impl Tiles {
    fn vectors(&self) -> usize {
        self.0.sizes.head_dim / 4
    }
    fn owned(&self) -> usize {
        self.vectors().div_ceil(ACROSS)
    }
    fn begin(&self, vectors: &[&str], values: &[&str], heads: usize) -> String {
        let Heads { context, .. } = self.0.sizes;
        let mut text = String::new();
        Shape::bindings(&mut text, vectors, values);
        let staged = staged(self.vectors());
        line!(text, "var<workgroup> staged: array<vec4<f32>, {staged}>;");
        line!(
            text,
            "var<workgroup> rows: array<vec4<f32>, {}>;",
            OWN * ACROSS / 4
        );
        line!(text, "const lowest = -3.0e38;");
        line!(text, "@compute @workgroup_size({INVOCATIONS})");
        line!(
            text,
            "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{"
        );
        line!(
            text,
            "  let y = lane % 8u + lane / 32u % 2u * 8u;\n  let x = lane / 8u % 4u + lane / 64u * 4u;"
        );
        line!(text, "  let tiles = {}u;", context.div_ceil(OWN));
        self.0.place(&mut text, heads);
        text
    }
    /// Reads this invocation's share of a step into registers; zeros past the ends.
    fn fetch(&self, text: &mut String, step: &Step) {
        let vectors = self.vectors();
        let mut register = 0;
        for it in &step.stages {
            let total = it.rows * it.wide;
            for i in 0..total.div_ceil(INVOCATIONS) {
                let at = format!("(lane + {}u)", i * INVOCATIONS);
                let row = format!("{} + {at} / {}u", it.first, it.wide);
                let vector = format!("{}u + {at} % {}u", it.from, it.wide);
                let read = format!(
                    "{}[({} + ({row}) * {}u) / 4u + {vector}]",
                    it.source, it.lines.start, it.lines.stride
                );
                let mut bounds = Vec::new();
                if !self.0.sizes.context.is_multiple_of(OWN) {
                    bounds.push(format!("{row} < {}u", self.0.sizes.context));
                }
                if it.from + it.wide > vectors {
                    bounds.push(format!("{vector} < {vectors}u"));
                }
                if (i + 1) * INVOCATIONS > total {
                    bounds.push(format!("{at} < {total}u"));
                }
                if bounds.is_empty() {
                    line!(text, "    r{register} = {read};");
                } else {
                    line!(
                        text,
                        "    r{register} = vec4<f32>();\n    if {} {{ r{register} = {read}; }}",
                        bounds.join(" && ")
                    );
                }
                register += 1;
            }
        }
    }
    fn put(&self, text: &mut String, step: &Step) {
        let mut register = 0;
        for it in &step.stages {
            let total = it.rows * it.wide;
            for i in 0..total.div_ceil(INVOCATIONS) {
                let at = format!("(lane + {}u)", i * INVOCATIONS);
                let guard = if (i + 1) * INVOCATIONS > total {
                    format!("if {at} < {total}u ")
                } else {
                    String::new()
                };
                line!(
                    text,
                    "    {guard}{{ staged[{}u + {at} / {}u * {}u + {at} % {}u] = r{register}; }}",
                    it.at,
                    it.wide,
                    it.pitch,
                    it.wide
                );
                register += 1;
            }
        }
    }
    /// {name}_i_j = the dot product of own row i and of the other side's row j.
    fn scores(
        &self,
        steps: &mut Vec<Step>,
        name: &str,
        own: (&'static str, Lines),
        other: (&'static str, Lines),
    ) {
        for from in (0..self.vectors()).step_by(PART) {
            let stage = |at, rows, (source, lines): (&'static str, Lines), first: &str| Stage {
                at,
                rows,
                wide: PART,
                pitch: PITCH,
                source,
                lines,
                first: first.into(),
                from,
            };
            let mut text = String::new();
            if from == 0 {
                for (i, j) in pairs() {
                    line!(text, "    {name}{i}{j} = 0.0;");
                }
            }
            line!(text, "    for (var v = 0u; v < {PART}u; v += 1u) {{");
            for i in 0..EACH {
                line!(
                    text,
                    "      let a{i} = staged[(y + {}u) * {PITCH}u + v];",
                    i * DOWN
                );
            }
            for j in 0..COLUMNS {
                line!(
                    text,
                    "      let b{j} = staged[{}u + (x + {}u) * {PITCH}u + v];",
                    OWN * PITCH,
                    j * ACROSS
                );
            }
            for c in ["x", "y", "z", "w"] {
                for (i, j) in pairs() {
                    line!(
                        text,
                        "      {name}{i}{j} = fma(a{i}.{c}, b{j}.{c}, {name}{i}{j});"
                    );
                }
            }
            line!(text, "    }}");
            steps.push(Step {
                stages: vec![
                    stage(0, OWN, own.clone(), "first"),
                    stage(OWN * PITCH, OTHER, other.clone(), "other"),
                ],
                compute: text,
                weighs: false,
            });
        }
    }
    /// sum += weights · the other side's rows. The weights are written by what `before` computes.
    fn accumulate(&self, steps: &mut Vec<Step>, sum: &str, (source, lines): (&'static str, Lines)) {
        let vectors = self.vectors();
        for slice in 0..OTHER / SLICE {
            let mut text = String::new();
            line!(text, "    for (var k = 0u; k < {}u; k += 1u) {{", SLICE / 4);
            for i in 0..EACH {
                line!(
                    text,
                    "      let w{i} = staged[(y + {}u) * {WEIGHTS}u + {}u + k];",
                    i * DOWN,
                    slice * SLICE / 4
                );
            }
            for (c, component) in ["x", "y", "z", "w"].iter().enumerate() {
                for j in 0..self.owned() {
                    line!(
                        text,
                        "      let v{c}{j} = staged[{}u + (k * 4u + {c}u) * {vectors}u + x + {}u];",
                        OWN * WEIGHTS,
                        j * ACROSS
                    );
                    for i in 0..EACH {
                        line!(
                            text,
                            "      {sum}{i}{j} = fma(vec4<f32>(w{i}.{component}), v{c}{j}, {sum}{i}{j});"
                        );
                    }
                }
            }
            line!(text, "    }}");
            let stage = Stage {
                at: OWN * WEIGHTS,
                rows: SLICE,
                wide: vectors,
                pitch: vectors,
                source,
                lines: lines.clone(),
                first: format!("other + {}u", slice * SLICE),
                from: 0,
            };
            steps.push(Step {
                stages: vec![stage],
                compute: text,
                weighs: false,
            });
        }
    }
    /// The steps one after the other; while one computes, the next one's values are on their way. `ahead`: names of the next round.
    fn run(&self, text: &mut String, steps: &[Step], ahead: &str) {
        for (n, step) in steps.iter().enumerate() {
            self.put(text, step);
            line!(text, "    workgroupBarrier();");
            match steps.get(n + 1) {
                Some(next) => self.fetch(text, next),
                None => {
                    line!(text, "    {{ {ahead}");
                    self.fetch(text, &steps[0]);
                    line!(text, "    }}");
                }
            }
            text.push_str(&step.compute);
            if !step.weighs {
                line!(text, "    workgroupBarrier();");
            }
        }
    }
    fn registers(&self, text: &mut String, steps: &[Step]) {
        let most = steps.iter().map(Step::loads).max().unwrap_or(0);
        for r in 0..most {
            line!(text, "  var r{r} = vec4<f32>();");
        }
    }
    fn tile(&self, text: &mut String, name: &str) {
        for (i, j) in pairs() {
            line!(text, "  var {name}{i}{j} = 0.0;");
        }
    }
    fn zeros(&self, text: &mut String, sum: &str) {
        for i in 0..EACH {
            for j in 0..self.owned() {
                line!(text, "  var {sum}{i}{j} = vec4<f32>();");
            }
        }
    }
    /// Writes the accumulated rows, times `factor`.
    fn store(
        &self,
        text: &mut String,
        sum: &str,
        target: &str,
        lines: &Lines,
        factor: Option<&str>,
    ) {
        for i in 0..EACH {
            line!(
                text,
                "  if first + y + {}u < {}u {{",
                i * DOWN,
                self.0.sizes.context
            );
            line!(
                text,
                "    let at = ({} + (first + y + {}u) * {}u) / 4u + x;",
                lines.start,
                i * DOWN,
                lines.stride
            );
            for j in 0..self.owned() {
                let value = match factor {
                    Some(f) => format!("{sum}{i}{j} * {f}{i}"),
                    None => format!("{sum}{i}{j}"),
                };
                let guard = if (j + 1) * ACROSS > self.vectors() {
                    format!("if x + {}u < {}u ", j * ACROSS, self.vectors())
                } else {
                    String::new()
                };
                line!(
                    text,
                    "    {guard}{{ {target}[at + {}u] = {value}; }}",
                    j * ACROSS
                );
            }
            line!(text, "  }}");
        }
    }
    /// The sum or the highest of a value per row over the invocations of the row: `{to}_i` from `{from}_i`.
    fn over_rows(
        &self,
        text: &mut String,
        from: &str,
        to: &str,
        combine: fn(&str, &str) -> String,
    ) {
        let wide = ACROSS / 4;
        for i in 0..EACH {
            line!(
                text,
                "    rows[(y + {}u) * {wide}u + x / 4u][x % 4u] = {from}{i};",
                i * DOWN
            );
        }
        line!(text, "    workgroupBarrier();");
        for i in 0..EACH {
            let first = format!("rows[(y + {}u) * {wide}u]", i * DOWN);
            let all = (1..wide).fold(first, |all, at| {
                combine(
                    &all,
                    &format!("rows[(y + {}u) * {wide}u + {at}u]", i * DOWN),
                )
            });
            line!(text, "    let both{to}{i} = {all};");
            let b = format!("both{to}{i}");
            line!(
                text,
                "    let {to}{i} = {};",
                combine(
                    &combine(&format!("{b}.x"), &format!("{b}.y")),
                    &combine(&format!("{b}.z"), &format!("{b}.w"))
                )
            );
        }
    }
    fn put_weight(&self, text: &mut String, i: usize, j: usize, value: &str) {
        line!(
            text,
            "    staged[(y + {}u) * {WEIGHTS}u + x / 4u + {}u][x % 4u] = {value};",
            i * DOWN,
            j * ACROSS / 4
        );
    }
}

/// The text of the last step, which will write weights to where its own operands are: once all have read them.
fn weighing(steps: &mut [Step]) -> &mut String {
    let step = steps.last_mut().expect("scores have a step at least");
    step.weighs = true;
    line!(step.compute, "    workgroupBarrier();");
    &mut step.compute
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..EACH).flat_map(|i| (0..COLUMNS).map(move |j| (i, j)))
}

#[cfg(test)]
mod tests {
    use super::super::check::{self, Device};
    use super::super::{attention, attention_backward};
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::shapes::Columns;

    fn problems() -> Vec<Heads> {
        let sizes = |(context, heads, kv_heads, head_dim)| Heads {
            batch: 2,
            context,
            heads,
            kv_heads,
            head_dim,
        };
        [
            (64, 2, 1, 128),
            (100, 4, 2, 72),
            (130, 1, 1, 96),
            (1, 2, 2, 68),
        ]
        .map(sizes)
        .to_vec()
    }

    #[test]
    fn every_text_is_valid_wgsl() {
        for sizes in problems() {
            let [q, k, _] = sizes.widths();
            let columns = [0, q, q + k].map(|offset| Columns {
                offset,
                stride: q + 2 * k,
            });
            let tiles = Tiles(Shape { sizes, columns });
            check::valid_wgsl(&Forward(tiles.clone()).text());
            check::valid_wgsl(&Queries(tiles.clone()).text());
            check::valid_wgsl(&Keys(tiles).text());
        }
    }

    #[test]
    fn outputs_and_gradients_are_those_of_the_smaller_tiles() {
        let Some(device) = Device::any() else { return };
        for sizes in problems() {
            let [q, k, _] = sizes.widths();
            let count = sizes.rows() * (q + 2 * k);
            let packed = device.tensor(&numbers(1, count), [sizes.rows(), q + 2 * k]);
            let dout = device.tensor(&numbers(2, sizes.rows() * q), [sizes.rows(), q]);
            let rows = Rows::Packed(packed);
            let read = |tensor: &CubeTensor| device.read(tensor);
            let (out, lse) = forward(&rows, sizes);
            let (want, want_lse) = attention::forward(&rows, sizes);
            let (name, got) = (
                format!("{sizes:?}"),
                backward(&dout, &rows, &want, &want_lse, sizes),
            );
            check::close(&format!("out {name}"), &read(&out), &read(&want), 1e-5);
            check::close(&format!("lse {name}"), &read(&lse), &read(&want_lse), 1e-5);
            let want = attention_backward::backward(&dout, &rows, &want, &want_lse, sizes);
            let (got, want) = (read(got.first()), read(want.first()));
            check::close(&format!("gradients {name}"), &got, &want, 1e-5);
        }
    }
}
