//! Rotary position embedding over a row buffer, in one launch. Columns that are not rotated (the values of a packed q, k, v) stay
//! unchanged.

use super::FusedRope;
use crate::ops::format::Format;
use crate::ops::gpu::operand_type;
use crate::ops::gpu::{arg, empty_of, groups};
use burn::backend::Cube;
use burn::cubecl::ir::ElemType;
use burn::cubecl::{self, prelude::*};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

use crate::ops::shapes::Rotation;

impl FusedRope for Cube {
    fn forward(
        x: CubeTensor,
        [cos, sin]: [CubeTensor; 2],
        rotation: Rotation,
        format: Format,
    ) -> CubeTensor {
        apply(&x, &cos, &sin, rotation, operand_type(format, &x))
    }
}

const THREADS: usize = 256;

/// Pairs (a, b) of columns (2i, 2i+1) of each head become (a·cos − b·sin, a·sin + b·cos); x `[N, width]`, cos and
/// sin `[context, head_dim/2]` of position · θ^(−2i/head_dim). (Su et al. 2021, the interleaved form.) The result has elements of
/// type `element`. 1 launch.
pub(crate) fn apply(
    x: &CubeTensor,
    cos: &CubeTensor,
    sin: &CubeTensor,
    rotation: Rotation,
    element: DType,
) -> CubeTensor {
    let Rotation {
        width,
        rotated,
        head_dim,
        ..
    } = rotation;
    assert!(
        width.is_multiple_of(2) && head_dim.is_multiple_of(2) && rotated.is_multiple_of(head_dim),
        "rotation needs pairs of columns in whole heads"
    );
    let rows = x.meta.num_elements() / width;
    let lanes = crate::ops::gpu::vector_width(&[width, rotated, head_dim]).max(2);
    let out = empty_of(element, x, [rows, width]);
    let count = rows * width / lanes;
    unsafe {
        rope_rotate::launch_unchecked(
            &x.client,
            groups(count.div_ceil(THREADS)),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            arg(x),
            arg(cos),
            arg(sin),
            arg(&out),
            count,
            rotation,
            crate::ops::gpu::element(&out),
        );
    }
    out
}

#[cube(launch_unchecked)]
fn rope_rotate<O: Numeric, N: Size>(
    x: &[Vector<f32, N>],
    cos: &[f32],
    sin: &[f32],
    out: &mut [Vector<O, N>],
    count: usize,
    #[comptime] rotation: Rotation,
    #[define(O)] _element: ElemType,
) {
    let i = ABSOLUTE_POS;
    if i >= count {
        terminate!();
    }
    let per_row = comptime!(rotation.width) / N::value();
    let row = i / per_row;
    let column = (i % per_row) * N::value();
    let value = x[i];
    let mut rotated = value;
    if column < comptime!(rotation.rotated) {
        let half = comptime!(rotation.head_dim / 2);
        let angle = (row % comptime!(rotation.context)) * half
            + (column % comptime!(rotation.head_dim)) / 2;
        let lanes = N::value();
        #[unroll]
        for pair in 0..comptime!(lanes / 2) {
            let a = value.extract(pair * 2);
            let b = value.extract(pair * 2 + 1);
            let c = cos[angle + pair];
            let mut s = sin[angle + pair];
            if comptime!(rotation.inverse) {
                s = -s;
            }
            rotated.insert(pair * 2, a * c - b * s);
            rotated.insert(pair * 2 + 1, a * s + b * c);
        }
    }
    out[i] = Vector::cast_from(rotated);
}
