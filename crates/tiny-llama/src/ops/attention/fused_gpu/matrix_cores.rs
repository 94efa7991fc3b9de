//! Flash attention on matrix cores, with f16 operands and f32 sums: `flash_attention_matrix_cores.wgsl` and
//! `flash_attention_backward_matrix_cores.wgsl`. A workgroup owns 64 rows of one head and iterates over tiles of the other side. It has two
//! teams of four subgroups.

use crate::ops::attention::fused_gpu::launch::{self, Buffers, Shape, Values};
use crate::ops::gpu::MAX_GROUPS;
use crate::ops::gpu::wgsl::{self, Numbers, Program};
use crate::ops::shapes::{Heads, QkvRows};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

/// The side of the matrices that one instruction multiplies.
const SIDE: usize = 16;
/// The number of rows that a workgroup owns.
const OWN: usize = 64;
const INVOCATIONS: usize = 256;
/// The widest head that has the larger tiles in the backward pass.
const WIDE: usize = 128;
/// The widest head whose gradients fit into registers.
const WIDEST: usize = 256;
/// How far a score may exceed its row's reference before sums are rescaled. Weights stay below e^8, far below f16's largest number.
const SLACK: usize = 8;

/// Returns true if tiles fit a problem, and if a launch can have their workgroups. Each team has half of a head's columns, and the invocations
/// of a workgroup, divided among the rows of a [`backward_tile`], must load whole rows.
pub(crate) fn fits(sizes: &Heads) -> bool {
    let columns = (2 * SIDE).max(4 * INVOCATIONS / backward_tile(sizes.head_dim));
    sizes.context.is_multiple_of(OWN)
        && sizes.head_dim.is_multiple_of(columns)
        && sizes.head_dim <= WIDEST
        && sizes.batch * (sizes.heads + sizes.kv_heads) <= MAX_GROUPS
}

/// Returns half of the rows of a tile in the backward pass, which holds keys and values, or queries and gradients, at once.
fn backward_tile(head_dim: usize) -> usize {
    if head_dim > WIDE { 16 } else { 32 }
}

/// Does [`super::full::forward`] with f16 rows and output. 1 launch.
pub(crate) fn forward(rows: &QkvRows<CubeTensor>, sizes: Heads) -> [CubeTensor; 2] {
    launch::forward(rows, sizes, (OWN, DType::F16), forward_program)
}

/// Does [`super::full::backward`] with f16 rows, output and gradients. q and k were rotated by cos and sin, `[context, head_dim / 2]` each, and
/// their gradients are rotated back. 1 launch.
pub(crate) fn backward(
    dout: &CubeTensor,
    rows: &QkvRows<CubeTensor>,
    out: &CubeTensor,
    lse: &CubeTensor,
    [cos, sin]: [&CubeTensor; 2],
    sizes: Heads,
) -> QkvRows<CubeTensor> {
    launch::backward(dout, rows, sizes, |shape, [q, k, v], [dq, dk, dv]| {
        let groups = shape.groups(OWN, sizes.kv_heads + sizes.heads);
        let buffers = [q, k, v, dout, out, dq, dk, dv, lse, cos, sin];
        wgsl::launch(backward_program(shape), groups, &buffers);
    })
}

/// Returns the program for output and logarithms.
fn forward_program(shape: Shape) -> Program<Values<Numbers>> {
    let buffers = &["q", "k", "v", "out", "lse"];
    // A tile has keys, then values. Tiles of wide heads have half as many, so that two workgroups share a multiprocessor.
    let other = if shape.sizes.head_dim > 96 { 32 } else { 64 };
    let file = "attention/flash_attention_matrix_cores.wgsl";
    let rows = [other, other, OWN];
    program(file, shape, buffers, rows, PADDING * other / 64)
}

/// Returns the program whose first workgroups compute dk and dv, which takes longer, and whose other workgroups compute dq.
fn backward_program(shape: Shape) -> Program<Values<Numbers>> {
    let buffers = &[
        "q", "k", "v", "dout", "out", "dq", "dk", "dv", "lse", "cos", "sin",
    ];
    // Wider heads leave less workgroup memory for padding. The sums of 16 columns of both teams have to fit side by side.
    let score_padding = match shape.sizes.head_dim {
        0..=96 => PADDING,
        97..=WIDE => PADDING / 2,
        _ => 2 * SIDE - backward_tile(WIDEST) + PADDING / 2,
    };
    let other = backward_tile(shape.sizes.head_dim);
    let file = "attention/flash_attention_backward_matrix_cores.wgsl";
    let rows = [other, 2 * other, 2 * OWN];
    program(file, shape, buffers, rows, score_padding)
}

