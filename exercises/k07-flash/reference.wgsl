// What is asked, as plain loops for each query: causal softmax(q·kᵀ/√D)·v, with the largest score subtracted.

const H: u32 = {{H}}u;
const T: u32 = {{T}}u;
const D: u32 = {{D}}u;

@group(0) @binding(0) var<storage, read_write> q: array<f32>; // [H, T, D], all four
@group(0) @binding(1) var<storage, read_write> k: array<f32>;
@group(0) @binding(2) var<storage, read_write> v: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

fn score(query: u32, key: u32) -> f32 {
    var sum = 0.0;
    for (var d = 0u; d < D; d++) {
        sum += q[query + d] * k[key + d];
    }
    return sum / sqrt(f32(D));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= T) {
        return;
    }
    let first = id.y * T * D;
    let query = first + id.x * D;
    var scores: array<f32, T>;
    var most = score(query, first);
    for (var key = 0u; key <= id.x; key++) {
        scores[key] = score(query, first + key * D);
        most = max(most, scores[key]);
    }
    var total = 0.0;
    var sums: array<f32, D>;
    for (var key = 0u; key <= id.x; key++) {
        let p = exp(scores[key] - most);
        total += p;
        for (var d = 0u; d < D; d++) {
            sums[d] += p * v[first + key * D + d];
        }
    }
    for (var d = 0u; d < D; d++) {
        out[query + d] = sums[d] / total;
    }
}
