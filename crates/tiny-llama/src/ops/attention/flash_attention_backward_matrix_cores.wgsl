// The gradients of causal attention, dq, dk and dv, from dout, f16 operands and f32 sums on matrix cores. With
// p[r, c] = exp(scale·q[r]·k[c] - lse[r]) for c ≤ r and δ[r] = dout[r]·out[r] (Dao et al., 2022, arXiv 2205.14135):
//
//   for each row r:
//     for c in 0..=r:
//       ds = p[r, c]·(dout[r]·v[c] - δ[r])·scale
//       dq[r] += ds·k[c];  dk[c] += ds·q[r];  dv[c] += p[r, c]·dout[r]
//
// 1. Two kinds of workgroup, so no workgroup adds to another's sums. The first ones own {{ own }} keys each and compute dk and
//    dv, which takes longer; the others own {{ own }} queries and compute dq. Together they fill a GPU. q and k were rotated;
//    rows of dq and dk are rotated back before they are stored.
// 2. Two teams. One computes q·kᵀ of a tile and the other dout·vᵀ, at the same time; then one adds to dv and the other
//    to dk, or each to half of the columns of dq. Scores are recomputed with the saved lse. Both kinds compute δ.
// 3. Early loads. The next rows are loaded into registers while the matrix cores work on these.
{% include "attention/attention_tile.wgsl" %}
{% from "attention/attention_tile.wgsl" import place_in_tile, registers, fetch, put, matrices, multiply, accumulate %}
{% from "attention/attention_batch.wgsl" import place_in_batch %}
{% set vectors = other // 16 %}
{% set half = parts // 2 %}
// For each row of a tile: its lse, twice, and its δ.
var<workgroup> line_logs: array<f32, {{ other }}>;
var<workgroup> logs: array<vec4<f32>, {{ other // 4 }}>;
var<workgroup> deltas: array<vec4<f32>, {{ other // 4 }}>;
{% include "rope/rotated.wgsl" %}


// δ of a row: the sum of what the row's {{ each }} invocations found.
fn delta_of(row: u32) -> f32 {
  let first = row * {{ each }}u;
  return {% for i in range(each) %}{{ ("\n    + " if i % 4 == 0 else " + ") if i }}shares[first + {{ i }}u]{% endfor %};
}

// p of four scores; zero where a key is behind its query.
fn weight_of(score: vec4<f32>, log: vec4<f32>, inside: vec4<bool>) -> vec4<f32> {
  return select(vec4<f32>(), exp(score * {{ scale }} - log), inside);
}

// Stores a sum: an invocation four values of a row of dv, or of dk, and of the row eight further.
fn store_keys(sum: Sum, at: u32, lane: u32, team: u32, to_dv: u32, to_dk: u32, angle: u32) {
  coopStoreT(sum, &scores[at], {{ score_pitch }}u);
  workgroupBarrier();
  let value = at + lane % 32u / 4u * {{ score_pitch }}u + lane % 4u;
  if team == 0u {
    dv[to_dv] = vec4<f16>(scores[value]);
    dv[to_dv + {{ 2 * lines.v.stride }}u] = vec4<f16>(scores[value + {{ 8 * score_pitch }}u]);
  } else {
    let further = angle + {{ 2 * head_dim }}u;
    dk[to_dk] = vec4<f16>(rotated(scores[value], cos[angle], -sin[angle]));
    dk[to_dk + {{ 2 * lines.k.stride }}u] = vec4<f16>(rotated(scores[value + {{ 8 * score_pitch }}u], cos[further], -sin[further]));
  }
  workgroupBarrier();
}
fn store_queries(sum: Sum, at: u32, lane: u32, to: u32, angle: u32) {
  coopStoreT(sum, &scores[at], {{ score_pitch }}u);
  workgroupBarrier();
  let value = at + lane % 32u / 4u * {{ score_pitch }}u + lane % 4u;
  let further = angle + {{ 2 * head_dim }}u;
  dq[to] = vec4<f16>(rotated(scores[value], cos[angle], -sin[angle]));
  dq[to + {{ 2 * lines.q.stride }}u] = vec4<f16>(rotated(scores[value + {{ 8 * score_pitch }}u], cos[further], -sin[further]));
  workgroupBarrier();
}
{# Own rows as matrices `side`0, `side`1, …: of `a` for one team, of `b` for the other. They pass through the tile, 32 columns at a time. #}
{% macro own_sides(a, lines_a, b, lines_b) %}
  let r = lane / 4u;
{% for name, source, lines in [["a", a, lines_a], ["b", b, lines_b]] %}
  let at_{{ name }} = ({{ lines.start }} + (first + r) * {{ lines.stride }}u) / 4u + lane % 4u;
  {{ "" }}{% for i in range(row_vectors // 4) %}let {{ name }}{{ i }} = {{ source }}[at_{{ name }} + {{ 4 * i }}u];{{ ("\n  " if loop.index % 4 == 0 else " ") if not loop.last }}{% endfor %}

{% endfor %}
  let to_a = r * {{ part_pitch }}u + lane % 4u;
  let from_side = (team * {{ own }}u + own) * {{ part_pitch }}u;
{% for part in range(parts) %}
  tile[to_a + {{ part % 2 * 4 }}u] = vec4<f16>(a{{ part }}); tile[to_a + {{ own * part_pitch + part % 2 * 4 }}u] = vec4<f16>(b{{ part }});
{% if part % 2 == 1 %}
  workgroupBarrier();
{% for i in [part - 1, part] %}
  side{{ i }} = coopLoadT<MatrixA>(&tile[from_side + {{ i % 2 * 4 }}u], {{ part_pitch }}u);
{% endfor %}
  workgroupBarrier();
{% endif %}
{% endfor %}
{% endmacro %}
{# The scores of both teams: q·kᵀ, or its transpose, in the first rows, and dout·vᵀ behind them. #}
{% macro both_scores() %}
    {{ multiply("side", "team * " ~ other ~ "u", other, "team * " ~ own ~ "u + own", "0u") | trim }}
    workgroupBarrier();
{% endmacro %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  {{ place_in_tile() | trim }}
  {{ matrices("side", "MatrixA", parts) | trim }}
  {{ matrices("sum", "Sum", parts) | trim }}
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
    { let head = kv_head * {{ heads // kv_heads }}u + {{ step }} / count;
      let start = first + {{ step }} % count * {{ other }}u;
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
    {{ put("q_", 0, "vec4<f16>") | trim }}
    {{ put("dout_", other, "vec4<f32>") | trim }}
    shares[line * {{ each }}u + vector] = {% for i in range(row_vectors // each) %}{{ ("\n      + " if i % 2 == 0 else " + ") if i }}dot(dout_{{ i }}, vec4<f32>(out_{{ i }})){% endfor %};
    if vector == 0u { line_logs[line] = log; }
    workgroupBarrier();
    // One invocation writes each vector; no two write components of the same vector.
    if lane < {{ other // 4 }}u {
      let at = lane * 4u;
      logs[lane] = vec4<f32>(line_logs[at], line_logs[at + 1u], line_logs[at + 2u], line_logs[at + 3u]);
      deltas[lane] = vec4<f32>(delta_of(at), delta_of(at + 1u), delta_of(at + 2u), delta_of(at + 3u));
    }
    let next = select(0u, step + 1u, step + 1u < steps);
    {{ fetch_step("next") | trim }}
    {{ both_scores() | trim }}
{% for i in range(vectors) %}
    let p{{ i }} = weight_of(scores[mine + {{ 4 * i }}u], logs[quarter + {{ 4 * i }}u],
      vec4<u32>(first + row) <= columns_from(other + quarter * 4u + {{ 16 * i }}u));
    let ds{{ i }} = p{{ i }} * (scores[mine + {{ own * score_pitch + 4 * i }}u] - deltas[quarter + {{ 4 * i }}u]) * {{ scale }};
    weights[weight + {{ 4 * i }}u] = vec4<f16>(p{{ i }}); weights[weight + {{ own * weight_pitch + 4 * i }}u] = vec4<f16>(ds{{ i }});
{% endfor %}
    workgroupBarrier();
    {{ accumulate("team * " ~ own ~ "u + own", "(1u - team) * " ~ other ~ "u", parts, "0u") | trim }}
    workgroupBarrier();
  }
  let sum_at = (team * {{ own }}u + own) * {{ score_pitch }}u;
  let own_row = first + own + lane % 32u / 4u;
  let dv_at = ({{ lines.v.start }} + own_row * {{ lines.v.stride }}u + lane % 4u * 4u) / 4u;
  let dk_at = ({{ lines.k.start }} + own_row * {{ lines.k.stride }}u + lane % 4u * 4u) / 4u;
  let angle = (own_row * {{ head_dim }}u + lane % 4u * 4u) / 4u;
{% for part in range(parts) %}
  store_keys(sum{{ part }}, sum_at, lane, team, dv_at + {{ part * side // 4 }}u, dk_at + {{ part * side // 4 }}u, angle + {{ part * side // 4 }}u);
{% endfor %}
  } else {
  // dq of the workgroup's own rows.
  let group = id - vec3<u32>(0u, {{ batch * kv_heads }}u, 0u);
  {{ place_in_batch(heads) | trim }}
  let first = ({{ context // own - 1 }}u - group.x) * {{ own }}u;
  {{ own_sides("q", lines.q, "dout", lines.out) | trim }}
  // δ of own rows.
  let dout_at = ({{ lines.out.start }} + (first + lane / 4u) * {{ lines.out.stride }}u) / 4u + lane % 4u;
  shares[lane] = {% for i in range(row_vectors // 4) %}{{ "\n    + " if i }}dot(dout[dout_at + {{ 4 * i }}u], vec4<f32>(out[dout_at + {{ 4 * i }}u])){% endfor %};
  workgroupBarrier();
  let delta = row_sum(row);
  let log = lse[(sequence + first + row) * {{ heads }}u + head];
  {{ registers("k_", "vec4<f16>") | trim }}
  {{ registers("v_", "vec4<f16>") | trim }}
  {{ fetch("k_", "k", lines.k, "0u") | trim }}
  {{ fetch("v_", "v", lines.v, "0u") | trim }}
  for (var other = 0u; other < first + {{ own }}u; other += {{ other }}u) {
    {{ put("k_", 0, "vec4<f16>") | trim }}
    {{ put("v_", other, "vec4<f16>") | trim }}
    workgroupBarrier();
    let next = select(0u, other + {{ other }}u, other + {{ other }}u < first + {{ own }}u);
    {{ fetch("k_", "k", lines.k, "next") | trim }}
    {{ fetch("v_", "v", lines.v, "next") | trim }}
    {{ both_scores() | trim }}
{% for i in range(vectors) %}
    let p{{ i }} = weight_of(scores[mine + {{ 4 * i }}u], vec4<f32>(log),
      columns_from(other + quarter * 4u + {{ 16 * i }}u) <= vec4<u32>(first + row));
    weights[weight + {{ 4 * i }}u] = vec4<f16>(p{{ i }} * (scores[mine + {{ own * score_pitch + 4 * i }}u] - delta) * {{ scale }});
{% endfor %}
    workgroupBarrier();
    {{ accumulate("own", "0u", half, "team * " ~ half * side // 4 ~ "u") | trim }}
    workgroupBarrier();
  }
  let sum_at = own * {{ score_pitch }}u + team * {{ side // 4 }}u;
  let own_row = first + own + lane % 32u / 4u;
  let column = team * {{ half * side }}u + lane % 4u * 4u;
  let dq_at = ({{ lines.q.start }} + own_row * {{ lines.q.stride }}u + column) / 4u;
  let angle = (own_row * {{ head_dim }}u + column) / 4u;
{% for part in range(half) %}
  store_queries(sum{{ part }}, sum_at, lane, dq_at + {{ part * side // 4 }}u, angle + {{ part * side // 4 }}u);
{% endfor %}
  }
}
