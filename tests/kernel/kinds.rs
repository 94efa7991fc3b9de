//! Kinds of mistakes that a check has to find. Each is an edit of a solution, beside a similar edit that is right and passes.

use super::{complaints, edited, on_lavapipe};

/// An exercise, a part of its solution, a right and a wrong replacement for the part, and a part of the complaint about the wrong one.
type Kind = [&'static str; 5];

const SQUARE: &str = "sum += value * value;";
const MAXIMUM: &str = "var largest = -3.4e38;";
const OUTPUT: &str = "out[i] = s * up[i];";
const TOTAL: &str = "let total = sums[0];";

const KINDS: &[Kind] = &[
    [
        "rms-norm",
        SQUARE,
        "sum += pow(abs(value), 2.0);",
        "sum += pow(value, 2.0);",
        "`x * x` for a square",
    ],
    [
        "softmax",
        MAXIMUM,
        "var largest = -1e30;",
        "var largest = -1e5;",
        "fails at",
    ],
    [
        "softmax",
        MAXIMUM,
        "var largest = -3e38;",
        "var largest = -9999999.9;",
        "numbers below every number of the text",
    ],
    [
        "softmax",
        MAXIMUM,
        "var largest = f32(-3.4e38);",
        "var largest = bitcast<f32>(0xff800000u + 0u * row);",
        "an infinity or a NaN is used as a value",
    ],
    // The kernel is wrong only at sizes between two numbers of its text, of which one is a float.
    [
        "rms-norm",
        TOTAL,
        "let total = sums[0] * select(1.0, 1.0, f32(COLS) > 1200.5 && COLS < 1240u);",
        "let total = sums[0] * select(1.0, 1.01, f32(COLS) > 1200.5 && COLS < 1240u);",
        "past 1200 in the text",
    ],
    [
        "swiglu",
        OUTPUT,
        "if (g > 0.0) { out[i] = s * up[i]; } else { out[i] = up[i] * s; }",
        "if (up[i] > 3000000.0) { out[i] = 0.0; } else { out[i] = s * up[i]; }",
        "numbers near those that the text names",
    ],
    [
        "swiglu",
        OUTPUT,
        "let r = s * up[i];\n    out[i] = select(r, r, r != g);",
        "let r = s * up[i];\n    out[i] = select(r, 0.0, r != r);",
        "a float is compared with itself",
    ],
    [
        "rms-norm",
        TOTAL,
        "let total = workgroupUniformLoad(&sums[0]);\n    if (total >= 0.0) { workgroupBarrier(); }",
        "let total = sums[0];\n    if (total >= 0.0) { workgroupBarrier(); }",
        "`workgroupUniformLoad(&flag)` for the value",
    ],
    [
        "rope",
        "floor(turn / 6.2831853)",
        "round(turn / 6.2831853)",
        "((turn / 6.2831853 + 12582912.0) - 12582912.0)",
        "a device may simplify",
    ],
    [
        "swiglu",
        OUTPUT,
        "out[i] = select(s * up[i], 0.0, up[i] == 0.0);",
        "out[i] = select(s * up[i], 7.0, bitcast<u32>(-abs(up[i])) == 0x80000000u);",
        "fails at",
    ],
    [
        "swiglu",
        "let i = id.x;",
        "let i = id.x % max(N, 1u) + id.x / N * N;",
        "let i = id.x + (N / (id.x / 1000000000u)) * 0u;",
        "an integer division by 0",
    ],
    [
        "swiglu",
        OUTPUT,
        "out[i] = s * up[i] + 0.0 * f32(u32(clamp(g, 0.0, 4e9)));",
        "out[i] = s * up[i] + 0.0 * f32(u32(g));",
        "a float that this integer type cannot hold",
    ],
    [
        "block-size",
        "let i = id.y * COLS + id.x;",
        "let i = min(id.y * COLS + id.x, ROWS * COLS - 1u);",
        "let i = id.y * COLS + id.x + select(0u, 1u, id.y == 4095u && id.x == 2047u);",
        "`x` has length 8388608",
    ],
    // The right forms round in another way than the reference, and the wrong ones have errors that are not much larger.
    [
        "swiglu",
        "let s = g / (1.0 + exp(-g));",
        "let s = g * (0.5 + 0.5 * tanh(clamp(0.5 * g, -40.0, 40.0)));",
        "let s = select(g / (1.0 + exp(-g)), g, g > 8.0);",
        "fails at",
    ],
    [
        "softmax",
        "y[row * COLS + c] = exp(x[row * COLS + c] - most) / total;",
        "y[row * COLS + c] = exp2((x[row * COLS + c] - (most + log(total))) * 1.442695);",
        "y[row * COLS + c] = exp(x[row * COLS + c] - most) / min(total, 4.0);",
        "fails at",
    ],
    [
        "softmax",
        "sum += exp(x[row * COLS + c] - most);",
        "sum = exp(x[row * COLS + c] - most) + sum;",
        "sum += floor(exp(x[row * COLS + c] - most) * 1048576.0) / 1048576.0;",
        "fails at",
    ],
    [
        "rope",
        "turn - 6.2831853 * floor(turn / 6.2831853)",
        "fract(turn / 6.2831853) * 6.2831853",
        "turn - 6.28318 * floor(turn / 6.28318)",
        "fails at",
    ],
    [
        "adamw",
        "w - LR * DECAY * w - LR",
        "w * (1.0 - LR * DECAY) - LR",
        "w - 0.95 * LR * DECAY * w - LR",
        "fails at",
    ],
    [
        "rms-norm",
        "inverseSqrt(total / f32(COLS) + 1e-5)",
        "1.0 / sqrt(total / f32(COLS) + 1e-5)",
        "inverseSqrt(total / f32(COLS) + 1.02e-5)",
        "fails at",
    ],
    [
        "matmul",
        "tile_a[place] = from_a;",
        "tile_a[place] = from_a * 1.0;",
        "tile_a[place] = bitcast<f32>(bitcast<u32>(from_a) & 0xffff0000u);",
        "fails at",
    ],
    [
        "embedding",
        "if (tokens[t] == row) {",
        "if (row == tokens[T - 1u - t]) { sum += dy[(T - 1u - t) * COLS + col]; }\n        if (tokens[t] == row && T == 0u) {",
        "if (tokens[t] == row && (t == 0u || tokens[t - 1u] != row)) {",
        "fails at",
    ],
    // A workgroup at an edge of the output does not count.
    [
        "block-size",
        "@workgroup_size(256, 1)",
        "@workgroup_size(16, 2)",
        "@workgroup_size(4, 4)",
        "at least 32 are required",
    ],
    [
        "block-size",
        "@workgroup_size(256, 1)",
        "@workgroup_size(32, 1)",
        "@workgroup_size(31, 1)",
        "at least 32 are required",
    ],
];

#[test]
fn each_wrong_edit_is_refused_and_the_right_one_passes() {
    for [exercise, from, right, wrong, complaint] in KINDS {
        for (text, passes) in [(right, true), (wrong, false)] {
            let Some(report) = on_lavapipe(&edited(exercise, from, text)) else {
                return;
            };
            let lines = complaints(&report);
            assert_eq!(report.passed, passes, "{exercise}: {text}: {lines:#?}");
            let is_named = lines.iter().any(|line| line.contains(complaint));
            assert!(passes || is_named, "{exercise}: {text}: {lines:#?}");
        }
    }
}

/// 10,000 is the θ of the formula. It is beyond what `D` may be, so no size is drawn near it.
#[test]
fn a_number_beyond_the_sizes_is_not_tried_as_a_size() {
    let job = edited(
        "rope",
        "pow(10000.0, -2.0 * f32(i) / f32(D))",
        "pow(pow(10000.0, -2.0 / f32(D)), f32(i))",
    );
    assert!(job.shapes.iter().all(|shape| shape.sizes["D"] <= 400));
    if let Some(report) = on_lavapipe(&job) {
        assert!(report.passed, "{:#?}", complaints(&report));
    }
}

/// A workgroup past the edge computes, but stores nothing, and is no mistake.
#[test]
fn a_kernel_with_tiles_in_registers_passes_without_an_early_return() {
    let mut job = edited("matmul", "TILE", "TILE");
    job.files[0].text = REGISTERS.to_owned();
    if let Some(report) = on_lavapipe(&job) {
        assert!(report.passed, "{:#?}", complaints(&report));
    }
}

const REGISTERS: &str = "const M: u32 = {{M}}u;
const N: u32 = {{N}}u;
const K: u32 = {{K}}u;
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<workgroup> tile_a: array<f32, 1024>;
var<workgroup> tile_b: array<f32, 1024>;
@compute @workgroup_size(8, 8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row0 = group.y * 32u;
    let col0 = group.x * 32u;
    var sums: array<f32, 16>;
    for (var start = 0u; start < K; start += 32u) {
        for (var i = lane; i < 1024u; i += 64u) {
            let r = i / 32u;
            let q = i % 32u;
            tile_a[i] = 0.0;
            tile_b[i] = 0.0;
            if (row0 + r < M && start + q < K) { tile_a[i] = a[(row0 + r) * K + start + q]; }
            if (start + r < K && col0 + q < N) { tile_b[i] = b[(start + r) * N + col0 + q]; }
        }
        workgroupBarrier();
        for (var k = 0u; k < 32u; k += 1u) {
            for (var i = 0u; i < 16u; i += 1u) {
                sums[i] += tile_a[(local.y * 4u + i / 4u) * 32u + k] * tile_b[k * 32u + local.x * 4u + i % 4u];
            }
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < 16u; i += 1u) {
        let row = row0 + local.y * 4u + i / 4u;
        let col = col0 + local.x * 4u + i % 4u;
        if (row < M && col < N) { c[row * N + col] = sums[i]; }
    }
}";
