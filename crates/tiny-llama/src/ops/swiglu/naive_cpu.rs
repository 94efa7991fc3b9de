//! Stage 4's kernel on the CPU: both SwiGLU products and the activation, one output at a time. It is slow on purpose, because the lesson
//! measures it.

use super::NaiveGates;
use crate::ops::Float;
use crate::ops::cpu::{tensor, values};
use burn::backend::{Flex, TensorMetadata as _};
use rayon::prelude::*;

type T = Float<Flex>;

impl NaiveGates for Flex {
    /// Computes `out = silu(x · Wgᵀ) · (x · Wuᵀ)` element by element, and keeps the two products for the backward pass. It runs on all
    /// threads, like the faster version. It is slow because every use of an element reads memory again, and because each sum is one long
    /// chain of additions.
    fn forward([x, w_gate, w_up]: [T; 3]) -> [T; 3] {
        let ([n, k], f) = (x.shape().dims(), w_gate.shape()[0]);
        let [x, w_gate, w_up] = [&x, &w_gate, &w_up].map(values);
        let [mut out, mut gate, mut up] = [0; 3].map(|_| vec![0.0; n * f]);
        let outputs = out.par_iter_mut().zip(&mut gate).zip(&mut up).enumerate();
        outputs.for_each(|(index, ((out, gate), up))| {
            let (row, column) = (index / f, index % f);
            let mut gate_sum = 0.0;
            let mut up_sum = 0.0;
            for p in 0..k {
                gate_sum += x[row * k + p] * w_gate[column * k + p];
                up_sum += x[row * k + p] * w_up[column * k + p];
            }
            *gate = gate_sum;
            *up = up_sum;
            *out = gate_sum / (1.0 + (-gate_sum).exp()) * up_sum;
        });
        [out, gate, up].map(|output| tensor(output, [n, f]))
    }
}
