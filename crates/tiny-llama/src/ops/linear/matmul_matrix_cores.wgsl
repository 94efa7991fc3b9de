// C = A·B (+ R) on matrix cores: f16 operands, f32 sums. A is rows × inner, B inner × columns; either may be stored
// transposed. The plain loop:
//
//   for each row r and column c of C:
//     sum = 0
//     for k in 0..inner:  sum += A[r, k] * B[k, c]
//     C[r, c] = sum + R[r, c]
//
// 1. Blocks. A workgroup computes a block of C. Each step copies some inner values of its rows of A and columns of B to
//    workgroup memory, where all its subgroups read them.
// 2. Matrix instructions. `coopMultiplyAdd` multiplies two 16×16 matrices and adds the product to a third. A subgroup
//    holds a grid of such sums in its registers.
// 3. Early loads. While a step is multiplied, the next step's values are loaded into registers.
// 4. Epilogue. The operation after a product is applied to four adjacent values of a row when they pass through
//    workgroup memory, which saves a kernel and its memory.
// 5. Slices. Two groups of subgroups may compute the same block from different inner values of each step. The epilogue
//    adds their sums.
// 6. Norm. A norm is y = x·gain·r with r = 1/rms of each row. The operation before stores x·gain and the sums of
//    squares of its rows. This product multiplies x·gain, and then the rows of the result by r. Each block writes a
//    share of y.
// 7. Halves. An f32 operand becomes two f16, x·scale = high + low, and A·B = high·high + high·low + low·high.
enable f16;
enable wgpu_cooperative_matrix;

