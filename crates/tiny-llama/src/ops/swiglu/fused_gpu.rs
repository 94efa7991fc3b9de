//! SwiGLU's elementwise part: silu(gate) · up, for a tensor that holds both side by side.

use super::FusedSwiglu;
use crate::ops::format::Format;
use crate::ops::gpu::operand_type;
use crate::ops::gpu::{arg, empty_of, groups, vector_width};
use burn::backend::Cube;
use burn::cubecl::ir::ElemType;
use burn::cubecl::{self, prelude::*};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

impl FusedSwiglu for Cube {
    fn forward(packed: CubeTensor, format: Format) -> CubeTensor {
        forward(&packed, operand_type(format, &packed))
    }

    fn backward(packed: CubeTensor, dy: CubeTensor, format: Format) -> CubeTensor {
        backward(&dy, &packed, operand_type(format, &packed))
    }
}

const THREADS: usize = 256;

/// a = silu(gate) · up `[N, F]`, silu(z) = z/(1+e^−z), from a packed `[N, 2F]`: gate left, up right. (Shazeer 2020.) The result has
/// elements of type `element`. 1 launch.
pub(crate) fn forward(gate_up: &CubeTensor, element: DType) -> CubeTensor {
    let [rows, both] = gate_up.meta.shape().dims();
    let width = both / 2;
    let out = empty_of(element, gate_up, [rows, width]);
    let lanes = vector_width(&[width]);
    let count = rows * width / lanes;
    unsafe {
        swiglu_forward::launch_unchecked(
            &out.client,
            groups(count.div_ceil(THREADS)),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            arg(gate_up),
            arg(&out),
            count,
            width / lanes,
            crate::ops::gpu::element(&out),
        );
    }
    out
}

/// dgate = da·up·s·(1 + gate·(1−s)) and dup = da·gate·s, with s = 1/(1+e^−gate), side by side as in `gate_up` `[N, 2F]`;
/// da `[N, F]`. The result has elements of type `element`. 1 launch.
pub(crate) fn backward(da: &CubeTensor, gate_up: &CubeTensor, element: DType) -> CubeTensor {
    let [rows, width] = da.meta.shape().dims();
    let out = empty_of(element, da, [rows, 2 * width]);
    let lanes = vector_width(&[width]);
    let count = rows * width / lanes;
    unsafe {
        swiglu_backward::launch_unchecked(
            &da.client,
            groups(count.div_ceil(THREADS)),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            arg(da),
            arg(gate_up),
            arg(&out),
            count,
            width / lanes,
            crate::ops::gpu::element(&out),
        );
    }
    out
}

#[cube(launch_unchecked)]
fn swiglu_forward<O: Numeric, N: Size>(
    gate_up: &[Vector<f32, N>],
    out: &mut [Vector<O, N>],
    count: usize,
    #[comptime] width: usize,
    #[define(O)] _element: ElemType,
) {
    let i = ABSOLUTE_POS;
    if i >= count {
        terminate!();
    }
    let gate = i / width * comptime!(2 * width) + i % width;
    let one = Vector::<f32, N>::new(1.0);
    let g = gate_up[gate];
    out[i] = Vector::cast_from(g / (one + (-g).exp()) * gate_up[gate + width]);
}

#[cube(launch_unchecked)]
fn swiglu_backward<O: Numeric, N: Size>(
    da: &[Vector<f32, N>],
    gate_up: &[Vector<f32, N>],
    out: &mut [Vector<O, N>],
    count: usize,
    #[comptime] width: usize,
    #[define(O)] _element: ElemType,
) {
    let i = ABSOLUTE_POS;
    if i >= count {
        terminate!();
    }
    let gate = i / width * comptime!(2 * width) + i % width;
    let up = gate + width;
    let one = Vector::<f32, N>::new(1.0);
    let d = da[i];
    let g = gate_up[gate];
    let u = gate_up[up];
    let s = one / (one + (-g).exp());
    out[gate] = Vector::cast_from(d * u * s * (one + g * (one - s)));
    out[up] = Vector::cast_from(d * g * s);
}
