{% for operand in [a, b] if not operand.whole %}
{% set read = operand.name ~ n ~ "[line * " %}


// Reads four values of a line; zeros past its ends.
fn read_{{ operand.name }}{{ n }}(line: u32, vector: u32, end: u32) -> vec4<f32> {
  var four = vec4<f32>();
{% if operand.width == 4 %}
  if line < {{ operand.ends[0] }} && vector * 4u < {{ operand.ends[1] }} { four = {{ read }}{{ operand.stride // 4 }}u + vector]; }
{% else %}
{% filter flow %}
{% for value in range(4) %}
{% set index = "vector * 4u + " ~ value ~ "u" %}
  if line < {{ operand.ends[0] }} && {{ index }} < {{ operand.ends[1] }} { four[{{ value }}] = {{ read }}{{ operand.stride }}u + {{ index }}]; }
{% endfor %}
{% endfilter +%}
{% endif %}
  return four;
}
{%- endfor %}
{% set width = columns // 2 if store.name == "swiglu" else columns %}
{% set guard = "if row < " ~ rows ~ "u && column < " ~ width ~ "u " if ragged else "" %}
{% set at = "(row * " ~ width ~ "u + column) / 4u" %}
{# A statement for each of the four values, if the value is inside of C. #}
{% macro by_value() %}
{% filter flow %}
{% for value in range(4) %}
  if row < {{ rows }}u && column + {{ value }}u < {{ columns }}u { {{ caller(value, "row * " ~ columns ~ "u + column + " ~ value ~ "u") }} }
{% endfor %}
{% endfilter %}
{% endmacro %}
{% if store.name == "swiglu" %}


// Stores four gates, their ups and activations: one matrix after the other.
fn put{{ n }}(row: u32, column: u32, gate: vec4<f32>, up: vec4<f32>) {
  let at = {{ at }};
  {{ guard }}{
    out{{ n }}[at] = gate;
    out{{ n }}[at + {{ rows * width // 4 }}u] = up;
    out{{ n }}[at + {{ rows * width // 2 }}u] = swiglu(gate, up);
  }
}
{%- elif store.name == "swiglu_backward" %}


// Four gates or ups of a row, whose matrix begins at `first`.
fn gated_at{{ n }}(first: u32, row: u32, column: u32) -> vec4<f32> {
  var value = vec4<f32>();
  {{ guard }}{ value = gated{{ n }}[first + {{ at }}]; }
  return value;
}

// Stores the gradients of four gates and of their ups, from those of the activations.
fn put{{ n }}(row: u32, column: u32, d: vec4<f32>, gate: vec4<f32>, up: vec4<f32>) {
  let at = (row * {{ 2 * width }}u + column) / 4u;
  {{ guard }}{
    out{{ n }}[at] = gate_gradient(d, gate, up);
    out{{ n }}[at + {{ width // 4 }}u] = up_gradient(d, gate);
  }
}
{%- else %}
{% if store.name == "onto" %}


// Four values of a row of R.
fn residual_at{{ n }}(row: u32, column: u32) -> vec4<f32> {
{% if lanes != 4 %}
  var four = vec4<f32>();
{% call(value, index) by_value() %}four[{{ value }}] = residual{{ n }}[{{ index }}];{% endcall +%}
  return four;
{% elif ragged %}
  {{ guard }}{ return residual{{ n }}[{{ at }}]; }
  return vec4<f32>();
{% else %}
  return residual{{ n }}[{{ at }}];
{% endif %}
}
{%- elif store.name == "rope" %}


// Rotates four values of a row.
fn turned{{ n }}(row: u32, column: u32, value: vec4<f32>) -> vec4<f32> {
  if column >= {{ store.rotated }}u { return value; }
  let angle = (row % {{ store.context }}u * {{ store.head_dim // 2 }}u + column % {{ store.head_dim }}u / 2u) / 2u;
  return rotated(value, cos{{ n }}[angle], sin{{ n }}[angle]);
}
{%- endif %}


// Stores four values of a row of C.
fn put{{ n }}(first: u32, row: u32, column: u32, value: vec4<f32>) {
{% if lanes != 4 %}
{% call(value, index) by_value() %}out{{ n }}[first + {{ index }}] = value[{{ value }}];{% endcall +%}
{% else %}
{% set stored = "out" ~ n ~ "[(first + row * " ~ columns ~ "u + column) / 4u] = value;" %}
  {{ guard ~ "{ " ~ stored ~ " }" if ragged else stored }}
{% endif %}
}
{%- endif %}