// Operands are read_write, although they are only read: otherwise a driver would move loads down to their use.
{% include "gpu/wgsl/bindings.wgsl" %}
{# The staged matrices of an operand. The product that needs the most determines the sizes. #}
{% set parts = ["high", "low"] if halves else ["high"] %}
{% for name in ["a", "b"] %}{% for part in parts %}
var<workgroup> {{ name }}_{{ part }}: array<vec4<f16>, {{ products | map(attribute=name ~ ".vectors") | max }}>;
{% endfor %}{% endfor %}
{% if halves %}
// The largest magnitudes of A and of B, as bits. Two of the four elements are padding: the matrices after this array
// then start at multiples of 16 bytes, which their loads need.
var<workgroup> bits: array<atomic<u32>, 4>;
{% endif %}
{% if by_vectors %}
// A tile of C for each subgroup{{ "; before, 1/rms of the block's rows" if products | selectattr("norm_parts") | list }}.
var<workgroup> tiles: array<vec4<f32>, {{ 64 * threads // 32 }}>;
{% endif %}
{% set stores = products | map(attribute="store.name") %}
{% if "rope" in stores %}
{% include "rope/rotated.wgsl" %}

{% endif %}
{% if "swiglu" in stores or "swiglu_backward" in stores %}
{% include "swiglu/swiglu.wgsl" %}

{% endif %}
{% for p in products if p.store.name == "onto" and p.store.for_norm %}
{% include "rms_norm/in_f16.wgsl" %}

{% endfor %}
{# What an epilogue does with four values of row r from column c on, and what it reads there. #}
{% for p in products if p.by_vectors %}
{% set n = p.n %}
{% set width = p.columns // 2 if p.store.name == "swiglu" else p.columns %}
{% set inside = "if r < " ~ p.rows ~ "u && c < " ~ width ~ "u " if p.ragged else "" %}
{% if p.store.name == "onto" %}
// Four values of R.
fn added_at{{ n }}(r: u32, c: u32) -> vec4<f32> {
  var value = vec4<f32>();
  {{ inside }}{ value = residual{{ n }}[(r * {{ width }}u + c) / 4u]; }
  return value;
}

{% elif p.store.name == "swiglu_backward" %}
// Four gates or ups, whose matrix begins at `first`.
fn gated_at{{ n }}(first: u32, r: u32, c: u32) -> vec4<f16> {
  var value = vec4<f16>();
  {{ inside }}{ value = gated{{ n }}[first + (r * {{ width }}u + c) / 4u]; }
  return value;
}

{% endif %}
{% if p.store.name == "rope" %}
// Rotates four values of C and stores them.
fn put{{ n }}(r: u32, c: u32, value: vec4<f32>) {
  {{ inside }}{
    var turned = value;
    if c < {{ p.store.rotated }}u {
      let angle = (r % {{ p.store.context }}u * {{ p.store.head_dim // 2 }}u + c % {{ p.store.head_dim }}u / 2u) / 2u;
      turned = rotated(value, cos{{ n }}[angle], sin{{ n }}[angle]);
    }
    out{{ n }}[(r * {{ width }}u + c) / 4u] = vec4<f16>(turned);
  }
}
{% elif p.store.name == "swiglu" %}
// Stores four gates, their ups and activations: one matrix after the other.
fn put{{ n }}(r: u32, c: u32, gate: vec4<f32>, up: vec4<f32>) {
  {{ inside }}{
    let at = (r * {{ width }}u + c) / 4u;
    out{{ n }}[at] = vec4<f16>(gate);
    out{{ n }}[at + {{ p.rows * width // 4 }}u] = vec4<f16>(up);
    out{{ n }}[at + {{ p.rows * width // 2 }}u] = vec4<f16>(swiglu(gate, up));
  }
}
{% elif p.store.name == "swiglu_backward" %}
// Stores the gradients of four gates and of their ups, from those of the activations.
fn put{{ n }}(r: u32, c: u32, d: vec4<f32>, gate: vec4<f32>, up: vec4<f32>) {
  {{ inside }}{
    let at = (r * {{ 2 * width }}u + c) / 4u;
    out{{ n }}[at] = vec4<f16>(gate_gradient(d, gate, up));
    out{{ n }}[at + {{ width // 4 }}u] = vec4<f16>(up_gradient(d, gate));
  }
}
{% elif p.store.name == "onto" and p.store.for_norm %}
// Stores four values of C, and times the gain of the norm that follows; returns the sum of their squares.
fn put{{ n }}(r: u32, c: u32, value: vec4<f32>, gain: vec4<f32>) -> f32 {
  var squares = 0.0;
  {{ inside }}{
    let at = (r * {{ width }}u + c) / 4u;
    out{{ n }}[at] = value;
    scaled{{ n }}[at] = in_f16(value * gain);
    squares = dot(value, value);
  }
  return squares;
}
{% else %}
// Stores four values of C, or of a part of it.
fn put{{ n }}(part: u32, r: u32, c: u32, value: vec4<f32>) {
  {{ inside }}{ out{{ n }}[part * {{ p.rows * width // 4 }}u + (r * {{ width }}u + c) / 4u] = value; }
}
{% endif %}

{% endfor %}
@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let place = (id.z * {{ groups[1] }}u + id.y) * {{ groups[0] }}u + id.x;
{% for p in products %}
{% set n = p.n %}
{% set down = p.tiles[0] %}
{% set across = p.tiles[1] %}
{% set operands = [p.a, p.b] %}
{% set sliced = p.slices > 1 %}
{% set for_norm = p.store.name == "onto" and p.store.for_norm %}
{% set of_slice = p.subgroups[0] * p.subgroups[1] %}
{# The halves of a tile of which an invocation stores four values: one in each slice. #}
{% set halves_of_tile = ["team"] if sliced else ["0u", "1u"] %}
  {{ "if place < " ~ p.end ~ "u " if p.bounded }}{
  let at = place - {{ p.begin }}u;
  let group = vec3<u32>(at % {{ p.groups[0] }}u, at / {{ p.groups[0] }}u % {{ p.groups[1] }}u, at / {{ p.groups[0] * p.groups[1] }}u);

  // The block of C, this subgroup's tiles in it, and the part of the inner dimension.
  let row = group.y * {{ p.block[0] }}u;
  let column = group.x * {{ p.block[1] }}u;
  let subgroup = lane / 32u{{ " % " ~ of_slice ~ "u" if sliced }};
{% if sliced %}
  let team = lane / {{ 32 * of_slice }}u;
{% endif %}
  let a_first = subgroup / {{ p.subgroups[1] }}u * {{ down * 16 }}u;
  let b_first = subgroup % {{ p.subgroups[1] }}u * {{ across * 16 }}u;
  let target_first = group.z * {{ p.rows * p.columns }}u + (row + a_first) * {{ p.columns }}u + column + b_first;
{% if halves %}

  // If the largest magnitude has exponent e, the scale is 2^(14 - e), which brings it just below f16's largest number.
  if lane < 2u { atomicStore(&bits[lane], 0u); }
  workgroupBarrier();
{% for o in operands %}
  for (var i = {{ o.largest.start }}u + lane; i < {{ o.largest.end }}u; i += {{ threads }}u) { atomicMax(&bits[{{ loop.index0 }}], bitcast<u32>(largest[i])); }
{% endfor %}
  workgroupBarrier();
{% for o in operands %}
  let {{ o.name }}_exponent = clamp(atomicLoad(&bits[{{ loop.index0 }}]) >> 23u, 15u, 254u);
  let {{ o.name }}_scale = bitcast<f32>((268u - {{ o.name }}_exponent) << 23u);
  let {{ o.name }}_inverse = bitcast<f32>(({{ o.name }}_exponent - 14u) << 23u);
{% endfor %}
{% endif %}

{% for i in range(down) %}{% for j in range(across) %}
  var sum{{ i }}_{{ j }} = coop_mat16x16<f32, C>();
{% endfor %}{% endfor %}
  let begin = group.z * {{ p.share }}u;
  let end = min(begin + {{ p.share }}u, {{ p.inner }}u);
  var next = begin;
{# Reads this invocation's vectors of the step at `next` into registers; zeros past the operand's ends. #}
{% macro fetch(o) %}
{% for load in range(o.loads) %}
{% set further = load * o.lines_of_load %}
{% if o.in_turns %}{% set further = further // 32 * 16 + further % 16 + further // 16 % 2 * (o.whole[0] // 2) %}{% endif %}
{% set at_step = "next * " ~ o.whole[1] // 4 ~ "u" if o.inner_lines else "next / 4u" %}
{% set read = o.name ~ n ~ "[" ~ o.name ~ "_at + " ~ at_step ~ " + " ~ further * o.whole[1] // 4 ~ "u]" %}
{% if o.even %}
    {{ o.name }}_{{ load }} = {{ read }};
{% else %}
    {{ o.name }}_{{ load }} = {{ o.vector }}();
    if {{ o.name }}_line + {{ further }}u{{ " + next" if o.inner_lines }} < {{ o.whole[0] }}u && {{ o.name }}_value{{ " + next" if not o.inner_lines }} < {{ o.whole[1] }}u { {{ o.name }}_{{ load }} = {{ read }}; }
{% endif %}
{% endfor %}
{% endmacro %}
{% for o in operands %}

  // This invocation's first vector of {{ o.name | upper }} in a step: its line, the same in the matrix, its value, and its places in
  // memory and in workgroup memory. The others are {{ o.lines_of_load }}, {{ 2 * o.lines_of_load }}, … lines further.
{% if o.across == 8 %}
  // Lines of 64 bytes that are stored together are four apart, because neighbours share banks.
{% endif %}
  let {{ o.name }}_staged = {{ "lane / 64u * 8u + lane / 16u % 4u + lane / 8u % 2u * 4u" if o.across == 8 else "lane / " ~ o.across ~ "u" }};
{% if o.in_turns %}
  // 16 gates, then the 16 ups that belong to them, and so on: a subgroup has both.
  let {{ o.name }}_line = {{ o.outer }} / 2u + {{ o.name }}_staged % 16u + {{ o.name }}_staged / 16u % 2u * {{ o.whole[0] // 2 }}u;
{% else %}
  let {{ o.name }}_line = {{ o.outer ~ " + " if not o.inner_lines }}{{ o.name }}_staged;
{% endif %}
  let {{ o.name }}_value = {{ o.outer ~ " + " if o.inner_lines }}lane % {{ o.across }}u * 4u;
  let {{ o.name }}_at = ({{ o.name }}_line * {{ o.whole[1] }}u + {{ o.name }}_value) / 4u;
  let {{ o.name }}_to = {{ o.name }}_staged * {{ o.pitch }}u + lane % {{ o.across }}u;
{% for load in range(o.loads) %}
  var {{ o.name }}_{{ load }} = {{ o.vector }}();
{% endfor %}
  {{ fetch(o) | trim }}
{% endfor %}
{% if p.norm_parts %}
{% set share = (p.inner // 4 + p.groups[0] - 1) // p.groups[0] %}
{% set loads = (p.block[0] * share + threads - 1) // threads %}

  // 1/rms of the block's rows, and this block's share of y. Its loads do not wait for 1/rms.
{% for load in range(loads) %}
{% set at = "(lane + " ~ load * threads ~ "u)" %}
  let y_line{{ load }} = {{ at }} / {{ share }}u;
  let y_column{{ load }} = group.x * {{ share }}u + {{ at }} % {{ share }}u;
  let y_at{{ load }} = (row + y_line{{ load }}) * {{ p.inner // 4 }}u + y_column{{ load }};
  let y_inside{{ load }} = y_line{{ load }} < {{ p.block[0] }}u && y_column{{ load }} < {{ p.inner // 4 }}u{{ " && row + y_line" ~ load ~ " < " ~ p.rows ~ "u" if p.ragged }};
  var y_value{{ load }} = vec4<f16>();
  if y_inside{{ load }} { y_value{{ load }} = a{{ n }}[y_at{{ load }}]; }
{% endfor %}
  if lane < {{ p.block[0] }}u {
    let of_row = {{ "min(row + lane, " ~ (p.rows - 1) ~ "u)" if p.ragged else "row + lane" }};
    let squares = {% for part in range(p.norm_parts) %}{{ " + " if part > 0 }}squares_of_a{{ n }}[of_row + {{ part * p.rows }}u]{% endfor %};
    let r = 1.0 / sqrt(squares / {{ p.inner }}.0 + {{ eps }});
    tiles[lane] = vec4<f32>(r);
    if group.x == 0u{{ " && row + lane < " ~ p.rows ~ "u" if p.ragged }} { inverse{{ n }}[of_row] = r; }
  }
  workgroupBarrier();
{% for i in range(down) %}{% for part in halves_of_tile %}
  let inverse{{ i }}_{{ part }} = tiles[a_first + {{ i * 16 }}u + {{ part }} * 8u + lane % 32u / 4u].x;
{% endfor %}{% endfor %}
{% for load in range(loads) %}
  if y_inside{{ load }} { normed{{ n }}[y_at{{ load }}] = vec4<f16>(vec4<f32>(y_value{{ load }}) * tiles[y_line{{ load }}].x); }
{% endfor %}
{% endif %}

  loop {
    // Copies registers to workgroup memory.
{% for o in operands %}
{% for load in range(o.loads) %}
{% set to = o.name ~ "_to + " ~ load * o.lines_of_load * o.pitch ~ "u" %}
{% if halves %}
    // `high` gets the 11 leading bits of the significand, as many as f16 has. Drivers would remove a conversion to f16
    // and back.
    { let value = {{ o.name }}_{{ load }} * {{ o.name }}_scale;
      let high = bitcast<vec4<f32>>(bitcast<vec4<u32>>(value) & vec4<u32>(0xffffe000u));
      {{ o.name }}_high[{{ to }}] = vec4<f16>(high);
      {{ o.name }}_low[{{ to }}] = vec4<f16>(value - high); }
{% else %}
    {{ o.name }}_high[{{ to }}] = vec4<f16>({{ o.name }}_{{ load }});
{% endif %}
{% endfor %}
{% endfor %}
{% set early = threads == 128 and not halves %}
{% if not early %}
    workgroupBarrier();
{% endif %}

    // Fetches the next step's values while this step is multiplied; the last step fetches the first one's again.
{% if early %}
    // They are on their way before the barrier, while another workgroup of the multiprocessor may multiply.
{% endif %}
    next = select(begin, next + {{ p.step }}u, next + {{ p.step }}u < end);
{% for o in operands %}
    {{ fetch(o) | trim }}
{% endfor %}
{% if early %}
    workgroupBarrier();
{% endif %}

    // A loop, so that drivers do not write out several rounds of the loop around it: kernels alternate in training, and
    // a long program waits for its instructions.
{% set inners = [0, 16] if halves else [0] %}
{% set inner_step = 16 * inners | length %}
    for (var slice = {{ "team * " ~ inner_step ~ "u" if sliced else "0u" }}; slice < {{ p.step }}u; slice += {{ inner_step * p.slices }}u) {
{# Matrix `index` of 16 lines of an operand, at inner value `inner` + slice. `coopLoadT` loads a matrix stored row by row. #}
{% macro load(o, half, index, inner) %}
{% set outer = "(" ~ o.name ~ "_first + " ~ index * 16 ~ "u)" %}
{% set inner_at = "(" ~ inner ~ "u + slice)" %}
{% if o.inner_lines %}{% set at = inner_at ~ " * " ~ o.pitch ~ "u + " ~ outer ~ " / 4u" %}{% else %}{% set at = outer ~ " * " ~ o.pitch ~ "u + " ~ inner_at ~ " / 4u" %}{% endif %}
      let {{ o.name }}_{{ half }}{{ index }}_{{ inner }} = {{ "coopLoadT" if o.by_rows else "coopLoad" }}<coop_mat16x16<f16, {{ o.role }}>>(&{{ o.name }}_{{ half }}[{{ at }}], {{ o.pitch }}u);
{% endmacro %}
{% for half in parts %}{% for i in range(down) %}{% for inner in inners %}
      {{ load(p.a, half, i, inner) | trim }}
{% endfor %}{% endfor %}{% endfor %}
{% for j in range(across) %}
{% for half in parts %}{% for inner in inners %}
      {{ load(p.b, half, j, inner) | trim }}
{% endfor %}{% endfor %}
{% for i in range(down) %}
{% set sum = "sum" ~ i ~ "_" ~ j %}
{% if halves %}
      {{ sum }} = {{ sum }} + coopMultiplyAdd(a_high{{ i }}_16, b_high{{ j }}_16, coopMultiplyAdd(a_high{{ i }}_16, b_low{{ j }}_16,
        coopMultiplyAdd(a_low{{ i }}_16, b_high{{ j }}_16, coopMultiplyAdd(a_high{{ i }}_0, b_high{{ j }}_0,
        coopMultiplyAdd(a_high{{ i }}_0, b_low{{ j }}_0, coopMultiplyAdd(a_low{{ i }}_0, b_high{{ j }}_0,
        coop_mat16x16<f32, C>()))))));
{% else %}
      {{ sum }} = coopMultiplyAdd(a_high{{ i }}_0, b_high{{ j }}_0, {{ sum }});
{% endif %}
{% endfor %}
{% endfor %}
    }
    workgroupBarrier();
    if next == begin { break; }
  }

  // Stores the sums in C after undoing the scale.
{% if for_norm %}
{% for i in range(down) %}{% for part in halves_of_tile %}
  var squares{{ i }}_{{ part }} = 0.0;
{% endfor %}{% endfor %}
{% for j in range(across) %}
{% set at = "(column + b_first) / 4u + " ~ j * 4 ~ "u + lane % 4u" %}
  let gain_{{ j }} = gain{{ n }}[{{ "min(" ~ at ~ ", " ~ (p.columns // 4 - 1) ~ "u)" if p.ragged else at }}];
{% endfor %}
{% endif %}
{% if p.by_vectors %}
  let first_row = row + a_first + lane % 32u / 4u;
  let first_column = {{ "(column + b_first) / 2u" if p.store.name == "swiglu" else "column + b_first" }} + lane % 4u * 4u;
{% endif %}
{% macro place(i, j, part) %}first_row + {{ i * 16 }}u + {{ part }} * 8u, first_column + {{ j * 16 }}u{% endmacro %}
{# Stores values {{ i }}, {{ j }} of C. #}
{% macro put(i, j, part) %}
{% set value = "value" ~ i ~ "_" ~ j ~ "_" ~ part %}
{% set of = i ~ "_" ~ j ~ "_" ~ part %}
{% if p.store.name == "rope" %}
  put{{ n }}({{ place(i, j, part) }}, {{ value }});
{% elif p.store.name == "swiglu" %}
  put{{ n }}({{ place(i, j // 2, part) }}, value{{ i }}_{{ j - 1 }}_{{ part }}, {{ value }});
{% elif p.store.name == "swiglu_backward" %}
  put{{ n }}({{ place(i, j, part) }}, {{ value }}, vec4<f32>(gate{{ of }}), vec4<f32>(up{{ of }}));
{% elif for_norm %}
  squares{{ i }}_{{ part }} += put{{ n }}(
    {{ place(i, j, part) }}, {{ value }} + added{{ of }}, gain_{{ j }});
{% else %}
  put{{ n }}(group.z, {{ place(i, j, part) }}, {{ value }}{{ " + added" ~ of if p.store.name == "onto" }});
{% endif %}
{% endmacro %}
{# Loads what a row of tiles is stored with: while one row is stored, the next one's values are on their way. #}
{% set with_loads = p.by_vectors and p.store.name in ["onto", "swiglu_backward"] %}
{% macro load_row(i) %}
{% for j in range(across) %}{% for part in halves_of_tile %}
{% set of = i ~ "_" ~ j ~ "_" ~ part %}
{% if p.store.name == "onto" %}
  let added{{ of }} = added_at{{ n }}({{ place(i, j, part) }});
{% else %}
  let gate{{ of }} = gated_at{{ n }}(0u, {{ place(i, j, part) }});
  let up{{ of }} = gated_at{{ n }}({{ p.rows * p.columns // 4 }}u, {{ place(i, j, part) }});
{% endif %}
{% endfor %}{% endfor %}
{% endmacro %}
{% if with_loads %}
  {{ load_row(0) | trim }}
{% endif %}
{% for i in range(down) %}
{% if with_loads and i + 1 < down %}
  {{ load_row(i + 1) | trim }}
{% endif %}
{% for j in range(across) %}
{% set sum = "sum" ~ i ~ "_" ~ j %}
{% set at = "target_first + " ~ (i * 16 * p.columns + j * 16) ~ "u" %}
{% if halves %}
  {{ sum }} = {{ sum }} * a_inverse * b_inverse;
{% endif %}
{% if p.by_vectors %}
  coopStoreT({{ sum }}, &tiles[lane / 32u * 64u], 4u); workgroupBarrier();
{% for part in halves_of_tile %}
{% set at = "tiles[subgroup * 64u + " ~ part ~ " * 32u + lane % 32u" %}
{% set by = " * inverse" ~ i ~ "_" ~ part if p.norm_parts else "" %}
  let value{{ i }}_{{ j }}_{{ part }} = {{ "(" ~ at ~ "]\n    + " ~ at ~ " + " ~ 64 * of_slice ~ "u])" if sliced else at ~ "]" }}{{ by }};
{% endfor %}
  workgroupBarrier();
{% if p.store.name != "swiglu" or j % 2 == 1 %}
{% for part in halves_of_tile %}
  {{ put(i, j, part) | trim }}
{% endfor %}
{% endif %}
{% else %}
{% if p.store.name == "onto" %}
  {{ sum }} = {{ sum }} + coopLoadT<coop_mat16x16<f32, C>>(&residual{{ n }}[{{ at }}], {{ p.columns }}u);
{% endif %}
  coopStoreT({{ sum }}, &out{{ n }}[{{ at }}], {{ p.columns }}u);
{% endif %}
{% endfor %}{% endfor %}
{% if for_norm %}
{% set count = halves_of_tile | length %}

  // Σ C² of the block's rows, each from the four invocations of {{ p.subgroups[1] }} subgroups that have a part of it.
{% for first in range(0, down * count, 4) %}
  tiles[lane + {{ first // 4 * threads }}u] = vec4<f32>({% for i in range(first, first + 4) %}{{ ", " if i > first }}{{ "squares" ~ i // count ~ "_" ~ halves_of_tile[i % count] if i < down * count else "0.0" }}{% endfor %});
{% endfor %}
  workgroupBarrier();
  if lane < {{ p.block[0] }}u{{ " && row + lane < " ~ p.rows ~ "u" if p.ragged }} {
    let half = lane % 16u / 8u;
    let which = lane % {{ 16 * down }}u / 16u{{ " * 2u + half" if not sliced }};
    let first = ({{ "half * " ~ of_slice ~ "u + " if sliced }}lane / {{ 16 * down }}u * {{ p.subgroups[1] }}u) * 32u + lane % 8u * 4u;
    var squares = 0.0;
    for (var i = 0u; i < {{ 4 * p.subgroups[1] }}u; i += 1u) {
      squares += tiles[first + i / 4u * 32u + i % 4u + which / 4u * {{ threads }}u][which % 4u];
    }
    squares{{ n }}[group.x * {{ p.rows }}u + row + lane] = squares;
  }
{% endif %}
  }{{ " else" if not loop.last }}
{% endfor %}
}
