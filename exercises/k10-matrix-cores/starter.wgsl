// C = A·B, M, N and K multiples of 16: a tile of 16 × 16 outputs for each workgroup. Operands are rounded to f16, sums are
// f32. Right, but slow: each invocation has 8 outputs, and multiplies number by number.

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

// FILL ME IN (about 8 lines): replace the loop over k and the array of sums by three matrices that the 32 invocations hold
// together. coopLoadT reads one from workgroup memory, coopMultiplyAdd(left, right, sum) is left·right + sum, and coopStoreT
// writes one to c.

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first_row = group.y * TILE;
    let first_col = group.x * TILE;
    var sums: array<f32, 8>;
    for (var start = 0u; start < K; start += TILE) {
        for (var e = lane; e < TILE * TILE; e += 32u) {
            tile_a[e] = f16(a[(first_row + e / TILE) * K + start + e % TILE]);
            tile_b[e] = f16(b[(start + e / TILE) * N + first_col + e % TILE]);
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i += 1u) {
            let e = lane + 32u * i;
            for (var k = 0u; k < TILE; k += 1u) {
                sums[i] += f32(tile_a[e / TILE * TILE + k]) * f32(tile_b[k * TILE + e % TILE]);
            }
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < 8u; i += 1u) {
        let e = lane + 32u * i;
        c[(first_row + e / TILE) * N + first_col + e % TILE] = sums[i];
    }
}
