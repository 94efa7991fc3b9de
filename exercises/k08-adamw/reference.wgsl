// What is asked, as a plain loop over the parameters: a step of AdamW, STEP counted from 1. The decay is LR · DECAY of the weight.

const N: u32 = {{N}}u;
const STEP: f32 = {{STEP}}.0;

@group(0) @binding(0) var<storage, read_write> gradient: array<f32>;
@group(0) @binding(1) var<storage, read_write> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> m: array<f32>;
@group(0) @binding(3) var<storage, read_write> v: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= N) {
        return;
    }
    // Variables: what is computed from a constant is rounded before the kernel runs, and 1 − β is rounded in any kernel.
    var beta1 = 0.9;
    var beta2 = 0.999;
    var rate = 3e-4;
    let g = gradient[i];
    let w = weight[i];
    m[i] = beta1 * m[i] + (1.0 - beta1) * g;
    v[i] = beta2 * v[i] + (1.0 - beta2) * (g * g);
    let corrected_m = m[i] / (1.0 - pow(beta1, STEP));
    let corrected_v = v[i] / (1.0 - pow(beta2, STEP));
    weight[i] = w - rate * 0.01 * w - rate * (corrected_m / (sqrt(corrected_v) + 1e-8));
}
