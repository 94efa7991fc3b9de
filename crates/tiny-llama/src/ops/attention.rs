//! Causal attention with grouped key and value heads: softmax(q·kᵀ/√dh + mask)·v (Vaswani et al., 2017, arXiv
//! 1706.03762; Ainslie et al., 2023, arXiv 2305.13245).
//!
//! With P the probabilities and dP = dO·vᵀ: dv = Pᵀ·dO, dS = P∘(dP − rowsum(dP∘P))/√dh, dq = dS·k, dk = dSᵀ·q.
//! Versions: composed (scores in memory, library primitives), kernel (one kernel that reads explicit strides, stage 2), flash
//! (scores stay in tiles, online softmax; Dao et al., 2022, arXiv 2205.14135).

use burn::backend::TensorMetadata;
use burn::tensor::{Shape, Slice, Tensor, TensorData};

use super::format::Format;
pub use super::shapes::Attention;
use super::shapes::{Rope, Rows};
use super::{Cost, Float, Kernels, Operation, backend, gpu};
use protocol::config::{Attention as Version, KvLayout};

/// Tensors that the forward pass saves.
#[derive(Clone, Debug)]
pub enum Saved<T> {
    /// Output and logsumexp; the backward pass computes the scores again, tile by tile.
    Flash { rows: Rows<T>, out: T, lse: T },
    /// The probabilities; `None` if one of our kernels computed the scores.
    Scores {
        qkv: [T; 3],
        probabilities: Option<T>,
    },
}

impl Attention {
    fn name_of_version(&self) -> &'static str {
        match (self.version, self.layout) {
            (Version::Composed, KvLayout::Contiguous) => "library",
            (Version::Flash, _) => "flash",
            (_, KvLayout::Contiguous) => "kernel, contiguous",
            (_, KvLayout::Strided) => "kernel, strided",
            (_, KvLayout::Assumed) => "kernel, assumed",
        }
    }

    /// Composed attention keeps the scores. Flash attention recomputes them in its backward pass, which has five products; the forward
    /// pass has two (Dao, 2023, arXiv 2307.08691).
    fn cost_of_rows(&self, rows: usize) -> (Cost, Cost) {
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

    /// Whether the products before it rotate q and k of x `[n, d]`, and this operation rotates their gradients back. Its own products
    /// then run on matrix cores, if the run has any.
    pub fn takes_rotated(&self, x: &Tensor<2>) -> bool {
        let sizes = self.sizes(x.dims()[0]);
        self.version == Version::Flash
            && match self.format {
                Format::Native => gpu::attention_cores::fits(&sizes),
                Format::Full => backend::rotates_in_f32(x, &sizes),
                Format::Split | Format::Emulated(_) => false,
            }
    }

    fn run<B: Kernels>(&self, rows: Rows<Float<B>>) -> (Float<B>, Saved<Float<B>>) {
        let sizes = self.sizes(rows.first().shape()[0]);
        let half = self.rope.is_some() && self.format == Format::Native;
        let rows = if half {
            rows
        } else {
            rows.map(|it| B::rounded_operand(it, self.format))
        };
        let flash = (self.version == Version::Flash).then(|| B::flash(&rows, sizes, half));
        if let Some((out, lse)) = flash.flatten() {
            let saved = Saved::Flash {
                rows,
                out: out.clone(),
                lse,
            };
            return (out, saved);
        }
        let qkv = separate::<B>(rows, self);
        let [q, k, v] = qkv.clone();
        let reads_strides = self.version == Version::Kernel
            || (self.version == Version::Composed && self.layout != KvLayout::Contiguous);
        let (out, probabilities) = if reads_strides {
            let [k, v] = [k, v].map(|x| split::<B>(x, self.kv_heads, self)); // [b, kv, t, dh]
            let q = split::<B>(q, self.heads, self); // [b, h, t, dh]
            (B::strided_attention([q, k, v], self), None)
        } else {
            // The plain reference: all probabilities in memory.
            let p = scores::<B>(q, k, self); // [b, h, t, t]
            let v = repeat::<B>(split::<B>(v, self.kv_heads, self), self); // [b, h, t, dh]
            (merge::<B>(B::float_matmul(p.clone(), v), self), Some(p))
        };
        (out, Saved::Scores { qkv, probabilities })
    }

    /// dq, dk and dv.
    fn gradients<B: Kernels>(&self, saved: Saved<Float<B>>, dy: Float<B>) -> Rows<Float<B>> {
        match saved {
            Saved::Flash { rows, out, lse } => {
                let sizes = self.sizes(dy.shape()[0]);
                let tables = self.rope.as_ref().map(Rope::tables::<B>);
                let dy = match tables {
                    Some(_) => dy,
                    None => B::rounded_operand(dy, self.format),
                };
                B::flash_backward(&rows, [out, lse, dy], sizes, tables)
            }
            Saved::Scores {
                qkv: [q, k, v],
                probabilities,
            } => {
                let p = probabilities.unwrap_or_else(|| scores::<B>(q.clone(), k.clone(), self));
                let dy = B::rounded_operand(dy, self.format);
                Rows::Separate(backward::<B>(q, k, v, p, dy, self))
            }
        }
    }
}

