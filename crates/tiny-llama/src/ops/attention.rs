//! Causal attention with grouped key and value heads: softmax(q·kᵀ/√dh + mask)·v (Vaswani et al., 2017, arXiv
//! 1706.03762; Ainslie et al., 2023, arXiv 2305.13245).
//!
//! With P the probabilities and dP = dO·vᵀ: dv = Pᵀ·dO, dS = P∘(dP − rowsum(dP∘P))/√dh, dq = dS·k, dk = dSᵀ·q.
//!
//! There are three versions. `composed` keeps the scores in memory and uses the library's primitives. `kernel`, of stage 2, is one kernel that
//! reads q, k and v by explicit strides. `flash` keeps scores in tiles, with an online softmax (Dao et al., 2022, arXiv 2205.14135).

mod fused_cpu;
mod fused_gpu;
mod naive_cpu;
mod naive_gpu;
mod reference;

use burn::backend::{Backend, Cube, TensorMetadata};
use burn::tensor::{Slice, Tensor};

use super::backend::is_cpu;
use super::format::Format;
use super::fusion::Fusion;
pub use super::shapes::Attention;
use super::shapes::{Heads, QkvRows, Rope};
use super::{Cost, Float, Kernels, Operation};
use protocol::config::{Attention as Version, KvLayout};

/// The tensors that the forward pass saves for the backward pass.
#[derive(Clone, Debug)]
pub enum Saved<T> {
    /// The inputs, the output and the logsumexp of the scores. The backward pass computes the scores again, tile by tile.
    Flash { rows: QkvRows<T>, out: T, lse: T },
    /// The inputs and the probabilities, which are `None` if stage 2's kernel computed the output.
    Scores {
        qkv: [T; 3],
        probabilities: Option<T>,
    },
}

/// A device's own kernels for flash attention.
pub trait FusedAttention: Backend {
    /// Returns the output `[n, heads·dh]`, and the logsumexp of the scores of each row and head; `None` if no kernel fits the sizes. With
    /// `half` the rows are f16 on matrix cores, for which `fused_gpu::matrix_cores::fits` must be true.
    fn forward(rows: &QkvRows<Float<Self>>, sizes: Heads, half: bool) -> Option<[Float<Self>; 2]>;
    /// Returns dq, dk and dv in the form of `rows`. `saved` are the output, the logsumexp and the gradient of the output. With `tables`, cos
    /// and sin, q and k were rotated, and dq and dk are rotated back.
    fn backward(
        rows: &QkvRows<Float<Self>>,
        saved: [Float<Self>; 3],
        sizes: Heads,
        tables: Option<[Float<Self>; 2]>,
    ) -> QkvRows<Float<Self>>;
}

/// A device's naive kernel for stage 2.
pub trait NaiveAttention: Backend {
    /// Returns the output `[n, heads·dh]` of q `[b, h, t, dh]`, k and v `[b, kv, t, dh]`, which are views with any strides. By `a.layout` the
    /// kernel reads a contiguous copy, or the view by its strides, or the view wrongly by the strides of a contiguous tensor.
    fn forward(qkv: [Float<Self>; 3], a: &Attention) -> Float<Self>;
}

impl Attention {
    /// Returns true if the products before attention rotate q and k, and attention rotates their gradients back. `x` `[n, d]` gives the number
    /// of rows and the device. Attention's own products then run on matrix cores, if the run has any.
    pub fn takes_rotated(&self, x: &Tensor<2>) -> bool {
        let sizes = self.sizes(x.dims()[0]);
        let on_gpu = Fusion::RopeInProduct.is_on() && !is_cpu(&x.device());
        on_gpu
            && self.version == Version::Flash
            && match self.format {
                Format::Native => fused_gpu::matrix_cores::fits(&sizes),
                Format::Full => fused_gpu::full::rotates(&sizes, &Cube::constant(x)),
                Format::Split | Format::Emulated(_) => false,
            }
    }

    /// Computes the output of `rows` by the version that runs, and the tensors that the backward pass needs.
    fn run<B: Kernels>(&self, rows: QkvRows<Float<B>>) -> (Float<B>, Saved<Float<B>>) {
        let sizes = self.sizes(rows.first().shape()[0]);
        let half = self.rope.is_some() && self.format == Format::Native;
        let rows = if half {
            rows
        } else {
            rows.map(|rows| B::rounded_operand(rows, self.format))
        };
        if self.version == Version::Flash
            && let Some([out, lse]) = <B as FusedAttention>::forward(&rows, sizes, half)
        {
            let saved = Saved::Flash {
                rows,
                out: out.clone(),
                lse,
            };
            return (out, saved);
        }
        let qkv = separate::<B>(rows, self);
        let reads_strides = self.version == Version::Kernel
            || (self.version == Version::Composed && self.layout != KvLayout::Contiguous);
        let (out, probabilities) = if reads_strides {
            let [q, k, v] = qkv.clone();
            let views = [(q, self.heads), (k, self.kv_heads), (v, self.kv_heads)]
                .map(|(x, heads)| reference::split::<B>(x, heads, self)); // [b, heads, t, dh]
            (<B as NaiveAttention>::forward(views, self), None)
        } else {
            let [out, p] = reference::forward::<B>(qkv.clone(), self);
            (out, Some(p))
        };
        (out, Saved::Scores { qkv, probabilities })
    }

