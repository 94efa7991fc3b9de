//! Flash attention on matrix cores: the algorithm of `attention` and `attention_backward` with f16 operands and f32 sums, in
//! `wgsl/flash_attention_matrix_cores.wgsl` and `wgsl/flash_attention_backward_matrix_cores.wgsl`.
//! A workgroup owns 64 rows of one head, 16 for each of its subgroups, and walks over the other side in tiles of 32.

use super::attention_wgsl::{self, Buffers, Shape, Values};
use super::wgsl::{self, Program};
use super::{MAX_GROUPS, is_f16};
use crate::ops::shapes::{Heads, Rows};
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

/// Whether the tiles fit a problem, and their workgroups a launch.
pub fn fits(sizes: &Heads) -> bool {
    sizes.context.is_multiple_of(OWN)
        && sizes.head_dim.is_multiple_of(SIDE)
        && sizes.head_dim <= WIDEST
        && sizes.batch * (sizes.heads + sizes.kv_heads) <= MAX_GROUPS
}

/// As [`super::attention::forward`], with f16 operands in the products. 1 launch.
pub fn forward(rows: &Rows<CubeTensor>, sizes: Heads) -> (CubeTensor, CubeTensor) {
    attention_wgsl::forward(rows, sizes, OWN, forward_program)
}

/// As [`super::attention::backward`], with f16 operands in the products. 1 launch.
pub fn backward(
    dout: &CubeTensor,
    rows: &Rows<CubeTensor>,
    out: &CubeTensor,
    lse: &CubeTensor,
    sizes: Heads,
) -> Rows<CubeTensor> {
    debug_assert!(
        !is_f16(dout),
        "operands are converted where they are staged"
    );
    attention_wgsl::backward(dout, rows, sizes, |shape, [q, k, v], [dq, dk, dv]| {
        let groups = shape.groups(OWN, sizes.kv_heads + sizes.heads);
        let buffers = [q, k, v, dout, out, dq, dk, dv, lse];
        wgsl::launch(backward_program(shape), groups, &buffers);
    })
}

/// The output and the logarithms.
fn forward_program(shape: Shape) -> Program<Values<Tile>> {
    let buffers = Buffers {
        vectors: &["q", "k", "v"],
        numbers: &["out", "lse"],
    };
    Program {
        name: "flash_attention_matrix_cores",
        file: "flash_attention_matrix_cores.wgsl",
        invocations: INVOCATIONS,
        values: values(shape, buffers),
    }
}

/// dk and dv by the first workgroups, which take longer, and dq by the others.
fn backward_program(shape: Shape) -> Program<Values<Tile>> {
    let buffers = Buffers {
        vectors: &["q", "k", "v", "dout", "out"],
        numbers: &["dq", "dk", "dv", "lse"],
    };
    Program {
        name: "flash_attention_backward_matrix_cores",
        file: "flash_attention_backward_matrix_cores.wgsl",
        invocations: INVOCATIONS,
        values: values(shape, buffers),
    }
}

/// The tile's numbers, as the files name them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Tile {
    own: usize,
    other: usize,
    side: usize,
    threads: usize,
}

fn values(shape: Shape, buffers: Buffers) -> Values<Tile> {
    let tile = Tile {
        own: OWN,
        other: OTHER,
        side: SIDE,
        threads: INVOCATIONS,
    };
    Values {
        shape,
        buffers,
        tile,
    }
}

#[cfg(test)]
mod tests {
    use super::super::attention_wgsl::testing::{agrees, problems, valid};
    use super::super::check::{self, Device};
    use super::*;

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

    #[test]
    fn outputs_and_gradients_are_those_of_f32_up_to_the_rounding_of_operands() {
        let Some(device) = Device::any() else { return };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        for sizes in problems(PROBLEMS) {
            assert!(fits(&sizes));
            // An operand's rounding is 2⁻¹¹ of it; scores are sums of up to 128 products of numbers below 1.
            agrees(&device, sizes, (forward, backward), [4e-3, 8e-3]);
        }
    }
}
