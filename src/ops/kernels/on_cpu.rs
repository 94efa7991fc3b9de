//! The CPU device's kernels: burn-flex tensors on the outside, the slices of `ops/cpu` inside.

use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Int, Shape, Tensor, TensorData};

use super::{Float, Ints, Kernels, primitive};
use crate::config::{KvLayout, NORM_EPS};
use crate::ops::cpu;
use crate::ops::cpu::attention::{Gradients, View};
use crate::ops::cpu::strided_attention::Strided;
use crate::ops::shapes::{Attention, Heads, Rope, Rows};

/// A tensor of this backend.
type T = FlexTensor;

/// A tensor of burn-flex.
type FlexTensor = Float<Flex>;

/// A contiguous tensor; its values.
struct Values(FlexTensor);

impl Values {
    fn of(tensor: &FlexTensor) -> Self {
        Self(tensor.to_contiguous())
    }

    fn get(&self) -> &[f32] {
        self.0
            .as_slice::<f32>()
            .expect("contiguous f32, made by `of`")
    }
}

fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}

fn tokens(indices: Ints<Flex>) -> Vec<i32> {
    indices.to_contiguous().into_data().iter::<i32>().collect()
}

fn size(tensor: &FlexTensor) -> [usize; 2] {
    let shape = tensor.shape();
    [shape[0], shape[1]]
}

fn views<'a>(values: &'a [Values], packed: bool, shape: Heads) -> [View<'a>; 3] {
    if packed {
        return View::packed(values[0].get(), shape);
    }
    [
        View::separate(values[0].get(), shape, shape.heads),
        View::separate(values[1].get(), shape, shape.kv_heads),
        View::separate(values[2].get(), shape, shape.kv_heads),
    ]
}

fn values(rows: &Rows<FlexTensor>) -> Vec<Values> {
    if rows.packed {
        vec![Values::of(&rows.q)]
    } else {
        [&rows.q, &rows.k, &rows.v].map(Values::of).into()
    }
}

