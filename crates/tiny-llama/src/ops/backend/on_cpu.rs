//! The kernels of the CPU device: converts burn-flex tensors to the slices of `ops/cpu`.

use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Int, Shape, Tensor, TensorData};

use super::{Float, Ints, Kernels, primitive};
use crate::ops::cpu::matmul::{Matrix, matmul, matmuls};
use crate::ops::cpu::strided_attention::Strided;
use crate::ops::cpu::{self, swiglu_naive};
use crate::ops::format::Format;
use crate::ops::pending::{ForNorm, Pending, UnfinishedNorm};
use crate::ops::shapes::{Attention, Heads, NextOperation, Rotation, Rows};
use protocol::config::{KvLayout, NORM_EPS, Precision};

/// A tensor of burn-flex.
type T = Float<Flex>;

/// The values of a contiguous tensor.
struct Values(T);

impl Values {
    fn of(tensor: &T) -> Self {
        Self(tensor.to_contiguous())
    }

    fn get(&self) -> &[f32] {
        self.0
            .as_slice::<f32>()
            .expect("contiguous f32, made by `of`")
    }

    fn matrix(&self) -> Matrix<'_> {
        let [rows, columns] = self.0.shape().dims();
        Matrix::new(self.get(), rows, columns)
    }
}

fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> T {
    T::from_data(TensorData::new(values, shape.into()))
}

fn tokens(indices: Ints<Flex>) -> Vec<i32> {
    indices.to_contiguous().into_data().iter::<i32>().collect()
}
/// How the strided kernel reads a `[b, h, t, dh]` view.
fn strided(view: &T, layout: KvLayout) -> Strided<'_> {
    let (offset, strides) = if layout == KvLayout::Strided {
        (view.layout().start_offset(), super::flex_strides(view))
    } else {
        // Strides of a contiguous [b, h, t, dh]: right for a copy, wrong for a view.
        let [_, h, t, dh] = view.shape().dims();
        (0, vec![h * t * dh, t * dh, dh, 1])
    };
    Strided {
        data: view.storage::<f32>(),
        offset,
        strides: [strides[0], strides[2], strides[1], strides[3]],
    }
}

impl Kernels for Flex {
    fn indices(tokens: &Tensor<1, Int>) -> Ints<Self> {
        let tokens = tokens
            .clone()
            .without_autodiff()
            .try_into_primitive::<Self>();
        tokens.expect("tokens live on the model's device")
    }

    fn constant(table: &Tensor<2>) -> T {
        primitive::<Self>(table.clone().without_autodiff())
    }

    fn rounded(x: T, format: Precision) -> T {
        let rounded = cpu::format::rounded(Values::of(&x).get(), format);
        tensor(rounded, x.shape())
    }

    fn half(x: T) -> T {
        Self::rounded(x, Precision::F16)
    }

    fn linear_own(
        x: T,
        w: T,
        _format: Format,
        _norm: Option<UnfinishedNorm>,
        then: &NextOperation,
    ) -> T {
        let is_plain = matches!(then, NextOperation::Nothing);
        debug_assert!(is_plain, "{then:?} on the CPU");
        let (n, m) = (x.shape()[0], w.shape()[0]);
        let [x, w] = [&x, &w].map(Values::of);
        let product = matmul(None, x.matrix(), w.matrix().transposed());
        tensor(product, [n, m])
    }

    fn linear_residual(x: T, w: T, residual: T, _format: Format, _pending: Option<&ForNorm>) -> T {
        let shape = residual.shape();
        let [x, w, residual] = [&x, &w, &residual].map(Values::of);
        let (x, w) = (x.matrix(), w.matrix().transposed());
        tensor(matmul(Some(residual.get()), x, w), shape)
    }

    fn linear_backward_own(
        dy: T,
        x: T,
        w: T,
        _format: Format,
        _in_parts: bool,
        gated: Option<T>,
    ) -> [T; 2] {
        debug_assert!(gated.is_none(), "no product has gates on the CPU");
        let (of_x, of_w) = (x.shape(), w.shape());
        let [dy, x, w] = [&dy, &x, &w].map(Values::of);
        let (dy, x, w) = (dy.matrix(), x.matrix(), w.matrix());
        let [dx, dw] = matmuls([(None, dy, w), (None, dy.transposed(), x)]);
        [tensor(dx, of_x), tensor(dw, of_w)]
    }

    fn rms_norm(
        x: T,
        gain: T,
        _format: Format,
        _pending: Option<&ForNorm>,
        _unfinished: Option<&Pending<UnfinishedNorm>>,
    ) -> (T, T) {
        let shape = x.shape();
        let [x, gain] = [&x, &gain].map(Values::of);
        let (y, inverse) = cpu::rms_norm::forward(x.get(), gain.get(), NORM_EPS as f32);
        let rows = shape[0];
        (tensor(y, shape), tensor(inverse, [rows, 1]))
    }

