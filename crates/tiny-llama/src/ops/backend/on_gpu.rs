//! The kernels of every CubeCL device: burn's tensors for the launches of `ops/gpu`.

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Int, Tensor};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::{Ints, Kernels, primitive};
use crate::ops::cpu;
use crate::ops::format::Format;
use crate::ops::gpu::attention_simple::Strided;
use crate::ops::gpu::epilogue::{Epilogue, empty_partial_norm};
use crate::ops::gpu::{self, attention, attention_cores, attention_simple};
use crate::ops::learner_kernel::LiveKernel;
use crate::ops::pending::{ForNorm, Pending, Summands, UnfinishedNorm};
use crate::ops::shapes::{Attention, Heads, NextOperation, Rotation, Rows};
use protocol::config::{KvLayout, Precision};

/// A tensor of this backend.
type T = CubeTensor;

/// The output type of a kernel that reads x, for products in `format`. f16 saves the products a conversion; the conversion back
/// handles four values at a time.
fn element(format: Format, x: &T) -> DType {
    if format == Format::Native && x.meta.num_elements().is_multiple_of(8) {
        DType::F16
    } else {
        DType::F32
    }
}

impl Kernels for Cube {
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
        gpu::format::rounded(&into_contiguous(x), format)
    }

    fn half(x: T) -> T {
        let x = into_contiguous(x);
        if gpu::linear::is_copied(x.meta.num_elements()) {
            gpu::format::converted(x, DType::F16)
        } else {
            x
        }
    }

    fn linear_own(
        x: T,
        w: T,
        format: Format,
        norm: Option<UnfinishedNorm>,
        then: &NextOperation,
    ) -> T {
        let [x, w] = [x, w].map(into_contiguous);
        let forward = |then| gpu::linear::forward(&x, &w, then, format, norm.as_ref());
        match then {
            NextOperation::Nothing => forward(Epilogue::Plain),
            NextOperation::Swiglu => forward(Epilogue::Swiglu),
            NextOperation::Rope(rope) => {
                let [cos, sin] = rope.tables::<Self>();
                forward(Epilogue::Rope([&cos, &sin], rope.rotation(w.shape()[0])))
            }
        }
    }

    fn linear_residual(x: T, w: T, residual: T, format: Format, pending: Option<&ForNorm>) -> T {
        let [x, w, residual] = [x, w, residual].map(into_contiguous);
        let forward = |then| gpu::linear::forward(&x, &w, then, format, None);
        match pending {
            Some(ForNorm::Sum(sum)) => {
                let y = gpu::empty(&residual, residual.meta.shape());
                let parts = forward(Epilogue::Parts);
                sum.put(Summands { residual, parts });
                y
            }
            Some(ForNorm::Partial(gain, left)) => {
                let partial =
                    gpu::linear::empty_partial_norm([&x, &w, &Self::constant(gain)], format);
                let y = forward(Epilogue::Onto(&residual, partial.as_ref()));
                if let Some(partial) = partial {
                    left.put(partial);
                }
                y
            }
            None => forward(Epilogue::Onto(&residual, None)),
        }
    }

    fn linear_backward_own(
        dy: T,
        x: T,
        w: T,
        format: Format,
        in_parts: bool,
        gated: Option<T>,
    ) -> [T; 2] {
        let [dy, x, w] = [dy, x, w].map(into_contiguous);
        let then = match &gated {
            Some(gated) => Epilogue::SwigluBackward(gated),
            None => Epilogue::in_parts(in_parts),
        };
        gpu::linear::backward(&dy, &x, &w, then, format)
    }

    fn rms_norm(
        x: T,
        gain: T,
        format: Format,
        pending: Option<&ForNorm>,
        unfinished: Option<&Pending<UnfinishedNorm>>,
    ) -> (T, T) {
        let [x, gain] = [x, gain].map(into_contiguous);
        if let (Some(ForNorm::Partial(_, partial)), Some(unfinished)) = (pending, unfinished)
            && let Some(partial) = partial.take()
        {
            let y = gpu::empty_of(DType::F16, &x, x.meta.shape());
            let inverse = gpu::empty(&x, [x.shape()[0], 1]);
            unfinished.put(UnfinishedNorm {
                partial,
                inverse: inverse.clone(),
            });
            return (y, inverse);
        }
        let sum = match pending {
            Some(ForNorm::Sum(sum)) => sum.take(),
            _ => None,
        };
        let sum = sum.as_ref().map(|it| [&it.residual, &it.parts]);
        gpu::rms_norm::forward(&x, &gain, element(format, &x), sum)
    }

    fn rms_norm_backward(
        x: T,
        gain: T,
        inverse: T,
        dy: T,
        earlier: Option<T>,
        left: Option<&Pending<Tensor<2>>>,
    ) -> (T, T) {
        let [x, gain, inverse, dy] = [x, gain, inverse, dy].map(into_contiguous);
        let earlier = earlier.map(into_contiguous);
        let rounded = left.map(|_| gpu::empty_of(DType::F16, &x, x.meta.shape()));
        let gradients =
            gpu::rms_norm::backward(&dy, &x, &gain, &inverse, earlier.as_ref(), rounded.as_ref());
        if let (Some(left), Some(rounded)) = (left, rounded) {
            left.put(Tensor::from_primitive::<Cube>(rounded));
        }
        gradients
    }

    fn rope(x: T, cos: T, sin: T, rotation: Rotation, format: Format) -> T {
        let element = element(format, &x);
        gpu::rope::apply(&into_contiguous(x), &cos, &sin, rotation, element)
    }

    fn swiglu_packed(packed: T, format: Format) -> T {
        let element = element(format, &packed);
        gpu::swiglu::forward(&into_contiguous(packed), element)
    }

    fn swiglu_packed_backward(packed: T, dy: T, format: Format) -> T {
        let [packed, dy] = [packed, dy].map(into_contiguous);
        gpu::swiglu::backward(&dy, &packed, element(format, &packed))
    }

    fn naive_swiglu(x: T, w_gate: T, w_up: T) -> [T; 3] {
        let [x, w_gate, w_up] = [x, w_gate, w_up].map(into_contiguous);
        gpu::swiglu_naive::forward(&x, &w_gate, &w_up)
    }

    fn flash(rows: &Rows<T>, sizes: Heads, half: bool) -> Option<(T, T)> {
        let rows = rows.clone().map(into_contiguous);
        if half {
            return Some(attention_cores::forward(&rows, sizes));
        }
        attention::forward(&rows, sizes)
    }

    fn flash_backward(
        rows: &Rows<T>,
        [out, lse, dy]: [T; 3],
        sizes: Heads,
        tables: Option<[T; 2]>,
    ) -> Rows<T> {
        let (rows, dy) = (rows.clone().map(into_contiguous), into_contiguous(dy));
        match tables.as_ref() {
            Some([cos, sin]) if gpu::is_f16(rows.first()) => {
                attention_cores::backward(&dy, &rows, &out, &lse, [cos, sin], sizes)
            }
            tables => attention::backward(&dy, &rows, &out, &lse, tables, sizes),
        }
    }

    fn strided_attention([q, k, v]: [T; 3], a: &Attention) -> T {
        let sizes = a.sizes(q.shape()[0] * a.context);
        match a.layout {
            KvLayout::Strided => attention_simple::forward([&q, &k, &v].map(Strided::view), sizes),
            KvLayout::Assumed => {
                attention_simple::forward([&q, &k, &v].map(Strided::assumed), sizes)
            }
            KvLayout::Contiguous => {
                // Neighbouring invocations read neighbouring keys, so k is copied as [b, kv, dh, t], and v as [b, kv, t, dh].
                let k = into_contiguous(Cube::float_swap_dims(k, 2, 3));
                let (q, v) = (into_contiguous(q), into_contiguous(v));
                let mut of_k = Strided::view(&k);
                of_k.strides.swap(2, 3);
                attention_simple::forward([Strided::view(&q), of_k, Strided::view(&v)], sizes)
            }
        }
    }

    fn embedding_own(weight: T, tokens: Ints<Self>, pending: Option<&ForNorm>) -> T {
        let weight = into_contiguous(weight);
        let Some(ForNorm::Partial(gain, left)) = pending else {
            return gpu::embedding::forward(&weight, &tokens, None);
        };
        let sizes = [tokens.shape()[0], weight.shape()[1]];
        let partial = empty_partial_norm(Self::constant(gain), 1, sizes);
        let y = gpu::embedding::forward(&weight, &tokens, Some(&partial));
        left.put(partial);
        y
    }

    fn embedding_backward_own(weight: T, tokens: Ints<Self>, dy: T) -> T {
        gpu::embedding::backward(&into_contiguous(dy), &tokens, weight.shape().dims())
    }

    fn cross_entropy(logits: T, targets: Ints<Self>, scale: Option<T>, of: usize) -> (T, T) {
        gpu::cross_entropy::forward(
            &into_contiguous(logits),
            &into_contiguous(targets),
            scale.as_ref(),
            of,
        )
    }

    fn learner(it: LiveKernel<'_>, inputs: Vec<T>, outputs: &[[usize; 2]]) -> Option<Vec<T>> {
        let inputs: Vec<CubeTensor> = inputs.into_iter().map(into_contiguous).collect();
        let first = inputs.first()?;
        let outputs = outputs.iter().map(|shape| gpu::empty(first, *shape));
        let outputs: Vec<CubeTensor> = outputs.collect();
        let buffers: Vec<&CubeTensor> = inputs.iter().chain(&outputs).collect();
        it.launch(&buffers).then_some(outputs)
    }

    fn squares(tensors: &[T]) -> Vec<f64> {
        let tensors: Vec<CubeTensor> = tensors.iter().cloned().map(into_contiguous).collect();
        let (sums, parts) = gpu::grad_norm::reduced(&tensors, false);
        let Some(sums) = gpu::read(&sums) else {
            return vec![f64::NAN; tensors.len()];
        };
        let mut sums = sums.into_iter().map(f64::from);
        let parts = parts.into_iter();
        parts.map(|n| sums.by_ref().take(n).sum()).collect()
    }

    fn exponents(tensors: &[T]) -> Vec<[u64; 256]> {
        let samples = tensors.iter().cloned().map(into_contiguous).map(|tensor| {
            let sample = gpu::read(&gpu::grad_norm::sample(&tensor));
            cpu::norm::exponents(&sample.unwrap_or_default())
        });
        samples.collect()
    }
}
