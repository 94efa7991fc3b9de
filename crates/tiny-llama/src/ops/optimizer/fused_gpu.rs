//! AdamW on a GPU, for many tensors in one launch and in place: `adamw_update.wgsl`. A step uploads nothing: the two bias corrections are on
//! the device, and a kernel with one invocation advances them.

use crate::ops::gpu::arg;
use crate::ops::gpu::wgsl::{self, LaunchValues, Program};
use crate::ops::optimizer::fused_cpu::{AdamW, BETA_1, BETA_2, EPSILON, WEIGHT_DECAY};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;
use serde::Serialize;
use std::collections::BTreeMap;

const THREADS: usize = 256;
/// The number of vectors that an invocation updates, so that several loads are on their way and workgroups are few.
const ITEMS: usize = 4;
/// The largest number of bindings of a launch.
const MOST_BINDINGS: usize = 128;

/// A parameter, its gradient and its two moments, of one shape, and the f16 copy of the parameter, if there is one. All except the
/// gradient are overwritten.
pub(crate) struct AdamwTensors<'a> {
    pub tensors: [&'a CubeTensor; 4],
    pub copy: Option<&'a CubeTensor>,
}

/// Does one AdamW step on every slot. First the clock, which is 1 − β₁ᵗ and 1 − β₂ᵗ as a tensor `[2]`, advances to t. Then
/// p −= lr·wd·p, m = β₁m + (1−β₁)g, v = β₂v + (1−β₂)g², and p −= lr·(m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + eps). Gradients are multiplied by the
/// second value of the state of loss scaling, `scale`; if that is 0, nothing changes.
///
/// This takes 1 launch for the clock, 1 for each 25 tensors with copies, and 1 for each 31 others (5 and 7 where a device has 31 bindings).
pub(crate) fn step(slots: &[AdamwTensors], clock: &CubeTensor, scale: &CubeTensor, rule: &AdamW) {
    unsafe {
        adamw_advance_clock::launch_unchecked(
            &clock.client,
            CubeCount::new_single(),
            CubeDim::new_1d(1),
            arg(clock),
            arg(scale),
            BETA_1 as f32,
            BETA_2 as f32,
            (1.0 - BETA_1) as f32,
            (1.0 - BETA_2) as f32,
        );
    }
    // The clock and the scale need one binding each.
    let bindings = clock.client.properties().hardware.max_bindings as usize;
    let most = |each: usize| (bindings.min(MOST_BINDINGS).saturating_sub(2) / each).max(1);
    let (with, without): (Vec<_>, Vec<_>) = slots.iter().partition(|slot| slot.copy.is_some());
    for batch in with.chunks(most(5)).chain(without.chunks(most(4))) {
        let (program, buffers) = program(batch, clock, scale, rule);
        let groups = program.values.groups;
        wgsl::launch(program, groups, &buffers);
    }
}

/// Returns the program for these slots and its buffers. Either all slots have copies, or none has.
fn program<'a>(
    batch: &[&AdamwTensors<'a>],
    clock: &'a CubeTensor,
    scale: &'a CubeTensor,
    rule: &AdamW,
) -> (Program<LaunchValues<AdamwValues>>, Vec<&'a CubeTensor>) {
    let sizes: Vec<usize> = batch
        .iter()
        .map(|slot| slot.tensors[0].meta.num_elements())
        .collect();
    let lanes = crate::ops::gpu::vector_width(&sizes);
    let mut end = 0;
    let mut slots = Vec::new();
    for size in sizes {
        let begin = end;
        let vectors = size / lanes;
        end += vectors.div_ceil(THREADS * ITEMS);
        slots.push(ParameterRange {
            begin,
            end,
            size: vectors,
        });
    }
    let mut named = vec![
        ("clock".to_owned(), 1, clock),
        ("scale".to_owned(), 1, scale),
    ];
    for (n, slot) in batch.iter().enumerate() {
        let tensors = ["param", "grad", "m", "v"].into_iter().zip(slot.tensors);
        for (name, tensor) in tensors.chain(slot.copy.map(|copy| ("copy", copy))) {
            named.push((format!("{name}{n}"), lanes, tensor));
        }
    }
    let buffers: Vec<_> = named
        .iter()
        .map(|(name, lanes, tensor)| (&**name, *lanes, *tensor))
        .collect();
    let numbers = [
        ("beta1", BETA_1),
        ("beta2", BETA_2),
        ("rest1", 1.0 - BETA_1),
        ("rest2", 1.0 - BETA_2),
        ("rate", rule.lr),
        ("decay", rule.lr * WEIGHT_DECAY),
        ("eps", EPSILON),
    ];
    let own = AdamwValues {
        items: ITEMS,
        slots,
        copies: batch[0].copy.is_some(),
        rule: numbers.map(|(name, number)| (name, text(number))).into(),
    };
    let launch = [THREADS, end, lanes];
    let program = Program::with_buffers("optimizer/adamw_update.wgsl", launch, &buffers, own);
    let tensors = buffers.iter().map(|(_, _, tensor)| *tensor).collect();
    (program, tensors)
}

/// Writes a number of the rule as f32. A number beyond f32 becomes the largest f32, because WGSL has no infinity.
fn text(number: f64) -> String {
    format!("{:?}", (number as f32).clamp(f32::MIN, f32::MAX))
}

/// The values that fill in the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct AdamwValues {
    /// The number of vectors that an invocation updates.
    items: usize,
    slots: Vec<ParameterRange>,
    /// True if the parameters have f16 copies.
    copies: bool,
    /// The numbers of the rule, as texts. `decay` is the rate times the weight decay.
    #[serde(flatten)]
    rule: BTreeMap<&'static str, String>,
}

/// The workgroups of a parameter, `begin..end`, and its size in vectors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct ParameterRange {
    begin: usize,
    end: usize,
    size: usize,
}

/// Advances the clock c_t = 1 − βᵗ by c_t = (1−β) + β·c_{t−1}, which keeps the digits that 1 − βᵗ would lose. A skipped step leaves it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::empty_of;
    use crate::ops::gpu::wgsl::Wgsl as _;
    use burn::tensor::DType;

    #[test]
    fn texts_with_copies_and_without_are_valid_wgsl() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let rule = AdamW {
            lr: 1e39,
            time: 1,
            unscale: 1.0,
        };
        for size in [64, 33] {
            let tensor = device.tensor(&vec![0.0; size], [1, size]);
            let copy = empty_of(DType::F16, &tensor, [1, size]);
            for copy in [None, Some(&copy)] {
                let slot = AdamwTensors {
                    tensors: [&tensor; 4],
                    copy,
                };
                let (program, _) = program(&[&slot, &slot], &tensor, &tensor, &rule);
                check::valid_wgsl(&program.text());
            }
        }
    }
}
