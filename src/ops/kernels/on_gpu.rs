//! The kernels of every CubeCL device: burn's tensors on the outside, the launches of `ops/gpu` inside.

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{Int, Tensor};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::{Ints, Kernels, primitive};
use crate::config::{KvLayout, NORM_EPS};
use crate::ops::gpu::attention::Heads;
use crate::ops::gpu::attention_backward::Saved;
use crate::ops::gpu::attention_simple::Strided;
use crate::ops::gpu::rope::Rotation;
use crate::ops::gpu::{self, Columns};
use crate::ops::live::Use;
use crate::ops::shapes::{Attention, Rope, Rows};

fn size(tensor: &CubeTensor) -> [usize; 2] {
    let shape = tensor.shape();
    [shape[0], shape[1]]
}

fn heads(a: &Attention, rows: usize) -> Heads {
    Heads {
        batch: rows / a.context,
        context: a.context,
        heads: a.heads,
        kv_heads: a.kv_heads,
        head_dim: a.head_dim,
    }
}

/// q, k and v with contiguous rows, and where their columns begin.
fn contiguous(rows: &Rows<CubeTensor>) -> Rows<CubeTensor> {
    let mut rows = rows.clone();
    rows.q = into_contiguous(rows.q);
    if rows.packed {
        (rows.k, rows.v) = (rows.q.clone(), rows.q.clone());
    } else {
        (rows.k, rows.v) = (into_contiguous(rows.k), into_contiguous(rows.v));
    }
    rows
}

fn columns(rows: &Rows<CubeTensor>) -> [Columns<'_>; 3] {
    let [q, k, v] = rows.offsets;
    [
        Columns::at(&rows.q, q, size(&rows.q)[1]),
        Columns::at(&rows.k, k, size(&rows.k)[1]),
        Columns::at(&rows.v, v, size(&rows.v)[1]),
    ]
}

impl Kernels for Cube {
    fn indices(tokens: &Tensor<1, Int>) -> Ints<Self> {
        let tokens = tokens
            .clone()
            .without_autodiff()
            .try_into_primitive::<Self>();
        tokens.expect("tokens live on the model's device")
    }

    fn constant(table: &Tensor<2>) -> CubeTensor {
        primitive::<Self>(table.clone().without_autodiff())
    }

    fn linear_own(x: CubeTensor, w: CubeTensor, residual: Option<CubeTensor>) -> CubeTensor {
        let residual = residual.map(into_contiguous);
        gpu::linear::forward(&into_contiguous(x), &into_contiguous(w), residual.as_ref())
    }

    fn linear_backward_own(
        dy: CubeTensor,
        x: CubeTensor,
        w: CubeTensor,
    ) -> (CubeTensor, CubeTensor) {
        let [dy, x, w] = [dy, x, w].map(into_contiguous);
        gpu::linear::backward(&dy, &x, &w)
    }

    fn rms_norm(x: CubeTensor, gain: CubeTensor) -> (CubeTensor, CubeTensor) {
        let (y, inverse) =
            gpu::rms_norm::forward(&into_contiguous(x), &into_contiguous(gain), NORM_EPS as f32);
        let rows = size(&y)[0];
        (y, gpu::shaped(inverse, [rows, 1]))
    }

    fn rms_norm_backward(
        x: CubeTensor,
        gain: CubeTensor,
        inverse: CubeTensor,
        dy: CubeTensor,
        earlier: Option<CubeTensor>,
    ) -> (CubeTensor, CubeTensor) {
        let [x, gain, inverse, dy] = [x, gain, inverse, dy].map(into_contiguous);
        let earlier = earlier.map(into_contiguous);
        let width = size(&x)[1];
        let (dx, dgain) = gpu::rms_norm::backward(&dy, &x, &gain, &inverse, earlier.as_ref());
        (dx, gpu::shaped(dgain, [1, width]))
    }

    fn rope(
        x: CubeTensor,
        cos: CubeTensor,
        sin: CubeTensor,
        rope: &Rope,
        inverse: bool,
    ) -> CubeTensor {
        let width = size(&x)[1];
        let rotation = Rotation {
            width,
            rotated: rope.rotated,
            head_dim: rope.head_dim,
            context: rope.context,
            inverse,
        };
        gpu::rope::apply(&into_contiguous(x), &cos, &sin, rotation)
    }

    fn swiglu_packed(packed: CubeTensor) -> CubeTensor {
        let width = size(&packed)[1] / 2;
        gpu::swiglu::forward(&into_contiguous(packed), width)
    }

    fn swiglu_packed_backward(packed: CubeTensor, dy: CubeTensor) -> CubeTensor {
        let width = size(&packed)[1] / 2;
        gpu::swiglu::backward(&into_contiguous(dy), &into_contiguous(packed), width)
    }

