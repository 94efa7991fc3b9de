// C = A·B, one output element for each invocation. Right, but slow: every number of A and B is fetched again for every
// product it is in.

const M: u32 = {{M}}u;
const N: u32 = {{N}}u;
const K: u32 = {{K}}u;
const TILE: u32 = 16u;

@group(0) @binding(0) var<storage, read_write> a: array<f32>; // [M, K]
@group(0) @binding(1) var<storage, read_write> b: array<f32>; // [K, N]
@group(0) @binding(2) var<storage, read_write> c: array<f32>; // [M, N]

// FILL ME IN (about 18 lines): give the workgroup a tile of A and a tile of B in var<workgroup> memory. Loop over K one
// tile at a time: load, barrier, multiply from the tiles, barrier. Past an edge load 0; do not return before a barrier.

@compute @workgroup_size(TILE, TILE)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y;
    let col = id.x;
    if (row >= M || col >= N) {
        return;
    }
    var sum = 0.0;
    for (var k = 0u; k < K; k += 1u) {
        sum += a[row * K + k] * b[k * N + col];
    }
    c[row * N + col] = sum;
}
