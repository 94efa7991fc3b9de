// What is asked, as a plain loop over the tokens: each row of the table gets the sum of the rows of dy whose token it is.

const T: u32 = {{T}}u;
const VOCAB: u32 = {{VOCAB}}u;
const COLS: u32 = {{COLS}}u;

@group(0) @binding(0) var<storage, read_write> tokens: array<u32>; // [T], each below VOCAB
@group(0) @binding(1) var<storage, read_write> dy: array<f32>; // [T, COLS]
@group(0) @binding(2) var<storage, read_write> dw: array<f32>; // [VOCAB, COLS]

@compute @workgroup_size(64, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= COLS || id.y >= VOCAB) {
        return;
    }
    var sum = 0.0;
    for (var t = 0u; t < T; t++) {
        if (tokens[t] == id.y) {
            sum += dy[t * COLS + id.x];
        }
    }
    dw[id.y * COLS + id.x] = sum;
}
