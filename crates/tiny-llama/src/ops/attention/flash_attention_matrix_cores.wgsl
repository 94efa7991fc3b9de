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
// 1. Tiles. A workgroup owns {{ own }} rows, {{ side }} for each subgroup of a team, and iterates over the keys in tiles of {{ other }}. Scores are never
//    written to memory. Of a tile, one team computes the scores of the first half of the keys, the other team those of the second; and
//    of the output, each has half of the columns.
// 2. One pass over the keys. Weights are exp(score - top), where `top` is the highest score of a row's first tile. A cooperative matrix
//    cannot be scaled row by row where it is, and need not be: weights may exceed 1. Only where a later score exceeds `top` by more than
//    {{ slack }}, `top` rises and the sums pass through workgroup memory, where they are scaled.
// 3. Early loads. The next rows are loaded into registers while the matrix cores work on these.
{% include "attention/attention_tile.wgsl" %}
{% from "attention/attention_tile.wgsl" import place_in_tile, registers, fetch, put, own_side, matrices, multiply, accumulate, columns, zeros, store %}
{% from "attention/attention_batch.wgsl" import place_in_batch %}
{% set vectors = other // 16 %}
{% set half = parts // 2 %}
// Whether `top` of a row rises. Three of the four elements are padding: the matrices after this array then start at multiples of 16
// bytes, which their loads need.
var<workgroup> rises: array<atomic<u32>, 4>;

// The sum or the highest of four invocations' values.
fn row_sum(row: u32) -> f32 {
  return shares[row * 4u] + shares[row * 4u + 1u] + shares[row * 4u + 2u] + shares[row * 4u + 3u];
}
fn row_highest(row: u32) -> f32 {
  return max(max(shares[row * 4u], shares[row * 4u + 1u]), max(shares[row * 4u + 2u], shares[row * 4u + 3u]));
}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  {{ place_in_tile() | trim }}
  let group = id;
  {{ place_in_batch(heads) | trim }}
  // The last rows have the most keys, so they start first.
  let first = (tiles - 1u - group.x) * {{ own }}u;
  {{ matrices("q") | trim }}
  {{ own_side("q", "q", lines.q) | trim }}
  {{ zeros("sum", half) | trim }}
  {{ registers("k_", "vec4<f16>") | trim }}
  {{ registers("v_", "vec4<f16>") | trim }}
  {{ fetch("k_", "k", lines.k, "0u") | trim }}
  var top = lowest;
  var total = 0.0;
  if lane == 0u { atomicStore(&rises[0], 0u); }

  for (var other = 0u; other < first + {{ own }}u; other += {{ other }}u) {
    {{ put("k_", 0) | trim }}
    {{ fetch("v_", "v", lines.v, "other") | trim }}
    workgroupBarrier();
    {{ multiply("q", "team * " ~ other // 2 ~ "u", other // 2, "own", "team * " ~ other // 8 ~ "u") | trim }}
    workgroupBarrier();
    // Values take the place of keys.
    {{ put("v_", 0) | trim }}
{% for i in range(vectors) %}
    let x{{ i }} = select(vec4<f32>(lowest), scores[mine + {{ 4 * i }}u] * {{ scale }}, {{ columns(i) }} <= vec4<u32>(first + row));
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
      let scaled = row * {{ score_pitch }}u + team * {{ side // 4 }}u + lane % 2u * 2u;
{% for part in range(half) %}
      coopStoreT(sum{{ part }}, &scores[own * {{ score_pitch }}u + team * {{ side // 4 }}u], {{ score_pitch }}u);
      workgroupBarrier();
      scores[scaled] *= factor;
      scores[scaled + 1u] *= factor;
      workgroupBarrier();
      sum{{ part }} = coopLoadT<coop_mat16x16<f32, C>>(&scores[own * {{ score_pitch }}u + team * {{ side // 4 }}u], {{ score_pitch }}u);
      workgroupBarrier();
{% endfor %}
    }
{% for i in range(vectors) %}
    let p{{ i }} = exp(x{{ i }} - top);
    weights[weight + {{ 4 * i }}u] = vec4<f16>(p{{ i }});
{% endfor %}
    total += dot({% for i in range(vectors) %}{{ " + " if i }}p{{ i }}{% endfor %}, vec4<f32>(1.0));
    workgroupBarrier();
    if lane == 0u { atomicStore(&rises[0], 0u); }
    { let next = select(0u, other + {{ other }}u, other + {{ other }}u < first + {{ own }}u);
    {{ fetch("k_", "k", lines.k, "next") | trim }}
    }
    {{ accumulate("sum", "own", "0u", half, "team * " ~ half * side // 4 ~ "u") | trim }}
    workgroupBarrier();
  }

  shares[row * 4u + quarter] = total;
  workgroupBarrier();
  if quarter == 0u { lse[(sequence + first + row) * {{ heads }}u + head] = top + log(row_sum(row)); }
{% call store("sum", half, "team * " ~ half * side ~ "u", "own", "team * " ~ side // 4 ~ "u") %}
    out[({{ lines.out.start }} + (first + r) * {{ lines.out.stride }}u + c) / 4u] = vec4<f16>(value / row_sum(r));
{% endcall %}
}
