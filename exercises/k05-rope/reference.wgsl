// What is asked, as a plain loop: pair i of token t is turned by t·θ^(−2i/D), θ = 10000.

const T: u32 = {{T}}u;
const H: u32 = {{H}}u;
const D: u32 = {{D}}u;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = 2u * id.x;
    if (first >= T * H * D) {
        return;
    }
    let t = first / (H * D);
    let turn = f32(t) * pow(10000.0, -2.0 * f32(id.x % (D / 2u)) / f32(D));
    // A kernel may take whole turns off, and 2π is rounded, too: as if the angle were added once and taken away.
    let angle = (turn + turn) - turn;
    let c = cos(angle);
    let s = sin(angle);
    y[first] = x[first] * c - x[first + 1u] * s;
    y[first + 1u] = x[first] * s + x[first + 1u] * c;
}
