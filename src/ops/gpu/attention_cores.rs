//! Flash attention on matrix cores: the algorithm of `attention` and `attention_backward` with f16 operands and f32 sums.
//! A workgroup owns 64 rows of one head, 16 for each of its subgroups, and walks over the other side in tiles of 32. Softmax and
//! its gradient are computed by ordinary invocations, through workgroup memory. The forward pass goes over the keys twice,
//! first for the logarithms, then for the output, because sums in cooperative matrices cannot be scaled row by row.

use super::attention_wgsl::{self, Lines, Shape};
use super::wgsl::{self, Program, line};
use super::{MAX_GROUPS, is_f16};
use crate::ops::shapes::{Columns, Heads, Rows};
use burn_cubecl::tensor::CubeTensor;
use std::fmt::Write as _;

/// Side of the matrices that one instruction multiplies.
const SIDE: usize = 16;
/// Rows that a workgroup owns.
const OWN: usize = 64;
/// Rows of the other side in a tile.
const OTHER: usize = 32;
const INVOCATIONS: usize = 128;
/// Vectors from row to row of the scores and of the f16 weights in workgroup memory.
const SCORES: usize = (OTHER + 4) / 4;
const WEIGHTS: usize = (OTHER + 8) / 4;
/// Vectors of an invocation's part of a row of scores.
const FOURS: usize = SIDE / 4;
/// The widest head whose gradients fit into registers.
const WIDEST: usize = 128;

/// Whether the tiles fit a problem, and their workgroups a launch.
pub fn fits(sizes: &Heads) -> bool {
    sizes.context.is_multiple_of(OWN)
        && sizes.head_dim.is_multiple_of(SIDE)
        && sizes.head_dim <= WIDEST
        && sizes.batch * (sizes.heads + sizes.kv_heads) <= MAX_GROUPS
}

/// As [`super::attention::forward`], with f16 operands in the products. 1 launch.
pub fn forward(rows: &Rows<CubeTensor>, sizes: Heads) -> (CubeTensor, CubeTensor) {
    attention_wgsl::forward(rows, sizes, OWN, Forward)
}

/// As [`super::attention_backward::backward`], with f16 operands in the products. 1 launch.
pub fn backward(
    dout: &CubeTensor,
    rows: &Rows<CubeTensor>,
    out: &CubeTensor,
    lse: &CubeTensor,
    sizes: Heads,
) -> Rows<CubeTensor> {
    debug_assert!(
        !is_f16(dout),
        "operands are converted where they are staged"
    );
    attention_wgsl::backward(dout, rows, sizes, |shape, [q, k, v], [dq, dk, dv]| {
        let groups = shape.groups(OWN, sizes.kv_heads + sizes.heads);
        let buffers = [q, k, v, dout, out, dq, dk, dv, lse];
        wgsl::launch(Backward(shape), groups, &buffers);
    })
}

/// The output and the logarithms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Forward(Shape);

/// dk and dv by the first workgroups, which take longer, and dq by the others. Both need δ = rowsum(dout∘out) and compute it:
/// side by side they fill a GPU that neither fills alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Backward(Shape);

