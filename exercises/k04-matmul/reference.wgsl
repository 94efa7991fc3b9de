// What is asked, as a plain loop: C = A·B. The products of an element may be added in any order.

const M: u32 = {{M}}u;
const N: u32 = {{N}}u;
const K: u32 = {{K}}u;

@group(0) @binding(0) var<storage, read_write> a: array<f32>; // [M, K]
@group(0) @binding(1) var<storage, read_write> b: array<f32>; // [K, N]
@group(0) @binding(2) var<storage, read_write> c: array<f32>; // [M, N]

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= N || id.y >= M) {
        return;
    }
    let row = id.y * K;
    var sum = 0.0;
    for (var k = 0u; k < K; k++) {
        sum += a[row + k] * b[k * N + id.x];
    }
    c[id.y * N + id.x] = sum;
}