    fn rms_norm_backward(
        x: T,
        gain: T,
        inverse: T,
        dy: T,
        earlier: Option<T>,
        _: Option<&Pending<Tensor<2>>>,
    ) -> (T, T) {
        let shape = x.shape();
        let [x, gain, inverse, dy] = [&x, &gain, &inverse, &dy].map(Values::of);
        let earlier = earlier.as_ref().map(Values::of);
        let earlier = earlier.as_ref().map(Values::get);
        let (dx, dgain) =
            cpu::rms_norm::backward(dy.get(), x.get(), gain.get(), inverse.get(), earlier);
        let width = shape[1];
        (tensor(dx, shape), tensor(dgain, [1, width]))
    }

    fn rope(x: T, cos: T, sin: T, rotation: Rotation, _format: Format) -> T {
        let shape = x.shape();
        let [x, cos, sin] = [&x, &cos, &sin].map(Values::of);
        let y = cpu::rope::rotate(x.get(), cos.get(), sin.get(), rotation);
        tensor(y, shape)
    }

    fn swiglu_packed(packed: T, _format: Format) -> T {
        let [n, w] = packed.shape().dims();
        let y = cpu::swiglu::forward(Values::of(&packed).get(), w / 2);
        tensor(y, [n, w / 2])
    }

    fn swiglu_packed_backward(packed: T, dy: T, _format: Format) -> T {
        let shape = packed.shape();
        let [packed, dy] = [&packed, &dy].map(Values::of);
        let dpacked = cpu::swiglu::backward(dy.get(), packed.get(), shape[1] / 2);
        tensor(dpacked, shape)
    }

    fn naive_swiglu(x: T, w_gate: T, w_up: T) -> [T; 3] {
        let ([n, k], f) = (x.shape().dims(), w_gate.shape()[0]);
        let [x, w_gate, w_up] = [&x, &w_gate, &w_up].map(Values::of);
        swiglu_naive::forward(x.get(), w_gate.get(), w_up.get(), [n, f, k])
            .map(|values| tensor(values, [n, f]))
    }

    fn flash(rows: &Rows<T>, sizes: Heads, _half: bool) -> Option<(T, T)> {
        let values = rows.as_ref().map(Values::of);
        let (out, lse) = cpu::attention::forward(values.as_ref().map(Values::get), sizes);
        let [n, width] = [sizes.rows(), sizes.heads * sizes.head_dim];
        Some((tensor(out, [n, width]), tensor(lse, [n, sizes.heads])))
    }

    fn flash_backward(
        rows: &Rows<T>,
        saved: [T; 3],
        sizes: Heads,
        tables: Option<[T; 2]>,
    ) -> Rows<T> {
        debug_assert!(tables.is_none(), "no product rotates on the CPU");
        let values = rows.as_ref().map(Values::of);
        let [out, lse, dy] = saved.each_ref().map(Values::of);
        let rows = values.as_ref().map(Values::get);
        cpu::attention::backward(rows, out.get(), lse.get(), dy.get(), sizes).map(|gradient| {
            let width = gradient.len() / sizes.rows();
            tensor(gradient, [sizes.rows(), width])
        })
    }

    fn strided_attention(qkv: [T; 3], a: &Attention) -> T {
        let [batch, heads, time, width] = qkv[0].shape().dims();
        let qkv = match a.layout {
            KvLayout::Contiguous => qkv.map(|view| view.to_contiguous()),
            KvLayout::Strided | KvLayout::Assumed => qkv,
        };
        let views = qkv.each_ref().map(|view| strided(view, a.layout));
        let out = cpu::strided_attention::forward(views, a.sizes(batch * time));
        tensor(out, [batch * time, heads * width])
    }

    fn embedding_own(weight: T, indices: Ints<Self>, _pending: Option<&ForNorm>) -> T {
        let (width, tokens) = (weight.shape()[1], tokens(indices));
        let y = cpu::embedding::forward(Values::of(&weight).get(), &tokens, width);
        tensor(y, [tokens.len(), width])
    }

    fn embedding_backward_own(weight: T, indices: Ints<Self>, dy: T) -> T {
        let shape = weight.shape();
        let dy = Values::of(&dy);
        let dw = cpu::embedding::backward(dy.get(), &tokens(indices), shape.dims());
        tensor(dw, shape)
    }

    fn cross_entropy(logits: T, targets: Ints<Self>, scale: Option<T>, of: usize) -> (T, T) {
        let shape = logits.shape();
        let (logits, targets) = (Values::of(&logits), tokens(targets));
        let scale = scale.map_or(1.0, |scale| Values::of(&scale).get()[0]);
        let (loss, slope) = cpu::cross_entropy::forward_backward(logits.get(), &targets, scale, of);
        (tensor(vec![loss], [1, 1]), tensor(slope, shape))
    }

    fn squares(tensors: &[T]) -> Vec<f64> {
        let sum = |tensor: &T| cpu::norm::sum_of_squares(Values::of(tensor).get());
        tensors.iter().map(sum).collect()
    }

    fn exponents(tensors: &[T]) -> Vec<[u64; 256]> {
        let count = |tensor: &T| cpu::norm::exponents(Values::of(tensor).get());
        tensors.iter().map(count).collect()
    }
}
