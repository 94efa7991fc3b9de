//! AdamW over many tensors per launch, in place. Nothing is uploaded per step: the two bias corrections are on the device, and a
//! kernel with one invocation advances them.

use super::arg;
use crate::ops::cpu::adamw::AdamW;
use burn::cubecl::ir::ElemType;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;
/// Vectors per invocation: several loads at once, and few workgroups.
const ITEMS: usize = 4;
/// Most tensors in one launch; each needs five bindings.
const MOST_SLOTS: usize = 25;

/// A parameter, its gradient and its two moments, of one shape, and the f16 copy of the parameter, if there is one. All except the
/// gradient are overwritten.
pub struct AdamwTensors<'a> {
    pub tensors: [&'a CubeTensor; 4],
    pub copy: Option<&'a CubeTensor>,
}

/// One AdamW step on every slot: the clock, which is 1 − β₁ᵗ and 1 − β₂ᵗ as a tensor `[2]`, advances to t, then
/// p −= lr·wd·p; m = β₁m + (1−β₁)g; v = β₂v + (1−β₂)g²;
/// p −= lr·(m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + eps). (Loshchilov & Hutter 2019, as torch computes it.) Gradients are multiplied by
/// the second value of the state of loss scaling, `scale`; where that is 0, nothing changes.
/// 1 launch for the clock and 1 for each 25 tensors (5 where a device has 31 bindings), those with copies apart.
pub fn step(slots: &[AdamwTensors], clock: &CubeTensor, scale: &CubeTensor, rule: &AdamW) {
    unsafe {
        adamw_advance_clock::launch_unchecked(
            &clock.client,
            CubeCount::new_single(),
            CubeDim::new_1d(1),
            arg(clock),
            arg(scale),
            rule.beta1 as f32,
            rule.beta2 as f32,
            (1.0 - rule.beta1) as f32,
            (1.0 - rule.beta2) as f32,
        );
    }
    // The clock, the scale and the scalars need one binding each.
    let bindings = clock.client.properties().hardware.max_bindings as usize;
    let most = (bindings.saturating_sub(3) / 5).clamp(1, MOST_SLOTS);
    let (with, without): (Vec<_>, Vec<_>) = slots.iter().partition(|it| it.copy.is_some());
    for batch in with.chunks(most).chain(without.chunks(most)) {
        launch(batch, clock, scale, rule);
    }
}

/// Slots that all have copies, or none.
fn launch(batch: &[&AdamwTensors], clock: &CubeTensor, scale: &CubeTensor, rule: &AdamW) {
    let size = |it: &&AdamwTensors| it.tensors[0].meta.num_elements();
    let sizes: Vec<usize> = batch.iter().map(size).collect();
    let copies = batch[0].copy.is_some();
    let lanes = super::vector_width(&sizes);
    let mut args = SequenceArg::new();
    let mut first = 0;
    for (slot, size) in batch.iter().zip(sizes) {
        let count = size / lanes;
        let [param, grad, m, v] = slot.tensors.map(arg);
        let copy = arg(slot.copy.unwrap_or(slot.tensors[0]));
        args.push(SlotDataLaunch::new(param, grad, m, v, copy, first, count));
        first += count.div_ceil(THREADS * ITEMS);
    }
    unsafe {
        adamw_update::launch_unchecked(
            &clock.client,
            super::groups(first),
            CubeDim::new_1d(THREADS as u32),
            lanes,
            args,
            arg(clock),
            arg(scale),
            rule.lr as f32,
            (rule.lr * rule.weight_decay) as f32,
            rule.beta1 as f32,
            rule.beta2 as f32,
            (1.0 - rule.beta1) as f32,
            (1.0 - rule.beta2) as f32,
            rule.eps as f32,
            copies,
            super::element(batch[0].copy.unwrap_or(clock)),
        );
    }
}

/// The buffers of a slot, its first workgroup, and its length in vectors.
#[derive(CubeType, CubeLaunch)]
struct SlotData<O: Numeric, N: Size> {
    param: Box<[Vector<f32, N>]>,
    grad: Box<[Vector<f32, N>]>,
    m: Box<[Vector<f32, N>]>,
    v: Box<[Vector<f32, N>]>,
    /// Read by nobody here; the parameter itself where there is no copy.
    copy: Box<[Vector<O, N>]>,
    first: usize,
    count: usize,
}

/// c_t = 1 − βᵗ follows c_t = (1−β) + β·c_{t−1}, which keeps its precision where 1 − βᵗ would cancel.
#[cube(launch_unchecked)]
fn adamw_advance_clock(
    clock: &mut [f32],
    scale: &[f32],
    beta1: f32,
    beta2: f32,
    rest1: f32,
    rest2: f32,
) {
    if scale[1] != 0.0 {
        clock[0] = rest1 + beta1 * clock[0];
        clock[1] = rest2 + beta2 * clock[1];
    }
}

#[cube(launch_unchecked)]
fn adamw_update<O: Numeric, N: Size>(
    slots: &mut Sequence<SlotData<O, N>>,
    clock: &[f32],
    scale: &[f32],
    lr: f32,
    decay: f32,
    beta1: f32,
    beta2: f32,
    rest1: f32,
    rest2: f32,
    eps: f32,
    #[comptime] copies: bool,
    #[define(O)] _element: ElemType,
) {
    let unscale = scale[1];
    if unscale == 0.0 {
        terminate!();
    }
    let step = Vector::<f32, N>::new(lr / clock[0]);
    let root = Vector::<f32, N>::new(1.0 / clock[1].sqrt());
    #[unroll]
    for s in 0..slots.len() {
        let slot = slots.index_mut(s);
        let groups = slot.count.div_ceil(comptime!(THREADS * ITEMS));
        if CUBE_POS >= slot.first && CUBE_POS < slot.first + groups {
            let start = (CUBE_POS - slot.first) * comptime!(THREADS * ITEMS) + UNIT_POS as usize;
            #[unroll]
            for i in 0..ITEMS {
                let at = start + i * THREADS;
                if at < slot.count {
                    let g = slot.grad[at] * Vector::<f32, N>::new(unscale);
                    let m = slot.m[at] * Vector::<f32, N>::new(beta1)
                        + g * Vector::<f32, N>::new(rest1);
                    let v = slot.v[at] * Vector::<f32, N>::new(beta2)
                        + g * g * Vector::<f32, N>::new(rest2);
                    let kept = slot.param[at] * Vector::<f32, N>::new(1.0 - decay);
                    slot.m[at] = m;
                    slot.v[at] = v;
                    let updated = kept - step * m / (v.sqrt() * root + Vector::<f32, N>::new(eps));
                    slot.param[at] = updated;
                    if comptime!(copies) {
                        slot.copy[at] = Vector::cast_from(updated);
                    }
                }
            }
        }
    }
}