    fn naive_swiglu(
        x: CubeTensor,
        w_gate: CubeTensor,
        w_up: CubeTensor,
    ) -> (CubeTensor, CubeTensor, CubeTensor) {
        let inner = size(&x)[1];
        let [x, w_gate, w_up] = [x, w_gate, w_up].map(into_contiguous);
        let result = gpu::swiglu_naive::forward(&x, &w_gate, &w_up, inner);
        (result.out, result.gate, result.up)
    }

    fn flash(rows: &Rows<CubeTensor>, a: &Attention) -> (CubeTensor, CubeTensor) {
        let rows = contiguous(rows);
        let [q, k, v] = columns(&rows);
        gpu::attention::forward(q, k, v, heads(a, size(&rows.q)[0]))
    }

    fn flash_backward(
        rows: &Rows<CubeTensor>,
        out: CubeTensor,
        lse: CubeTensor,
        dy: CubeTensor,
        a: &Attention,
    ) -> Vec<CubeTensor> {
        let (rows, dy) = (contiguous(rows), into_contiguous(dy));
        let [q, k, v] = columns(&rows);
        let (saved, sizes) = (
            Saved {
                q,
                k,
                v,
                out: &out,
                lse: &lse,
            },
            heads(a, size(&rows.q)[0]),
        );
        if rows.packed {
            return vec![gpu::attention_backward::backward_packed(&dy, saved, sizes)];
        }
        gpu::attention_backward::backward(&dy, saved, sizes).into()
    }

    fn strided_attention(q: CubeTensor, k: CubeTensor, v: CubeTensor, a: &Attention) -> CubeTensor {
        let sizes = heads(a, q.shape()[0] * a.context);
        match a.layout {
            KvLayout::Strided => gpu::attention_simple::forward(
                Strided::view(&q),
                Strided::view(&k),
                Strided::view(&v),
                sizes,
            ),
            KvLayout::Assumed => gpu::attention_simple::forward(
                Strided::assumed(&q),
                Strided::assumed(&k),
                Strided::assumed(&v),
                sizes,
            ),
            KvLayout::Contiguous => {
                // Neighbours take neighbouring keys, so k is copied as [b, kv, dh, t]; v as [b, kv, t, dh].
                let k = into_contiguous(Cube::float_swap_dims(k, 2, 3));
                let (q, v) = (into_contiguous(q), into_contiguous(v));
                let (dh, t) = (a.head_dim, a.context);
                let k = Strided {
                    tensor: &k,
                    batch: a.kv_heads * dh * t,
                    head: dh * t,
                    position: 1,
                    value: t,
                };
                gpu::attention_simple::forward(Strided::view(&q), k, Strided::view(&v), sizes)
            }
        }
    }

    fn embedding_own(weight: CubeTensor, tokens: Ints<Self>) -> CubeTensor {
        let width = size(&weight)[1];
        gpu::embedding::forward(&into_contiguous(weight), &tokens, width)
    }

    fn embedding_backward_own(
        weight: CubeTensor,
        tokens: Ints<Self>,
        dy: CubeTensor,
    ) -> CubeTensor {
        let [vocab, width] = size(&weight);
        gpu::embedding::backward(&into_contiguous(dy), &tokens, vocab, width)
    }

    fn cross_entropy(logits: CubeTensor, targets: Ints<Self>) -> (CubeTensor, CubeTensor) {
        let vocab = size(&logits)[1];
        gpu::cross_entropy::forward(&into_contiguous(logits), &targets, vocab)
    }

    fn cross_entropy_backward(slope: CubeTensor, dy: CubeTensor) -> CubeTensor {
        gpu::cross_entropy::backward(slope, &into_contiguous(dy))
    }

    fn learner(
        it: Use<'_>,
        inputs: Vec<CubeTensor>,
        outputs: &[[usize; 2]],
    ) -> Option<Vec<CubeTensor>> {
        let inputs: Vec<CubeTensor> = inputs.into_iter().map(into_contiguous).collect();
        let first = inputs.first()?;
        let outputs: Vec<CubeTensor> = outputs
            .iter()
            .map(|shape| gpu::empty(first, *shape))
            .collect();
        let buffers: Vec<&CubeTensor> = inputs.iter().chain(&outputs).collect();
        it.live.compute(it, &buffers).then_some(outputs)
    }

    fn squares(tensors: &[CubeTensor]) -> Vec<f64> {
        if tensors.is_empty() {
            return Vec::new();
        }
        let tensors: Vec<CubeTensor> = tensors.iter().cloned().map(into_contiguous).collect();
        let (sums, parts) = gpu::grad_norm::parts_of_squares(&tensors.iter().collect::<Vec<_>>());
        let Ok(bytes) = sums.client.read_one(sums.handle.clone()) else {
            return vec![f64::NAN; tensors.len()];
        };
        let mut sums = bytes
            .chunks_exact(4)
            .map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        parts
            .into_iter()
            .map(|count| sums.by_ref().take(count).sum())
            .collect()
    }

    fn strides(x: &CubeTensor) -> Vec<usize> {
        x.meta.strides().iter().copied().collect()
    }
}
