//! Dynamic loss scaling on a GPU. The state is a tensor `[4]` with the fields of `ScaleState`; the rules are those of `ops/loss_scale.rs`.

use crate::ops::gpu::{arg, workgroup_sum};
use crate::ops::grad_norm::fused_gpu::reduced;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;

/// Returns the factor `[1, 1]`, a view of the first value of the state.
pub(crate) fn factor(state: &CubeTensor) -> CubeTensor {
    let mut first = state.clone();
    first.handle = first.handle.offset_end(12);
    CubeTensor::new_contiguous(
        first.client,
        first.device,
        [1, 1].into(),
        first.handle,
        first.dtype,
    )
}

/// Returns a state `[4]` that leaves gradients unchanged.
pub(crate) fn neutral(like: &CubeTensor) -> CubeTensor {
    let mut state = crate::ops::gpu::empty(like, [4]);
    let values = [1.0_f32, 1.0, 0.0, 0.0].map(f32::to_le_bytes);
    state.handle = like.client.create_from_slice(&values.concat());
    state
}

/// Advances the state by a step with these gradients. The factor doubles after `interval` clean steps, up to `largest`. The gradients are
/// finite if their sums of squares are, which takes 1 launch for each 24 tensors; another launch changes the state.
pub(crate) fn advance(state: &CubeTensor, gradients: &[CubeTensor], interval: u32, largest: f32) {
    if gradients.is_empty() {
        return;
    }
    let (sums, _) = reduced(gradients, false);
    let count = sums.meta.num_elements();
    unsafe {
        advance_loss_scale::launch_unchecked(
            &state.client,
            CubeCount::new_single(),
            CubeDim::new_1d(THREADS as u32),
            arg(&sums),
            arg(state),
            count,
            interval as f32,
            largest,
        );
    }
}

#[cube(launch_unchecked)]
fn advance_loss_scale(sums: &[f32], state: &mut [f32], count: usize, interval: f32, largest: f32) {
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(THREADS + 16));
    let mut bad = 0.0f32;
    let mut at = UNIT_POS as usize;
    while at < count {
        // Tests the bits, because a driver may assume that no value is infinite.
        if u32::reinterpret(sums[at]) & 0x7f80_0000u32 == 0x7f80_0000u32 {
            bad = 1.0f32;
        }
        at += THREADS;
    }
    let total = workgroup_sum(bad, &mut scratch, THREADS);
    if UNIT_POS == 0 {
        let factor = state[0];
        if total > 0.0f32 {
            state[0] = max(factor * 0.5f32, 1.0f32);
            state[1] = 0.0f32;
            state[2] = 0.0f32;
            state[3] += 1.0f32;
        } else {
            state[1] = 1.0f32 / factor;
            state[2] += 1.0f32;
            if state[2] >= interval {
                state[0] = min(factor * 2.0f32, largest);
                state[2] = 0.0f32;
            }
        }
    }
}
