// The copy of stage 2: [T, H, D] to [H, T, D], so that each head's rows lie together.
// Any order is right; you choose which element each invocation copies.

const T: u32 = {{T}}u;
const H: u32 = {{H}}u;
const D: u32 = {{D}}u;
const N: u32 = T * H * D;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= N) {
        return;
    }
    let d = i % D;
    let t = (i / D) % T;
    let h = i / (D * T);
    out[(h * T + t) * D + d] = x[(t * H + h) * D + d];
}
