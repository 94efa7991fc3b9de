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
// 1. Tiles. A workgroup owns {{ own }} rows, {{ side }} for each subgroup of a team, and iterates over the keys in tiles of {{ other }}. Scores
//    stay in workgroup memory. One team computes the scores of the first half of a tile's keys, the other team those of
//    the second half. Of the output, each has half of the columns.
// 2. One pass over the keys. Weights are exp(score - top), where `top` is the highest score of a row's first tile. They
//    may exceed 1. Only where a score exceeds `top` by more than {{ slack }}, `top` rises and the sums are scaled.
// 3. Early loads. The next rows are loaded into registers while the matrix cores work on these.
{% include "attention/attention_tile.wgsl" %}
{% from "attention/attention_tile.wgsl" import place_in_tile, registers, fetch, put, matrices, multiply, accumulate %}
{% from "attention/attention_batch.wgsl" import place_in_batch %}
{% set vectors = other // 16 %}
{% set half = parts // 2 %}
const lowest = -3e38;
// Whether `top` of a row rises. Three of the four elements are padding: the matrices after this array then start at
// multiples of 16 bytes, which their loads need.
var<workgroup> rises: array<atomic<u32>, 4>;

// The highest of four invocations' values.
fn row_highest(row: u32) -> f32 {
  return max(max(shares[row * 4u], shares[row * 4u + 1u]), max(shares[row * 4u + 2u], shares[row * 4u + 3u]));
}

// Four scores of a row with the keys from `column` on, of which later ones are masked.
fn masked(score: vec4<f32>, column: u32, row: u32) -> vec4<f32> {
  return select(vec4<f32>(lowest), score * {{ scale }}, columns_from(column) <= vec4<u32>(row));
}

// Scales the rows of a sum in workgroup memory, from vector `at` on. An invocation scales two vectors of a row.
fn scaled(sum: Sum, at: u32, vector: u32, factor: f32) -> Sum {
  coopStoreT(sum, &scores[at], {{ score_pitch }}u);
  workgroupBarrier();
  scores[vector] *= factor;
  scores[vector + 1u] *= factor;
  workgroupBarrier();
  let result = coopLoadT<Sum>(&scores[at], {{ score_pitch }}u);
  workgroupBarrier();
  return result;
}

// Divides a sum by the rows' sums of weights. An invocation stores four values of row `r` at `to`, and of row r + 8.
fn store(sum: Sum, at: u32, lane: u32, r: u32, to: u32) {
  coopStoreT(sum, &scores[at], {{ score_pitch }}u);
  workgroupBarrier();
  let value = at + lane % 32u / 4u * {{ score_pitch }}u + lane % 4u;
  out[to] = vec4<f16>(scores[value] / row_sum(r));
  out[to + {{ lines.out.stride * 2 }}u] = vec4<f16>(scores[value + {{ 8 * score_pitch }}u] / row_sum(r + 8u));
  workgroupBarrier();
}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  {{ place_in_tile() | trim }}
  let group = id;
  {{ place_in_batch(heads) | trim }}
  // The last rows have the most keys, so they start first.
  let first = ({{ context // own - 1 }}u - group.x) * {{ own }}u;
  let own_at = ({{ lines.q.start }} + (first + own) * {{ lines.q.stride }}u) / 4u;
{% for part in range(parts) %}
  let q{{ part }} = coopLoadT<MatrixA>(&q[own_at + {{ part * side // 4 }}u], {{ lines.q.stride // 4 }}u);
{% endfor %}
  {{ matrices("sum", "Sum", half) | trim }}
  {{ registers("k_", "vec4<f16>") | trim }}
  {{ registers("v_", "vec4<f16>") | trim }}
  {{ fetch("k_", "k", lines.k, "0u") | trim }}
  var top = lowest;
  var total = 0.0;
  // The place of this subgroup's sums in the memory of scores.
  let sum_at = own * {{ score_pitch }}u + team * {{ side // 4 }}u;
  if lane == 0u { atomicStore(&rises[0], 0u); }

  for (var other = 0u; other < first + {{ own }}u; other += {{ other }}u) {
    {{ put("k_", 0, "vec4<f16>") | trim }}
    {{ fetch("v_", "v", lines.v, "other") | trim }}
    workgroupBarrier();
    {{ multiply("q", "team * " ~ other // 2 ~ "u", other // 2, "own", "team * " ~ other // 8 ~ "u") | trim }}
    workgroupBarrier();
    // Values take the place of keys.
    {{ put("v_", 0, "vec4<f16>") | trim }}
{% for i in range(vectors) %}
    let x{{ i }} = masked(scores[mine + {{ 4 * i }}u], other + quarter * 4u + {{ 16 * i }}u, first + row);
{% endfor %}
    let most = {% for i in range(1, vectors) %}max({% endfor %}x0{% for i in range(1, vectors) %}, x{{ i }}){% endfor %};
    let highest = max(max(most.x, most.y), max(most.z, most.w));
    shares[row * 4u + quarter] = highest;
    if other > 0u && highest > top + {{ slack }}.0 { atomicStore(&rises[0], 1u); }
    let rescales = workgroupUniformLoad(&rises[0]);
    if other == 0u { top = row_highest(row); }
    if rescales == 1u {
      let higher = max(top, row_highest(row));
      let factor = exp(top - higher);
      top = higher;
      total *= factor;
      let vectors = row * {{ score_pitch }}u + team * {{ side // 4 }}u + lane % 2u * 2u;
{% for part in range(half) %}
      sum{{ part }} = scaled(sum{{ part }}, sum_at, vectors, factor);
{% endfor %}
    }
{% for i in range(vectors) %}
    let p{{ i }} = exp(x{{ i }} - top); weights[weight + {{ 4 * i }}u] = vec4<f16>(p{{ i }});
{% endfor %}
    total += dot({% for i in range(vectors) %}{{ " + " if i }}p{{ i }}{% endfor %}, vec4<f32>(1.0));
    workgroupBarrier();
    if lane == 0u { atomicStore(&rises[0], 0u); }
    let next = select(0u, other + {{ other }}u, other + {{ other }}u < first + {{ own }}u);
    {{ fetch("k_", "k", lines.k, "next") | trim }}
    {{ accumulate("own", "0u", half, "team * " ~ half * side // 4 ~ "u") | trim }}
    workgroupBarrier();
  }

  shares[row * 4u + quarter] = total;
  workgroupBarrier();
  if quarter == 0u { lse[(sequence + first + row) * {{ heads }}u + head] = top + log(row_sum(row)); }
  let r = own + lane % 32u / 4u;
  let out_at = ({{ lines.out.start }} + (first + r) * {{ lines.out.stride }}u + team * {{ half * side }}u + lane % 4u * 4u) / 4u;
{% for part in range(half) %}
  store(sum{{ part }}, sum_at, lane, r, out_at + {{ part * side // 4 }}u);
{% endfor %}
}
