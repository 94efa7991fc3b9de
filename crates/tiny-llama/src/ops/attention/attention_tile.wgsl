{# The common part of the forward and the backward kernel for attention on matrix cores. #}
enable f16;
enable wgpu_cooperative_matrix;

{% include "gpu/wgsl/bindings.wgsl" %}

{% set row_vectors = head_dim // 4 %}
{% set pitch = (head_dim + 8) // 4 %}
{% set parts = head_dim // side %}
{% set score_pitch = (other + score_padding) // 4 %}
{% set weight_pitch = (other + 8) // 4 %}
{% set part_pitch = (2 * side + 8) // 4 %}
{% set each = threads // other %}
// Rows of the other side in f16, the scores of own rows with them, and the weights. Rows are padded against bank conflicts.
var<workgroup> tile: array<vec4<f16>, {{ rows * pitch if rows == other else [rows * pitch, 2 * own * part_pitch] | max }}>;
var<workgroup> scores: array<vec4<f32>, {{ score_rows * score_pitch }}>;
var<workgroup> weights: array<vec4<f16>, {{ score_rows * weight_pitch }}>;
// Values that the invocations of a row exchange.
var<workgroup> shares: array<f32, {{ threads }}>;
{% include "rope/rotated.wgsl" %}
const lowest = -3e38;
const lanes = vec4<u32>(0u, 1u, 2u, 3u);
const tiles = {{ context // own }}u;
{# Two teams of subgroups work on the same own rows. #}
{% macro place_in_tile() %}
  // A subgroup has the {{ side }} rows from `own` on, together with the subgroup of the other team that has the same. Four invocations, two
  // of each team, share a `row` of scores: invocation `quarter` has vectors quarter, quarter + 4, and so on.
  let team = lane / {{ threads // 2 }}u;
  let own = lane / 32u % {{ own // side }}u * {{ side }}u;
  let row = own + lane % 32u / 2u;
  let quarter = team * 2u + lane % 2u;
  let mine = row * {{ score_pitch }}u + quarter;
  let weight = row * {{ weight_pitch }}u + quarter;
  // {{ each }} invocations load a row of the other side: vectors `vector`, vector + {{ each }}, and so on of row `line`.
{# Lines that are stored together are as far apart as their banks need. #}
{% set line = {4: "lane / 32u * 8u + lane / 16u % 2u + lane / 4u % 4u * 2u", 8: "lane / 64u * 8u + lane / 16u % 4u + lane / 8u % 2u * 4u"} %}
  let line = {{ line[each] if each in line else "lane / " ~ each ~ "u" }};
  let vector = lane % {{ each }}u;
  let to = line * {{ pitch }}u + vector;
{% endmacro %}
{# This invocation's vectors of `count` rows from `first` on, in registers `name`0, `name`1, … #}
{% macro registers(name, of) %}
{% for i in range(row_vectors // each) %}
  var {{ name }}{{ i }} = {{ of }}();
{% endfor %}
{% endmacro %}
{% macro fetch(name, source, lines, first) %}
    { let at = ({{ lines.start }} + ({{ first }} + line) * {{ lines.stride }}u) / 4u + vector;
{% for i in range(row_vectors // each) %}
      {{ name }}{{ i }} = {{ source }}[at + {{ i * each }}u];
{% endfor %}
    }
{% endmacro %}
{# Writes what was fetched to rows of the tile, from row `from` on. #}
{% macro put(name, from) %}
{% for i in range(row_vectors // each) %}
    tile[to + {{ from * pitch + i * each }}u] = vec4<f16>({{ name }}{{ i }});
{% endfor %}
{% endmacro %}
{# The subgroup's own rows as matrices `name`0, `name`1, …, {{ side }} columns each, from f16 in memory. #}
{% macro own_side(name, source, lines) %}
  { let at = ({{ lines.start }} + (first + own) * {{ lines.stride }}u) / 4u;
{% for part in range(parts) %}
    {{ name }}{{ part }} = coopLoadT<coop_mat16x16<f16, A>>(&{{ source }}[at + {{ part * side // 4 }}u], {{ lines.stride // 4 }}u);
{% endfor %}
  }
{% endmacro %}
{% macro matrices(name) %}
{% for part in range(parts) %}
  var {{ name }}{{ part }} = coop_mat16x16<f16, A>();
{% endfor %}
{% endmacro %}
{# Own rows times `count` rows of the tile from `from` on, transposed, to `scores`: the subgroup's rows from row `at` on, vectors from `to` on. #}
{% macro multiply(rows, from, count, at, to) %}
{% for i in range(count // side) %}
    var s{{ i }} = coop_mat16x16<f32, C>();
{% endfor %}
{% for part in range(parts) %}{% for i in range(count // side) %}
    s{{ i }} = coopMultiplyAdd({{ rows }}{{ part }}, coopLoad<coop_mat16x16<f16, B>>(&tile[({{ from }} + {{ i * side }}u) * {{ pitch }}u + {{ part * side // 4 }}u], {{ pitch }}u), s{{ i }});
{% endfor %}{% endfor %}
{% for i in range(count // side) %}
    coopStoreT(s{{ i }}, &scores[({{ at }}) * {{ score_pitch }}u + {{ to }} + {{ i * side // 4 }}u], {{ score_pitch }}u);
{% endfor %}
{% endmacro %}
{# Adds weights, from row `at` on, times the tile's rows from `from` on to `count` sums, whose columns start at vector `to`. #}
{% macro accumulate(sum, at, from, count, to) %}
{% for i in range(other // side) %}
    { let w = coopLoadT<coop_mat16x16<f16, A>>(&weights[({{ at }}) * {{ weight_pitch }}u + {{ i * side // 4 }}u], {{ weight_pitch }}u);
{% for part in range(count) %}
      {{ sum }}{{ part }} = coopMultiplyAdd(w, coopLoadT<coop_mat16x16<f16, B>>(&tile[({{ from }} + {{ i * side }}u) * {{ pitch }}u + {{ to }} + {{ part * side // 4 }}u], {{ pitch }}u), {{ sum }}{{ part }});
{% endfor %}
    }
{% endfor %}
{% endmacro %}
{# The columns of vector `i` of an invocation's scores. #}
{% macro columns(i) %}vec4<u32>(other + quarter * 4u + {{ 16 * i }}u) + lanes{% endmacro %}
{% macro zeros(name, count) %}
{% for part in range(count) %}
  var {{ name }}{{ part }} = coop_mat16x16<f32, C>();
{% endfor %}
{% endmacro %}
{# Passes `count` sums through the memory of scores, {{ side }} columns at a time. The caller stores `value`, four values of own row r
   from column c on. The subgroup's sums start at column `from` and pass through rows from `at` on, vectors from `to` on. #}
{% macro store(name, count, from, at, to) %}
{% for part in range(count) %}
  coopStoreT({{ name }}{{ part }}, &scores[({{ at }}) * {{ score_pitch }}u + {{ to }}], {{ score_pitch }}u);
  workgroupBarrier();
{% for half in [0, 1] %}
  { let r = own + {{ half * 8 }}u + lane % 32u / 4u;
    let c = {{ from }} + {{ part * side }}u + lane % 4u * 4u;
    let value = scores[({{ at }} + {{ half * 8 }}u + lane % 32u / 4u) * {{ score_pitch }}u + {{ to }} + lane % 4u];
    {{ caller() | trim }} }
{% endfor %}
  workgroupBarrier();
{% endfor %}
{% endmacro %}