/// The number of values between rows of scores, against bank conflicts.
const PADDING: usize = 8;

/// Returns the program of a file. The three numbers of rows are those of the other side in one step, those of the other side in workgroup
/// memory, and those of scores there.
fn program(
    file: &'static str,
    shape: Shape,
    buffers: Buffers,
    [other, rows, score_rows]: [usize; 3],
    score_padding: usize,
) -> Program<Values<Numbers>> {
    let tile = [
        ("own", OWN),
        ("other", other),
        ("rows", rows),
        ("side", SIDE),
        ("threads", INVOCATIONS),
        ("score_rows", score_rows),
        ("score_padding", score_padding),
        ("slack", SLACK),
    ];
    let values = Values {
        shape,
        buffers,
        vector: "vec4<f16>",
        tile: tile.into(),
    };
    Program::new(file, INVOCATIONS, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::attention::fused_gpu::launch::testing::{
        agrees, agrees_on, problems, rotated_again, valid,
    };
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::format::converted;

    /// Context, heads, key and value heads, and head width.
    const PROBLEMS: &[[usize; 4]] = &[
        [64, 4, 2, 32],
        [128, 2, 2, 64],
        [192, 2, 1, 128],
        [320, 1, 1, 96],
        [192, 2, 1, 192],
        [128, 2, 2, 256],
    ];

    #[test]
    fn every_text_is_valid_wgsl() {
        for sizes in problems(PROBLEMS) {
            for (text, most) in [
                (valid(sizes, forward_program), 235),
                (valid(sizes, backward_program), 450),
            ] {
                assert!(text.lines().count() <= most, "{text}");
                let fits = |line: &str| line.chars().count() <= 120;
                assert!(text.lines().all(fits), "{text}");
            }
        }
    }

    /// The head widths are those of the presets.
    #[test]
    fn the_texts_of_shipped_heads_are_short_enough_to_read() {
        for sizes in problems(&[[64, 4, 2, 32], [128, 8, 4, 64], [512, 8, 4, 128]]) {
            assert!(valid(sizes, forward_program).lines().count() <= 195);
            assert!(valid(sizes, backward_program).lines().count() <= 380);
        }
    }

    fn to_f16(x: CubeTensor) -> CubeTensor {
        converted(x, DType::F16)
    }

    fn to_f32(x: CubeTensor) -> CubeTensor {
        converted(x, DType::F32)
    }

    /// Does the forward pass from f32 rows, as if q and k were already rotated.
    fn forward_from_f32(rows: &QkvRows<CubeTensor>, sizes: Heads) -> [CubeTensor; 2] {
        let [out, lse] = forward(&rows.clone().map(to_f16), sizes);
        [to_f32(out), lse]
    }

    /// Does the backward pass and rotates the gradients forward again, so that they belong to the given rows.
    fn backward_from_f32(
        dout: &CubeTensor,
        rows: &QkvRows<CubeTensor>,
        out: &CubeTensor,
        lse: &CubeTensor,
        sizes: Heads,
    ) -> QkvRows<CubeTensor> {
        let rows = rows.clone().map(to_f16);
        let out = to_f16(out.clone());
        rotated_again(dout, sizes, |tables| {
            backward(dout, &rows, &out, lse, tables.each_ref(), sizes).map(to_f32)
        })
    }

    #[test]
    fn outputs_and_gradients_agree_with_f32_up_to_the_rounding_of_operands() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        for sizes in problems(PROBLEMS) {
            assert!(fits(&sizes));
            // Rounding changes an operand by 2⁻¹¹ of it; scores are sums of up to 256 products of numbers below 1.
            let both = (forward_from_f32 as _, backward_from_f32 as _);
            agrees(&device, sizes, both, [4e-3, 8e-3]);
        }
    }

    /// Scores grow by more than [`SLACK`] from tile to tile, and f16 holds their numbers exactly.
    #[test]
    fn sums_are_scaled_where_scores_rise() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        for sizes in problems(PROBLEMS) {
            let [q, k, _] = sizes.widths();
            let wide = q + 2 * k;
            let mut packed = numbers(1, sizes.rows() * wide);
            for (index, value) in packed.iter_mut().enumerate() {
                let row = index / wide % sizes.context;
                let column = index % wide;
                let factor = match column {
                    _ if column < q => 4.0,
                    _ if column < q + k => 1.0 + (row / 32) as f32,
                    _ => 1.0,
                };
                *value = (*value * 64.0).round() / 64.0 * factor;
            }
            let both = (forward_from_f32 as _, backward_from_f32 as _);
            agrees_on(&device, sizes, &packed, both, [4e-3, 2e-2]);
        }
    }
}
