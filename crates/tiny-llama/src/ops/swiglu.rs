//! SwiGLU's activation, silu(gate)·up with silu(g) = g·σ(g) (Shazeer, 2020, arXiv 2002.05202), and stage 4's naive kernel.
//!
//! With s = σ(g): d gate = dy·u·s·(1 + g·(1 − s)), d up = dy·g·s.

mod fused_cpu;
pub(crate) mod fused_gpu;
mod naive_cpu;
mod naive_gpu;
mod reference;

use burn::backend::{Backend, TensorMetadata};

use super::format::Format;
use super::learner_kernel::{LiveKernel, LivePart, WorkgroupCount};
use super::linear;
use super::{Cost, Float, Kernels, Operation};
use protocol::config::Matmul;

/// A device's own kernels for gates and ups side by side.
pub trait FusedSwiglu: Backend {
    /// Computes the activation `[n, f]` of `[n, 2f]`, as an operand of products in `format`.
    fn forward(packed: Float<Self>, format: Format) -> Float<Self>;
    /// Computes the gradient `[n, 2f]`, as an operand of products in `format`.
    fn backward(packed: Float<Self>, dy: Float<Self>, format: Format) -> Float<Self>;
}

/// A device's naive kernel for stage 4.
pub trait NaiveGates: Backend {
    /// Returns the activations, the gates x·W_gateᵀ and the ups x·W_upᵀ, `[n, f]` each, from x, W_gate and W_up.
    fn forward(inputs: [Float<Self>; 3]) -> [Float<Self>; 3];
}

/// The operation that takes gate `[n, f]` and up `[n, f]` and gives silu(gate)·up `[n, f]`, from burn's primitives.
#[derive(Clone, Debug)]
pub struct Activation;

impl Operation<2> for Activation {
    const NAME: &'static str = "swiglu";

    type Saved<B: Kernels> = [Float<B>; 2];

    fn version(&self) -> &'static str {
        "library"
    }

    fn forward<B: Kernels>(&self, [gate, up]: [Float<B>; 2]) -> (Float<B>, [Float<B>; 2]) {
        (
            reference::forward::<B>([gate.clone(), up.clone()]),
            [gate, up],
        )
    }

    fn backward<B: Kernels>(&self, saved: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 2] {
        reference::backward::<B>(saved, dy)
    }

    fn forward_live<B: Kernels>(
        &self,
        live: &LivePart,
        [gate, up]: &[Float<B>; 2],
    ) -> Option<(Float<B>, [Float<B>; 2])> {
        let saved = [gate.clone(), up.clone()];
        let y = elementwise::<B>(live, 0, saved.to_vec(), &[gate.shape().dims()])?.pop()?;
        Some((y, saved))
    }

    fn backward_live<B: Kernels>(
        &self,
        live: &LivePart,
        [gate, up]: &[Float<B>; 2],
        dy: &Float<B>,
    ) -> Option<[Float<B>; 2]> {
        let inputs = vec![dy.clone(), gate.clone(), up.clone()];
        elementwise::<B>(live, 1, inputs, &[gate.shape().dims(); 2])?
            .try_into()
            .ok()
    }

    fn cost(&self, [gate, _]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let n = gate.iter().product::<usize>() as f64;
        (Cost::new(8.0 * n, 3.0 * n), Cost::new(14.0 * n, 5.0 * n))
    }
}

/// Runs a learner's kernel with one invocation for each element of an output; `None` if the kernel does not fit. `which` is 0 forward,
/// 1 backward.
fn elementwise<B: Kernels>(
    live: &LivePart,
    which: usize,
    inputs: Vec<Float<B>>,
    outputs: &[[usize; 2]],
) -> Option<Vec<Float<B>>> {
    let count = outputs.first()?.iter().product::<usize>() as u64;
    let kernel = LiveKernel {
        live,
        which,
        sizes: &[("N", count)],
        cover: WorkgroupCount::Invocations(count),
        shares: 1,
    };
    B::learner(kernel, inputs, outputs)
}

