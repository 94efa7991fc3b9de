// Causal attention without a T × T matrix: each invocation owns one query and reads the keys in blocks, keeping
// the largest score so far (m), the sum of e^(score − m) (l) and the weighted values (o).

const H: u32 = {{H}}u; // heads of all sequences
const T: u32 = {{T}}u;
const D: u32 = {{D}}u;
const LANES: u32 = 64u;
const BLOCK: u32 = 16u;

@group(0) @binding(0) var<storage, read_write> q: array<f32>; // [H, T, D], all four
@group(0) @binding(1) var<storage, read_write> k: array<f32>;
@group(0) @binding(2) var<storage, read_write> v: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

var<workgroup> keys: array<f32, BLOCK * D>;
var<workgroup> values: array<f32, BLOCK * D>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let head = group.y;
    let query = group.x * LANES + local.x;
    let live = head < H && query < T;
    var mine: array<f32, D>;
    var o: array<f32, D>;
    for (var d = 0u; d < D; d += 1u) {
        o[d] = 0.0;
        if (live) {
            mine[d] = q[(head * T + query) * D + d] / sqrt(f32(D));
        }
    }
    var m = -1e30;
    var l = 0.0;

    // The outer loop: blocks of keys, up to the last query of this workgroup.
    let end = min(T, (group.x + 1u) * LANES);
    for (var start = 0u; start < end; start += BLOCK) {
        workgroupBarrier();
        for (var e = local.x; e < BLOCK * D; e += LANES) {
            let key = start + e / D;
            if (key < T) {
                keys[e] = k[(head * T + key) * D + e % D];
                values[e] = v[(head * T + key) * D + e % D];
            }
        }
        workgroupBarrier();
        if (live && start <= query) {
            let last = min(BLOCK, query + 1u - start);
            for (var j = 0u; j < last; j += 1u) {
                var s = 0.0;
                for (var d = 0u; d < D; d += 1u) {
                    s += mine[d] * keys[j * D + d];
                }
                let m_new = max(m, s);
                let p = exp(s - m_new);
                let shrink = exp(m - m_new);
                l = l * shrink + p;
                for (var d = 0u; d < D; d += 1u) {
                    o[d] = o[d] * shrink + p * values[j * D + d];
                }
                m = m_new;
            }
        }
    }
    if (live) {
        for (var d = 0u; d < D; d += 1u) {
            out[(head * T + query) * D + d] = o[d] / l;
        }
    }
}
