// refused: the step itself is not decayed
// AdamW for every parameter of the model in one launch: all tensors lie in one long buffer, and so do both moments.
// m and v are running averages of the gradient and of its square; STEP counts from 1.

const N: u32 = {{N}}u;
const STEP: f32 = {{STEP}}.0;
const LR: f32 = 3e-4;
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPS: f32 = 1e-8;
const DECAY: f32 = 0.01;

@group(0) @binding(0) var<storage, read_write> gradient: array<f32>;
@group(0) @binding(1) var<storage, read_write> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> m: array<f32>;
@group(0) @binding(3) var<storage, read_write> v: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= N) {
        return;
    }
    let w = weight[i];
    let g = gradient[i];
    let m_new = BETA1 * m[i] + (1.0 - BETA1) * g;
    let v_new = BETA2 * v[i] + (1.0 - BETA2) * g * g;
    let m_hat = m_new / (1.0 - pow(BETA1, STEP));
    let v_hat = v_new / (1.0 - pow(BETA2, STEP));
    m[i] = m_new;
    v[i] = v_new;
    let stepped = w - LR * m_hat / (sqrt(v_hat) + EPS);
    weight[i] = stepped - LR * DECAY * stepped;
}
