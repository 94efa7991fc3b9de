//! SwiGLU on a GPU: silu(gate) · up, for gates and ups side by side in one matrix. Products that compute the activation themselves share its
//! WGSL functions.

use super::FusedSwiglu;
use crate::ops::format::Format;
use crate::ops::gpu::wgsl::{Numbers, launch_file};
use crate::ops::gpu::{empty_of, is_f16, operand_type, vector_width};
use burn::backend::Cube;
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

/// Computes y = silu(gate) · up `[N, F]` with silu(z) = z/(1+e^−z), from x `[N, 2F]` with gates left and ups right. y has elements of type
/// `element`. 1 launch.
pub(crate) fn forward(x: &CubeTensor, element: DType) -> CubeTensor {
    let [rows, both] = x.meta.shape().dims();
    let y = empty_of(element, x, [rows, both / 2]);
    launch(
        "swiglu/swiglu_forward.wgsl",
        &[("x", x), ("y", &y)],
        [rows, both / 2],
    );
    y
}

/// Computes dgate = dy·up·s·(1 + gate·(1−s)) and dup = dy·gate·s with s = 1/(1+e^−gate), from dy `[N, F]`. They are side by side like gates and
/// ups in x `[N, 2F]`, and have elements of type `element`. 1 launch.
pub(crate) fn backward(dy: &CubeTensor, x: &CubeTensor, element: DType) -> CubeTensor {
    let [rows, width] = dy.meta.shape().dims();
    let dx = empty_of(element, dy, [rows, 2 * width]);
    let buffers = [("dy", dy), ("x", x), ("dx", &dx)];
    launch("swiglu/swiglu_backward.wgsl", &buffers, [rows, width]);
    dx
}

/// Launches a kernel for `[rows, width]` activations; the last buffer is the result.
fn launch(file: &'static str, buffers: &[(&str, &CubeTensor)], [rows, width]: [usize; 2]) {
    let lanes = vector_width(&[width]);
    let count = rows * width / lanes;
    let half = buffers.last().is_some_and(|(_, result)| is_f16(result));
    let own = [
        ("count", count),
        ("columns", width / lanes),
        ("half", half.into()),
    ];
    let with_lanes: Vec<_> = buffers
        .iter()
        .map(|(name, tensor)| (*name, lanes, *tensor))
        .collect();
    let sizes = [THREADS, count.div_ceil(THREADS), lanes];
    launch_file(file, sizes, &with_lanes, Numbers::from(own));
}
