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
// 1. Tiles. A workgroup owns {{ own }} rows, {{ side }} for each subgroup, and walks over the keys in tiles of {{ other }}: scores never go to memory.
// 2. Once over the keys. Weights are exp(s - top), with a `top` of each row. It is the maximum of the row's first tile, and moves only
//    where later scores lie far above it: then the sums are scaled, through workgroup memory, because a cooperative matrix cannot be
//    scaled row by row. What f16 holds allows for it, and the sums are divided by the weights' sum in the end.
// 3. Softmax by ordinary invocations: two share a row of scores, {{ side }} columns each, through workgroup memory.
// 4. Loads ahead of use. While a tile is multiplied, the next one's rows are on their way to registers.
{% include "attention_tile.wgsl" %}
{% from "attention_tile.wgsl" import parts, score_pitch, place_in_tile, fetch, put, own_side, scores, accumulate, columns, zeros, store %}
{% from "attention_batch.wgsl" import place_in_batch %}

// How far a score may lie above its row's `top`: weights of up to exp(8) are f16.
const above = 8.0;
// The last tile in which some row's `top` moved, counted from 1.
var<workgroup> moved: atomic<u32>;

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  {{ place_in_tile() | trim }}
  let group = id;
  {{ place_in_batch(heads) | trim }}
  // The last rows have the most keys before them: they start first.
  let first = (tiles - 1u - group.x) * {{ own }}u;
  {{ own_side("q", "q", lines.q) | trim }}

  var top = lowest;
  var total = 0.0;
  {{ zeros("sum") | trim }}
  {{ fetch("k", lines.k, "0u", true) | trim }}
  {{ fetch("v", lines.v, "0u", true) | trim }}
  for (var other = 0u; other < first + {{ own }}u; other += {{ other }}u) {
    {{ put("k", 0) | trim }}
    {{ put("v", other) | trim }}
    workgroupBarrier();
    // The next tile, or the first one after the last.
    let next = select(other + {{ other }}u, 0u, other + {{ other }}u >= first + {{ own }}u);
    {{ fetch("k", lines.k, "next", false) | trim }}
    {{ fetch("v", lines.v, "next", false) | trim }}
    {{ scores("q", 0) | trim }}
{% for i in range(4) %}
    let s{{ i }} = select(vec4<f32>(lowest), scores[mine + {{ i }}u] * {{ scale }}, {{ columns(i) }} <= vec4<u32>(first + row));
{% endfor %}
    let most = max(max(s0, s1), max(s2, s3));
    let high = max(max(most.x, most.y), max(most.z, most.w));
    shares[lane].x = high;
    let number = other / {{ other }}u + 1u;
    if high > top + above { atomicStore(&moved, number); }
    workgroupBarrier();
    if atomicLoad(&moved) == number {
      let higher = max(top, max(high, shares[lane ^ 1u].x));
      let factor = exp(top - higher);
      top = higher;
      total *= factor;
      if other > 0u {
{% for part in range(parts) %}
        coopStoreT(sum{{ part }}, &scores[own * {{ score_pitch }}u], {{ score_pitch }}u);
        workgroupBarrier();
        scores[row * {{ score_pitch }}u + lane % 2u * 2u] *= factor;
        scores[row * {{ score_pitch }}u + lane % 2u * 2u + 1u] *= factor;
        workgroupBarrier();
        sum{{ part }} = coopLoadT<coop_mat16x16<f32, C>>(&scores[own * {{ score_pitch }}u], {{ score_pitch }}u);
        workgroupBarrier();
{% endfor %}
      }
    }
{% for i in range(4) %}
    let p{{ i }} = exp(s{{ i }} - top);
    weights[weight + {{ i }}u] = vec4<f16>(p{{ i }});
{% endfor %}
    total += dot(p0 + p1 + p2 + p3, vec4<f32>(1.0));
    workgroupBarrier();
    {{ accumulate("sum", other) | trim }}
    workgroupBarrier();
  }
  // The two halves of a row.
  shares[lane].x = total;
  workgroupBarrier();
  let whole = total + shares[lane ^ 1u].x;
  if column == 0u { lse[(sequence + first + row) * {{ heads }}u + head] = top + log(whole); }
  shares[lane].y = 1.0 / whole;
  workgroupBarrier();
  {{ store("sum", "out", lines.out, false, "shares[2u * r].y") | trim }}
}