impl Program for Forward {
    fn name(&self) -> &'static str {
        "flash_attention_matrix_cores"
    }

    fn workgroup(&self) -> [u32; 3] {
        [INVOCATIONS as u32, 1, 1]
    }

    fn text(&self) -> String {
        let shape = &self.0;
        let Heads {
            heads, head_dim, ..
        } = shape.sizes;
        let (scale, parts) = (shape.sizes.scale(), shape.parts());
        let mut text = shape.begin(&["q", "k", "v"], &["out", "lse"]);
        line!(text, "  let group = id;");
        shape.place(&mut text, heads);
        // The last rows have the most keys before them: they start first.
        line!(text, "  let first = (tiles - 1u - group.x) * {OWN}u;");
        shape.own_side(&mut text, "q", "q", &shape.lines(0, "head"), "first");
        line!(text, "  var top = lowest;\n  var total = 0.0;");
        line!(
            text,
            "  for (var other = 0u; other < first + {OWN}u; other += {OTHER}u) {{"
        );
        shape.stage(
            &mut text,
            "k",
            OTHER,
            0,
            &shape.lines(1, "kv_head"),
            "other",
        );
        line!(text, "    workgroupBarrier();");
        shape.scores(&mut text, "q", 0);
        for i in 0..FOURS {
            line!(
                text,
                "    let s{i} = select(vec4<f32>(lowest), scores[mine + {i}u] * {scale:?}, {} <= vec4<u32>(first + row));",
                columns(i)
            );
        }
        let most = (1..FOURS).fold("s0".to_owned(), |most, i| format!("max({most}, s{i})"));
        line!(
            text,
            "    let most = {most};\n    let high = max(top, max(max(most.x, most.y), max(most.z, most.w)));"
        );
        let weights: Vec<String> = (0..FOURS).map(|i| format!("exp(s{i} - high)")).collect();
        line!(
            text,
            "    total = total * exp(top - high) + dot({}, vec4<f32>(1.0));\n    top = high;",
            weights.join(" + ")
        );
        line!(text, "  }}\n  workgroupBarrier();");
        // The two halves of a row.
        line!(
            text,
            "  shares[lane] = vec2<f32>(top, total);\n  workgroupBarrier();"
        );
        line!(
            text,
            "  let half = shares[lane ^ 1u];\n  let high = max(top, half.x);"
        );
        line!(
            text,
            "  let whole = total * exp(top - high) + half.y * exp(half.x - high);"
        );
        line!(text, "  let log = high + log(whole);");
        line!(
            text,
            "  if column == 0u {{ lse[(sequence + first + row) * {heads}u + head] = log; }}"
        );
        line!(text, "  workgroupBarrier();");
        zeros(&mut text, "sum", parts);
        line!(
            text,
            "  for (var other = 0u; other < first + {OWN}u; other += {OTHER}u) {{"
        );
        shape.stage(
            &mut text,
            "k",
            OTHER,
            0,
            &shape.lines(1, "kv_head"),
            "other",
        );
        shape.stage(
            &mut text,
            "v",
            OTHER,
            OTHER,
            &shape.lines(2, "kv_head"),
            "other",
        );
        line!(text, "    workgroupBarrier();");
        shape.scores(&mut text, "q", 0);
        for i in 0..FOURS {
            line!(
                text,
                "    weights[weight + {i}u] = vec4<f16>(select(vec4<f32>(), exp(scores[mine + {i}u] * {scale:?} - log), {} <= vec4<u32>(first + row)));",
                columns(i)
            );
        }
        line!(text, "    workgroupBarrier();");
        shape.accumulate(&mut text, "sum", OTHER);
        line!(text, "    workgroupBarrier();\n  }}");
        let dense = format!(
            "(sequence + first + own) * {}u + head * {head_dim}u",
            heads * head_dim
        );
        store(&mut text, "sum", "out", &dense, parts, heads * head_dim);
        line!(text, "}}");
        text
    }
}

impl Program for Backward {
    fn name(&self) -> &'static str {
        "flash_attention_backward_matrix_cores"
    }

    fn workgroup(&self) -> [u32; 3] {
        [INVOCATIONS as u32, 1, 1]
    }

    fn text(&self) -> String {
        let shape = &self.0;
        let Heads {
            batch, kv_heads, ..
        } = shape.sizes;
        let mut text = shape.begin(&["q", "k", "v", "dout", "out"], &["dq", "dk", "dv", "lse"]);
        let of_keys = batch * kv_heads;
        line!(text, "  if id.y < {of_keys}u {{\n  let group = id;");
        shape.keys(&mut text);
        line!(
            text,
            "  }} else {{\n  let group = id - vec3<u32>(0u, {of_keys}u, 0u);"
        );
        shape.queries(&mut text);
        line!(text, "  }}\n}}");
        text
    }
}

impl Shape {
    /// 16 columns each.
    fn parts(&self) -> usize {
        self.sizes.head_dim / SIDE
    }

    /// Vectors from row to row of a tile.
    fn pitch(&self) -> usize {
        (self.sizes.head_dim + 8) / 4
    }

