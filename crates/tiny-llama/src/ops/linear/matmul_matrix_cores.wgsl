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
// 4. Epilogue. The operation after a product is applied when sums pass through workgroup memory, which saves a kernel.{{ notes }}
enable f16;
enable wgpu_cooperative_matrix;

// Operands are read_write, although they are only read: otherwise a driver would move loads down to their use.
{% include "gpu/wgsl/bindings.wgsl" %}
{{ staged }}
alias MatrixA = coop_mat16x16<f16, A>;
alias MatrixB = coop_mat16x16<f16, B>;
alias Sum = coop_mat16x16<f32, C>;{{ functions }}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
{{ products }}
}
