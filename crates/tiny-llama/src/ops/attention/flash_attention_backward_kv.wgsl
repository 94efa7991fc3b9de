// dk and dv of causal attention in f32. With p[r, c] = exp(scale·q[r]·k[c] - lse[r]) and δ[r] = dout[r]·out[r]:
//
//   for each key c:
//     dv[c] = Σ_r p[r, c]·dout[r]                              for r in c..context, over all query heads of the key's head
//     dk[c] = Σ_r p[r, c]·(dout[r]·v[c] - δ[r])·scale·q[r]
//
// Tiles and steps are as in flash_attention.wgsl; here own rows are keys, and the other side's rows are queries.
{% include "attention/attention_rows.wgsl" %}
{% from "attention/attention_rows.wgsl" import c, fetch, put, compute, tile, zeros, registers, put_weights, store %}
{% from "attention/attention_batch.wgsl" import place_in_batch %}
{% set group_heads = heads // kv_heads %}
  {{ place_in_batch(kv_heads) | trim }}
  // The first keys have the most queries, so they start first.
  let first = group.x * {{ own }}u;
  {{ zeros("dkey") | trim }}
  {{ zeros("dvalue") | trim }}
  {{ tile("s") | trim }}
  {{ tile("g") | trim }}
  {{ registers() | trim }}
  // All tiles of queries from the first own key on, for one query head after the other.
  let tiles_after = ({{ context }}u - first + {{ other - 1 }}u) / {{ other }}u;
  let rounds = tiles_after * {{ group_heads }}u;
  { let other = first;
    let head = kv_head * {{ group_heads }}u;
    {{ fetch(steps[0]) | trim }}
  }
  for (var round = 0u; round < rounds; round += 1u) {
    let head = kv_head * {{ group_heads }}u + round / tiles_after;
    let other = first + round % tiles_after * {{ other }}u;
{% for step in steps %}
    {{ put(step) | trim }}
    workgroupBarrier();
{% if loop.last %}
    { let next = select(0u, round + 1u, round + 1u < rounds);
      let head = kv_head * {{ group_heads }}u + next / tiles_after;
      let other = first + next % tiles_after * {{ other }}u;
      {{ fetch(steps[0]) | trim }}
    }
{% else %}
    {{ fetch(steps[loop.index]) | trim }}
{% endif %}
    {{ compute(step) | trim }}
{% if step.weighs and step.to == "s" %}
    // p, the weights of dout.
    workgroupBarrier();
{% for j in range(4) %}
    let log{{ j }} = lse[(sequence + min(other + 4u * x + {{ j }}u, {{ context - 1 }}u)) * {{ heads }}u + head];
{% endfor %}
{% for i in range(4) %}
{% for j in range(4) %}
    s{{ i }}{{ j }} = select(0.0, exp(s{{ i }}{{ j }} * {{ scale }} - log{{ j }}), first + y + {{ i * down }}u <= other + 4u * x + {{ j }}u{{ " && other + 4u * x + " ~ j ~ "u < " ~ context ~ "u" if context % own != 0 }});
{% endfor %}
    {{ put_weights(i, "vec4<f32>(s" ~ i ~ "0, s" ~ i ~ "1, s" ~ i ~ "2, s" ~ i ~ "3)") | trim }}
{% endfor %}
{% elif step.weighs %}
    // p·(dout·v - δ)·scale, the weights of q.
    workgroupBarrier();
    let deltas = vec4<f32>({% for j in range(4) %}{{ ", " if not loop.first }}delta[(sequence + min(other + 4u * x + {{ j }}u, {{ context - 1 }}u)) * {{ heads }}u + head]{% endfor %});
{% for i in range(4) %}
    let g{{ i }} = vec4<f32>(g{{ i }}0, g{{ i }}1, g{{ i }}2, g{{ i }}3);
    {{ put_weights(i, "vec4<f32>(s" ~ i ~ "0, s" ~ i ~ "1, s" ~ i ~ "2, s" ~ i ~ "3) * (g" ~ i ~ " - deltas) * " ~ scale) | trim }}
{% endfor %}
{% else %}
    workgroupBarrier();
{% endif %}
{% endfor %}
  }
  {{ store("dkey", "dk", lines.k, "", rotated) | trim }}
  {{ store("dvalue", "dv", lines.v, "") | trim }}
}
