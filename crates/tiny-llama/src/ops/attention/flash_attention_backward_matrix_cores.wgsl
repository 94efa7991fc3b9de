// The gradients of causal attention, dq, dk and dv, from dout, f16 operands and f32 sums on matrix cores. With
// p[r, c] = exp(scale·q[r]·k[c] - lse[r]) for c ≤ r, and δ[r] = dout[r]·out[r] (Dao et al., 2022, arXiv 2205.14135):
//
//   for each row r:
//     for c in 0..=r:
//       ds = p[r, c]·(dout[r]·v[c] - δ[r])·scale
//       dq[r] += ds·k[c];  dk[c] += ds·q[r];  dv[c] += p[r, c]·dout[r]
//
// 1. Two kinds of workgroup, so no workgroup adds to another's sums. The first ones own {{ own }} keys each and compute dk and dv,
//    which takes longer; the others own {{ own }} queries and compute dq. Together they fill a GPU that neither kind fills alone.
//    q and k were rotated; rows of dq and dk are rotated back before they are stored.
// 2. Two teams. One computes q·kᵀ of a tile and the other dout·vᵀ, at the same time; then one adds to dv and the other to dk, or each to
//    half of the columns of dq. Scores are recomputed with the saved lse. Both kinds compute δ.
// 3. Early loads. The next rows are loaded into registers while the matrix cores work on these.
{% include "attention/attention_tile.wgsl" %}
{% from "attention/attention_tile.wgsl" import place_in_tile, registers, fetch, put, matrices, multiply, accumulate, columns, zeros, store %}
{% from "attention/attention_batch.wgsl" import place_in_batch %}
{% set vectors = other // 16 %}
{% set half = parts // 2 %}
// For each row of a tile: its lse, twice, and its δ.
var<workgroup> line_logs: array<f32, {{ other }}>;
var<workgroup> logs: array<vec4<f32>, {{ other // 4 }}>;
var<workgroup> deltas: array<vec4<f32>, {{ other // 4 }}>;
{# Own rows as matrices `side`0, `side`1, …: of `a` for one team, of `b` for the other. They pass through the tile, 32 columns at a time. #}
{% macro own_sides(a, lines_a, b, lines_b) %}
  { let r = lane / 4u;
{% for name, source, lines in [["a", a, lines_a], ["b", b, lines_b]] %}
    let at_{{ name }} = ({{ lines.start }} + (first + r) * {{ lines.stride }}u) / 4u + lane % 4u;
{% for i in range(row_vectors // 4) %}
    let {{ name }}{{ i }} = {{ source }}[at_{{ name }} + {{ 4 * i }}u];
{% endfor %}
{% endfor %}
{% for part in range(parts) %}
    tile[r * {{ part_pitch }}u + lane % 4u + {{ part % 2 * 4 }}u] = vec4<f16>(a{{ part }});
    tile[(r + {{ own }}u) * {{ part_pitch }}u + lane % 4u + {{ part % 2 * 4 }}u] = vec4<f16>(b{{ part }});
{% if part % 2 == 1 %}
    workgroupBarrier();
{% for i in [part - 1, part] %}
    side{{ i }} = coopLoadT<coop_mat16x16<f16, A>>(&tile[(team * {{ own }}u + own) * {{ part_pitch }}u + {{ i % 2 * 4 }}u], {{ part_pitch }}u);
{% endfor %}
    workgroupBarrier();
{% endif %}
{% endfor %}
  }
{% endmacro %}
{# The scores of both teams: q·kᵀ, or its transpose, in the first rows, and dout·vᵀ behind them. #}
{% macro both_scores() %}
    {{ multiply("side", "team * " ~ other ~ "u", other, "team * " ~ own ~ "u + own", "0u") | trim }}
    workgroupBarrier();
{% endmacro %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  {{ place_in_tile() | trim }}
  {{ matrices("side") | trim }}
  {{ zeros("sum", parts) | trim }}
  if id.y < {{ batch * kv_heads }}u {
  // dk and dv of the workgroup's own rows.
  let group = id;
  {{ place_in_batch(kv_heads) | trim }}
  // The first keys have the most queries, so they start first.
  let first = group.x * {{ own }}u;
  {{ own_sides("k", lines.k, "v", lines.v) | trim }}
  {{ registers("q_", "vec4<f16>") | trim }}
  {{ registers("dout_", "vec4<f32>") | trim }}
  {{ registers("out_", "vec4<f16>") | trim }}
  var log = 0.0;
{# Step `step` of all steps: the tiles of queries of each head, one head after the other. #}
{% macro fetch_step(step) %}
    { let head = kv_head * {{ heads // kv_heads }}u + ({{ step }}) / count;
      let start = first + ({{ step }}) % count * {{ other }}u;
    {{ fetch("q_", "q", lines.q, "start") | trim }}
    {{ fetch("dout_", "dout", lines.out, "start") | trim }}
    {{ fetch("out_", "out", lines.out, "start") | trim }}
      log = lse[(sequence + start + line) * {{ heads }}u + head]; }
{% endmacro %}
  let count = ({{ context }}u - first) / {{ other }}u;
  let steps = count * {{ heads // kv_heads }}u;
  {{ fetch_step("0u") | trim }}
  for (var step = 0u; step < steps; step += 1u) {
    let other = first + step % count * {{ other }}u;
    {{ put("q_", 0) | trim }}
    {{ put("dout_", other) | trim }}
    shares[line * {{ each }}u + vector] = {% for i in range(row_vectors // each) %}{{ " + " if i }}dot(dout_{{ i }}, vec4<f32>(out_{{ i }})){% endfor %};
    if vector == 0u { line_logs[line] = log; }
    workgroupBarrier();
    // One invocation writes each vector; no two write components of the same vector.
    if lane < {{ other // 4 }}u {
      logs[lane] = vec4<f32>({% for i in range(4) %}{{ ", " if i }}line_logs[lane * 4u + {{ i }}u]{% endfor %});
      deltas[lane] = vec4<f32>({% for i in range(4) %}{{ ", " if i }}{% for j in range(each) %}{{ " + " if j }}shares[lane * {{ 4 * each }}u + {{ i * each + j }}u]{% endfor %}{% endfor %});
    }
    { let next = select(0u, step + 1u, step + 1u < steps);
    {{ fetch_step("next") | trim }}
    }
    {{ both_scores() | trim }}
{% for i in range(vectors) %}
    { let p = select(vec4<f32>(), exp(scores[mine + {{ 4 * i }}u] * {{ scale }} - logs[quarter + {{ 4 * i }}u]), vec4<u32>(first + row) <= {{ columns(i) }});
      weights[weight + {{ 4 * i }}u] = vec4<f16>(p);
      weights[weight + {{ own * weight_pitch + 4 * i }}u] = vec4<f16>(p * (scores[mine + {{ own * score_pitch + 4 * i }}u] - deltas[quarter + {{ 4 * i }}u]) * {{ scale }}); }
{% endfor %}
    workgroupBarrier();
    {{ accumulate("sum", "team * " ~ own ~ "u + own", "(1u - team) * " ~ other ~ "u", parts, "0u") | trim }}
    workgroupBarrier();
  }
{% call store("sum", parts, "0u", "team * " ~ own ~ "u + own", "0u") %}
    if team == 0u {
      dv[({{ lines.v.start }} + (first + r) * {{ lines.v.stride }}u + c) / 4u] = vec4<f16>(value);
    } else {
      let angle = ((first + r) * {{ head_dim }}u + c) / 4u;
      dk[({{ lines.k.start }} + (first + r) * {{ lines.k.stride }}u + c) / 4u] = vec4<f16>(rotated(value, cos[angle], -sin[angle]));
    }
{% endcall %}
  } else {
  // dq of the workgroup's own rows.
  let group = id - vec3<u32>(0u, {{ batch * kv_heads }}u, 0u);
  {{ place_in_batch(heads) | trim }}
  let first = (tiles - 1u - group.x) * {{ own }}u;
  {{ own_sides("q", lines.q, "dout", lines.out) | trim }}
  // δ of own rows.
  { let at = ({{ lines.out.start }} + (first + lane / 4u) * {{ lines.out.stride }}u) / 4u + lane % 4u;
    shares[lane] = {% for i in range(row_vectors // 4) %}{{ " + " if i }}dot(dout[at + {{ 4 * i }}u], vec4<f32>(out[at + {{ 4 * i }}u])){% endfor %}; }
  workgroupBarrier();
  let delta = shares[row * 4u] + shares[row * 4u + 1u] + shares[row * 4u + 2u] + shares[row * 4u + 3u];
  let log = lse[(sequence + first + row) * {{ heads }}u + head];
  {{ registers("k_", "vec4<f16>") | trim }}
  {{ registers("v_", "vec4<f16>") | trim }}
  {{ fetch("k_", "k", lines.k, "0u") | trim }}
  {{ fetch("v_", "v", lines.v, "0u") | trim }}
  for (var other = 0u; other < first + {{ own }}u; other += {{ other }}u) {
    {{ put("k_", 0) | trim }}
    {{ put("v_", other) | trim }}
    workgroupBarrier();
    { let next = select(0u, other + {{ other }}u, other + {{ other }}u < first + {{ own }}u);
    {{ fetch("k_", "k", lines.k, "next") | trim }}
    {{ fetch("v_", "v", lines.v, "next") | trim }}
    }
    {{ both_scores() | trim }}
{% for i in range(vectors) %}
    { let p = select(vec4<f32>(), exp(scores[mine + {{ 4 * i }}u] * {{ scale }} - log), {{ columns(i) }} <= vec4<u32>(first + row));
      weights[weight + {{ 4 * i }}u] = vec4<f16>(p * (scores[mine + {{ own * score_pitch + 4 * i }}u] - delta) * {{ scale }}); }
{% endfor %}
    workgroupBarrier();
    {{ accumulate("sum", "own", "0u", half, "team * " ~ half * side // 4 ~ "u") | trim }}
    workgroupBarrier();
  }
{% call store("sum", half, "team * " ~ half * side ~ "u", "own", "team * " ~ side // 4 ~ "u") %}
    let angle = ((first + r) * {{ head_dim }}u + c) / 4u;
    dq[({{ lines.q.start }} + (first + r) * {{ lines.q.stride }}u + c) / 4u] = vec4<f16>(rotated(value, cos[angle], -sin[angle]));
{% endcall %}
  }
}
