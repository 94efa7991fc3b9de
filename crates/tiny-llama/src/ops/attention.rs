//! Causal attention with grouped key and value heads: softmax(q·kᵀ/√dh + mask)·v (Vaswani et al., 2017, arXiv
//! 1706.03762; Ainslie et al., 2023, arXiv 2305.13245).
//!
//! With P the probabilities and dP = dO·vᵀ: dv = Pᵀ·dO, dS = P∘(dP − rowsum(dP∘P))/√dh, dq = dS·k, dk = dSᵀ·q.
//! Versions: composed (scores in memory, library primitives), kernel (one kernel that reads explicit strides, stage 2), flash
//! (scores stay in tiles, online softmax; Dao et al., 2022, arXiv 2205.14135).

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
    /// These are output and logsumexp. The backward pass computes the scores again, tile by tile.
    Flash { rows: QkvRows<T>, out: T, lse: T },
    /// These are the probabilities; `None` if one of our kernels computed the scores.
    Scores {
        qkv: [T; 3],
        probabilities: Option<T>,
    },
}

/// Each device has kernels of its own for attention, in which scores stay in tiles.
pub trait FusedAttention: Backend {
    /// Output `[n, heads·dh]`, and logsumexp of the scores for each row and head; `None` if no kernel fits the sizes. With `half` the
    /// products take f16, which requires `fused_gpu::matrix_cores::fits`.
    fn forward(rows: &QkvRows<Float<Self>>, sizes: Heads, half: bool) -> Option<[Float<Self>; 2]>;
    /// dq, dk and dv in the form of `rows`, from output, logsumexp and the output's gradient. With `tables`, cos and sin, the gradients
    /// are those of q and k before their rotation by these tables.
    fn backward(
        rows: &QkvRows<Float<Self>>,
        saved: [Float<Self>; 3],
        sizes: Heads,
        tables: Option<[Float<Self>; 2]>,
    ) -> QkvRows<Float<Self>>;
}

/// Each device has a naive kernel for stage 2.
pub trait NaiveAttention: Backend {
    /// q `[b, h, t, dh]`, k and v `[b, kv, t, dh]`, views with any strides → `[n, heads·dh]`. `a.layout` decides whether the kernel reads a
    /// contiguous copy, the strides of the view, or wrongly the strides of a contiguous tensor.
    fn forward(qkv: [Float<Self>; 3], a: &Attention) -> Float<Self>;
}

impl Attention {
    /// Returns true if the products before it rotate q and k of x `[n, d]`, and this operation rotates their gradients back. Its own products
    /// then run on matrix cores, if the run has any.
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

    fn run<B: Kernels>(&self, rows: QkvRows<Float<B>>) -> (Float<B>, Saved<Float<B>>) {
        let sizes = self.sizes(rows.first().shape()[0]);
        let half = self.rope.is_some() && self.format == Format::Native;
        let rows = if half {
            rows
        } else {
            rows.map(|it| B::rounded_operand(it, self.format))
        };
        let flash = (self.version == Version::Flash)
            .then(|| <B as FusedAttention>::forward(&rows, sizes, half));
        if let Some([out, lse]) = flash.flatten() {
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
            let views = [(q, self.heads), (k, self.kv_heads), (v, self.kv_heads)];
            let views = views.map(|(x, heads)| reference::split::<B>(x, heads, self)); // [b, heads, t, dh]
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
                let again = || reference::probabilities::<B>(q.clone(), k.clone(), self);
                let p = probabilities.unwrap_or_else(again);
                let dy = B::rounded_operand(dy, self.format);
                QkvRows::Separate(reference::backward::<B>([q, k, v, p], dy, self))
            }
        }
    }
}

/// q `[n, heads·dh]`, k and v `[n, kv_heads·dh]`, or all three side by side in one `[n, (heads + 2·kv_heads)·dh]` → `[n, heads·dh]`.
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
        let rows = self.gradients::<B>(saved, dy);
        let all = match rows {
            QkvRows::Packed(one) if N == 1 => vec![one],
            QkvRows::Separate(all) if N == 1 => vec![B::float_cat(all.into(), 1)],
            rows => separate::<B>(rows, self).to_vec(),
        };
        std::array::from_fn(|i| all[i].clone())
    }

    /// Composed attention keeps the scores. Flash attention recomputes them in its backward pass, which has five products; the forward
    /// pass has two (Dao, 2023, arXiv 2307.08691).
    fn cost(&self, shapes: &[Vec<usize>; N]) -> (Cost, Cost) {
        let rows = shapes[0][0];
        let (n, t) = (rows as f64, self.context as f64);
        let [d, kv, _] = self.sizes(rows).widths().map(|width| width as f64);
        let flops = 4.0 * n * self.version.keys(self.context) * d;
        let elements = 2.0 * n * d + 2.0 * n * kv;
        let (scores, again) = if self.version == Version::Flash {
            (0.0, 2.5)
        } else {
            (4.0 * n * t * self.heads as f64, 2.0)
        };
        (
            Cost::new(flops, elements + scores),
            Cost::new(again * flops, 2.0 * elements + 2.0 * scores),
        )
    }
}

/// Returns a matrix that is 0 on and below the diagonal and −∞ above, row-major.
pub fn causal_mask(context: usize) -> Vec<f32> {
    let above = |index: usize| index % context > index / context;
    (0..context * context)
        .map(|index| if above(index) { f32::NEG_INFINITY } else { 0.0 })
        .collect()
}

/// Returns q `[n, heads·dh]`, k and v `[n, kv_heads·dh]` as separate tensors.
fn separate<B: Kernels>(rows: QkvRows<Float<B>>, a: &Attention) -> [Float<B>; 3] {
    match rows {
        QkvRows::Separate(all) => all,
        QkvRows::Packed(one) => {
            let [q, k, v] = a.sizes(0).widths();
            [0..q, q..q + k, q + k..q + k + v]
                .map(|range| B::float_slice(one.clone(), &[Slice::full(), Slice::from(range)]))
        }
    }
}
