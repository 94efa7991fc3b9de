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
// Rows of the other side, the scores of own rows with them, and the weights. Rows are padded against bank conflicts.
var<workgroup> tile: array<vec4<f16>, {{ rows * pitch if rows == other else [rows * pitch, 2 * own * part_pitch] | max }}>;
var<workgroup> scores: array<vec4<f32>, {{ score_rows * score_pitch }}>;
var<workgroup> weights: array<vec4<f16>, {{ score_rows * weight_pitch }}>;
// Values that the invocations of a row exchange.
var<workgroup> shares: array<f32, {{ threads }}>;
alias MatrixA = coop_mat16x16<f16, A>;
alias MatrixB = coop_mat16x16<f16, B>;
alias Sum = coop_mat16x16<f32, C>;

// The sum of four invocations' values.
fn row_sum(row: u32) -> f32 {
  return shares[row * 4u] + shares[row * 4u + 1u] + shares[row * 4u + 2u] + shares[row * 4u + 3u];
}

// Four columns of a row.
fn columns_from(column: u32) -> vec4<u32> { return vec4<u32>(column, column + 1u, column + 2u, column + 3u); }
{# Two teams of subgroups work on the same own rows. #}
{% macro place_in_tile() %}
  // A subgroup has the {{ side }} rows from `own` on, together with the subgroup of the other team that has the same. Four
  // invocations, two of each team, share a `row` of scores: invocation `quarter` has vectors quarter, quarter + 4, …
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
  {{ "" }}{% for i in range(row_vectors // each) %}var {{ name }}{{ i }} = {{ of }}();{{ ("\n  " if loop.index % 4 == 0 else " ") if not loop.last }}{% endfor %}

{% endmacro %}
{% macro fetch(name, source, lines, first) %}
    { let at = ({{ lines.start }} + ({{ first }} + line) * {{ lines.stride }}u) / 4u + vector;
      {{ "" }}{% for i in range(row_vectors // each) %}{{ name }}{{ i }} = {{ source }}[at + {{ i * each }}u]; {{ "\n      " if loop.index % 4 == 0 and not loop.last }}{% endfor %}}
{% endmacro %}
{# Writes what was fetched to rows of the tile, from row `from` on. #}
{% macro put(name, from, of) %}
    {{ "" }}{% for i in range(row_vectors // each) %}tile[to + {{ from * pitch + i * each }}u] = {{ name ~ i if of == "vec4<f16>" else "vec4<f16>(" ~ name ~ i ~ ")" }};{{ ("\n    " if loop.index % 3 == 0 else " ") if not loop.last }}{% endfor %}

{% endmacro %}
{% macro matrices(name, of, count) %}
  {{ "" }}{% for part in range(count) %}var {{ name }}{{ part }} = {{ of }}();{{ ("\n  " if loop.index % 4 == 0 else " ") if not loop.last }}{% endfor %}

{% endmacro %}
{# Own rows times `count` rows of the tile from `from` on, transposed, to `scores`: the subgroup's rows from row `at` on, vectors from `to` on. #}
{% macro multiply(rows, from, count, at, to) %}
    {{ "" }}{% for i in range(count // side) %}var s{{ i }} = Sum(); {% endfor %}let rows_at = {{ from }} * {{ pitch }}u;
{% for part in range(parts) %}{% for i in range(count // side) %}
    s{{ i }} = coopMultiplyAdd({{ rows }}{{ part }}, coopLoad<MatrixB>(&tile[rows_at + {{ i * side * pitch + part * side // 4 }}u], {{ pitch }}u), s{{ i }});
{% endfor %}{% endfor %}
{% for i in range(count // side) %}
    coopStoreT(s{{ i }}, &scores[({{ at }}) * {{ score_pitch }}u + {{ to }} + {{ i * side // 4 }}u], {{ score_pitch }}u);
{% endfor %}
{% endmacro %}
{# Adds weights, from row `at` on, times the tile's rows from `from` on to `count` sums, whose columns start at vector `to`. #}
{% macro accumulate(at, from, count, to) %}
    let values = ({{ from }}) * {{ pitch }}u + {{ to }};
{% for i in range(other // side) %}
    let w{{ i }} = coopLoadT<MatrixA>(&weights[({{ at }}) * {{ weight_pitch }}u + {{ i * side // 4 }}u], {{ weight_pitch }}u);
{% for part in range(count) %}
    sum{{ part }} = coopMultiplyAdd(w{{ i }}, coopLoadT<MatrixB>(&tile[values + {{ i * side * pitch + part * side // 4 }}u], {{ pitch }}u), sum{{ part }});
{% endfor %}
{% endfor %}
{% endmacro %}
