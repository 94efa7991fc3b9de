//! How the kernels of `attention_registers` work on tiles: rows are staged step by step, and while a step computes, the next one's
//! values are on their way.

use super::attention_wgsl::{Lines, Shape};
use super::wgsl::line;
use crate::ops::shapes::Heads;
use std::fmt::Write as _;

/// Rows that a workgroup owns.
pub const OWN: usize = 64;
/// Rows of the other side in a tile.
pub const OTHER: usize = 64;
/// Invocation (y, x) has rows y, y + 16, …, columns x, x + 16, … of a tile, and vectors x, x + 16, … of a head.
pub const DOWN: usize = 16;
pub const ACROSS: usize = 16;
pub const INVOCATIONS: usize = DOWN * ACROSS;
/// Rows of a tile that an invocation has.
pub const EACH: usize = OWN / DOWN;
/// Columns of a tile that an invocation has.
pub const COLUMNS: usize = OTHER / ACROSS;
/// Vectors of a row that are staged at once.
pub const PART: usize = 16;
/// Rows of the other side that are staged whole.
pub const SLICE: usize = 32;
/// Vectors from row to row of a staged part, and of the weights: neighbouring invocations read different banks.
pub const PITCH: usize = PART + 1;
pub const WEIGHTS: usize = OTHER / 4 + 1;

/// One attention's texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tiles(pub Shape);

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
pub struct Step {
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

/// Vectors of workgroup memory: own rows and the other side's by parts, or weights and a slice of the other side.
pub fn staged(vectors: usize) -> usize {
    ((OWN + OTHER) * PITCH).max(OWN * WEIGHTS + SLICE * vectors + ACROSS)
}

impl Tiles {
    /// Vectors of a head.
    pub fn vectors(&self) -> usize {
        self.0.sizes.head_dim / 4
    }

    /// Vectors of a head that an invocation accumulates, per row.
    pub fn owned(&self) -> usize {
        self.vectors().div_ceil(ACROSS)
    }

    /// Bindings, workgroup memory, and an invocation's place. Neighbours have neighbouring rows.
    pub fn begin(&self, vectors: &[&str], values: &[&str], heads: usize) -> String {
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
    pub fn fetch(&self, text: &mut String, step: &Step) {
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

    /// Writes what was read to workgroup memory.
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
    pub fn scores(
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

    /// sum += weights · the other side's rows. The step before writes the weights.
    pub fn accumulate(
        &self,
        steps: &mut Vec<Step>,
        sum: &str,
        (source, lines): (&'static str, Lines),
    ) {
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
    pub fn run(&self, text: &mut String, steps: &[Step], ahead: &str) {
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
    /// All steps for every tile of keys that own queries see.
    pub fn up_to_the_diagonal(&self, text: &mut String, steps: &[Step]) {
        line!(
            text,
            "  let end = min(first + {OWN}u, {}u);\n  {{ let other = 0u;",
            self.0.sizes.context
        );
        self.fetch(text, &steps[0]);
        line!(
            text,
            "  }}\n  for (var tile = 0u; tile < end; tile += {OTHER}u) {{\n    let other = tile;"
        );
        let ahead = format!("let other = select(0u, tile + {OTHER}u, tile + {OTHER}u < end);");
        self.run(text, steps, &ahead);
        line!(text, "  }}");
    }

    /// Registers for the values on their way.
    pub fn registers(&self, text: &mut String, steps: &[Step]) {
        let most = steps.iter().map(Step::loads).max().unwrap_or(0);
        for r in 0..most {
            line!(text, "  var r{r} = vec4<f32>();");
        }
    }

    /// A tile's scores in registers.
    pub fn tile(&self, text: &mut String, name: &str) {
        for (i, j) in pairs() {
            line!(text, "  var {name}{i}{j} = 0.0;");
        }
    }

    /// The sums of own rows.
    pub fn zeros(&self, text: &mut String, sum: &str) {
        for i in 0..EACH {
            for j in 0..self.owned() {
                line!(text, "  var {sum}{i}{j} = vec4<f32>();");
            }
        }
    }

    /// Writes the accumulated rows, times `factor`.
    pub fn store(
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
    pub fn over_rows(
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

    /// Writes a weight for `accumulate`.
    pub fn put_weight(&self, text: &mut String, i: usize, j: usize, value: &str) {
        line!(
            text,
            "    staged[(y + {}u) * {WEIGHTS}u + x / 4u + {}u][x % 4u] = {value};",
            i * DOWN,
            j * ACROSS / 4
        );
    }
}

/// The text of the last step, which will write weights to where its own operands are: once all have read them.
pub fn weighing(steps: &mut [Step]) -> &mut String {
    let step = steps.last_mut().expect("scores have a step at least");
    step.weighs = true;
    line!(step.compute, "    workgroupBarrier();");
    &mut step.compute
}

pub fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..EACH).flat_map(|i| (0..COLUMNS).map(move |j| (i, j)))
}
