//! Flash attention in f32 for wide heads: the algorithm of `attention` and `attention_backward` with larger tiles, whose scores and
//! sums stay in registers. While a part of a tile is multiplied, the next one is on its way from memory.
//! A workgroup of 256 owns 64 rows of one head and walks over the other side in tiles of 64.

use super::attention_steps::{
    ACROSS, COLUMNS, DOWN, EACH, INVOCATIONS, OTHER, OWN, Tiles, pairs, staged, weighing,
};
use super::attention_wgsl;
use super::wgsl::{self, Program, line};
use super::{MAX_GROUPS, empty};
use crate::ops::shapes::{Heads, Rows};
use burn_cubecl::tensor::CubeTensor;
use std::fmt::Write as _;

/// Up to here the kernels with smaller tiles are as fast.
const NARROW: usize = 64;
/// The widest head whose gradients fit into registers.
const WIDEST: usize = 128;

/// Whether the tiles fit a problem and the device's workgroup memory, and their workgroups a launch.
pub fn fits(sizes: &Heads, tensor: &CubeTensor) -> bool {
    let available = tensor.client.properties().hardware.max_shared_memory_size;
    sizes.head_dim.is_multiple_of(4)
        && (NARROW + 1..=WIDEST).contains(&sizes.head_dim)
        && sizes.batch * sizes.heads <= MAX_GROUPS
        && 16 * (staged(sizes.head_dim / 4) + OWN * ACROSS / 4) <= available
}

/// As [`super::attention::forward`]. 1 launch.
pub fn forward(rows: &Rows<CubeTensor>, sizes: Heads) -> (CubeTensor, CubeTensor) {
    attention_wgsl::forward(rows, sizes, OWN, |shape| Forward(Tiles(shape)))
}

/// As [`super::attention_backward::backward`]. 2 launches.
pub fn backward(
    dout: &CubeTensor,
    rows: &Rows<CubeTensor>,
    out: &CubeTensor,
    lse: &CubeTensor,
    sizes: Heads,
) -> Rows<CubeTensor> {
    let delta = &empty(dout, [sizes.rows(), sizes.heads]);
    attention_wgsl::backward(dout, rows, sizes, |shape, [q, k, v], [dq, dk, dv]| {
        let [of_queries, of_keys] = [sizes.heads, sizes.kv_heads].map(|it| shape.groups(OWN, it));
        let queries = Queries(Tiles(shape.clone()));
        wgsl::launch(queries, of_queries, &[q, k, v, dout, out, dq, lse, delta]);
        let keys = Keys(Tiles(shape));
        wgsl::launch(keys, of_keys, &[q, k, v, dout, dk, dv, lse, delta]);
    })
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
        tiles.up_to_the_diagonal(&mut text, &steps);
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
        tiles.up_to_the_diagonal(&mut text, &steps);
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

#[cfg(test)]
mod tests {
    use super::super::attention_wgsl::testing::{agrees, problems, valid};
    use super::super::check::Device;
    use super::*;

    const PROBLEMS: &[[usize; 4]] = &[
        [64, 2, 1, 128],
        [100, 4, 2, 72],
        [130, 1, 1, 96],
        [1, 2, 2, 68],
    ];

    #[test]
    fn every_text_is_valid_wgsl() {
        for sizes in problems(PROBLEMS) {
            valid(sizes, |shape| Forward(Tiles(shape)));
            valid(sizes, |shape| Queries(Tiles(shape)));
            valid(sizes, |shape| Keys(Tiles(shape)));
        }
    }

    #[test]
    fn outputs_and_gradients_are_those_of_the_smaller_tiles() {
        let Some(device) = Device::any() else { return };
        for sizes in problems(PROBLEMS) {
            agrees(&device, sizes, (forward, backward), [1e-5, 1e-5]);
        }
    }
}
