// out = softmax(q·kᵀ·scale + causal mask)·v of one head in f32, and lse = log Σ exp(scores) of each row, which the backward pass
// needs. (Dao et al., 2022, arXiv 2205.14135.)
//
// The plain loop:
//
//   for each row r:
//     s[c] = scale · Σ_d q[r, d]·k[c, d]   for c in 0..=r
//     lse[r] = log Σ_c exp(s[c])
//     out[r, d] = Σ_c exp(s[c] - lse[r])·v[c, d]
//
// 1. Tiles. A workgroup owns {{ own }} rows and iterates over the keys, {{ other }} at a time. Scores are never written to memory; scores and sums
//    stay in registers, 4 × 4 scores for each invocation.
// 2. A running maximum. When a row's maximum grows, its sums so far are scaled down.
// 3. Steps. Parts of the rows pass through workgroup memory; the next step's values are loaded while a step computes.
{% include "attention/attention_rows.wgsl" %}
{% from "attention/attention_rows.wgsl" import c, owned, tile, zeros, walk_keys, over_rows, put_weights, store %}
{% from "attention/attention_batch.wgsl" import place_in_batch %}
  {{ place_in_batch(heads) | trim }}
  // The last rows have the most keys, so they start first.
  let first = (tiles - 1u - group.x) * {{ own }}u;
  {{ zeros("sum") | trim }}
{% for i in range(4) %}
  var top{{ i }} = lowest;
  var total{{ i }} = 0.0;
{% endfor %}
  {{ tile("s") | trim }}
{% call walk_keys() %}
{% for i in range(4) %}
{% for j in range(4) %}
    s{{ i }}{{ j }} = select(lowest, s{{ i }}{{ j }} * {{ scale }}, other + 4u * x + {{ j }}u <= first + y + {{ i * down }}u);
{% endfor %}
    let most{{ i }} = max(max(s{{ i }}0, s{{ i }}1), max(s{{ i }}2, s{{ i }}3));
{% endfor %}
    {{ over_rows("most", "high", true) | trim }}
{% for i in range(4) %}
    let new{{ i }} = max(top{{ i }}, high.{{ c[i] }});
    let shrink{{ i }} = exp(top{{ i }} - new{{ i }});
    top{{ i }} = new{{ i }};
    let p{{ i }} = exp(vec4<f32>(s{{ i }}0, s{{ i }}1, s{{ i }}2, s{{ i }}3) - new{{ i }});
    total{{ i }} = total{{ i }} * shrink{{ i }} + (p{{ i }}.x + p{{ i }}.y + p{{ i }}.z + p{{ i }}.w);
    {{ put_weights(i, "p" ~ i) | trim }}
{% for j in range(owned) %}
    sum{{ i }}{{ j }} *= shrink{{ i }};
{% endfor %}
{% endfor %}
{% endcall %}
  {{ over_rows("total", "whole", false) | trim }}
  let inverse = 1.0 / whole;
{% for i in range(4) %}
  if x == 0u && first + y + {{ i * down }}u < {{ context }}u { lse[(sequence + first + y + {{ i * down }}u) * {{ heads }}u + head] = top{{ i }} + log(whole.{{ c[i] }}); }
{% endfor %}
  {{ store("sum", "out", lines.out, "inverse") | trim }}
}
