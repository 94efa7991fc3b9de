// C = A·B (+ R) in f32. A is rows × inner, B inner × columns; either may be stored transposed.
//
// The plain loop:
//
//   for each row r and column c of C:
//     sum = 0
//     for k in 0..inner:  sum += A[r, k] * B[k, c]
//     C[r, c] = sum + R[r, c]     or another operation on the sum
//
// 1. Tiles. A workgroup computes a tile of C. Each step copies some inner values of the tile's rows of A and columns of B to
//    workgroup memory, where all its invocations read them.
// 2. Blocks. An invocation keeps a block of C in registers, so that each value that it reads from workgroup memory is used for
//    several products. The rows and columns of a block are groups of four, spread over the tile; neighbouring invocations have
//    neighbouring groups.
// 3. Transposing. The inner loop reads four rows of A, or four columns of B, of one inner value. Where inner values are adjacent
//    in memory instead, an invocation reads four lines of four values and transposes them. Both operands then have the inner
//    values of a step in the order 0, 4, 8, …, 1, 5, 9, …
// 4. Early loads. The next step's values are loaded into registers while a step is multiplied.
// 5. Slices. Where C has few tiles, groups of invocations multiply parts of each step, and their sums are added at the end.
// 6. Epilogue. The operation after a product is applied to the sums in registers, which saves another kernel that reads and writes
//    them. For SwiGLU the first half of a tile's columns are gates, the other half the ups that belong to them.