/// The operation that takes gate and up side by side in one `[n, 2f]` and gives `[n, f]`. One product can then compute both.
#[derive(Clone, Debug)]
pub struct PackedActivation {
    /// True if the activation is one kernel of our own.
    pub fused: bool,
    /// The format of the products that read the activation, and of those that read its gradient. Our kernel writes this format.
    pub format: Format,
}

impl Operation<1> for PackedActivation {
    const NAME: &'static str = "swiglu";

    type Saved<B: Kernels> = Float<B>;

    fn version(&self) -> &'static str {
        if self.fused { "own" } else { "library" }
    }

    fn forward<B: Kernels>(&self, [packed]: [Float<B>; 1]) -> (Float<B>, Float<B>) {
        let y = if self.fused {
            <B as FusedSwiglu>::forward(packed.clone(), self.format)
        } else {
            reference::forward::<B>(reference::halves::<B>(packed.clone()))
        };
        (y, packed)
    }

    fn backward<B: Kernels>(&self, packed: Float<B>, dy: Float<B>) -> [Float<B>; 1] {
        if self.fused {
            return [<B as FusedSwiglu>::backward(packed, dy, self.format)];
        }
        let gradients = reference::backward::<B>(reference::halves::<B>(packed), dy);
        [B::float_cat(gradients.into(), 1)] // [n, 2f]
    }

    fn cost(&self, [packed]: &[Vec<usize>; 1]) -> (Cost, Cost) {
        let n = packed.iter().product::<usize>() as f64 / 2.0;
        let written = n * self.format.written(self.fused);
        (
            Cost::new(8.0 * n, 2.0 * n + written),
            Cost::new(14.0 * n, 3.0 * n + 2.0 * written),
        )
    }
}

/// The operation of stage 4: from x `[n, d]`, W_gate and W_up `[f, d]` it gives silu(x·W_gateᵀ)·(x·W_upᵀ) `[n, f]`. Each output is computed by
/// one invocation, which reads two whole rows of weights and reuses nothing. The backward pass uses the version of products in `matmul`.
#[derive(Clone, Debug)]
pub struct NaiveSwiglu {
    pub matmul: Matmul,
}

impl Operation<3> for NaiveSwiglu {
    const NAME: &'static str = "naive-swiglu";

    /// The backward pass needs the inputs, the gates and the ups.
    type Saved<B: Kernels> = [Float<B>; 5];

    fn version(&self) -> &'static str {
        "naive"
    }

    fn forward<B: Kernels>(&self, [x, w_gate, w_up]: [Float<B>; 3]) -> (Float<B>, [Float<B>; 5]) {
        let [y, gate, up] = <B as NaiveGates>::forward([x.clone(), w_gate.clone(), w_up.clone()]);
        (y, [x, w_gate, w_up, gate, up])
    }

    fn backward<B: Kernels>(&self, saved: [Float<B>; 5], dy: Float<B>) -> [Float<B>; 3] {
        let [x, w_gate, w_up, gate, up] = saved;
        let [dgate, dup] = reference::backward::<B>([gate, up], dy);
        let gradients = |all| linear::backward::<B>(self.matmul, Format::Full, all);
        let [dx_gate, dw_gate] = gradients([x.clone(), w_gate, dgate]);
        let [dx_up, dw_up] = gradients([x, w_up, dup]);
        [B::float_add(dx_gate, dx_up), dw_gate, dw_up]
    }

    fn cost(&self, [x, w, _]: &[Vec<usize>; 3]) -> (Cost, Cost) {
        let n = x[0] as f64;
        let d = x[1] as f64;
        let f = w[0] as f64;
        let products = 4.0 * n * d * f;
        let forward = Cost::new(products + 8.0 * n * f, n * d + 2.0 * f * d + 3.0 * n * f);
        let backward = Cost::new(
            2.0 * products + 14.0 * n * f,
            2.0 * (n * d + 2.0 * f * d + 2.0 * n * f) + 5.0 * n * f,
        );
        (forward, backward)
    }
}
