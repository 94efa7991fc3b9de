// What is asked, as a plain loop over each row: e^x over the sum of e^x, with the largest x subtracted. The logarithm of the sum is
// subtracted, too, as another kernel may do it: then an x is rounded to the digits of the largest one.

const ROWS: u32 = {{ROWS}}u;
const COLS: u32 = {{COLS}}u;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = id.x * COLS;
    var most = x[first];
    for (var c = 1u; c < COLS; c++) {
        most = max(most, x[first + c]);
    }
    var sum = 0.0;
    for (var c = 0u; c < COLS; c++) {
        sum += exp(x[first + c] - most);
    }
    let all = most + log(sum);
    for (var c = 0u; c < COLS; c++) {
        y[first + c] = exp(x[first + c] - all);
    }
}
