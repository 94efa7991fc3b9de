// What is asked, as a plain loop over each row: y = x / √(mean(x²) + ε) · gain.

const ROWS: u32 = {{ROWS}}u;
const COLS: u32 = {{COLS}}u;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> gain: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = id.x * COLS;
    var sum = 0.0;
    for (var c = 0u; c < COLS; c++) {
        sum += x[first + c] * x[first + c];
    }
    let scale = 1.0 / sqrt(sum / f32(COLS) + 1e-5);
    for (var c = 0u; c < COLS; c++) {
        y[first + c] = x[first + c] * scale * gain[c];
    }
}
