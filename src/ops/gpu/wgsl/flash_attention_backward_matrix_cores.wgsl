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
// 2. Scores are recomputed tile by tile with the saved lse. Both kinds compute δ.
{% include "attention_tile.wgsl" %}
{% from "attention_tile.wgsl" import place_in_tile, stage, own_side, scores, accumulate, columns, zeros, store %}
{% from "attention_batch.wgsl" import place_in_batch %}
{# dout·out of `count` rows from `first` on, in `shares`: several invocations compute a row's, each for a part of the columns. #}
{% macro dots(count, first) %}
{% set each = threads // count %}
{% set width = head_dim // each %}
    { let at = ({{ lines.out.start }} + ({{ first }} + lane / {{ each }}u) * {{ lines.out.stride }}u + lane % {{ each }}u * {{ width }}u) / 4u;
      shares[lane].x = {% for i in range(width // 4) %}{{ " + " if not loop.first }}dot(dout[at + {{ i }}u], vec4<f32>(out[at + {{ i }}u])){% endfor %}; }
{% endmacro %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  {{ place_in_tile() | trim }}
  if id.y < {{ batch * kv_heads }}u {
  // dk and dv of the workgroup's own rows.
  let group = id;
  {{ place_in_batch(kv_heads) | trim }}
  // The first keys have the most queries, so they start first.
  let first = group.x * {{ own }}u;
  {{ own_side("k", "key", lines.k) | trim }}
  {{ own_side("v", "value", lines.v) | trim }}
  {{ zeros("dkey") | trim }}
  {{ zeros("dvalue") | trim }}
  for (var head = kv_head * {{ heads // kv_heads }}u; head < (kv_head + 1u) * {{ heads // kv_heads }}u; head += 1u) {
  for (var other = first; other < {{ context }}u; other += {{ other }}u) {
    {{ stage("q", other, 0, lines.q, "other") | trim }}
    {{ stage("dout", other, other, lines.out, "other") | trim }}
    {{ dots(other, "other") | trim }}
    workgroupBarrier();
    // One invocation writes each vector; no two write components of the same vector.
{% set each = threads // other %}
    if lane < {{ other // 4 }}u {
      logs[lane] = vec4<f32>({% for i in range(4) %}{{ ", " if not loop.first }}lse[(sequence + other + lane * 4u + {{ i }}u) * {{ heads }}u + head]{% endfor %});
      deltas[lane] = vec4<f32>({% for i in range(4) %}{{ ", " if not loop.first }}{% for j in range(each) %}{{ " + " if not loop.first }}shares[lane * {{ 4 * each }}u + {{ i * each + j }}u].x{% endfor %}{% endfor %});
    }
    {{ scores("key", 0) | trim }}
{% for i in range(4) %}
    let p{{ i }} = select(vec4<f32>(), exp(scores[mine + {{ i }}u] * {{ scale }} - logs[column / 4u + {{ i }}u]), vec4<u32>(first + row) <= {{ columns(i) }});
    weights[weight + {{ i }}u] = vec4<f16>(p{{ i }});
{% endfor %}
    workgroupBarrier();
    {{ accumulate("dvalue", other) | trim }}
    {{ scores("value", other) | trim }}
{% for i in range(4) %}
    weights[weight + {{ i }}u] = vec4<f16>(p{{ i }} * (scores[mine + {{ i }}u] - deltas[column / 4u + {{ i }}u]) * {{ scale }});
{% endfor %}
    workgroupBarrier();
    {{ accumulate("dkey", 0) | trim }}
    workgroupBarrier();
  }
  }
  {{ store("dkey", "dk", lines.k, true) | trim }}
  {{ store("dvalue", "dv", lines.v, false) | trim }}
  } else {
  // dq of the workgroup's own rows.
  let group = id - vec3<u32>(0u, {{ batch * kv_heads }}u, 0u);
  {{ place_in_batch(heads) | trim }}
  let first = (tiles - 1u - group.x) * {{ own }}u;
  {{ own_side("q", "q", lines.q) | trim }}
  {{ own_side("dout", "g", lines.out) | trim }}
  {{ dots(own, "first") | trim }}
  workgroupBarrier();
  let delta = shares[lane].x + shares[lane ^ 1u].x;
  let log = lse[(sequence + first + row) * {{ heads }}u + head];
  {{ zeros("sum") | trim }}
  for (var other = 0u; other < first + {{ own }}u; other += {{ other }}u) {
    {{ stage("k", other, 0, lines.k, "other") | trim }}
    {{ stage("v", other, other, lines.v, "other") | trim }}
    workgroupBarrier();
    {{ scores("q", 0) | trim }}
{% for i in range(4) %}
    let p{{ i }} = select(vec4<f32>(), exp(scores[mine + {{ i }}u] * {{ scale }} - log), {{ columns(i) }} <= vec4<u32>(first + row));
{% endfor %}
    workgroupBarrier();
    {{ scores("g", other) | trim }}
{% for i in range(4) %}
    weights[weight + {{ i }}u] = vec4<f16>(p{{ i }} * (scores[mine + {{ i }}u] - delta) * {{ scale }});
{% endfor %}
    workgroupBarrier();
    {{ accumulate("sum", 0) | trim }}
    workgroupBarrier();
  }
  {{ store("sum", "dq", lines.q, true) | trim }}
  }
}
