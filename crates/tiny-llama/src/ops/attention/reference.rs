//! Attention from burn's primitives, with all probabilities in memory.

use burn::backend::TensorMetadata;
use burn::tensor::{Shape, TensorData};

use super::{Attention, causal_mask};
use crate::ops::{Float, Kernels};

/// Returns a view `[b, h, t, dh]` of `[n, h·dh]`; nothing is copied.
pub(super) fn split<B: Kernels>(x: Float<B>, heads: usize, a: &Attention) -> Float<B> {
    let batch = x.shape()[0] / a.context;
    let by_token = B::float_reshape(x, Shape::from([batch, a.context, heads, a.head_dim])); // [b, t, h, dh]
    B::float_swap_dims(by_token, 1, 2) // [b, h, t, dh]
}

/// Copies `[b, h, t, dh]` to `[n, h·dh]`.
fn merge<B: Kernels>(x: Float<B>, a: &Attention) -> Float<B> {
    let [batch, heads, ..] = x.shape().dims::<4>();
    let by_token = B::float_swap_dims(x, 1, 2); // [b, t, h, dh]
    B::float_reshape(
        by_token,
        Shape::from([batch * a.context, heads * a.head_dim]),
    ) // [n, h·dh]
}

/// Repeats each key or value head of `[b, kv, t, dh]` for the query heads of its group, which gives `[b, h, t, dh]`.
fn repeat<B: Kernels>(x: Float<B>, a: &Attention) -> Float<B> {
    let group = a.heads / a.kv_heads;
    if group == 1 {
        return x;
    }
    let b = x.shape()[0];
    let kv = a.kv_heads;
    let t = a.context;
    let dh = a.head_dim;
    let single = B::float_reshape(x, Shape::from([b, kv, 1, t, dh])); // [b, kv, 1, t, dh]
    let groups = B::float_expand(single, Shape::from([b, kv, group, t, dh])); // [b, kv, group, t, dh]
    B::float_reshape(groups, Shape::from([b, a.heads, t, dh])) // [b, h, t, dh]
}

/// Returns the sum over each group, `[b, kv, t, dh]` of `[b, h, t, dh]`. This is the gradient of [`repeat`].
fn sum_groups<B: Kernels>(x: Float<B>, a: &Attention) -> Float<B> {
    let group = a.heads / a.kv_heads;
    if group == 1 {
        return x;
    }
    let b = x.shape()[0];
    let kv = a.kv_heads;
    let t = a.context;
    let dh = a.head_dim;
    let groups = B::float_reshape(x, Shape::from([b, kv, group, t * dh])); // [b, kv, group, t·dh]
    let sums = B::float_sum_dim(groups, 2); // [b, kv, 1, t·dh]
    B::float_reshape(sums, Shape::from([b, kv, t, dh])) // [b, kv, t, dh]
}

/// Returns the output `[n, heads·dh]`, and all probabilities `[b, h, t, t]`.
pub(super) fn forward<B: Kernels>([q, k, v]: [Float<B>; 3], a: &Attention) -> [Float<B>; 2] {
    let p = probabilities::<B>(q, k, a); // [b, h, t, t]
    let v = repeat::<B>(split::<B>(v, a.kv_heads, a), a); // [b, h, t, dh]
    [merge::<B>(B::float_matmul(p.clone(), v), a), p]
}

/// Returns the probabilities `[b, h, t, t]`.
pub(super) fn probabilities<B: Kernels>(q: Float<B>, k: Float<B>, a: &Attention) -> Float<B> {
    let q = split::<B>(q, a.heads, a); // [b, h, t, dh]
    let k = repeat::<B>(split::<B>(k, a.kv_heads, a), a); // [b, h, t, dh]
    let scale = 1.0 / (a.head_dim as f64).sqrt();
    let s = B::float_matmul(q, B::float_swap_dims(k, 2, 3)); // [b, h, t, t]
    let mask = match &a.mask {
        Some(mask) => B::constant(mask), // [t, t]
        None => {
            let data = TensorData::new(causal_mask(a.context), [a.context, a.context]);
            B::float_from_data(data, &s.device()) // [t, t]
        }
    };
    let for_all_heads = B::float_reshape(mask, Shape::from([1, 1, a.context, a.context])); // [1, 1, t, t]
    let masked = B::float_add(B::float_mul_scalar(s, scale.into()), for_all_heads); // [b, h, t, t]
    B::softmax(masked, 3)
}

/// Returns dq, dk and dv with the shapes of q, k and v, from q, k, v and the probabilities.
pub(super) fn backward<B: Kernels>(
    [q, k, v, p]: [Float<B>; 4],
    dy: Float<B>,
    a: &Attention,
) -> [Float<B>; 3] {
    let q = split::<B>(q, a.heads, a); // [b, h, t, dh]
    let k = repeat::<B>(split::<B>(k, a.kv_heads, a), a); // [b, h, t, dh]
    let v = repeat::<B>(split::<B>(v, a.kv_heads, a), a); // [b, h, t, dh]
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
        merge::<B>(sum_groups::<B>(dk, a), a),
        merge::<B>(sum_groups::<B>(dv, a), a),
    ]
}
