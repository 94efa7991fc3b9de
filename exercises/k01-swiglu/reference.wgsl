// What is asked, as a plain loop: out = silu(gate) · up. Your kernel may be off by what f32 rounds here.

const N: u32 = {{N}}u;

@group(0) @binding(0) var<storage, read_write> gate: array<f32>;
@group(0) @binding(1) var<storage, read_write> up: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

// Half is added and taken away: with tanh, the sigmoid is as exact as a number near a half is.
fn sigmoid(g: f32) -> f32 {
    return (1.0 / (1.0 + exp(-g)) + 0.5) - 0.5;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i < N) {
        let g = gate[i];
        out[i] = g * sigmoid(g) * up[i];
    }
}
