{% set halves = texts[0].halves %}
{% set stores = texts | map(attribute="store.name") | list %}
{% set has_norm = texts | selectattr("norm_parts") | list %}
// C = A·B (+ R) on matrix cores: f16 operands, f32 sums. A is rows × inner, B inner × columns; either may be stored
// transposed. The plain loop:
//
//   for each row r and column c of C:
//     sum = 0
//     for k in 0..inner:  sum += A[r, k] * B[k, c]
//     C[r, c] = sum + R[r, c]     or another operation on the sum
//
// 1. Blocks. A workgroup computes a block of C. Each step copies some inner values of A and B to workgroup memory.
// 2. Matrix instructions. A subgroup keeps a grid of 16×16 sums. `coopMultiplyAdd` adds the product of two matrices.
// 3. Early loads. The next step's values are loaded into registers while a step is multiplied.
// 4. Epilogue. The operation after a product is applied when sums pass through workgroup memory, which saves a kernel.
{% set notes = [] %}
{% if texts | selectattr("sliced") | list %}
{% set notes = notes + ["Slices. Two groups of subgroups compute a block from different inner values of each step. Their sums are added."] %}
{% endif %}
{% if has_norm %}
{% set notes = notes + ["Norm. A is x·gain. A block multiplies its rows by r = 1/rms of x, and stores a share of the norm, x·gain·r."] %}
{% endif %}
{% if halves %}
{% set notes = notes + ["Halves. An f32 operand becomes two f16, x·scale = high + low, and A·B = high·high + high·low + low·high."] %}
{% endif %}
{% for note in notes %}
// {{ loop.index + 4 }}. {{ note }}
{% endfor %}
enable f16;
enable wgpu_cooperative_matrix;

// Operands are read_write, although they are only read: otherwise a driver would move loads down to their use.
{% include "gpu/wgsl/bindings.wgsl" %}
// A step's rows of A and columns of B, padded against bank conflicts.
{% for name in ["a", "b"] %}{% for part in texts[0].parts %}
var<workgroup> {{ name }}_{{ part }}: array<vec4<f16>, {{ texts | map(attribute=name ~ ".size") | max }}>;
{% endfor %}{% endfor %}
{% if halves %}
// The largest magnitudes of A and of B, as bits. Two of the four elements are padding: the matrices after this array
// then start at multiples of 16 bytes, which their loads need.
var<workgroup> bits: array<atomic<u32>, 4>;
{% endif %}
{% if texts | selectattr("by_vectors") | list %}
// A tile of C for each subgroup{{ "; before, 1/rms of the block's rows" if has_norm }}.
var<workgroup> tiles: array<vec4<f32>, {{ 2 * texts[0].threads }}>;
{% endif %}
{% set files = ["rope/rotated.wgsl"] if "rope" in stores else [] %}
{% set files = files + ["swiglu/activation.wgsl"] if "swiglu" in stores else files %}
{% set files = files + ["swiglu/gradients.wgsl"] if "swiglu_backward" in stores else files %}
{% set files = files + ["rms_norm/in_f16.wgsl"] if texts | selectattr("for_norm") | list else files %}
{% set files = files + ["linear/matmul_matrix_cores_halves.wgsl"] if halves else files %}
alias MatrixA = coop_mat16x16<f16, A>;
alias MatrixB = coop_mat16x16<f16, B>;
alias Sum = coop_mat16x16<f32, C>;
{%- for file in files %}


{% include file %}
{%- endfor %}
{{- functions }}

@compute @workgroup_size({{ texts[0].threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
{{ products }}
}