    /// The bindings, workgroup memory, and an invocation's place: `row` of its workgroup's own rows, 16 columns of each tile
    /// of scores from `column` on; `own` is its subgroup's first row.
    fn begin(&self, operands: &[&str], values: &[&str]) -> String {
        let Heads { context, .. } = self.sizes;
        let mut text = String::from("enable f16;\nenable wgpu_cooperative_matrix;\n");
        Self::bindings(&mut text, operands, values);
        line!(
            text,
            "var<workgroup> tile: array<vec4<f16>, {}>;",
            OWN * self.pitch()
        );
        line!(
            text,
            "var<workgroup> scores: array<vec4<f32>, {}>;",
            OWN * SCORES
        );
        line!(
            text,
            "var<workgroup> weights: array<vec4<f16>, {}>;",
            OWN * WEIGHTS
        );
        for name in ["logs", "deltas"] {
            line!(
                text,
                "var<workgroup> {name}: array<vec4<f32>, {}>;",
                OTHER / 4
            );
        }
        line!(
            text,
            "var<workgroup> shares: array<vec2<f32>, {INVOCATIONS}>;"
        );
        line!(
            text,
            "const lowest = -3e38;\nconst lanes = vec4<u32>(0u, 1u, 2u, 3u);\nconst tiles = {}u;",
            context / OWN
        );
        line!(text, "@compute @workgroup_size({INVOCATIONS})");
        line!(
            text,
            "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{"
        );
        line!(
            text,
            "  let own = lane / 32u * {SIDE}u;\n  let row = own + lane % 32u / 2u;\n  let column = lane % 2u * {SIDE}u;"
        );
        line!(
            text,
            "  let mine = row * {SCORES}u + column / 4u;\n  let weight = row * {WEIGHTS}u + column / 4u;"
        );
        text
    }

    /// dq of the workgroup's own rows.
    fn queries(&self, text: &mut String) {
        let Heads { heads, .. } = self.sizes;
        let (scale, parts) = (self.sizes.scale(), self.parts());
        self.place(text, heads);
        line!(text, "  let first = (tiles - 1u - group.x) * {OWN}u;");
        self.own_side(text, "q", "q", &self.lines(0, "head"), "first");
        self.own_side(text, "dout", "g", &self.dense(), "first");
        self.dots(text, OWN, "first");
        line!(
            text,
            "  workgroupBarrier();\n  let delta = shares[lane].x + shares[lane ^ 1u].x;"
        );
        line!(
            text,
            "  let log = lse[(sequence + first + row) * {heads}u + head];"
        );
        zeros(text, "sum", parts);
        line!(
            text,
            "  for (var other = 0u; other < first + {OWN}u; other += {OTHER}u) {{"
        );
        self.stage(text, "k", OTHER, 0, &self.lines(1, "kv_head"), "other");
        self.stage(text, "v", OTHER, OTHER, &self.lines(2, "kv_head"), "other");
        line!(text, "    workgroupBarrier();");
        self.scores(text, "q", 0);
        for i in 0..FOURS {
            line!(
                text,
                "    let p{i} = select(vec4<f32>(), exp(scores[mine + {i}u] * {scale:?} - log), {} <= vec4<u32>(first + row));",
                columns(i)
            );
        }
        line!(text, "    workgroupBarrier();");
        self.scores(text, "g", OTHER);
        for i in 0..FOURS {
            line!(
                text,
                "    weights[weight + {i}u] = vec4<f16>(p{i} * (scores[mine + {i}u] - delta) * {scale:?});"
            );
        }
        line!(text, "    workgroupBarrier();");
        self.accumulate(text, "sum", 0);
        line!(text, "    workgroupBarrier();\n  }}");
        let Columns { stride, .. } = self.columns[0];
        let target = format!(
            "{} + (first + own) * {stride}u",
            self.lines(0, "head").start
        );
        store(text, "sum", "dq", &target, parts, stride);
    }

