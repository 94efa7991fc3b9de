{% from "linear/matmul_operand.wgsl" import places, registers, load, stage %}
{% set sums = rows_of_block * across %}

  // The tile of C, and this workgroup's part of the inner dimension.
  let row = group.y * {{ tile[0] }}u;
  let column = group.x * {{ tile[1] }}u;
  let begin = group.z * {{ share }}u;
  let end = min(begin + {{ share }}u, {{ inner }}u);
  var sums = array<vec4<f32>, {{ sums }}>();

  // Where this invocation's first piece of A is, and of B. Its others are a fixed number of lines further.
{{ places(a) -}}
{{ places(b) -}}
{{ (registers(a) ~ registers(b)) | flow }}
  var next = begin;
{% set loads %}
{{ load(a) | flow }}
{{ load(b) | flow }}
{% endset %}
  {{ loads | trim | replace("\n    ", "\n  ") }}
  for (var k = begin; k < end; k += {{ step }}u) {
    // Copies registers to workgroup memory.
{{ stage(a) | flow }}
{{ stage(b) | flow }}
    workgroupBarrier();

    // Loads the next step's values while this step is multiplied; the last step loads the first one's again.
    next = select(begin, k + {{ step }}u, k + {{ step }}u < end);
    {{ loads | trim }}

    // Each inner value. {{ unroll }} are written out, because a loop of single ones takes longer.
    for (var value = 0u; value < {{ per_slice }}u; value += {{ unroll }}u) {
      let line = {{ "slice * " ~ per_slice ~ "u + value" if slices > 1 else "value" }};
      let a_at = line * {{ a.pitch }}u + block_row;
      let b_at = {{ b.first }}u + line * {{ b.pitch }}u + block_column;
{% filter flow %}
{% for value in range(unroll) %}
      add_value(&sums, a_at + {{ value * a.pitch }}u, b_at + {{ value * b.pitch }}u);
{% endfor %}
{% endfilter +%}
    }
    workgroupBarrier();
  }
{% for half in halves_of_slices %}

  // The upper half of {{ 2 * half }} slices passes its sums to the lower half.
  let at_{{ half }} = slice % {{ half }}u * {{ slice_threads * sums }}u + number;
  if slice >= {{ half }}u && slice < {{ 2 * half }}u { put_sums(&sums, at_{{ half }}); }
  workgroupBarrier();
  if slice < {{ half }}u { add_sums(&sums, at_{{ half }}); }
  workgroupBarrier();
{% endfor %}
{% if slices > 1 %}
  if slice > 0u { return; }
{% endif %}

  let first = group.z * {{ rows * columns }}u;
  // The first row and column of this invocation's block in C.
  let top = row + block_row * 4u;
  let left = {{ "column / 2u" if store.name == "swiglu" else "column" }} + block_column * 4u;
{% macro place(row, vector) %}{{ "top" | plus(row // 4 * 4 * strides[0] + row % 4) }}, {{ "left" | plus(4 * vector * strides[1]) }}{% endmacro %}
{# The caller's line for each sum of this invocation. #}
{% macro each_sum() %}
{% filter flow %}
{% for row in range(rows_of_block) %}{% for vector in range(across) %}
  {{ caller(place(row, vector), "sums[" ~ (row * across + vector) ~ "]") }}
{% endfor %}{% endfor %}
{% endfilter %}
{% endmacro %}
{% if store.name == "swiglu" %}
{% filter flow %}
{% for row in range(rows_of_block) %}
  put{{ n }}({{ place(row, 0) }}, sums[{{ row * across }}], sums[{{ row * across + 1 }}]);
{% endfor %}
{% endfilter %}
{% elif store.name == "swiglu_backward" %}
{# The gates and ups of a row are on their way while the row before is stored. #}
{% macro gated(row) %}
{% for j in range(across) %}
  let gate{{ row }}_{{ j }} = gated_at{{ n }}(0u, {{ place(row, j) }});
  let up{{ row }}_{{ j }} = gated_at{{ n }}({{ rows * columns // 4 }}u, {{ place(row, j) }});
{% endfor %}
{% endmacro %}
{% filter flow %}
{{ gated(0) }}
{% for row in range(rows_of_block) %}
{{ gated(row + 1) if row + 1 < rows_of_block }}
{% for j in range(across) %}
  put{{ n }}({{ place(row, j) }}, sums[{{ row * across + j }}], gate{{ row }}_{{ j }}, up{{ row }}_{{ j }});
{% endfor %}
{% endfor %}
{% endfilter %}
{% else %}
{% if store.name == "onto" %}
{# A driver that does not know that C is another matrix would wait for each read. #}
  // All of R is read before the first store.
{% call(place, sum) each_sum() %}{{ sum }} += residual_at{{ n }}({{ place }});{% endcall +%}
{% elif store.name == "rope" %}
{% call(place, sum) each_sum() %}{{ sum }} = turned{{ n }}({{ place }}, {{ sum }});{% endcall +%}
{% endif %}
{% call(place, sum) each_sum() %}put{{ n }}(first, {{ place }}, {{ sum }});{% endcall %}
{% endif %}
