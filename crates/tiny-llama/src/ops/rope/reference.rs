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
    let (rows, half) = (x.shape()[0], head_dim / 2);
    let (batch, heads) = (rows / context, rotated / head_dim);
    let pairs = if rotated == width {
        x.clone()
    } else {
        B::float_slice(x.clone(), &[Slice::full(), Slice::from(0..rotated)]) // [n, rotated]
    };
    let pairs = B::float_reshape(pairs, Shape::from([batch, context, heads, half, 2])); // [b, t, h, dh/2, 2]
    let pick = |from: usize| {
        let mut slices = vec![Slice::full(); 4];
        slices.push(Slice::from(from..from + 1));
        B::float_slice(pairs.clone(), &slices) // [b, t, h, dh/2, 1]
    };
    let (a, b) = (pick(0), pick(1));
    let table = |t: Float<B>| B::float_reshape(t, Shape::from([1, context, 1, half, 1]));
    let (cos, sin) = (table(cos), table(sin));
    let sin = if inverse { B::float_neg(sin) } else { sin };
    let first = B::float_sub(
        B::float_mul(a.clone(), cos.clone()),
        B::float_mul(b.clone(), sin.clone()),
    );
    let second = B::float_add(B::float_mul(a, sin), B::float_mul(b, cos));
    let pairs = B::float_cat(vec![first, second], 4); // [b, t, h, dh/2, 2]
    let pairs = B::float_reshape(pairs, Shape::from([rows, rotated])); // [n, rotated]
    if rotated == width {
        return pairs;
    }
    let rest = B::float_slice(x, &[Slice::full(), Slice::from(rotated..width)]); // [n, w - rotated]
    B::float_cat(vec![pairs, rest], 1)
}