    /// dk and dv of the workgroup's own rows.
    fn keys(&self, text: &mut String) {
        let Heads {
            heads,
            kv_heads,
            context,
            ..
        } = self.sizes;
        let (group, scale, parts) = (self.sizes.group(), self.sizes.scale(), self.parts());
        self.place(text, kv_heads);
        // The first keys have the most queries after them: they start first.
        line!(text, "  let first = group.x * {OWN}u;");
        self.own_side(text, "k", "key", &self.lines(1, "kv_head"), "first");
        self.own_side(text, "v", "value", &self.lines(2, "kv_head"), "first");
        zeros(text, "dkey", parts);
        zeros(text, "dvalue", parts);
        line!(
            text,
            "  for (var head = kv_head * {group}u; head < (kv_head + 1u) * {group}u; head += 1u) {{"
        );
        line!(
            text,
            "  for (var other = first; other < {context}u; other += {OTHER}u) {{"
        );
        self.stage(text, "q", OTHER, 0, &self.lines(0, "head"), "other");
        self.stage(text, "dout", OTHER, OTHER, &self.dense(), "other");
        self.dots(text, OTHER, "other");
        line!(text, "    workgroupBarrier();");
        // Each vector by one invocation: no two write components of the same one.
        let each = INVOCATIONS / OTHER;
        let four = |of: &dyn Fn(usize) -> String| (0..4).map(of).collect::<Vec<_>>().join(", ");
        let log = |i| format!("lse[(sequence + other + lane * 4u + {i}u) * {heads}u + head]");
        let delta = |i| {
            let shares =
                (0..each).map(|j| format!("shares[lane * {}u + {}u].x", 4 * each, i * each + j));
            shares.collect::<Vec<_>>().join(" + ")
        };
        line!(
            text,
            "    if lane < {}u {{\n      logs[lane] = vec4<f32>({});\n      deltas[lane] = vec4<f32>({});\n    }}",
            OTHER / 4,
            four(&log),
            four(&delta)
        );
        self.scores(text, "key", 0);
        for i in 0..FOURS {
            line!(
                text,
                "    let p{i} = select(vec4<f32>(), exp(scores[mine + {i}u] * {scale:?} - logs[column / 4u + {i}u]), vec4<u32>(first + row) <= {});\n    weights[weight + {i}u] = vec4<f16>(p{i});",
                columns(i)
            );
        }
        line!(text, "    workgroupBarrier();");
        self.accumulate(text, "dvalue", OTHER);
        self.scores(text, "value", OTHER);
        for i in 0..FOURS {
            line!(
                text,
                "    weights[weight + {i}u] = vec4<f16>(p{i} * (scores[mine + {i}u] - deltas[column / 4u + {i}u]) * {scale:?});"
            );
        }
        line!(text, "    workgroupBarrier();");
        self.accumulate(text, "dkey", 0);
        line!(text, "    workgroupBarrier();\n  }}\n  }}");
        for (sum, target, index) in [("dkey", "dk", 1), ("dvalue", "dv", 2)] {
            let Columns { stride, .. } = self.columns[index];
            let at = format!(
                "{} + (first + own) * {stride}u",
                self.lines(index, "kv_head").start
            );
            store(text, sum, target, &at, parts, stride);
        }
    }

    /// dout·out of `count` rows from `first` on, in `shares`: each row's by several invocations, which take a part of its columns.
    fn dots(&self, text: &mut String, count: usize, first: &str) {
        let each = INVOCATIONS / count;
        let width = self.sizes.head_dim / each;
        let Lines { start, stride } = self.dense();
        line!(
            text,
            "    {{ let at = ({start} + ({first} + lane / {each}u) * {stride}u + lane % {each}u * {width}u) / 4u;"
        );
        let dots = (0..width / 4).map(|i| format!("dot(dout[at + {i}u], out[at + {i}u])"));
        let dots: Vec<String> = dots.collect();
        line!(text, "      shares[lane].x = {}; }}", dots.join(" + "));
    }

    /// `count` rows from `first` on into the tile, as f16, from row `to` of it.
    fn stage(
        &self,
        text: &mut String,
        source: &str,
        count: usize,
        to: usize,
        lines: &Lines,
        first: &str,
    ) {
        let (vectors, pitch) = (self.sizes.head_dim / 4, self.pitch());
        let Lines { start, stride } = lines;
        for load in 0..count * vectors / INVOCATIONS {
            let at = format!("(lane + {}u)", load * INVOCATIONS);
            line!(
                text,
                "    tile[({to}u + {at} / {vectors}u) * {pitch}u + {at} % {vectors}u] = vec4<f16>({source}[({start} + ({first} + {at} / {vectors}u) * {stride}u) / 4u + {at} % {vectors}u]);"
            );
        }
    }

