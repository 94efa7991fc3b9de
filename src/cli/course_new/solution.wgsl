// Sizes are written in double braces.
const T: u32 = {{T}}u;
const H: u32 = {{H}}u;
const D: u32 = {{D}}u;
const N: u32 = T * H * D;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    // No access without a bounds check: devices do not check.
    if (i >= N) {
        return;
    }
    let d = i % D;
    let t = (i / D) % T;
    let h = i / (D * T);
    // FILL ME IN (1 line): where the element is before.
    out[(h * T + t) * D + d] = x[(t * H + h) * D + d];
}
