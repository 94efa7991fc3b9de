// refused: distance from row to row
// C = A·B, M, N and K multiples of 16: a tile of 16 × 16 outputs for each workgroup, multiplied by matrix cores.

enable f16;
enable wgpu_cooperative_matrix;

const M: u32 = {{M}}u;
const N: u32 = {{N}}u;
const K: u32 = {{K}}u;
const TILE: u32 = 16u;

@group(0) @binding(0) var<storage, read_write> a: array<f32>; // [M, K]
@group(0) @binding(1) var<storage, read_write> b: array<f32>; // [K, N]
@group(0) @binding(2) var<storage, read_write> c: array<f32>; // [M, N]

var<workgroup> tile_a: array<f16, TILE * TILE>; // 16 rows of A, 16 of their columns
var<workgroup> tile_b: array<f16, TILE * TILE>; // 16 rows of B, 16 of their columns

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first_row = group.y * TILE;
    let first_col = group.x * TILE;
    var sum = coop_mat16x16<f32, C>();
    for (var start = 0u; start < K; start += TILE) {
        for (var e = lane; e < TILE * TILE; e += 32u) {
            tile_a[e] = f16(a[(first_row + e / TILE) * K + start + e % TILE]);
            tile_b[e] = f16(b[(start + e / TILE) * N + first_col + e % TILE]);
        }
        workgroupBarrier();
        let left = coopLoadT<coop_mat16x16<f16, A>>(&tile_a[0], TILE / 2u);
        let right = coopLoadT<coop_mat16x16<f16, B>>(&tile_b[0], TILE);
        sum = coopMultiplyAdd(left, right, sum);
        workgroupBarrier();
    }
    coopStoreT(sum, &c[first_row * N + first_col], N);
}
