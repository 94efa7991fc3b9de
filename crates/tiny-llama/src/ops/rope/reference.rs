//! Rotary position embedding from burn's primitives.

use burn::backend::TensorMetadata;
use burn::tensor::{Shape, Slice};

use crate::ops::shapes::Rotation;
use crate::ops::{Float, Kernels};

/// Rotates the first `rotated` columns of `[n, w]` by cos and sin, with slices and concatenation.
pub(super) fn forward<B: Kernels>(
    x: Float<B>,
    [cos, sin]: [Float<B>; 2],
    rotation: Rotation,
) -> Float<B> {
    let Rotation {
        width,
        rotated,
        head_dim,
        context,
        inverse,
    } = rotation;
    let rows = x.shape()[0];
    let half = head_dim / 2;
    let batch = rows / context;
    let heads = rotated / head_dim;
    let to_rotate = if rotated == width {
        x.clone() // [n, w]
    } else {
        B::float_slice(x.clone(), &[Slice::full(), Slice::from(0..rotated)]) // [n, rotated]
    };
    let pairs = B::float_reshape(to_rotate, Shape::from([batch, context, heads, half, 2])); // [b, t, h, dh/2, 2]
    let member = |index: usize| {
        let mut slices = vec![Slice::full(); 4];
        slices.push(Slice::from(index..index + 1));
        B::float_slice(pairs.clone(), &slices) // [b, t, h, dh/2, 1]
    };
    let a = member(0); // [b, t, h, dh/2, 1]
    let b = member(1); // [b, t, h, dh/2, 1]
    let table = |t: Float<B>| B::float_reshape(t, Shape::from([1, context, 1, half, 1])); // [1, t, 1, dh/2, 1]
    let cos = table(cos);
    let sin = table(if inverse { B::float_neg(sin) } else { sin });
    let first = B::float_sub(
        B::float_mul(a.clone(), cos.clone()),
        B::float_mul(b.clone(), sin.clone()),
    ); // [b, t, h, dh/2, 1]
    let second = B::float_add(B::float_mul(a, sin), B::float_mul(b, cos)); // [b, t, h, dh/2, 1]
    let rotated_pairs = B::float_cat(vec![first, second], 4); // [b, t, h, dh/2, 2]
    let columns = B::float_reshape(rotated_pairs, Shape::from([rows, rotated])); // [n, rotated]
    if rotated == width {
        return columns;
    }
    let rest = B::float_slice(x, &[Slice::full(), Slice::from(rotated..width)]); // [n, w - rotated]
    B::float_cat(vec![columns, rest], 1) // [n, w]
}
