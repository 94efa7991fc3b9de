// refused: the product rule
// The backward pass of out = silu(gate) · up: from dy, the gradient of out, to the gradients of gate and up.
// With s = 1 / (1 + e^(−g)), silu(g) = g·s and silu'(g) = s·(1 + g·(1 − s)).

const N: u32 = {{N}}u;

@group(0) @binding(0) var<storage, read_write> dy: array<f32>;
@group(0) @binding(1) var<storage, read_write> gate: array<f32>;
@group(0) @binding(2) var<storage, read_write> up: array<f32>;
@group(0) @binding(3) var<storage, read_write> dgate: array<f32>;
@group(0) @binding(4) var<storage, read_write> dup: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= N) {
        return;
    }
    let g = gate[i];
    let s = 1.0 / (1.0 + exp(-g));
    let slope = s * (1.0 - s);
    dgate[i] = dy[i] * up[i] * slope;
    dup[i] = dy[i] * g * s;
}
