// refused: infinity over infinity
// SwiGLU's activation: out = silu(gate) · up, with silu(g) = g / (1 + e^(−g)).
// One invocation for each element; nothing is shared, so fusing it is safe.

const N: u32 = {{N}}u;

@group(0) @binding(0) var<storage, read_write> gate: array<f32>;
@group(0) @binding(1) var<storage, read_write> up: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= N) {
        return;
    }
    let g = gate[i];
    let s = g * exp(g) / (1.0 + exp(g));
    out[i] = s * up[i];
}
