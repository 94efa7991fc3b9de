//! Flash attention on matrix cores: the algorithm of `attention` and `attention_backward` with f16 operands and f32 sums.
//! A workgroup owns 64 rows of one head, 16 for each of its subgroups, and walks over the other side in tiles of 32. Softmax and
//! its gradient are computed by ordinary invocations, through workgroup memory. The forward pass goes over the keys twice,
//! first for the logarithms, then for the output, because sums in cooperative matrices cannot be scaled row by row.

use super::attention_wgsl::{self, Lines, Shape};
use super::is_f16;
use super::wgsl::{Program, line};
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
/// Values from row to row of the scores and of the f16 weights in workgroup memory.
const SCORES: usize = OTHER + 4;
const WEIGHTS: usize = OTHER + 8;
/// The widest head whose gradients fit into registers.
const WIDEST: usize = 128;

/// Whether the tiles fit a problem.
pub fn fits(sizes: &Heads) -> bool {
    sizes.context.is_multiple_of(OWN)
        && sizes.head_dim.is_multiple_of(SIDE)
        && sizes.head_dim <= WIDEST
}

/// As [`super::attention::forward`], with f16 operands in the products. 1 launch.
pub fn forward(rows: &Rows<CubeTensor>, sizes: Heads) -> (CubeTensor, CubeTensor) {
    attention_wgsl::forward(rows, sizes, OWN, Forward)
}

/// As [`super::attention_backward::backward`], with f16 operands in the products. 2 launches.
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
    attention_wgsl::backward(dout, rows, [out, lse], sizes, OWN, Queries, Keys)
}

/// The output and the logarithms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Forward(Shape);

/// δ = rowsum(dout∘out), and dq.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Queries(Shape);

