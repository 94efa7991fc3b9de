{# Statements that return the vector at `place`, or zero if the condition `inside` is false. Without a condition it is always inside. #}
{% macro read(vector, place, inside) %}
{% if inside %}
var value = {{ vector }}();
  if {{ inside }} { value = {{ place }}; }
  return value;
{%- else %}
return {{ place }};
{%- endif %}
{% endmacro %}
{% macro begin_if(inside) %}{{ "if " ~ inside ~ " {\n    " if inside }}{% endmacro %}
{% macro end_if(inside) %}{{ "\n  }" if inside }}{% endmacro %}
{% for operand in [a, b] if not operand.even %}


// Reads four values of a line of {{ operand.name | upper }}; zeros past its ends.
fn read_{{ operand.name }}{{ n }}(at: u32, line: u32, value: u32) -> {{ operand.vector }} {
  var four = {{ operand.vector }}();
  if line < {{ operand.whole[0] }}u && value < {{ operand.whole[1] }}u { four = {{ operand.name }}{{ n }}[at]; }
  return four;
}
{%- endfor %}
{% if norm_parts %}
{% set inside = [] %}
{% if block[0] * share_of_norm % threads != 0 %}{% set inside = inside + ["i / " ~ share_of_norm ~ "u < " ~ block[0] ~ "u"] %}{% endif %}
{% if share_of_norm * blocks_across > inner // 4 %}{% set inside = inside + ["block * " ~ share_of_norm ~ "u + i % " ~ share_of_norm ~ "u < " ~ inner // 4 ~ "u"] %}{% endif %}
{% if ragged %}{% set inside = inside + ["row + i / " ~ share_of_norm ~ "u < " ~ rows ~ "u"] %}{% endif %}
{% set inside = inside | join(" && ") %}


// Reads vector i of x·gain in a block's share, which begins at `row`; multiplies it by 1/rms, and stores it in y.
fn place_in_share{{ n }}(i: u32, row: u32, block: u32) -> u32 {
  return (row + i / {{ share_of_norm }}u) * {{ inner // 4 }}u + block * {{ share_of_norm }}u + i % {{ share_of_norm }}u;
}
fn read_scaled{{ n }}(i: u32, row: u32, block: u32) -> vec4<f16> {
  {{ read("vec4<f16>", "a" ~ n ~ "[place_in_share" ~ n ~ "(i, row, block)]", inside) }}
}
fn store_normed{{ n }}(i: u32, row: u32, block: u32, value: vec4<f16>) {
  {{ begin_if(inside) }}normed{{ n }}[place_in_share{{ n }}(i, row, block)] = vec4<f16>(vec4<f32>(value) * tiles[i / {{ share_of_norm }}u].x);{{ end_if(inside) }}
}
{%- endif %}
{% if by_vectors %}
{# The rows of a tile of which an invocation has four values: one if two slices share the tile, otherwise two, eight apart. Each has the indices
   of its values, and of its gates and ups. #}
{% set rows_of_tile = [["row", "", "[0]", "[1]"]] if sliced else [["row", "[0]", "[0]", "[1]"], ["row + 8u", "[1]", "[2]", "[3]"]] %}
{% set values = "vec4<f32>" if sliced else "mat2x4<f32>" %}
{% set squares = "f32" if sliced else "vec2<f32>" %}
{% set in_slice = subgroups[0] * subgroups[1] %}
{% set width = columns // 2 if store.name == "swiglu" else columns %}
{% set size = rows * width // 4 %}
{% set inside = "row < " ~ rows ~ "u && column < " ~ width ~ "u" if ragged else "" %}
{% set at = "(row * " ~ width ~ "u + column) / 4u" %}
{% set r_parameter = ", r: " ~ squares if norm_parts else "" %}
{% set r = ", r" if norm_parts else "" %}


// Passes a tile of sums through workgroup memory. An invocation gets four values of {{ "a row: the sums of both slices" if sliced else "each of two rows, eight apart" }}.
fn tile_values{{ n }}(sum: Sum, lane: u32{{ r_parameter }}) -> {{ values }} {
  coopStoreT(sum, &tiles[lane / 32u * 64u], 4u);
  workgroupBarrier();
{% if sliced %}
  let at = lane / 32u % {{ in_slice }}u * 64u + lane / {{ 32 * in_slice }}u * 32u + lane % 32u;
{% set both = "tiles[at] + tiles[at + " ~ 64 * in_slice ~ "u]" %}
  let values = {{ values }}({{ "(" ~ both ~ ") * r" if norm_parts else both }});
{% else %}
  let at = lane / 32u * 64u + lane % 32u;
  let values = {{ values }}(tiles[at]{{ " * r[0]" if norm_parts }}, tiles[at + 32u]{{ " * r[1]" if norm_parts }});
{% endif %}
  workgroupBarrier();
  return values;
}
{%- if store.name == "onto" %}


// Reads four values of a row of R; and those of a tile.
fn residual_row{{ n }}(row: u32, column: u32) -> vec4<f32> {
  {{ read("vec4<f32>", "residual" ~ n ~ "[" ~ at ~ "]", inside) }}
}
fn residual_tile{{ n }}(row: u32, column: u32) -> {{ values }} {
  return {{ values }}({% for row, _, _, _ in rows_of_tile %}residual_row{{ n }}({{ row }}, column){{ ", " if not loop.last }}{% endfor %});
}
{%- endif %}
{% if for_norm %}


// Stores four values of a row of C, also times the next norm's gain; returns the sum of their squares.
fn store_row{{ n }}(row: u32, column: u32, value: vec4<f32>, gain: vec4<f32>) -> f32 {
  {{ begin_if(inside) }}let at = {{ at }};
  out{{ n }}[at] = value;
  scaled{{ n }}[at] = in_f16(value * gain);
  return dot(value, value);{{ end_if(inside) }}{{ "\n  return 0.0;" if inside }}
}
{%- elif store.name in ["plain", "onto"] %}


// Stores four values of a row of C, or of a part of it.
fn store_row{{ n }}(row: u32, column: u32, value: vec4<f32>, part: u32) {
  {{ begin_if(inside) }}out{{ n }}[part * {{ size }}u + {{ at }}] = value;{{ end_if(inside) }}
}
{%- elif store.name == "rope" %}


// Rotates four values of a row of C and stores them.
fn store_row{{ n }}(row: u32, column: u32, value: vec4<f32>) {
  {{ begin_if(inside) }}var turned = value;
  if column < {{ store.rotated }}u {
    let angle = (row % {{ store.context }}u * {{ store.head_dim // 2 }}u + column % {{ store.head_dim }}u / 2u) / 2u;
    turned = rotated(value, cos{{ n }}[angle], sin{{ n }}[angle]);
  }
  out{{ n }}[{{ at }}] = vec4<f16>(turned);{{ end_if(inside) }}
}
{%- elif store.name == "swiglu" %}


// Stores four gates, their ups and activations: one matrix after the other.
fn store_row{{ n }}(row: u32, column: u32, gate: vec4<f32>, up: vec4<f32>) {
  {{ begin_if(inside) }}let at = {{ at }};
  out{{ n }}[at] = vec4<f16>(gate);
  out{{ n }}[at + {{ size }}u] = vec4<f16>(up);
  out{{ n }}[at + {{ 2 * size }}u] = vec4<f16>(swiglu(gate, up));{{ end_if(inside) }}
}
{%- else %}


// Reads four gates or ups, whose matrix begins at `first`; and those of a tile.
fn gated_row{{ n }}(first: u32, row: u32, column: u32) -> vec4<f16> {
  {{ read("vec4<f16>", "gated" ~ n ~ "[first + " ~ at ~ "]", inside) }}
}
{% set count = 2 if sliced else 4 %}
fn gated_tile{{ n }}(row: u32, column: u32) -> array<vec4<f16>, {{ count }}> {
  return array<vec4<f16>, {{ count }}>(
{% for row, _, _, _ in rows_of_tile %}
    gated_row{{ n }}(0u, {{ row }}, column), gated_row{{ n }}({{ size }}u, {{ row }}, column){{ ");" if loop.last else "," }}
{% endfor %}
}

// Stores the gradients of four gates and of their ups, from those of the activations.
fn store_row{{ n }}(row: u32, column: u32, d: vec4<f32>, gate: vec4<f16>, up: vec4<f16>) {
  {{ begin_if(inside) }}let at = (row * {{ 2 * width }}u + column) / 4u;
  out{{ n }}[at] = vec4<f16>(gate_gradient(d, vec4<f32>(gate), vec4<f32>(up)));
  out{{ n }}[at + {{ width // 4 }}u] = vec4<f16>(up_gradient(d, vec4<f32>(gate)));{{ end_if(inside) }}
}
{%- endif %}
{# The parameters of `store_tile` after its place, and the arguments of `store_row` after a row's place. #}
{% if for_norm %}
{% set more = ", added: " ~ values ~ ", gain: vec4<f32>" %}
{% elif store.name == "onto" %}
{% set more = ", part: u32, added: " ~ values %}
{% elif store.name == "swiglu_backward" %}
{% set more = ", gated: array<vec4<f16>, " ~ (2 if sliced else 4) ~ ">" %}
{% else %}
{% set more = ", part: u32" if store.name == "plain" else "" %}
{% endif %}
{% macro stored(row, h, gate, up) %}
store_row{{ n }}({{ row }}, column, value{{ h }}
{%- if for_norm %} + added{{ h }}, gain
{%- elif store.name == "onto" %} + added{{ h }}, part
{%- elif store.name == "plain" %}, part
{%- elif store.name == "swiglu" %}, up{{ h }}
{%- elif store.name == "swiglu_backward" %}, gated{{ gate }}, gated{{ up }}
{%- endif %})
{%- endmacro %}

fn store_tile{{ n }}({{ "gates: Sum, ups: Sum" if store.name == "swiglu" else "sum: Sum" }}, lane: u32, row: u32, column: u32{{ more }}{{ r_parameter }}){{ " -> " ~ squares if for_norm }} {
  let value = tile_values{{ n }}({{ "gates" if store.name == "swiglu" else "sum" }}, lane{{ r }});
{% if store.name == "swiglu" %}
  let up = tile_values{{ n }}(ups, lane{{ r }});
{% endif %}
{% for row, h, gate, up in rows_of_tile %}
{% if for_norm %}
  {{ "return " ~ squares ~ "(" if loop.first else "                 " }}{{ stored(row, h, gate, up) }}{{ ");" if loop.last else "," }}
{% else %}
  {{ stored(row, h, gate, up) }};
{% endif %}
{% endfor %}
}
{%- endif %}