// Operands are declared read_write, although they are only read: otherwise a driver would move their loads down to their use,
// after the products that should hide them.
{% include "gpu/wgsl/bindings.wgsl" %}
// For each inner value of a step a line of A's rows, then for each a line of B's columns; at the end the sums of slices.
var<workgroup> staged: array<vec4<f32>, {{ vectors }}>;
{% set rows = block[0] %}
{% set across = block[1] // 4 %}
{% set stores = products | map(attribute="store.name") %}
{% if "rope" in stores %}
{% include "rope/rotated.wgsl" %}
{% endif %}
{% if "swiglu" in stores or "swiglu_backward" in stores %}
{% include "swiglu/swiglu.wgsl" %}
{% endif %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let place = (id.z * {{ groups[1] }}u + id.y) * {{ groups[0] }}u + id.x;
  // The position of the invocation's block in the tile.
  let slice = lane / {{ per_slice }}u;
  let number = lane % {{ per_slice }}u;
{% if in_fours %}
  // 32 neighbours have 4 × 8 blocks: they read {{ 4 * rows // 4 + 8 * across }} different vectors for an inner value.
  let block_row = number % 32u / 16u * 2u + number % 2u + number / 32u / {{ blocks[1] // 8 }}u * 4u;
  let block_column = number / 2u % 8u + number / 32u % {{ blocks[1] // 8 }}u * 8u;
{% else %}
  let block_row = number / {{ blocks[1] }}u;
  let block_column = number % {{ blocks[1] }}u;
{% endif %}
{% for p in products %}
{% set n = loop.index0 %}
{% set operands = [p.a, p.b] %}
  {{ "if place < " ~ p.end ~ "u " if p.bounded }}{
  let at = place - {{ p.begin }}u;
  let group = vec3<u32>(at % {{ p.groups[0] }}u, at / {{ p.groups[0] }}u % {{ p.groups[1] }}u, at / {{ p.groups[0] * p.groups[1] }}u);

  // The tile of C, and this workgroup's part of the inner dimension.
  let row = group.y * {{ tile[0] }}u;
  let column = group.x * {{ tile[1] }}u;
  let begin = group.z * {{ p.share }}u;
  let end = min(begin + {{ p.share }}u, {{ p.inner }}u);

{% for i in range(rows) %}{% for j in range(across) %}
  var sum{{ i }}_{{ j }} = vec4<f32>();
{% endfor %}{% endfor %}
{% for o in operands %}{% for i in range(o.held) %}
  var {{ o.name }}_next{{ i }} = vec4<f32>();
{% endfor %}{% endfor %}
{# Reads four values into register `to`, `far` lines after the invocation's first line; zeros past the operand's ends. #}
{% macro read(o, to, far) %}
{% if o.gated %}{% set far = far % (o.line * 2) + far // (o.line * 2) * (p.columns // 2) %}{% endif %}
{% set line = o.name ~ "_line + " ~ far ~ "u" ~ (" + next" if not o.transposed) %}
{% set value = o.name ~ "_value" ~ (" + next" if o.transposed) %}
{% if o.width == 4 and o.even %}
      {{ to }} = {{ o.name }}{{ n }}[{{ o.name }}_at + {{ "next / 4u" if o.transposed else "next * " ~ o.stride // 4 ~ "u" }} + {{ far * o.stride // 4 }}u];
{% elif o.width == 4 %}
      {{ to }} = vec4<f32>();
      if {{ line }} < {{ o.lines }} && {{ value }} < {{ o.values }} { {{ to }} = {{ o.name }}{{ n }}[(({{ line }}) * {{ o.stride }}u + {{ value }}) / 4u]; }
{% else %}
      {{ to }} = vec4<f32>();
{% for c in range(4) %}
      if {{ line }} < {{ o.lines }} && {{ value }} + {{ c }}u < {{ o.values }} { {{ to }}[{{ c }}] = {{ o.name }}{{ n }}[({{ line }}) * {{ o.stride }}u + {{ value }} + {{ c }}u]; }
{% endfor %}
{% endif %}
{% endmacro %}
{# Loads this invocation's pieces of the step at `next` into registers: each is one vector, or four that will be transposed. #}
{% macro load(o) %}
{% for share in range(o.shares) %}
    {{ "if lane < " ~ (o.pieces - share * threads) ~ "u " if o.pieces < (share + 1) * threads }}{
{% if o.transposed %}
{% for i in range(4) %}
      {{ read(o, o.name ~ "_next" ~ (share * 4 + i), share * threads // quads * 4 + i) | trim }}
{% endfor %}
{% else %}
      {{ read(o, o.name ~ "_next" ~ share, share * threads // o.line) | trim }}
{% endif %}
    }
{% endfor %}
{% endmacro %}
{# Copies these pieces to workgroup memory. #}
{% macro stage(o) %}
{% for share in range(o.shares) %}
    {{ "if lane < " ~ (o.pieces - share * threads) ~ "u " if o.pieces < (share + 1) * threads }}{
      let piece = lane + {{ share * threads }}u;
{% if o.transposed %}
      let to = {{ o.first }}u + piece % {{ quads }}u * {{ o.pitch }}u + piece / {{ quads }}u;
{% set four = o.name ~ "_next" %}
{% set from = share * 4 %}
{% for v in range(4) %}
      staged[to + {{ v * quads * o.pitch }}u] = vec4<f32>({{ four }}{{ from }}[{{ v }}], {{ four }}{{ from + 1 }}[{{ v }}], {{ four }}{{ from + 2 }}[{{ v }}], {{ four }}{{ from + 3 }}[{{ v }}]);
{% endfor %}
{% else %}
      let inner = piece / {{ o.line }}u;
      let line = {{ "inner % 4u * " ~ quads ~ "u + inner / 4u" if p.reordered else "inner" }};
      staged[{{ o.first }}u + line * {{ o.pitch }}u + piece % {{ o.line }}u] = {{ o.name }}_next{{ share }};
{% endif %}
    }
{% endfor %}
{% endmacro %}
  var next = begin;
{% for o in operands %}
  // The line and the value of this invocation's first piece of {{ o.name | upper }}. Others are a fixed number of lines further.
{% if o.gated %}
{% set half = o.line * 2 %}
  let {{ o.name }}_line = {{ o.outer }} / 2u + lane / {{ quads }}u * 4u % {{ half }}u + lane / {{ quads }}u * 4u / {{ half }}u * {{ p.columns // 2 }}u;
{% elif o.transposed %}
  let {{ o.name }}_line = {{ o.outer }} + lane / {{ quads }}u * 4u;
{% else %}
  let {{ o.name }}_line = lane / {{ o.line }}u;
{% endif %}
  let {{ o.name }}_value = {{ "lane % " ~ quads ~ "u * 4u" if o.transposed else o.outer ~ " + lane % " ~ o.line ~ "u * 4u" }};
{% if o.width == 4 and o.even %}
  let {{ o.name }}_at = ({{ o.name }}_line * {{ o.stride }}u + {{ o.name }}_value) / 4u;
{% endif %}
    {{ load(o) | trim }}
{% endfor %}

  for (var k = begin; k < end; k += {{ step }}u) {
    // Copies registers to workgroup memory.
{% for o in operands %}
    {{ stage(o) | trim }}
{% endfor %}
    workgroupBarrier();

    // Loads the next step's values while this step is multiplied; the last step loads the first one's again.
    next = select(begin, k + {{ step }}u, k + {{ step }}u < end);
{% for o in operands %}
    {{ load(o) | trim }}
{% endfor %}

    // For each inner value, every row of the block times every column.{{ " The text has " ~ unroll ~ " of them: a loop would take longer." if unroll > 1 }}
    for (var value = 0u; value < {{ step // slices }}u; value += {{ unroll }}u) {
      let line = {{ "slice * " ~ step // slices ~ "u + " if slices > 1 }}value;
      let a_first = line * {{ p.a.pitch }}u + block_row;
      let b_first = {{ p.b.first }}u + line * {{ p.b.pitch }}u + block_column;
{% for u in range(unroll) %}
{% for i in range(rows // 4) %}
      let a{{ i }}_{{ u }} = staged[a_first + {{ u * p.a.pitch + i * 4 * p.a.line // rows }}u];
{% endfor %}
{% for j in range(across) %}
      let b{{ j }}_{{ u }} = staged[b_first + {{ u * p.b.pitch + j * p.b.line // across }}u];
{% endfor %}
{% for i in range(rows) %}{% for j in range(across) %}
      sum{{ i }}_{{ j }} = fma(vec4<f32>(a{{ i // 4 }}_{{ u }}[{{ i % 4 }}]), b{{ j }}_{{ u }}, sum{{ i }}_{{ j }});
{% endfor %}{% endfor %}
{% endfor %}
    }
    workgroupBarrier();
  }
{% for half in halves %}

  // The upper half of the first {{ 2 * half }} slices passes its sums to the lower half.
{% set of_slice = per_slice * rows * across %}
  if slice >= {{ half }}u && slice < {{ 2 * half }}u {
{% for i in range(rows) %}{% for j in range(across) %}
    staged[(slice - {{ half }}u) * {{ of_slice }}u + {{ (i * across + j) * per_slice }}u + number] = sum{{ i }}_{{ j }};
{% endfor %}{% endfor %}
  }
  workgroupBarrier();
  if slice < {{ half }}u {
{% for i in range(rows) %}{% for j in range(across) %}
    sum{{ i }}_{{ j }} += staged[slice * {{ of_slice }}u + {{ (i * across + j) * per_slice }}u + number];
{% endfor %}{% endfor %}
  }
  workgroupBarrier();
{% endfor %}

{% if slices > 1 %}
  if slice > 0u { return; }
{% endif %}
  let first = group.z * {{ p.rows * p.columns }}u;
{# Row i of the block and vector j of its columns, and the condition that they are inside C. #}
{% macro r(i) %}row + block_row * 4u + {{ i // 4 * (tile[0] * 4 // rows) + i % 4 }}u{% endmacro %}
{% macro c(j) %}column + block_column * 4u + {{ j * (tile[1] // across) }}u{% endmacro %}
{% macro inside(i, c, columns) %}{{ "if " ~ r(i) ~ " < " ~ p.rows ~ "u && " ~ c ~ " < " ~ columns ~ "u " if p.ragged }}{% endmacro %}
{# Adds R to the sums, or stores them. #}
{% macro outputs(store) %}
{% for i in range(rows) %}{% for j in range(across) %}
{% set sum = "sum" ~ i ~ "_" ~ j %}
{% set at = "first + (" ~ r(i) ~ ") * " ~ p.columns ~ "u + " ~ c(j) %}
{% if p.width == 4 %}
  {{ inside(i, c(j), p.columns) }}{ {{ "out" ~ n ~ "[(" ~ at ~ ") / 4u] = " ~ sum if store else sum ~ " += residual" ~ n ~ "[(" ~ at ~ ") / 4u]" }}; }
{% else %}
{% for e in range(4) %}
  if {{ r(i) }} < {{ p.rows }}u && {{ c(j) }} + {{ e }}u < {{ p.columns }}u { {{ "out" ~ n ~ "[" ~ at ~ " + " ~ e ~ "u] = " ~ sum ~ "[" ~ e ~ "]" if store else sum ~ "[" ~ e ~ "] += residual" ~ n ~ "[" ~ at ~ " + " ~ e ~ "u]" }}; }
{% endfor %}
{% endif %}
{% endfor %}{% endfor %}
{% endmacro %}
{# Loads the gates and ups of row i. #}
{% macro load_gated(i) %}
{% for j in range(across) %}
  var gate{{ i }}_{{ j }} = vec4<f32>();
  var up{{ i }}_{{ j }} = vec4<f32>();
  {{ inside(i, c(j), p.columns) }}{
    let at = (({{ r(i) }}) * {{ p.columns }}u + {{ c(j) }}) / 4u;
    gate{{ i }}_{{ j }} = gated{{ n }}[at];
    up{{ i }}_{{ j }} = gated{{ n }}[at + {{ p.rows * p.columns // 4 }}u];
  }
{% endfor %}
{% endmacro %}
{% if p.store.name == "swiglu" %}
  // Gates, ups and activations, one matrix after the other.
{% set width = p.columns // 2 %}
{% set column = "column / 2u + block_column * 4u" %}
{% for i in range(rows) %}
  {{ inside(i, column, width) }}{
    let at = (({{ r(i) }}) * {{ width }}u + {{ column }}) / 4u;
    out{{ n }}[at] = sum{{ i }}_0;
    out{{ n }}[at + {{ p.rows * width // 4 }}u] = sum{{ i }}_1;
    out{{ n }}[at + {{ p.rows * width // 2 }}u] = swiglu(sum{{ i }}_0, sum{{ i }}_1);
  }
{% endfor %}
{% elif p.store.name == "swiglu_backward" %}
  // Each row's gates and ups are on their way while the row before is stored.
  {{ load_gated(0) | trim }}
{% for i in range(rows) %}
{% if i + 1 < rows %}
  {{ load_gated(i + 1) | trim }}
{% endif %}
{% for j in range(across) %}
{% set of = i ~ "_" ~ j %}
  {{ inside(i, c(j), p.columns) }}{
    let at = (({{ r(i) }}) * {{ 2 * p.columns }}u + {{ c(j) }}) / 4u;
    out{{ n }}[at] = gate_gradient(sum{{ of }}, gate{{ of }}, up{{ of }});
    out{{ n }}[at + {{ p.columns // 4 }}u] = up_gradient(sum{{ of }}, gate{{ of }});
  }
{% endfor %}{% endfor %}
{% elif p.store.name == "rope" %}
{% set of = p.store %}
{% for i in range(rows) %}{% for j in range(across) %}
  if {{ c(j) }} < {{ of.rotated }}u {
    let angle = (({{ r(i) }}) % {{ of.context }}u * {{ of.head_dim // 2 }}u + ({{ c(j) }}) % {{ of.head_dim }}u / 2u) / 2u;
    sum{{ i }}_{{ j }} = rotated(sum{{ i }}_{{ j }}, cos{{ n }}[angle], sin{{ n }}[angle]);
  }
{% endfor %}{% endfor %}
  {{ outputs(true) | trim }}
{% else %}
{% if p.store.name == "onto" %}
  // All of R is read before the first store: a driver that does not know that C is another matrix would wait for each read.
  {{ outputs(false) | trim }}
{% endif %}
  {{ outputs(true) | trim }}
{% endif %}
  }{{ " else" if not loop.last }}
{% endfor %}
}
