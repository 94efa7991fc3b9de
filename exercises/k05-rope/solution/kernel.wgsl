// Rotary position embedding on [T, H, D]: rotate each pair by the angle t·θ^(−2i/D), θ = 10000.
// One invocation for each pair. This model pairs neighbours: (0, 1), (2, 3), …

const T: u32 = {{T}}u;
const H: u32 = {{H}}u;
const D: u32 = {{D}}u;
const PAIRS: u32 = D / 2u;
const N: u32 = T * H * PAIRS;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= N) {
        return;
    }
    let i = id.x % PAIRS;
    let row = id.x / PAIRS; // t·H + h
    let t = row / H;
    let turn = f32(t) * pow(10000.0, -2.0 * f32(i) / f32(D));
    // sin and cos are accurate only near 0.
    let angle = turn - 6.2831853 * floor(turn / 6.2831853);
    let first = row * D + 2u * i;
    let second = first + 1u;
    let p = x[first];
    let q = x[second];
    y[first] = p * cos(angle) - q * sin(angle);
    y[second] = p * sin(angle) + q * cos(angle);
}
