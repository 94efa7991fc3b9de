//! Flash attention on matrix cores: the algorithm of `attention` with f16 operands and f32 sums, in
//! `wgsl/flash_attention_matrix_cores.wgsl` and `wgsl/flash_attention_backward_matrix_cores.wgsl`.
//! A workgroup owns 64 rows of one head, 16 for each of its subgroups, and iterates over the other side in tiles of 32 rows.

use super::MAX_GROUPS;
use super::attention_wgsl::{self, Buffers, Shape, Values};
use super::wgsl::{self, Program};
use crate::ops::shapes::{Heads, Rows};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use serde::Serialize;

/// Side of the matrices that one instruction multiplies.
const SIDE: usize = 16;
/// Rows that a workgroup owns.
const OWN: usize = 64;
/// Rows of the other side in a tile.
const OTHER: usize = 32;
const INVOCATIONS: usize = 128;
/// The widest head whose gradients fit into registers.
const WIDEST: usize = 128;
/// Four values in a buffer.
const V4: &str = "vec4<f16>";

/// Whether tiles fit a problem, and a launch can have their workgroups.
pub fn fits(sizes: &Heads) -> bool {
    sizes.context.is_multiple_of(OWN)
        && sizes.head_dim.is_multiple_of(SIDE)
        && sizes.head_dim <= WIDEST
        && sizes.batch * (sizes.heads + sizes.kv_heads) <= MAX_GROUPS
}

/// As [`super::attention::forward`], with f16 rows and output. 1 launch.
pub fn forward(rows: &Rows<CubeTensor>, sizes: Heads) -> (CubeTensor, CubeTensor) {
    attention_wgsl::forward(rows, sizes, (OWN, DType::F16), forward_program)
}

/// As [`super::attention::backward`], with f16 rows, output and gradients. `tables` (cos and sin, `[context, head_dim / 2]` each)
/// have rotated q and k, and the kernel rotates their gradients back. 1 launch.
pub fn backward(
    dout: &CubeTensor,
    rows: &Rows<CubeTensor>,
    out: &CubeTensor,
    lse: &CubeTensor,
    [cos, sin]: [&CubeTensor; 2],
    sizes: Heads,
) -> Rows<CubeTensor> {
    attention_wgsl::backward(dout, rows, sizes, |shape, [q, k, v], [dq, dk, dv]| {
        let groups = shape.groups(OWN, sizes.kv_heads + sizes.heads);
        let buffers = [q, k, v, dout, out, dq, dk, dv, lse, cos, sin];
        wgsl::launch(backward_program(shape), groups, &buffers);
    })
}

/// The program for output and logarithms.
fn forward_program(shape: Shape) -> Program<Values<Tile>> {
    let buffers: Buffers = &[("q", V4), ("k", V4), ("v", V4), ("out", V4), ("lse", "f32")];
    program("flash_attention_matrix_cores.wgsl", shape, buffers)
}

/// The program whose first workgroups compute dk and dv, which takes longer, and whose other workgroups compute dq.
fn backward_program(shape: Shape) -> Program<Values<Tile>> {
    let buffers: Buffers = &[
        ("q", V4),
        ("k", V4),
        ("v", V4),
        ("dout", "vec4<f32>"),
        ("out", V4),
        ("dq", V4),
        ("dk", V4),
        ("dv", V4),
        ("lse", "f32"),
        ("cos", "vec2<f32>"),
        ("sin", "vec2<f32>"),
    ];
    program("flash_attention_backward_matrix_cores.wgsl", shape, buffers)
}

/// Sizes of the tile, with the names of the files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Tile {
    own: usize,
    other: usize,
    side: usize,
    threads: usize,
}

fn program(file: &'static str, shape: Shape, buffers: Buffers) -> Program<Values<Tile>> {
    let tile = Tile {
        own: OWN,
        other: OTHER,
        side: SIDE,
        threads: INVOCATIONS,
    };
    let values = Values {
        shape,
        buffers,
        tile,
    };
    Program::new(file, INVOCATIONS, values)
}

#[cfg(test)]
mod tests {
    use super::super::attention_wgsl::testing::{agrees, problems, valid};
    use super::super::check::{self, Device};
    use super::super::format::{full, half};
    use super::super::{empty, rope};
    use super::*;
    use crate::ops::rope::tables;
    use crate::ops::shapes::Rotation;

    const PROBLEMS: &[[usize; 4]] = &[
        [64, 4, 2, 32],
        [128, 2, 2, 64],
        [192, 2, 1, 128],
        [64, 1, 1, 16],
    ];

    #[test]
    fn every_text_is_valid_wgsl() {
        for sizes in problems(PROBLEMS) {
            valid(sizes, forward_program);
            valid(sizes, backward_program);
        }
    }

    /// Forward pass from f32 rows, as if q and k were already rotated.
    fn forward_from_f32(rows: &Rows<CubeTensor>, sizes: Heads) -> (CubeTensor, CubeTensor) {
        let (out, lse) = forward(&rows.clone().map(half), sizes);
        (full(out), lse)
    }

    /// Backward pass that rotates the gradients forward again, so they belong to the given rows.
    fn backward_from_f32(
        dout: &CubeTensor,
        rows: &Rows<CubeTensor>,
        out: &CubeTensor,
        lse: &CubeTensor,
        sizes: Heads,
    ) -> Rows<CubeTensor> {
        let (cos, sin) = tables(sizes.context, sizes.head_dim, 100.0);
        let [cos, sin] = [cos, sin].map(|values| {
            let mut table = empty(dout, [sizes.context, sizes.head_dim / 2]);
            let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
            table.handle = dout.client.create_from_slice(&bytes);
            table
        });
        let (rows, out) = (rows.clone().map(half), half(out.clone()));
        let gradients = backward(dout, &rows, &out, lse, [&cos, &sin], sizes);
        let [q, k, v] = sizes.widths();
        let rotation = Rotation {
            width: q + k + v,
            rotated: q + k,
            head_dim: sizes.head_dim,
            context: sizes.context,
            inverse: false,
        };
        gradients.map(|it| rope::apply(&full(it), &cos, &sin, rotation, DType::F32))
    }

    #[test]
    fn outputs_and_gradients_are_those_of_f32_up_to_the_rounding_of_operands() {
        let Some(device) = Device::any() else { return };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        for sizes in problems(PROBLEMS) {
            assert!(fits(&sizes));
            // Rounding changes an operand by 2⁻¹¹ of it; scores are sums of up to 128 products of numbers below 1.
            let both = (forward_from_f32 as _, backward_from_f32 as _);
            agrees(&device, sizes, both, [4e-3, 8e-3]);
        }
    }
}
