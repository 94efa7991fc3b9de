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

// Adds every row of the block times every column, for the inner value whose lines are staged from these places on. The
// sums are the block's rows, one after the other, in vectors of four columns.
fn add_value(sums: ptr<function, array<vec4<f32>, {{ sums }}>>, a_at: u32, b_at: u32) {
  {{ lines_of_block }}
  {{ products_of_block }}
}{{ functions }}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  {{ position }}
{{ products }}
}
