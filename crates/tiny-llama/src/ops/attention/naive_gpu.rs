//! Stage 2's kernel on a GPU: attention with one workgroup for each row, which reads q, k and v from memory by explicit strides. One kernel
//! runs for every layout. Only the strides differ, and these may be wrong.

use super::{Attention, NaiveAttention};
use crate::ops::gpu::{arg, empty, groups, workgroup_max, workgroup_sum};
use crate::ops::shapes::Heads;
use burn::backend::Cube;
use burn::backend::TensorMetadata as _;
use burn::backend::ops::FloatTensorOps as _;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use protocol::config::KvLayout;

impl NaiveAttention for Cube {
    fn forward([q, k, v]: [CubeTensor; 3], a: &Attention) -> CubeTensor {
        let sizes = a.sizes(q.shape()[0] * a.context);
        match a.layout {
            KvLayout::Strided => forward([&q, &k, &v].map(Strided::view), sizes),
            KvLayout::Assumed => forward([&q, &k, &v].map(Strided::assumed), sizes),
            KvLayout::Contiguous => {
                // Neighbouring invocations read neighbouring keys, so k is copied as [b, kv, dh, t], and v as [b, kv, t, dh].
                let k = into_contiguous(Self::float_swap_dims(k, 2, 3));
                let q = into_contiguous(q);
                let v = into_contiguous(v);
                let mut keys = Strided::view(&k);
                keys.strides.swap(2, 3);
                forward([Strided::view(&q), keys, Strided::view(&v)], sizes)
            }
        }
    }
}

/// The number of invocations of a workgroup. They read neighbouring keys, then neighbouring values of the head.
const THREADS: usize = 64;
/// A number below every score. It is finite, because −∞ minus −∞ would be NaN.
const LOWEST: f32 = -3.0e38;

/// A tensor `[batch, heads, context, head_dim]`, and the strides with which it is read.
#[derive(Clone, Copy)]
struct Strided<'a> {
    tensor: &'a CubeTensor,
    strides: [usize; 4],
}

impl<'a> Strided<'a> {
    /// Returns a tensor with its own strides, those of a view or of a copy.
    fn view(tensor: &'a CubeTensor) -> Self {
        let strides = std::array::from_fn(|axis| tensor.meta.strides()[axis]);
        Self { tensor, strides }
    }

    /// Returns a tensor with the strides of a contiguous tensor instead of its own, which is the silent error of stage 2.
    fn assumed(tensor: &'a CubeTensor) -> Self {
        let [_, heads, context, head_dim] = tensor.meta.shape().dims();
        let strides = [heads * context * head_dim, context * head_dim, head_dim, 1];
        Self { tensor, strides }
    }

    /// Returns the whole buffer. The kernel knows its layout only from the strides.
    fn buffer(&self) -> BufferArg {
        self.tensor.clone().into_buffer_arg()
    }

    fn strides(&self) -> StridesLaunch {
        let [batch, head, position, value] = self.strides;
        StridesLaunch::new(batch, head, position, value)
    }
}

/// Computes out `[N, H·dh]` = softmax(q·kᵀ/√dh + causal mask)·v of each head. 1 launch.
///
/// Neighbouring invocations read neighbouring keys of k (stride `position`) and neighbouring values of v (stride `value`). Their addresses are
/// adjacent if these strides are 1, which is so for a copy of k as `[batch, kv_heads, head_dim, context]`, and for v unchanged. In a view of k
/// that is split into heads, the addresses are a whole row of all heads apart.
fn forward([q, k, v]: [Strided; 3], sizes: Heads) -> CubeTensor {
    let rows = sizes.batch * sizes.context;
    let out = empty(q.tensor, [rows, sizes.heads * sizes.head_dim]);
    unsafe {
        attention_by_strides::launch_unchecked(
            &out.client,
            groups(rows * sizes.heads),
            CubeDim::new_1d(THREADS as u32),
            q.buffer(),
            k.buffer(),
            v.buffer(),
            arg(&out),
            q.strides(),
            k.strides(),
            v.strides(),
            sizes.scale(),
            sizes,
        );
    }
    out
}

#[derive(CubeType, CubeLaunch)]
struct Strides {
    batch: usize,
    head: usize,
    position: usize,
    value: usize,
}

/// Computes one row of one head in a workgroup. Each invocation takes one key at a time, and the maximum and the sum run along, so that any
/// context is possible.
#[cube(launch_unchecked)]
fn attention_by_strides(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    out: &mut [f32],
    q_strides: Strides,
    k_strides: Strides,
    v_strides: Strides,
    scale: f32,
    #[comptime] sizes: Heads,
) {
    if CUBE_POS >= comptime!(sizes.batch * sizes.context * sizes.heads) {
        terminate!();
    }
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(THREADS + 16));
    let mut weights = Shared::<[f32]>::new_slice(THREADS);
    let head = CUBE_POS % sizes.heads;
    let row = CUBE_POS / sizes.heads % sizes.context;
    let batch = CUBE_POS / comptime!(sizes.heads * sizes.context);
    let kv_head = head / comptime!(sizes.group());
    let unit = UNIT_POS as usize;
    let owned = comptime!(sizes.head_dim.div_ceil(THREADS));

    let q_start = batch * q_strides.batch + row * q_strides.position + head * q_strides.head;
    let k_start = batch * k_strides.batch + kv_head * k_strides.head;
    let v_start = batch * v_strides.batch + kv_head * v_strides.head;
    let mut acc = Array::<f32>::new(owned);
    #[unroll]
    for i in 0..owned {
        acc[i] = 0.0f32;
    }
    let mut top = f32::new(LOWEST);
    let mut sum = 0.0f32;
    let mut first = 0usize;
    while first <= row {
        let key = first + unit;
        let mut score = f32::new(LOWEST);
        if key <= row {
            let mut dot = 0.0f32;
            for d in 0..sizes.head_dim {
                dot += q[q_start + d * q_strides.value]
                    * k[k_start + key * k_strides.position + d * k_strides.value];
            }
            score = dot * scale;
        }
        let higher = max(top, workgroup_max(score, &mut scratch, THREADS));
        let shrink = (top - higher).exp();
        top = higher;
        let weight = (score - top).exp();
        weights[unit] = weight;
        sum = sum * shrink + workgroup_sum(weight, &mut scratch, THREADS);
        let count = min(row + 1 - first, THREADS);
        #[unroll]
        for i in 0..owned {
            let d = unit + i * THREADS;
            if d < sizes.head_dim {
                let mut total = acc[i] * shrink;
                for j in 0..count {
                    total += weights[j]
                        * v[v_start + (first + j) * v_strides.position + d * v_strides.value];
                }
                acc[i] = total;
            }
        }
        first += THREADS;
    }
    let line = (batch * sizes.context + row) * sizes.heads + head;
    #[unroll]
    for i in 0..owned {
        let d = unit + i * THREADS;
        if d < sizes.head_dim {
            out[line * sizes.head_dim + d] = acc[i] / sum;
        }
    }
}