/// dk and dv.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Keys(Shape);

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
        let mut text = shape.begin(&["q", "k", "v"], &["out", "lse"], heads);
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
        line!(text, "    var high = top;");
        for i in 0..SIDE {
            line!(
                text,
                "    let s{i} = select(lowest, scores[mine + {i}u] * {scale:?}, other + column + {i}u <= first + row);\n    high = max(high, s{i});"
            );
        }
        line!(text, "    total *= exp(top - high);\n    top = high;");
        for i in 0..SIDE {
            line!(text, "    total += exp(s{i} - high);");
        }
        line!(text, "  }}\n  workgroupBarrier();");
        // The two halves of a row.
        line!(
            text,
            "  scores[2u * lane] = top;\n  scores[2u * lane + 1u] = total;\n  workgroupBarrier();"
        );
        line!(text, "  let high = max(top, scores[2u * (lane ^ 1u)]);");
        line!(
            text,
            "  let whole = total * exp(top - high) + scores[2u * (lane ^ 1u) + 1u] * exp(scores[2u * (lane ^ 1u)] - high);"
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
        for i in 0..SIDE {
            line!(
                text,
                "    weights[weight + {i}u] = f16(select(0.0, exp(scores[mine + {i}u] * {scale:?} - log), other + column + {i}u <= first + row));"
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

impl Program for Queries {
    fn name(&self) -> &'static str {
        "flash_attention_backward_q_matrix_cores"
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
        let mut text = shape.begin(
            &["q", "k", "v", "dout"],
            &["out", "dq", "lse", "delta"],
            heads,
        );
        line!(text, "  let first = (tiles - 1u - group.x) * {OWN}u;");
        shape.own_side(&mut text, "q", "q", &shape.lines(0, "head"), "first");
        shape.own_side(&mut text, "dout", "g", &shape.dense(), "first");
        // δ of the row, half by each of two invocations.
        let half = head_dim / 2;
        line!(
            text,
            "  let at = (sequence + first + row) * {}u + head * {head_dim}u + column / {SIDE}u * {half}u;",
            heads * head_dim
        );
        line!(text, "  var dot_half = 0.0;");
        line!(text, "  for (var i = 0u; i < {half}u; i += 4u) {{");
        line!(text, "    let g4 = dout[(at + i) / 4u];");
        line!(
            text,
            "    dot_half += dot(g4, vec4<f32>(out[at + i], out[at + i + 1u], out[at + i + 2u], out[at + i + 3u]));\n  }}"
        );
        line!(text, "  scores[lane] = dot_half;\n  workgroupBarrier();");
        line!(text, "  let delta_row = dot_half + scores[lane ^ 1u];");
        line!(
            text,
            "  let line_of_row = (sequence + first + row) * {heads}u + head;"
        );
        line!(text, "  let log = lse[line_of_row];");
        line!(
            text,
            "  if column == 0u {{ delta[line_of_row] = delta_row; }}\n  workgroupBarrier();"
        );
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
        for i in 0..SIDE {
            line!(
                text,
                "    let p{i} = select(0.0, exp(scores[mine + {i}u] * {scale:?} - log), other + column + {i}u <= first + row);"
            );
        }
        line!(text, "    workgroupBarrier();");
        shape.scores(&mut text, "g", OTHER);
        for i in 0..SIDE {
            line!(
                text,
                "    weights[weight + {i}u] = f16(p{i} * (scores[mine + {i}u] - delta_row) * {scale:?});"
            );
        }
        line!(text, "    workgroupBarrier();");
        shape.accumulate(&mut text, "sum", 0);
        line!(text, "    workgroupBarrier();\n  }}");
        let Columns { stride, .. } = shape.columns[0];
        let target = format!(
            "{} + (first + own) * {stride}u",
            shape.lines(0, "head").start
        );
        store(&mut text, "sum", "dq", &target, parts, stride);
        line!(text, "}}");
        text
    }
}

impl Program for Keys {
    fn name(&self) -> &'static str {
        "flash_attention_backward_kv_matrix_cores"
    }

    fn workgroup(&self) -> [u32; 3] {
        [INVOCATIONS as u32, 1, 1]
    }

    fn text(&self) -> String {
        let shape = &self.0;
        let Heads {
            heads,
            kv_heads,
            context,
            ..
        } = shape.sizes;
        let group = shape.sizes.group();
        let (scale, parts) = (shape.sizes.scale(), shape.parts());
        let mut text = shape.begin(
            &["q", "k", "v", "dout"],
            &["dk", "dv", "lse", "delta"],
            kv_heads,
        );
        // The first keys have the most queries after them: they start first.
        line!(text, "  let first = group.x * {OWN}u;");
        shape.own_side(&mut text, "k", "key", &shape.lines(1, "kv_head"), "first");
        shape.own_side(&mut text, "v", "value", &shape.lines(2, "kv_head"), "first");
        zeros(&mut text, "dkey", parts);
        zeros(&mut text, "dvalue", parts);
        line!(
            text,
            "  for (var head = kv_head * {group}u; head < (kv_head + 1u) * {group}u; head += 1u) {{"
        );
        line!(
            text,
            "  for (var other = first; other < {context}u; other += {OTHER}u) {{"
        );
        shape.stage(&mut text, "q", OTHER, 0, &shape.lines(0, "head"), "other");
        shape.stage(&mut text, "dout", OTHER, OTHER, &shape.dense(), "other");
        line!(
            text,
            "    if lane < {OTHER}u {{\n      let line_of_row = (sequence + other + lane) * {heads}u + head;"
        );
        line!(
            text,
            "      logs[lane] = vec2<f32>(lse[line_of_row], delta[line_of_row]);\n    }}"
        );
        line!(text, "    workgroupBarrier();");
        shape.scores(&mut text, "key", 0);
        for i in 0..SIDE {
            line!(
                text,
                "    let p{i} = select(0.0, exp(scores[mine + {i}u] * {scale:?} - logs[column + {i}u].x), first + row <= other + column + {i}u);\n    weights[weight + {i}u] = f16(p{i});"
            );
        }
        line!(text, "    workgroupBarrier();");
        shape.accumulate(&mut text, "dvalue", OTHER);
        shape.scores(&mut text, "value", OTHER);
        for i in 0..SIDE {
            line!(
                text,
                "    weights[weight + {i}u] = f16(p{i} * (scores[mine + {i}u] - logs[column + {i}u].y) * {scale:?});"
            );
        }
        line!(text, "    workgroupBarrier();");
        shape.accumulate(&mut text, "dkey", 0);
        line!(text, "    workgroupBarrier();\n  }}\n  }}");
        for (sum, target, index) in [("dkey", "dk", 1), ("dvalue", "dv", 2)] {
            let Columns { stride, .. } = shape.columns[index];
            let at = format!(
                "{} + (first + own) * {stride}u",
                shape.lines(index, "kv_head").start
            );
            store(&mut text, sum, target, &at, parts, stride);
        }
        line!(text, "}}");
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
    /// of scores from `column` on; `own` is its subgroup's first row. Group y is a sequence and one of `heads`.
    fn begin(&self, operands: &[&str], values: &[&str], heads: usize) -> String {
        let Heads { context, .. } = self.sizes;
        let mut text = String::from("enable f16;\nenable wgpu_cooperative_matrix;\n");
        Self::bindings(&mut text, operands, values);
        line!(
            text,
            "var<workgroup> tile: array<vec4<f16>, {}>;",
            OWN * self.pitch()
        );
        line!(text, "var<workgroup> scores: array<f32, {}>;", OWN * SCORES);
        line!(
            text,
            "var<workgroup> weights: array<f16, {}>;",
            OWN * WEIGHTS
        );
        line!(text, "var<workgroup> logs: array<vec2<f32>, {OTHER}>;");
        line!(
            text,
            "const lowest = -3e38;\nconst tiles = {}u;",
            context / OWN
        );
        line!(text, "@compute @workgroup_size({INVOCATIONS})");
        line!(
            text,
            "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{"
        );
        self.place(&mut text, heads);
        line!(
            text,
            "  let own = lane / 32u * {SIDE}u;\n  let row = own + lane % 32u / 2u;\n  let column = lane % 2u * {SIDE}u;"
        );
        line!(
            text,
            "  let mine = row * {SCORES}u + column;\n  let weight = row * {WEIGHTS}u + column;"
        );
        text
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

    /// Own rows `own` times the 32 rows of the tile from row `from` on, turned, into `scores`. Ends behind a barrier.
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
                side * SIDE
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
                side * SIDE
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
            valid(sizes, Queries);
            valid(sizes, Keys);
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