    /// The workgroup's own rows as matrices `{name}0`, `{name}1`, …, 16 columns each.
    fn own_side(&self, text: &mut String, source: &str, name: &str, lines: &Lines, first: &str) {
        self.stage(text, source, OWN, 0, lines, first);
        line!(text, "  workgroupBarrier();");
        let pitch = self.pitch();
        for part in 0..self.parts() {
            line!(
                text,
                "  let {name}{part} = coopLoadT<coop_mat16x16<f16, A>>(&tile[own * {pitch}u + {}u], {pitch}u);",
                part * SIDE / 4
            );
        }
        line!(text, "  workgroupBarrier();");
    }

    /// Own rows `own` times the 32 rows of the tile from row `from` on, transposed, into `scores`. Ends behind a barrier.
    fn scores(&self, text: &mut String, own: &str, from: usize) {
        let pitch = self.pitch();
        for side in 0..OTHER / SIDE {
            line!(text, "    {{\n      var s = coop_mat16x16<f32, C>();");
            for part in 0..self.parts() {
                line!(
                    text,
                    "      s = coopMultiplyAdd({own}{part}, coopLoad<coop_mat16x16<f16, B>>(&tile[{}u], {pitch}u), s);",
                    (from + side * SIDE) * pitch + part * SIDE / 4
                );
            }
            line!(
                text,
                "      coopStoreT(s, &scores[own * {SCORES}u + {}u], {SCORES}u);\n    }}",
                side * SIDE / 4
            );
        }
        line!(text, "    workgroupBarrier();");
    }

    /// Adds `weights` times the 32 rows of the tile from row `from` on to the sums.
    fn accumulate(&self, text: &mut String, sum: &str, from: usize) {
        let pitch = self.pitch();
        for side in 0..OTHER / SIDE {
            line!(
                text,
                "    {{\n      let w = coopLoadT<coop_mat16x16<f16, A>>(&weights[own * {WEIGHTS}u + {}u], {WEIGHTS}u);",
                side * SIDE / 4
            );
            for part in 0..self.parts() {
                line!(
                    text,
                    "      {sum}{part} = coopMultiplyAdd(w, coopLoadT<coop_mat16x16<f16, B>>(&tile[{}u], {pitch}u), {sum}{part});",
                    (from + side * SIDE) * pitch + part * SIDE / 4
                );
            }
            line!(text, "    }}");
        }
    }
}

/// The columns of vector `i` of an invocation's scores.
fn columns(i: usize) -> String {
    format!("vec4<u32>(other + column + {}u) + lanes", 4 * i)
}

/// Sums `{name}0`, `{name}1`, …
fn zeros(text: &mut String, name: &str, parts: usize) {
    for part in 0..parts {
        line!(text, "  var {name}{part} = coop_mat16x16<f32, C>();");
    }
}

/// Writes the sums to the rows that begin at `at`.
fn store(text: &mut String, name: &str, target: &str, at: &str, parts: usize, stride: usize) {
    for part in 0..parts {
        line!(
            text,
            "  coopStoreT({name}{part}, &{target}[{at} + {}u], {stride}u);",
            part * SIDE
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::attention_wgsl::testing::{agrees, problems, valid};
    use super::super::check::{self, Device};
    use super::*;

    const PROBLEMS: &[[usize; 4]] = &[
        [64, 4, 2, 32],
        [128, 2, 2, 64],
        [192, 2, 1, 128],
        [64, 1, 1, 16],
    ];

    #[test]
    fn every_text_is_valid_wgsl() {
        for sizes in problems(PROBLEMS) {
            valid(sizes, Forward);
            valid(sizes, Backward);
        }
    }

    #[test]
    fn outputs_and_gradients_are_those_of_f32_up_to_the_rounding_of_operands() {
        let Some(device) = Device::any() else { return };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        for sizes in problems(PROBLEMS) {
            assert!(fits(&sizes));
            // An operand's rounding is 2⁻¹¹ of it; scores are sums of up to 128 products of numbers below 1.
            agrees(&device, sizes, (forward, backward), [4e-3, 8e-3]);
        }
    }
}
