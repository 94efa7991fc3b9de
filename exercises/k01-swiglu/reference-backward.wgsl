// What is asked, as a plain loop: from dy to the gradients of gate and up. silu'(g) = s·(1 + g·(1 − s)).

const N: u32 = {{N}}u;

@group(0) @binding(0) var<storage, read_write> dy: array<f32>;
@group(0) @binding(1) var<storage, read_write> gate: array<f32>;
@group(0) @binding(2) var<storage, read_write> up: array<f32>;
@group(0) @binding(3) var<storage, read_write> dgate: array<f32>;
@group(0) @binding(4) var<storage, read_write> dup: array<f32>;

// Half is added and taken away: with tanh, the sigmoid is as exact as a number near a half is.
fn sigmoid(g: f32) -> f32 {
    return (1.0 / (1.0 + exp(-g)) + 0.5) - 0.5;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i < N) {
        let g = gate[i];
        let s = sigmoid(g);
        dgate[i] = dy[i] * up[i] * s * (1.0 + g * (1.0 - s));
        dup[i] = dy[i] * g * s;
    }
}