    /// Returns dq, dk and dv.
    fn gradients<B: Kernels>(&self, saved: Saved<Float<B>>, dy: Float<B>) -> QkvRows<Float<B>> {
        match saved {
            Saved::Flash { rows, out, lse } => {
                let sizes = self.sizes(dy.shape()[0]);
                let tables = self.rope.as_ref().map(Rope::tables::<B>);
                let dy = match tables {
                    Some(_) => dy,
                    None => B::rounded_operand(dy, self.format),
                };
                <B as FusedAttention>::backward(&rows, [out, lse, dy], sizes, tables)
            }
            Saved::Scores {
                qkv: [q, k, v],
                probabilities,
            } => {
                let recomputed = || reference::probabilities::<B>(q.clone(), k.clone(), self);
                let p = probabilities.unwrap_or_else(recomputed);
                let dy = B::rounded_operand(dy, self.format);
                QkvRows::Separate(reference::backward::<B>([q, k, v, p], dy, self))
            }
        }
    }
}

/// The operation takes q `[n, heads·dh]`, k and v `[n, kv_heads·dh]`, or all three side by side in one `[n, (heads + 2·kv_heads)·dh]`. It
/// gives `[n, heads·dh]`.
impl<const N: usize> Operation<N> for Attention {
    const NAME: &'static str = "attention";

    type Saved<B: Kernels> = Saved<Float<B>>;

    fn version(&self) -> &'static str {
        match (self.version, self.layout) {
            (Version::Composed, KvLayout::Contiguous) => "library",
            (Version::Flash, _) => "flash",
            (_, KvLayout::Contiguous) => "kernel, contiguous",
            (_, KvLayout::Strided) => "kernel, strided",
            (_, KvLayout::Assumed) => "kernel, assumed",
        }
    }

    fn forward<B: Kernels>(&self, inputs: [Float<B>; N]) -> (Float<B>, Saved<Float<B>>) {
        let rows = match &inputs[..] {
            [q, k, v] => QkvRows::Separate([q, k, v].map(Float::<B>::clone)),
            packed => QkvRows::Packed(packed[0].clone()),
        };
        self.run::<B>(rows)
    }

    fn backward<B: Kernels>(&self, saved: Saved<Float<B>>, dy: Float<B>) -> [Float<B>; N] {
        let gradients = match self.gradients::<B>(saved, dy) {
            QkvRows::Packed(packed) if N == 1 => vec![packed],
            QkvRows::Separate(all) if N == 1 => vec![B::float_cat(all.into(), 1)],
            rows => separate::<B>(rows, self).to_vec(),
        };
        std::array::from_fn(|i| gradients[i].clone())
    }

    /// Composed attention keeps the scores. Flash attention recomputes them in its backward pass, which has five products; the forward
    /// pass has two (Dao, 2023, arXiv 2307.08691).
    fn cost(&self, shapes: &[Vec<usize>; N]) -> (Cost, Cost) {
        let rows = shapes[0][0];
        let n = rows as f64;
        let t = self.context as f64;
        let [d, kv, _] = self.sizes(rows).widths().map(|width| width as f64);
        let flops = 4.0 * n * self.version.keys(self.context) * d;
        let elements = 2.0 * n * d + 2.0 * n * kv;
        let (scores, backward_flops) = if self.version == Version::Flash {
            (0.0, 2.5 * flops)
        } else {
            (4.0 * n * t * self.heads as f64, 2.0 * flops)
        };
        (
            Cost::new(flops, elements + scores),
            Cost::new(backward_flops, 2.0 * elements + 2.0 * scores),
        )
    }
}

/// Returns a matrix that is 0 on and below the diagonal and −∞ above, row-major.
pub fn causal_mask(context: usize) -> Vec<f32> {
    let is_above_diagonal = |index: usize| index % context > index / context;
    (0..context * context)
        .map(|index| {
            if is_above_diagonal(index) {
                f32::NEG_INFINITY
            } else {
                0.0
            }
        })
        .collect()
}

/// Returns q `[n, heads·dh]`, k and v `[n, kv_heads·dh]` as separate tensors.
fn separate<B: Kernels>(rows: QkvRows<Float<B>>, a: &Attention) -> [Float<B>; 3] {
    match rows {
        QkvRows::Separate(all) => all,
        QkvRows::Packed(packed) => {
            let [q, k, v] = a.sizes(0).widths();
            [0..q, q..q + k, q + k..q + k + v]
                .map(|range| B::float_slice(packed.clone(), &[Slice::full(), Slice::from(range)]))
        }
    }
}
