// What is asked, as a plain loop: out = x + y.

const ROWS: u32 = {{ROWS}}u;
const COLS: u32 = {{COLS}}u;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < COLS && id.y < ROWS) {
        let i = id.y * COLS + id.x;
        out[i] = x[i] + y[i];
    }
}
