//! SwiGLU's elementwise half: silu(gate) · up, for two tensors or for one that holds both side by side.
//! The products with the weights are the matmul's work.

use super::{Columns, arg, empty, groups, vector_width};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;

/// a\[n,f\] = silu(gate\[n,f\]) · up\[n,f\], silu(z) = z/(1+e^−z); gate and up `[N, F]`. (Shazeer 2020.) 1 launch.
pub fn forward(gate: Columns, up: Columns, rows: usize, width: usize) -> CubeTensor {
    let out = empty(gate.tensor, [rows, width]);
    let lanes = lanes(gate, up, width);
    let count = rows * width / lanes;
    unsafe {
        swiglu_forward::launch_unchecked(
            &out.client,
            groups(count.div_ceil(THREADS)),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            gate.arg(),
            up.arg(),
            arg(&out),
            count,
            layout(gate, up, width, lanes),
        );
    }
    out
}

/// [`forward`] of a packed `[N, 2F]`: gate left, up right.
pub fn forward_packed(gate_up: &CubeTensor, width: usize) -> CubeTensor {
    let (gate, up) = halves(gate_up, width);
    forward(gate, up, gate_up.meta.num_elements() / (2 * width), width)
}

/// dgate = da·up·s·(1 + gate·(1−s)), dup = da·gate·s, with s = 1/(1+e^−gate); all `[N, F]`. 1 launch.
pub fn backward(
    da: &CubeTensor,
    gate: &CubeTensor,
    up: &CubeTensor,
    width: usize,
) -> (CubeTensor, CubeTensor) {
    let rows = da.meta.num_elements() / width;
    let (dgate, dup) = (empty(da, [rows, width]), empty(da, [rows, width]));
    let all = |tensor| Columns::all(tensor, width);
    launch_backward(
        da,
        [all(gate), all(up)],
        [all(&dgate), all(&dup)],
        rows,
        width,
    );
    (dgate, dup)
}

/// [`backward`] for a packed `[N, 2F]`; returns its gradient in the same layout. 1 launch.
pub fn backward_packed(da: &CubeTensor, gate_up: &CubeTensor, width: usize) -> CubeTensor {
    let rows = da.meta.num_elements() / width;
    let out = empty(da, [rows, 2 * width]);
    let (gate, up) = halves(gate_up, width);
    let (dgate, dup) = halves(&out, width);
    launch_backward(da, [gate, up], [dgate, dup], rows, width);
    out
}

/// Where gate and up lie, in vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Layout {
    width: usize,
    gate: (usize, usize),
    up: (usize, usize),
}

fn halves(packed: &CubeTensor, width: usize) -> (Columns<'_>, Columns<'_>) {
    (
        Columns::at(packed, 0, 2 * width),
        Columns::at(packed, width, 2 * width),
    )
}

fn lanes(gate: Columns, up: Columns, width: usize) -> usize {
    vector_width(&[width, gate.offset, gate.stride, up.offset, up.stride])
}

fn layout(gate: Columns, up: Columns, width: usize, lanes: usize) -> Layout {
    Layout {
        width: width / lanes,
        gate: (gate.offset / lanes, gate.stride / lanes),
        up: (up.offset / lanes, up.stride / lanes),
    }
}

/// The gradients have the layout of what they are gradients of.
fn launch_backward(
    da: &CubeTensor,
    [gate, up]: [Columns; 2],
    [dgate, dup]: [Columns; 2],
    rows: usize,
    width: usize,
) {
    let lanes = lanes(gate, up, width);
    let count = rows * width / lanes;
    unsafe {
        swiglu_backward::launch_unchecked(
            &da.client,
            groups(count.div_ceil(THREADS)),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            arg(da),
            gate.arg(),
            up.arg(),
            dgate.arg(),
            dup.arg(),
            count,
            layout(gate, up, width, lanes),
        );
    }
}

#[cube(launch_unchecked)]
fn swiglu_forward<N: Size>(
    gate: &[Vector<f32, N>],
    up: &[Vector<f32, N>],
    out: &mut [Vector<f32, N>],
    count: usize,
    #[comptime] layout: Layout,
) {
    let i = ABSOLUTE_POS;
    if i >= count {
        terminate!();
    }
    let row = i / comptime!(layout.width);
    let column = i % comptime!(layout.width);
    let one = Vector::<f32, N>::new(1.0);
    let g = gate[row * comptime!(layout.gate.1) + column + comptime!(layout.gate.0)];
    let u = up[row * comptime!(layout.up.1) + column + comptime!(layout.up.0)];
    out[i] = g / (one + (-g).exp()) * u;
}

#[cube(launch_unchecked)]
fn swiglu_backward<N: Size>(
    da: &[Vector<f32, N>],
    gate: &[Vector<f32, N>],
    up: &[Vector<f32, N>],
    dgate: &mut [Vector<f32, N>],
    dup: &mut [Vector<f32, N>],
    count: usize,
    #[comptime] layout: Layout,
) {
    let i = ABSOLUTE_POS;
    if i >= count {
        terminate!();
    }
    let row = i / comptime!(layout.width);
    let column = i % comptime!(layout.width);
    let one = Vector::<f32, N>::new(1.0);
    let at_gate = row * comptime!(layout.gate.1) + column + comptime!(layout.gate.0);
    let at_up = row * comptime!(layout.up.1) + column + comptime!(layout.up.0);
    let d = da[i];
    let g = gate[at_gate];
    let u = up[at_up];
    let s = one / (one + (-g).exp());
    dgate[at_gate] = d * u * s * (one + g * (one - s));
    dup[at_up] = d * g * s;
}
