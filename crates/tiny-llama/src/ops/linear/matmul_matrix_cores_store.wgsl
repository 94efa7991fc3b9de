{% set zero = "0.0" if sliced else "vec2<f32>()" %}
  // Stores the sums in C. An invocation has four adjacent values of a row of a tile, from `top` and `left` on.
  let top = row + a_first + lane % 32u / 4u{{ " + team * 8u" if sliced }};
  let left = {{ "(column + b_first) / 2u" if store.name == "swiglu" else "column + b_first" }} + lane % 4u * 4u;
{% if for_norm %}
{% filter flow %}
{% for i in range(down) %}
  var own_squares{{ i }} = {{ zero }};
{% endfor %}
{% endfilter +%}
  let gain_at = (column + b_first) / 4u + lane % 4u;
{% filter flow %}
{% for j in range(across) %}
{% set at = "gain_at" | plus(j * 4) %}
  let gains{{ j }} = gain{{ n }}[{{ "min(" ~ at ~ ", " ~ (columns // 4 - 1) ~ "u)" if ragged else at }}];
{% endfor %}
{% endfilter +%}
{% endif %}
{% macro place(i, j) %}{{ "top" | plus(i * 16) }}, {{ "left" | plus(j * 16) }}{% endmacro %}
{% macro sum(i, j) %}sum{{ i }}{{ j }}{{ " * a_inverse * b_inverse" if halves }}{% endmacro %}
{# The values of R, or the gates and ups, of a row of tiles. They are on their way while the row before is stored. #}
{% macro reads(i) %}
{% for j in range(across) %}
{% if store.name == "onto" %}
  let added{{ i }}{{ j }} = residual_tile{{ n }}({{ place(i, j) }});
{% else %}
  let gated{{ i }}{{ j }} = gated_tile{{ n }}({{ place(i, j) }});
{% endif %}
{% endfor %}
{% endmacro %}
{% set has_reads = store.name in ["onto", "swiglu_backward"] %}
{% if has_reads %}
{{ reads(0) | flow }}
{% endif %}
{% for i in range(down) %}
{% if has_reads and i + 1 < down %}
{{ reads(i + 1) | flow }}
{% endif %}
{% filter flow %}
{% for j in range(across // 2 if store.name == "swiglu" else across) %}
{% set sums = sum(i, 2 * j) ~ ", " ~ sum(i, 2 * j + 1) if store.name == "swiglu" else sum(i, j) %}
{% set part = ", group.z" if store.name == "plain" or store.name == "onto" and not for_norm else "" %}
{% set added = ", added" ~ i ~ j if store.name == "onto" else ", gated" ~ i ~ j if store.name == "swiglu_backward" else "" %}
{% set gain = ", gains" ~ j if for_norm else "" %}
  {{ "own_squares" ~ i ~ " += " if for_norm }}store_tile{{ n }}({{ sums }}, lane, {{ place(i, j) }}{{ part }}{{ added }}{{ gain }}{{ ", r" ~ i if norm_parts }});
{% endfor %}
{% endfilter +%}
{% endfor %}
{% if for_norm %}
  // The sums of squares of the block's rows, each from the invocations of {{ subgroups[1] }} subgroups that have a part of it.
{% set each = 4 if sliced else 2 %}
{% filter flow %}
{% for first in range(0, down, each) %}
  tiles[{{ "lane" | plus(first // each * threads) }}] = vec4<f32>({% for i in range(first, first + each) %}{{ "own_squares" ~ i if i < down else zero }}{{ ", " if not loop.last }}{% endfor %});
{% endfor %}
{% endfilter +%}
  workgroupBarrier();
  if lane < {{ block[0] }}u{{ " && row + lane < " ~ rows ~ "u" if ragged }} {
    let half = lane % 16u / 8u;
    let which = lane % {{ 16 * down }}u / 16u{{ " * 2u + half" if not sliced }};
    let first = ({{ "half * " ~ subgroups[0] * subgroups[1] ~ "u + " if sliced }}lane / {{ 16 * down }}u * {{ subgroups[1] }}u) * 32u + lane % 8u * 4u;
    var squares = 0.0;
    for (var i = 0u; i < {{ 4 * subgroups[1] }}u; i += 1u) {
      squares += tiles[first + i / 4u * 32u + i % 4u + which / 4u * {{ threads }}u][which % 4u];
    }
    squares{{ n }}[group.x * {{ rows }}u + row + lane] = squares;
  }
{% endif %}
