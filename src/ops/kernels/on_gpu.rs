//! The kernels of every CubeCL device.

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{Int, Shape, Tensor};

use super::{Float, Ints, Kernels};
use crate::ops::attention::{Attention, Rows};
use crate::ops::rope::Rope;
use crate::ops::{attention, cross_entropy, embedding, linear, rms_norm, rope, swiglu};
use burn::backend::ops::*;

impl Kernels for Cube {
    fn indices(tokens: &Tensor<1, Int>) -> Ints<Self> {
        tokens.clone().without_autodiff().try_into_primitive::<Self>().expect("tokens live on the model's device")
    }

    fn constant(table: &Tensor<2>) -> Float<Self> {
        table.clone().without_autodiff().try_into_primitive::<Self>().expect("tables live on the model's device")
    }

    fn linear_own(x: Float<Self>, w: Float<Self>, residual: Option<Float<Self>>) -> Float<Self> {
        let y = linear::forward::<Self>(x, w);
        match residual {
            Some(residual) => Self::float_add(y, residual),
            None => y,
        }
    }

    fn linear_dx(dy: Float<Self>, w: Float<Self>) -> Float<Self> {
        Self::float_matmul(dy, w)
    }

    fn linear_dw(dy: Float<Self>, x: Float<Self>) -> Float<Self> {
        Self::float_matmul(Self::float_swap_dims(dy, 0, 1), x)
    }

    fn rms_norm(x: Float<Self>, gain: Float<Self>) -> (Float<Self>, Float<Self>) {
        rms_norm::forward::<Self>(x, gain)
    }

    fn rms_norm_backward(x: Float<Self>, gain: Float<Self>, inverse: Float<Self>, dy: Float<Self>) -> (Float<Self>, Float<Self>) {
        rms_norm::backward::<Self>(x, gain, inverse, dy)
    }

    fn rope(x: Float<Self>, cos: Float<Self>, sin: Float<Self>, rope: &Rope, inverse: bool) -> Float<Self> {
        rope::turn::<Self>(x, cos, sin, rope, inverse)
    }

    fn swiglu_packed(packed: Float<Self>) -> Float<Self> {
        swiglu::packed_forward::<Self>(packed)
    }

    fn swiglu_packed_backward(packed: Float<Self>, dy: Float<Self>) -> Float<Self> {
        swiglu::packed_backward::<Self>(packed, dy)
    }

    fn naive_swiglu(x: Float<Self>, w_gate: Float<Self>, w_up: Float<Self>) -> (Float<Self>, Float<Self>, Float<Self>) {
        let gate = linear::forward::<Self>(x.clone(), w_gate);
        let up = linear::forward::<Self>(x, w_up);
        (swiglu::forward::<Self>(gate.clone(), up.clone()), gate, up)
    }

    fn flash(rows: &Rows<Self>, a: &Attention) -> (Float<Self>, Float<Self>) {
        let [q, k, v] = attention::columns::<Self>(rows, a);
        attention::forward::<Self>(q, k, v, a)
    }

    fn flash_backward(rows: &Rows<Self>, _: Float<Self>, lse: Float<Self>, dy: Float<Self>, a: &Attention) -> Vec<Float<Self>> {
        let [q, k, v] = attention::columns::<Self>(rows, a);
        let parts = attention::backward::<Self>(q, k, v, lse, dy, a);
        if rows.packed { vec![Self::float_cat(parts, 1)] } else { parts }
    }

    fn strided_attention(q: Float<Self>, k: Float<Self>, v: Float<Self>, a: &Attention) -> Float<Self> {
        let merge = |x| attention::merge::<Self>(x, a);
        let (out, _) = attention::forward::<Self>(merge(q), merge(k), merge(v), a);
        attention::split::<Self>(out, a.heads, a)
    }

    fn embedding_own(weight: Float<Self>, tokens: Ints<Self>) -> Float<Self> {
        Self::float_select(weight, 0, tokens)
    }

    fn embedding_backward_own(weight: Float<Self>, tokens: Ints<Self>, dy: Float<Self>) -> Float<Self> {
        embedding::backward::<Self>(weight, tokens, dy)
    }

    fn cross_entropy(logits: Float<Self>, targets: Ints<Self>) -> (Float<Self>, Float<Self>) {
        let device = logits.device();
        let (loss, logs) = cross_entropy::forward::<Self>(logits, targets.clone());
        let one = Self::float_ones(Shape::from([1, 1]), &device, burn::tensor::FloatDType::F32);
        (loss, cross_entropy::backward::<Self>(logs, targets, one))
    }

    fn strides(x: &Float<Self>) -> Vec<usize> {
        x.meta.strides().iter().copied().collect()
    }
}
