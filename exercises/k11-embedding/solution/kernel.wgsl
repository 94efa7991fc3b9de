// The embedding's gradient: forward, token t takes row tokens[t] of the table; backward, that row gets row t of dy.
// The grid has an invocation for each element of the table's gradient.

const T: u32 = {{T}}u;
const VOCAB: u32 = {{VOCAB}}u;
const COLS: u32 = {{COLS}}u;

@group(0) @binding(0) var<storage, read_write> tokens: array<u32>; // [T], each below VOCAB
@group(0) @binding(1) var<storage, read_write> dy: array<f32>; // [T, COLS]
@group(0) @binding(2) var<storage, read_write> dw: array<f32>; // [VOCAB, COLS]

@compute @workgroup_size(64, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let col = id.x;
    let row = id.y;
    if (col >= COLS || row >= VOCAB) {
        return;
    }
    // Each element has one invocation, which looks for its tokens and stores their sum once.
    var sum = 0.0;
    for (var t = 0u; t < T; t += 1u) {
        if (tokens[t] == row) {
            sum += dy[t * COLS + col];
        }
    }
    dw[row * COLS + col] = sum;
}
