//! Stage 4's kernel on a GPU: both SwiGLU products and the activation in one launch, with one invocation for each output. It is slow on
//! purpose: invocations do not share the values that they read.

use super::NaiveGates;
use crate::ops::gpu::{arg, empty};
use burn::backend::Cube;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: u32 = 64;

impl NaiveGates for Cube {
    /// Computes out\[n,f\] = silu(Σ_k x\[n,k\]·w_gate\[f,k\]) · Σ_k x\[n,k\]·w_up\[f,k\]. Each output reads 3K values for 4K FLOPs: 0.33 FLOP
    /// per byte. 1 launch.
    fn forward([x, w_gate, w_up]: [CubeTensor; 3]) -> [CubeTensor; 3] {
        let [rows, inner] = x.meta.shape().dims();
        let width = w_gate.meta.shape()[0];
        let outputs = [0; 3].map(|_| empty(&x, [rows, width]));
        let [out, gate, up] = outputs.each_ref().map(arg);
        // Rows use two dimensions, because one allows at most 65535 workgroups.
        let across = rows.min(32_768);
        let groups = [
            width.div_ceil(THREADS as usize),
            across,
            rows.div_ceil(across),
        ];
        let [columns, across, down] = groups.map(|count| count as u32);
        unsafe {
            swiglu_one_output_each::launch_unchecked(
                &x.client,
                CubeCount::Static(columns, across, down),
                CubeDim::new_1d(THREADS),
                arg(&x),
                arg(&w_gate),
                arg(&w_up),
                out,
                gate,
                up,
                rows,
                width,
                inner,
            );
        }
        outputs
    }
}

#[cube(launch_unchecked)]
fn swiglu_one_output_each(
    x: &[f32],
    w_gate: &[f32],
    w_up: &[f32],
    out: &mut [f32],
    gate: &mut [f32],
    up: &mut [f32],
    rows: usize,
    width: usize,
    inner: usize,
) {
    let column = (CUBE_POS_X * THREADS + UNIT_POS) as usize;
    let row = (CUBE_POS_Z * CUBE_COUNT_Y + CUBE_POS_Y) as usize;
    if column >= width || row >= rows {
        terminate!();
    }
    let mut g = 0.0f32;
    let mut u = 0.0f32;
    for k in 0..inner {
        let value = x[row * inner + k];
        g += value * w_gate[column * inner + k];
        u += value * w_up[column * inner + k];
    }
    let at = row * width + column;
    gate[at] = g;
    up[at] = u;
    out[at] = g / (1.0 + (-g).exp()) * u;
}
