{# The common part of the forward and the backward kernel for attention on matrix cores. #}
enable f16;
enable wgpu_cooperative_matrix;

{% for name, of in buffers %}
@group(0) @binding({{ loop.index0 }}) var<storage, read_write> {{ name }}: array<{{ of }}>;
{% endfor %}

{% set pitch = (head_dim + 8) // 4 %}
{% set parts = head_dim // side %}
{% set score_pitch = (other + 4) // 4 %}
{% set weight_pitch = (other + 8) // 4 %}
// A tile of f16 rows, the scores of own rows with the tile's rows, and the weights. Rows are padded against bank conflicts.
var<workgroup> tile: array<vec4<f16>, {{ own * pitch }}>;
var<workgroup> scores: array<vec4<f32>, {{ own * score_pitch }}>;
var<workgroup> weights: array<vec4<f16>, {{ own * weight_pitch }}>;
// For each row of a tile: its lse, and dout·out.
var<workgroup> logs: array<vec4<f32>, {{ other // 4 }}>;
var<workgroup> deltas: array<vec4<f32>, {{ other // 4 }}>;
var<workgroup> shares: array<vec2<f32>, {{ threads }}>;
{% include "rotated.wgsl" %}
const lowest = -3e38;
const lanes = vec4<u32>(0u, 1u, 2u, 3u);
const tiles = {{ context // own }}u;
{# An invocation has `row` of the workgroup's own rows, and {{ side }} columns of each tile of scores, starting at `column`. #}
{% macro place_in_tile() %}
  // `own` is the subgroup's first row. This invocation has `row`, and {{ side }} of its scores, starting at `column`.
  let own = lane / 32u * {{ side }}u;
  let row = own + lane % 32u / 2u;
  let column = lane % 2u * {{ side }}u;
  let mine = row * {{ score_pitch }}u + column / 4u;
  let weight = row * {{ weight_pitch }}u + column / 4u;
{% endmacro %}
{# `count` rows from `first` on into the tile, as f16, from row `to` of it. #}
{% macro stage(source, count, to, lines, first) %}
{% set row_vectors = head_dim // 4 %}
{% for load in range(count * row_vectors // threads) %}
{% set at = "(lane + " ~ load * threads ~ "u)" %}
    tile[({{ to }}u + {{ at }} / {{ row_vectors }}u) * {{ pitch }}u + {{ at }} % {{ row_vectors }}u] = vec4<f16>({{ source }}[({{ lines.start }} + ({{ first }} + {{ at }} / {{ row_vectors }}u) * {{ lines.stride }}u) / 4u + {{ at }} % {{ row_vectors }}u]);
{% endfor %}
{% endmacro %}
{# The workgroup's own rows as matrices `name`0, `name`1, …, {{ side }} columns each. #}
{% macro own_side(source, name, lines) %}
    {{ stage(source, own, 0, lines, "first") | trim }}
  workgroupBarrier();
{% for part in range(parts) %}
  let {{ name }}{{ part }} = coopLoadT<coop_mat16x16<f16, A>>(&tile[own * {{ pitch }}u + {{ part * side // 4 }}u], {{ pitch }}u);
{% endfor %}
  workgroupBarrier();
{% endmacro %}
{# Own rows times the rows of the tile from `from` on, transposed, into `scores`. Ends behind a barrier. #}
{% macro scores(rows, from) %}
{% for half in range(other // side) %}
    {
      var s = coop_mat16x16<f32, C>();
{% for part in range(parts) %}
      s = coopMultiplyAdd({{ rows }}{{ part }}, coopLoad<coop_mat16x16<f16, B>>(&tile[{{ (from + half * side) * pitch + part * side // 4 }}u], {{ pitch }}u), s);
{% endfor %}
      coopStoreT(s, &scores[own * {{ score_pitch }}u + {{ half * side // 4 }}u], {{ score_pitch }}u);
    }
{% endfor %}
    workgroupBarrier();
{% endmacro %}
{# Adds `weights` times the rows of the tile from `from` on to the sums. #}
{% macro accumulate(sum, from) %}
{% for half in range(other // side) %}
    {
      let w = coopLoadT<coop_mat16x16<f16, A>>(&weights[own * {{ weight_pitch }}u + {{ half * side // 4 }}u], {{ weight_pitch }}u);
{% for part in range(parts) %}
      {{ sum }}{{ part }} = coopMultiplyAdd(w, coopLoadT<coop_mat16x16<f16, B>>(&tile[{{ (from + half * side) * pitch + part * side // 4 }}u], {{ pitch }}u), {{ sum }}{{ part }});
{% endfor %}
    }
{% endfor %}
{% endmacro %}
{# The columns of vector `i` of an invocation's scores. #}
{% macro columns(i) %}vec4<u32>(other + column + {{ 4 * i }}u) + lanes{% endmacro %}
{% macro zeros(name) %}
{% for part in range(parts) %}
  var {{ name }}{{ part }} = coop_mat16x16<f32, C>();
{% endfor %}
{% endmacro %}
{# Sums of own rows to `target` in f16, {{ side }} columns at a time through the memory of scores. `back`: each row's pairs are turned back. #}
{% macro store(name, target, lines, back) %}
{% for part in range(parts) %}
  coopStoreT({{ name }}{{ part }}, &scores[own * {{ score_pitch }}u], {{ score_pitch }}u);
  workgroupBarrier();
{% for half in [0, 1] %}
  { let r = own + {{ half * 8 }}u + lane % 32u / 4u;
    let c = {{ part * side }}u + lane % 4u * 4u;
    var value = scores[r * {{ score_pitch }}u + lane % 4u];
{% if back %}
    let angle = ((first + r) * {{ head_dim }}u + c) / 4u;
    value = rotated(value, cos[angle], -sin[angle]);
{% endif %}
    {{ target }}[({{ lines.start }} + (first + r) * {{ lines.stride }}u + c) / 4u] = vec4<f16>(value); }
{% endfor %}
  workgroupBarrier();
{% endfor %}
{% endmacro %}