/// q `[n, heads·dh]`, k and v `[n, kv_heads·dh]` → `[n, heads·dh]`.
impl Operation<3> for Attention {
    const NAME: &'static str = "attention";

    type Saved<B: Kernels> = Saved<Float<B>>;

    fn version(&self) -> &'static str {
        self.name_of_version()
    }

    fn forward<B: Kernels>(&self, qkv: [Float<B>; 3]) -> (Float<B>, Saved<Float<B>>) {
        self.run::<B>(Rows::Separate(qkv))
    }

    fn backward<B: Kernels>(&self, saved: Saved<Float<B>>, dy: Float<B>) -> [Float<B>; 3] {
        separate::<B>(self.gradients::<B>(saved, dy), self)
    }

    fn cost(&self, [q, ..]: &[Vec<usize>; 3]) -> (Cost, Cost) {
        self.cost_of_rows(q[0])
    }
}

/// q, k and v side by side in one `[n, (heads + 2·kv_heads)·dh]` → `[n, heads·dh]`.
impl Operation<1> for Attention {
    const NAME: &'static str = "attention";

    type Saved<B: Kernels> = Saved<Float<B>>;

    fn version(&self) -> &'static str {
        self.name_of_version()
    }

    fn forward<B: Kernels>(&self, [x]: [Float<B>; 1]) -> (Float<B>, Saved<Float<B>>) {
        self.run::<B>(Rows::Packed(x))
    }

    fn backward<B: Kernels>(&self, saved: Saved<Float<B>>, dy: Float<B>) -> [Float<B>; 1] {
        [match self.gradients::<B>(saved, dy) {
            Rows::Packed(one) => one,
            Rows::Separate(all) => B::float_cat(all.into(), 1),
        }]
    }

    fn cost(&self, [x]: &[Vec<usize>; 1]) -> (Cost, Cost) {
        self.cost_of_rows(x[0])
    }
}

/// 0 on and below the diagonal, −∞ above, row-major.
pub fn causal_mask(context: usize) -> Vec<f32> {
    let above = |index: usize| index % context > index / context;
    (0..context * context)
        .map(|index| if above(index) { f32::NEG_INFINITY } else { 0.0 })
        .collect()
}

/// q `[n, heads·dh]`, k and v `[n, kv_heads·dh]` as separate tensors.
fn separate<B: Kernels>(rows: Rows<Float<B>>, a: &Attention) -> [Float<B>; 3] {
    match rows {
        Rows::Separate(all) => all,
        Rows::Packed(one) => {
            let [q, k, v] = a.sizes(0).widths();
            [0..q, q..q + k, q + k..q + k + v]
                .map(|range| B::float_slice(one.clone(), &[Slice::full(), Slice::from(range)]))
        }
    }
}

/// `[n, h·dh]` → a view `[b, h, t, dh]`; nothing is copied.
fn split<B: Kernels>(x: Float<B>, heads: usize, a: &Attention) -> Float<B> {
    let batch = x.shape()[0] / a.context;
    let x = B::float_reshape(x, Shape::from([batch, a.context, heads, a.head_dim])); // [b, t, h, dh]
    B::float_swap_dims(x, 1, 2) // [b, h, t, dh]
}

