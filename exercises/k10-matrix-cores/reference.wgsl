// What is asked, as a plain loop: C = A·B, operands rounded to f16, sums in f32. Matrix cores may cut a sum off in place of rounding it.

enable f16;

const M: u32 = {{M}}u;
const N: u32 = {{N}}u;
const K: u32 = {{K}}u;

@group(0) @binding(0) var<storage, read_write> a: array<f32>; // [M, K]
@group(0) @binding(1) var<storage, read_write> b: array<f32>; // [K, N]
@group(0) @binding(2) var<storage, read_write> c: array<f32>; // [M, N]

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y * K;
    var sum = 0.0;
    for (var k = 0u; k < K; k++) {
        sum += f32(f16(a[row + k])) * f32(f16(b[k * N + id.x]));
    }
    c[id.y * N + id.x] = sum;
}
