// dq of causal attention in f32, and δ, which the kernel for dk and dv needs. With p[r, c] = exp(scale·q[r]·k[c] - lse[r]):
//
//   for each row r:
//     δ[r] = dout[r]·out[r]
//     dq[r] = Σ_c p[r, c]·(dout[r]·v[c] - δ[r])·scale·k[c]   for c in 0..=r
//
// Tiles and steps are as in flash_attention.wgsl. The weights of k follow from two kinds of scores, q·kᵀ and dout·vᵀ.
{% include "attention/attention_rows.wgsl" %}
{% from "attention/attention_rows.wgsl" import c, row_vectors, tile, zeros, walk_keys, over_rows, put_weights, store %}
{% from "attention/attention_batch.wgsl" import place_in_batch %}
  {{ place_in_batch(heads) | trim }}
  // The last rows have the most keys, so they start first.
  let first = (tiles - 1u - group.x) * {{ own }}u;
{% for i in range(4) %}
  var log{{ i }} = 0.0;
  var part{{ i }} = 0.0;
  if first + y + {{ i * down }}u < {{ context }}u {
    log{{ i }} = lse[(sequence + first + y + {{ i * down }}u) * {{ heads }}u + head];
    let at = ({{ lines.out.start }} + (first + y + {{ i * down }}u) * {{ lines.out.stride }}u) / 4u;
    for (var v = x; v < {{ row_vectors }}u; v += {{ across }}u) { part{{ i }} += dot(out[at + v], dout[at + v]); }
  }
{% endfor %}
  {{ over_rows("part", "delta_rows", false) | trim }}
{% for i in range(4) %}
  if x == 0u && first + y + {{ i * down }}u < {{ context }}u { delta[(sequence + first + y + {{ i * down }}u) * {{ heads }}u + head] = delta_rows.{{ c[i] }}; }
{% endfor %}
  {{ zeros("sum") | trim }}
  {{ tile("s") | trim }}
  {{ tile("g") | trim }}
{% call walk_keys() %}
{% for i in range(4) %}
{% for j in range(4) %}
    s{{ i }}{{ j }} = select(0.0, exp(s{{ i }}{{ j }} * {{ scale }} - log{{ i }}), other + 4u * x + {{ j }}u <= first + y + {{ i * down }}u);
{% endfor %}
    let g{{ i }} = vec4<f32>(g{{ i }}0, g{{ i }}1, g{{ i }}2, g{{ i }}3);
    {{ put_weights(i, "vec4<f32>(s" ~ i ~ "0, s" ~ i ~ "1, s" ~ i ~ "2, s" ~ i ~ "3) * (g" ~ i ~ " - delta_rows." ~ c[i] ~ ") * " ~ scale) | trim }}
{% endfor %}
{% endcall %}
  {{ store("sum", "dq", lines.q, "", rotated) | trim }}
}