/// `[b, h, t, dh]` → `[n, h·dh]`; a copy.
fn merge<B: Kernels>(x: Float<B>, a: &Attention) -> Float<B> {
    let [batch, heads, ..] = x.shape().dims::<4>();
    let x = B::float_swap_dims(x, 1, 2); // [b, t, h, dh]
    B::float_reshape(x, Shape::from([batch * a.context, heads * a.head_dim]))
}

/// `[b, kv, t, dh]` → `[b, h, t, dh]`: repeats each key or value head for the query heads of its group.
fn repeat<B: Kernels>(x: Float<B>, a: &Attention) -> Float<B> {
    let group = a.heads / a.kv_heads;
    if group == 1 {
        return x;
    }
    let (b, kv, t, dh) = (x.shape()[0], a.kv_heads, a.context, a.head_dim);
    let x = B::float_reshape(x, Shape::from([b, kv, 1, t, dh]));
    let x = B::float_expand(x, Shape::from([b, kv, group, t, dh]));
    B::float_reshape(x, Shape::from([b, a.heads, t, dh]))
}

/// The sum over each group, which is the gradient of `repeat`.
fn gather<B: Kernels>(x: Float<B>, a: &Attention) -> Float<B> {
    let group = a.heads / a.kv_heads;
    if group == 1 {
        return x;
    }
    let (b, kv, t, dh) = (x.shape()[0], a.kv_heads, a.context, a.head_dim);
    let x = B::float_reshape(x, Shape::from([b, kv, group, t * dh]));
    let x = B::float_sum_dim(x, 2); // [b, kv, 1, t·dh]
    B::float_reshape(x, Shape::from([b, kv, t, dh]))
}

/// Probabilities `[b, h, t, t]`, from primitives.
fn scores<B: Kernels>(q: Float<B>, k: Float<B>, a: &Attention) -> Float<B> {
    let q = split::<B>(q, a.heads, a); // [b, h, t, dh]
    let k = repeat::<B>(split::<B>(k, a.kv_heads, a), a); // [b, h, t, dh]
    let scale = 1.0 / (a.head_dim as f64).sqrt();
    let s = B::float_matmul(q, B::float_swap_dims(k, 2, 3)); // [b, h, t, t]
    let mask = match &a.mask {
        Some(mask) => B::constant(mask),
        None => {
            let data = TensorData::new(causal_mask(a.context), [a.context, a.context]);
            B::float_from_data(data, &s.device())
        }
    };
    let mask = B::float_reshape(mask, Shape::from([1, 1, a.context, a.context]));
    let s = B::float_add(B::float_mul_scalar(s, scale.into()), mask);
    B::softmax(s, 3)
}

/// dq, dk and dv with the shapes of q, k and v, from primitives.
fn backward<B: Kernels>(
    q: Float<B>,
    k: Float<B>,
    v: Float<B>,
    p: Float<B>,
    dy: Float<B>,
    a: &Attention,
) -> [Float<B>; 3] {
    let q = split::<B>(q, a.heads, a); // [b, h, t, dh]
    let k = repeat::<B>(split::<B>(k, a.kv_heads, a), a);
    let v = repeat::<B>(split::<B>(v, a.kv_heads, a), a);
    let dy = split::<B>(dy, a.heads, a); // [b, h, t, dh]
    let dv = B::float_matmul(B::float_swap_dims(p.clone(), 2, 3), dy.clone()); // [b, h, t, dh]
    let dp = B::float_matmul(dy, B::float_swap_dims(v, 2, 3)); // [b, h, t, t]
    let row = B::float_sum_dim(B::float_mul(dp.clone(), p.clone()), 3); // [b, h, t, 1]
    let scale = 1.0 / (a.head_dim as f64).sqrt();
    let ds = B::float_mul_scalar(B::float_mul(p, B::float_sub(dp, row)), scale.into()); // [b, h, t, t]
    let dq = B::float_matmul(ds.clone(), k); // [b, h, t, dh]
    let dk = B::float_matmul(B::float_swap_dims(ds, 2, 3), q); // [b, h, t, dh]
    [
        merge::<B>(dq, a),
        merge::<B>(gather::<B>(dk, a), a),
        merge::<B>(gather::<B>(dv, a), a),
    ]
}
