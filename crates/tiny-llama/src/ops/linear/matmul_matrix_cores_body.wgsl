{% from "linear/matmul_matrix_cores_operand.wgsl" import loads, stages, matrices %}

  // The block of C, and this subgroup's tiles in it.
  let row = group.y * {{ block[0] }}u;
  let column = group.x * {{ block[1] }}u;
{% if sliced %}
  let subgroup = lane / 32u % {{ slice_threads // 32 }}u;
  let team = lane / {{ slice_threads }}u;
{% else %}
  let subgroup = lane / 32u;
{% endif %}
  let a_first = subgroup / {{ subgroups[1] }}u * {{ down * 16 }}u;
  let b_first = subgroup % {{ subgroups[1] }}u * {{ across * 16 }}u;
{% if halves %}

  // If the largest magnitude has exponent e, the scale is 2^(14 - e): just below f16's largest number.
  if lane < 2u { atomicStore(&bits[lane], 0u); }
  workgroupBarrier();
{% for operand in [a, b] %}
  for (var i = {{ operand.largest.start }}u + lane; i < {{ operand.largest.end }}u; i += {{ threads }}u) { atomicMax(&bits[{{ loop.index0 }}], bitcast<u32>(largest[i])); }
{% endfor %}
  workgroupBarrier();
{% for name in ["a", "b"] %}
  let {{ name }}_exponent = clamp(atomicLoad(&bits[{{ loop.index0 }}]) >> 23u, 15u, 254u);
  let {{ name }}_scale = power_of_two(268u - {{ name }}_exponent);
  let {{ name }}_inverse = power_of_two({{ name }}_exponent - 14u);
{% endfor %}

{% endif %}
{% filter flow %}
{% for i in range(down) %}{% for j in range(across) %}
  var sum{{ i }}{{ j }} = Sum();
{% endfor %}{% endfor %}
{% endfilter +%}
  let begin = group.z * {{ share }}u;
  let end = min(begin + {{ share }}u, {{ inner }}u);
  var next = begin;
  // Where this invocation's first vector of A in a step is, in memory and in workgroup memory; and its first of B.
{% if a.across == 8 or b.across == 8 %}
  // Lines of 64 bytes that are stored together are four apart, because neighbours share banks.
{% endif %}
{% if b.in_turns %}
  // 16 gates of B, then the 16 ups that belong to them, and so on: a subgroup has both.
{% endif %}
{% for operand in [a, b] %}
{% set name = operand.name %}
{% set line = name ~ "_line" %}
{% if operand.in_turns %}
{% set first = "(" ~ operand.outer ~ " / 2u + " ~ line ~ " % 16u + " ~ line ~ " / 16u % 2u * " ~ operand.whole[0] // 2 ~ "u)" %}
{% else %}
{% set first = line if operand.inner_lines else "(" ~ operand.outer ~ " + " ~ line ~ ")" %}
{% endif %}
{% set value = (operand.outer ~ " + " if operand.inner_lines else "") ~ "lane % " ~ operand.across ~ "u * 4u" %}
  let {{ line }} = {{ "lane / 64u * 8u + lane / 16u % 4u + lane / 8u % 2u * 4u" if operand.across == 8 else "lane / " ~ operand.across ~ "u" }};
{% if not operand.even %}
  let {{ name }}_first_line = {{ first }};
  let {{ name }}_value = {{ value }};
{% set first = name ~ "_first_line" %}
{% set value = name ~ "_value" %}
{% endif %}
  let {{ name }}_at = ({{ first }} * {{ operand.whole[1] }}u + {{ value }}) / 4u;
  let {{ name }}_to = {{ line }} * {{ operand.pitch }}u + lane % {{ operand.across }}u;
{% endfor %}
{{ loads(a, "var ") | flow }}
{{ loads(b, "var ") | flow }}
{% if norm_parts %}

  // 1/rms of the block's rows, and this block's share of y. Its loads do not wait for 1/rms.
{% filter flow %}
{% for load in range((block[0] * share_of_norm + threads - 1) // threads) %}
  let y{{ load }} = read_scaled{{ n }}({{ "lane" | plus(load * threads) }}, row, group.x);
{% endfor %}
{% endfilter +%}
  if lane < {{ block[0] }}u {
    let of_row = {{ "min(row + lane, " ~ (rows - 1) ~ "u)" if ragged else "row + lane" }};
{% set squares %}{% filter flow(" +") %}
{% for part in range(norm_parts) %}
                  squares_of_a{{ n }}[{{ "of_row" | plus(part * rows) }}]
{% endfor %}
{% endfilter %}{% endset %}
    let squares = {{ squares | trim }};
    let r = 1.0 / sqrt(squares / {{ inner }}.0 + {{ eps }});
    tiles[lane] = vec4<f32>(r);
    if group.x == 0u{{ " && row + lane < " ~ rows ~ "u" if ragged }} { inverse{{ n }}[of_row] = r; }
  }
  workgroupBarrier();
{% filter flow %}
{% for i in range(down) %}
{% set first = "tiles[" ~ ("a_first" | plus(i * 16)) %}
{% if sliced %}
  let r{{ i }} = {{ first }} + team * 8u + lane % 32u / 4u].x;
{% else %}
  let r{{ i }} = vec2<f32>({{ first }} + lane % 32u / 4u].x, {{ first }} + 8u + lane % 32u / 4u].x);
{% endif %}
{% endfor %}
{% endfilter +%}
{% filter flow %}
{% for load in range((block[0] * share_of_norm + threads - 1) // threads) %}
  store_normed{{ n }}({{ "lane" | plus(load * threads) }}, row, group.x, y{{ load }});
{% endfor %}
{% endfilter +%}
{% endif %}

  loop {
    // Copies registers to workgroup memory.
{{ stages(a) | flow }}
{{ stages(b) | flow }}
{% set small = threads == 128 and not halves %}
{% if not small %}
    workgroupBarrier();
{% endif %}
    // Loads the next step's values, in the last step the first one's again, while {{ "another workgroup may multiply" if small else "this step is multiplied" }}.
    next = select(begin, next + {{ step }}u, next + {{ step }}u < end);
{{ loads(a, "") | flow }}
{{ loads(b, "") | flow }}
{% if small %}
    workgroupBarrier();
{% endif %}

    // A loop, because drivers would write out several rounds of the loop around it, and long programs are slow.
{% set values = 32 if halves else 16 %}
    for (var inner = {{ "team * " ~ values ~ "u" if sliced else "0u" }}; inner < {{ step }}u; inner += {{ values * slices }}u) {
{% for operand in [a, b] %}
{% set name = operand.name %}
      let {{ name }}_from = {{ "inner * " ~ operand.pitch ~ "u + " ~ name ~ "_first / 4u" if operand.inner_lines else name ~ "_first * " ~ operand.pitch ~ "u + inner / 4u" }};
{% endfor %}
{% for i in range(down) %}{{ matrices(a, i) }}{% endfor %}
{% for j in range(across) %}
{{ matrices(b, j) | trim("\n") }}
{% if halves %}
{% for i in range(down) %}
      sum{{ i }}{{ j }} = sum{{ i }}{{ j }} + coopMultiplyAdd(a_high{{ i }}_16, b_high{{ j }}_16, coopMultiplyAdd(a_high{{ i }}_16, b_low{{ j }}_16,
        coopMultiplyAdd(a_low{{ i }}_16, b_high{{ j }}_16, coopMultiplyAdd(a_high{{ i }}_0, b_high{{ j }}_0,
        coopMultiplyAdd(a_high{{ i }}_0, b_low{{ j }}_0, coopMultiplyAdd(a_low{{ i }}_0, b_high{{ j }}_0, Sum()))))));
{% endfor %}
{% else %}
{% filter flow %}
{% for i in range(down) %}
      sum{{ i }}{{ j }} = coopMultiplyAdd(rows{{ i }}, columns{{ j }}, sum{{ i }}{{ j }});
{% endfor %}
{% endfilter +%}
{% endif %}
{% endfor %}
    }
    workgroupBarrier();
    if next == begin { break; }
  }

{% if by_vectors %}
{% include "linear/matmul_matrix_cores_store.wgsl" %}
{% else %}
  // Stores the sums in C.
  let first = group.z * {{ rows * columns }}u + (row + a_first) * {{ columns }}u + column + b_first;
{% macro matrix(i, j) %}{{ "first" | plus(i * 16 * columns + j * 16) }}], {{ columns }}u{% endmacro %}
{% set inverse = " * a_inverse * b_inverse" %}
{% if store.name == "onto" %}
{% for i in range(down) %}{% for j in range(across) %}
{% set sum = "sum" ~ i ~ j %}
  {{ sum ~ " = " ~ sum ~ inverse ~ "; " if halves }}{{ sum }} = {{ sum }} + coopLoadT<Sum>(&residual{{ n }}[{{ matrix(i, j) }});
  coopStoreT({{ sum }}, &out{{ n }}[{{ matrix(i, j) }});
{% endfor %}{% endfor %}
{% else %}
{% filter flow %}
{% for i in range(down) %}{% for j in range(across) %}
{% set sum = "sum" ~ i ~ j %}
  {{ sum ~ " = " ~ sum ~ inverse ~ "; " if halves }}coopStoreT({{ sum }}, &out{{ n }}[{{ matrix(i, j) }});
{% endfor %}{% endfor %}
{% endfilter %}
{% endif %}
{% endif %}