/// How the stride-following kernel is told to read a `[b, h, t, dh]` view.
fn strided(view: &FlexTensor, layout: KvLayout) -> Strided<'_> {
    let shape = view.shape();
    let (offset, [sb, sh, st, sd]) = match layout {
        KvLayout::Strided => {
            let s: Vec<usize> = view
                .layout()
                .strides()
                .iter()
                .map(|s| s.unsigned_abs())
                .collect();
            (view.layout().start_offset(), [s[0], s[1], s[2], s[3]])
        }
        // Strides of a contiguous [b, h, t, dh]: right after a copy, wrong on a view.
        KvLayout::Contiguous | KvLayout::Assumed => (
            0,
            [
                shape[1] * shape[2] * shape[3],
                shape[2] * shape[3],
                shape[3],
                1,
            ],
        ),
    };
    Strided {
        data: view.storage::<f32>(),
        offset,
        strides: [sb, st, sh, sd],
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

    fn linear_own(x: T, w: T, residual: Option<T>) -> T {
        let ([n, k], [m, _]) = (size(&x), size(&w));
        let (x, w) = (Values::of(&x), Values::of(&w));
        let residual = residual.as_ref().map(Values::of);
        let residual = residual.as_ref().map(Values::get);
        let mut y = vec![0.0; n * m];
        cpu::linear::forward(&mut y, residual, x.get(), w.get(), [n, m, k]);
        tensor(y, [n, m])
    }

    fn linear_backward_own(dy: T, x: T, w: T) -> (T, T) {
        let ([n, m], [_, k]) = (size(&dy), size(&w));
        let (mut dx, mut dw) = (vec![0.0; n * k], vec![0.0; m * k]);
        let (dy, x, w) = (Values::of(&dy), Values::of(&x), Values::of(&w));
        cpu::linear::backward_input(&mut dx, dy.get(), w.get(), [n, m, k]);
        cpu::linear::backward_weight(&mut dw, dy.get(), x.get(), [n, m, k]);
        (tensor(dx, [n, k]), tensor(dw, [m, k]))
    }

    fn rms_norm(x: T, gain: T) -> (T, T) {
        let [n, d] = size(&x);
        let (mut y, mut inverse) = (vec![0.0; n * d], vec![0.0; n]);
        cpu::rms_norm::forward(
            &mut y,
            &mut inverse,
            Values::of(&x).get(),
            Values::of(&gain).get(),
            NORM_EPS as f32,
        );
        (tensor(y, [n, d]), tensor(inverse, [n, 1]))
    }

    fn rms_norm_backward(x: T, gain: T, inverse: T, dy: T, earlier: Option<T>) -> (T, T) {
        let [n, d] = size(&x);
        let (mut dx, mut dgain) = (vec![0.0; n * d], vec![0.0; d]);
        let [x, gain, inverse, dy] = [&x, &gain, &inverse, &dy].map(Values::of);
        let earlier = earlier.as_ref().map(Values::of);
        cpu::rms_norm::backward(
            &mut dx,
            &mut dgain,
            dy.get(),
            x.get(),
            gain.get(),
            inverse.get(),
            earlier.as_ref().map(Values::get),
        );
        (tensor(dx, [n, d]), tensor(dgain, [1, d]))
    }

    fn rope(x: T, cos: T, sin: T, rope: &Rope, inverse: bool) -> T {
        let [n, w] = size(&x);
        let [x, cos, sin] = [&x, &cos, &sin].map(Values::of);
        let sizes = [w, rope.rotated, rope.head_dim, rope.context];
        let mut y = vec![0.0; n * w];
        cpu::rope::rotate(&mut y, x.get(), sizes, [cos.get(), sin.get()], inverse);
        tensor(y, [n, w])
    }

    fn swiglu_packed(packed: T) -> T {
        let [n, w] = size(&packed);
        let mut y = vec![0.0; n * w / 2];
        cpu::swiglu::forward(&mut y, Values::of(&packed).get(), w / 2);
        tensor(y, [n, w / 2])
    }

    fn swiglu_packed_backward(packed: T, dy: T) -> T {
        let [n, w] = size(&packed);
        let mut dpacked = vec![0.0; n * w];
        cpu::swiglu::backward(
            &mut dpacked,
            Values::of(&dy).get(),
            Values::of(&packed).get(),
            w / 2,
        );
        tensor(dpacked, [n, w])
    }

    fn naive_swiglu(x: T, w_gate: T, w_up: T) -> (T, T, T) {
        let ([n, k], [f, _]) = (size(&x), size(&w_gate));
        let (mut y, mut gate, mut up) = (vec![0.0; n * f], vec![0.0; n * f], vec![0.0; n * f]);
        let (x, w_gate, w_up) = (Values::of(&x), Values::of(&w_gate), Values::of(&w_up));
        cpu::swiglu_naive::forward(
            &mut y,
            &mut gate,
            &mut up,
            x.get(),
            w_gate.get(),
            w_up.get(),
            [n, f, k],
        );
        (tensor(y, [n, f]), tensor(gate, [n, f]), tensor(up, [n, f]))
    }

    fn flash(rows: &Rows<T>, a: &Attention) -> (T, T) {
        let n = size(&rows.q)[0];
        let (shape, buffers) = (a.sizes(n), values(rows));
        let [q, k, v] = views(&buffers, rows.packed, shape);
        let (mut out, mut lse) = (vec![0.0; n * a.heads * a.head_dim], vec![0.0; n * a.heads]);
        cpu::attention::forward(&mut out, &mut lse, shape, q, k, v);
        (
            tensor(out, [n, a.heads * a.head_dim]),
            tensor(lse, [n, a.heads]),
        )
    }

    fn flash_backward(rows: &Rows<T>, out: T, lse: T, dy: T, a: &Attention) -> Vec<T> {
        let n = size(&rows.q)[0];
        let (shape, buffers) = (a.sizes(n), values(rows));
        let [q, k, v] = views(&buffers, rows.packed, shape);
        let (out, lse, dy) = (Values::of(&out), Values::of(&lse), Values::of(&dy));
        let (wide, narrow) = (a.heads * a.head_dim, a.kv_heads * a.head_dim);
        if rows.packed {
            let mut packed = vec![0.0; n * (wide + 2 * narrow)];
            let to = Gradients::Packed(&mut packed);
            cpu::attention::backward(to, shape, q, k, v, out.get(), lse.get(), dy.get());
            return vec![tensor(packed, [n, wide + 2 * narrow])];
        }
        let widths = [wide, narrow, narrow];
        let mut gradients = widths.map(|width| vec![0.0; n * width]);
        let [dq, dk, dv] = &mut gradients;
        let to = Gradients::Separate { dq, dk, dv };
        cpu::attention::backward(to, shape, q, k, v, out.get(), lse.get(), dy.get());
        let gradients = gradients.into_iter().zip(widths);
        gradients
            .map(|(values, width)| tensor(values, [n, width]))
            .collect()
    }

    fn strided_attention(q: T, k: T, v: T, a: &Attention) -> T {
        let sizes = q.shape();
        let (batch, heads, time, width) = (sizes[0], sizes[1], sizes[2], sizes[3]);
        let prepare = |view: FlexTensor| {
            if a.layout == KvLayout::Contiguous {
                view.to_contiguous()
            } else {
                view
            }
        };
        let [q, k, v] = [q, k, v].map(prepare);
        let mut out = vec![0.0; batch * heads * time * width];
        let shape = a.sizes(batch * time);
        let [q, k, v] = [&q, &k, &v].map(|view| strided(view, a.layout));
        cpu::strided_attention::forward(&mut out, shape, q, k, v);
        tensor(out, [batch * time, heads * width])
    }

    fn embedding_own(weight: T, indices: Ints<Self>) -> T {
        let ([_, d], tokens) = (size(&weight), tokens(indices));
        let mut y = vec![0.0; tokens.len() * d];
        cpu::embedding::forward(&mut y, Values::of(&weight).get(), &tokens, d);
        tensor(y, [tokens.len(), d])
    }

    fn embedding_backward_own(weight: T, indices: Ints<Self>, dy: T) -> T {
        let ([v, d], tokens) = (size(&weight), tokens(indices));
        let mut dw = vec![0.0; v * d];
        cpu::embedding::backward(&mut dw, Values::of(&dy).get(), &tokens, d);
        tensor(dw, [v, d])
    }

    fn cross_entropy(logits: T, targets: Ints<Self>) -> (T, T) {
        let ([n, v], targets) = (size(&logits), tokens(targets));
        let mut slope = vec![0.0; n * v];
        let logits = Values::of(&logits);
        let loss = cpu::cross_entropy::forward_backward(&mut slope, logits.get(), &targets);
        (tensor(vec![loss], [1, 1]), tensor(slope, [n, v]))
    }

    fn cross_entropy_backward(slope: T, dy: T) -> T {
        let scale = Values::of(&dy).get()[0];
        if scale == 1.0 {
            slope
        } else {
            <Self as burn::backend::ops::FloatTensorOps<Self>>::float_mul_scalar(
                slope,
                scale.into(),
            )
        }
    }

    fn squares(tensors: &[T]) -> Vec<f64> {
        tensors
            .iter()
            .map(|tensor| cpu::norm::sum_of_squares(Values::of(tensor).get()))
            .collect()
    }

    fn strides(x: &T) -> Vec<usize> {
        x.layout()
            .strides()
            .iter()
            .map(|s| s.unsigned_abs())
            .collect()
    }
}
