// C = A·B (+ R) in f32. A is rows × inner, B inner × columns; either may be stored transposed. The plain loop:
//
//   for each row r and column c of C:
//     sum = 0
//     for k in 0..inner:  sum += A[r, k] * B[k, c]
//     C[r, c] = sum + R[r, c]     or another operation on the sum
//
// 1. Tiles. A workgroup computes a tile of C. Each step copies some inner values of its rows of A and columns of B to
//    workgroup memory, where all its invocations read them.
// 2. Blocks. An invocation keeps a block of C in registers, so that each value that it reads is used several times. A
//    block has groups of four rows and columns, spread over the tile; neighbouring invocations have neighbouring ones.
// 3. Transposing. Where inner values are adjacent in memory, an invocation loads and transposes four lines of four. A
//    step then has its inner values in the order 0, 4, 8, …, 1, 5, 9, …
// 4. Early loads. The next step's values are loaded into registers while a step is multiplied.
// 5. Slices. Where C has few tiles, groups of invocations multiply parts of each step. Their sums are added at the end.
// 6. Epilogue. The operation after a product is applied to the sums in registers, which saves a kernel and its memory.

// Operands are read_write, although they are only read: otherwise a driver would move loads down to their use.
{% include "gpu/wgsl/bindings.wgsl" %}
// A line of A's rows for each inner value of a step, then the lines of B's columns; at the end the sums of slices.
var<workgroup> staged: array<vec4<f32>, {{ vectors }}>;

{% set sums = rows_of_block * across %}
// Adds every row of the block times every column, for the inner value whose lines are staged from these places on. The
// sums are the block's rows, one after the other, in vectors of four columns.
fn add_value(sums: ptr<function, array<vec4<f32>, {{ sums }}>>, a_at: u32, b_at: u32) {
{% filter flow %}
{% for i in range(rows_of_block // 4) %}
  let rows{{ i }} = staged[a_at + {{ i * strides[0] }}u];
{% endfor %}
{% for j in range(across) %}
  let columns{{ j }} = staged[b_at + {{ j * strides[1] }}u];
{% endfor %}
{% endfilter +%}
{% filter flow %}
{% for row in range(rows_of_block) %}{% for vector in range(across) %}
{% set sum = "(*sums)[" ~ (row * across + vector) ~ "]" %}
  {{ sum }} = fma(vec4<f32>(rows{{ row // 4 }}.{{ ["x", "y", "z", "w"][row % 4] }}), columns{{ vector }}, {{ sum }});
{% endfor %}{% endfor %}
{% endfilter +%}
}
{%- set stores = texts | map(attribute="store.name") | list %}
{% set files = ["rope/rotated.wgsl"] if "rope" in stores else [] %}
{% set files = files + ["swiglu/swiglu.wgsl"] if "swiglu" in stores or "swiglu_backward" in stores else files %}
{% for file in files %}


{% include file %}
{%- endfor %}
{% if slices > 1 %}


// Copies the sums of a slice to workgroup memory, and adds those of another slice.
fn put_sums(sums: ptr<function, array<vec4<f32>, {{ sums }}>>, at: u32) {
{% filter flow %}
{% for sum in range(sums) %}
  staged[at + {{ sum * slice_threads }}u] = (*sums)[{{ sum }}];
{% endfor %}
{% endfilter +%}
}
fn add_sums(sums: ptr<function, array<vec4<f32>, {{ sums }}>>, at: u32) {
{% filter flow %}
{% for sum in range(sums) %}
  (*sums)[{{ sum }}] += staged[at + {{ sum * slice_threads }}u];
{% endfor %}
{% endfilter +%}
}
{%- endif %}
{% if texts | selectattr("is_reordered") | list %}


// The line of an inner value of a step.
fn line_of(inner: u32) -> u32 { return inner % 4u * {{ step // 4 }}u + inner / 4u; }
{%- endif %}
{{- functions }}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
{% if slices > 1 %}
  let slice = lane / {{ slice_threads }}u;
  let number = lane % {{ slice_threads }}u;
{% else %}
  let number = lane;
{% endif %}
{% if blocks[0] % 4 == 0 and blocks[1] % 8 == 0 %}
{# 32 neighbours have 4 × 8 blocks, so that they read few different vectors for an inner value. #}
{% set wide = blocks[1] // 8 %}
  let block_row = number % 32u / 16u * 2u + number % 2u + number / 32u / {{ wide }}u * 4u;
  let block_column = number / 2u % 8u + number / 32u % {{ wide }}u * 8u;
{% else %}
  let block_row = number / {{ blocks[1] }}u;
  let block_column = number % {{ blocks[1] }}u;
{% endif %}
{{ products }}
}
