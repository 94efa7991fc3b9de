// out = softmax(q·kᵀ·scale + causal mask)·v of one head, f16 operands and f32 sums on matrix cores, and
// lse = log Σ exp(scores) of each row, which the backward pass needs. (Dao et al., 2022, arXiv 2205.14135.)
//
// The plain loop:
//
//   for each row r:
//     s[c] = scale · Σ_d q[r, d]·k[c, d]   for c in 0..=r
//     lse[r] = log Σ_c exp(s[c])
//     out[r, d] = Σ_c exp(s[c] - lse[r])·v[c, d]
//
// 1. Tiles. A workgroup owns {{ own }} rows, {{ side }} for each subgroup, and iterates over the keys in tiles of {{ other }}. Scores are never written to memory.
// 2. Two passes over the keys. A cooperative matrix cannot be scaled row by row, so the first pass computes each row's lse with a
//    running maximum, and the second pass sums the weights times v.
// 3. Softmax by single invocations: two invocations share a row of scores, {{ side }} columns each, through workgroup memory.
{% include "attention_tile.wgsl" %}
{% from "attention_tile.wgsl" import place_in_tile, stage, own_side, scores, accumulate, columns, zeros, store %}
{% from "attention_batch.wgsl" import place_in_batch %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  {{ place_in_tile() | trim }}
  let group = id;
  {{ place_in_batch(heads) | trim }}
  // The last rows have the most keys, so they start first.
  let first = (tiles - 1u - group.x) * {{ own }}u;
  {{ own_side("q", "q", lines.q) | trim }}

  // First pass: lse of each row.
  var top = lowest;
  var total = 0.0;
  for (var other = 0u; other < first + {{ own }}u; other += {{ other }}u) {
    {{ stage("k", other, 0, lines.k, "other") | trim }}
    workgroupBarrier();
    {{ scores("q", 0) | trim }}
{% for i in range(4) %}
    let s{{ i }} = select(vec4<f32>(lowest), scores[mine + {{ i }}u] * {{ scale }}, {{ columns(i) }} <= vec4<u32>(first + row));
{% endfor %}
    let most = max(max(max(s0, s1), s2), s3);
    let high = max(top, max(max(most.x, most.y), max(most.z, most.w)));
    total = total * exp(top - high) + dot(exp(s0 - high) + exp(s1 - high) + exp(s2 - high) + exp(s3 - high), vec4<f32>(1.0));
    top = high;
  }
  workgroupBarrier();
  // Combines the two halves of a row.
  shares[lane] = vec2<f32>(top, total);
  workgroupBarrier();
  let half = shares[lane ^ 1u];
  let high = max(top, half.x);
  let whole = total * exp(top - high) + half.y * exp(half.x - high);
  let log = high + log(whole);
  if column == 0u { lse[(sequence + first + row) * {{ heads }}u + head] = log; }
  workgroupBarrier();

  // Second pass: the output.
  {{ zeros("sum") | trim }}
  for (var other = 0u; other < first + {{ own }}u; other += {{ other }}u) {
    {{ stage("k", other, 0, lines.k, "other") | trim }}
    {{ stage("v", other, other, lines.v, "other") | trim }}
    workgroupBarrier();
    {{ scores("q", 0) | trim }}
{% for i in range(4) %}
    weights[weight + {{ i }}u] = vec4<f16>(select(vec4<f32>(), exp(scores[mine + {{ i }}u] * {{ scale }} - log), {{ columns(i) }} <= vec4<u32>(first + row)));
{% endfor %}
    workgroupBarrier();
    {{ accumulate("sum", other) | trim }}
    workgroupBarrier();
  }
  {{ store("sum", "out", lines.out, false) | trim }}
}
