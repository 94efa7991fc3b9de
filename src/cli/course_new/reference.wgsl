// What is asked, as a plain loop: element (t, h, d) of x is element (h, t, d) of out.

const T: u32 = {{T}}u;
const H: u32 = {{H}}u;
const D: u32 = {{D}}u;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i < T * H * D) {
        let d = i % D;
        let h = i / D % H;
        let t = i / (H * D);
        out[(h * T + t) * D + d] = x[i];
    }
}
