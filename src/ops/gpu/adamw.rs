//! AdamW over many tensors per launch, in place: `wgsl/adamw_update.wgsl`. Nothing is uploaded per step: the two bias corrections are
//! on the device, and a kernel with one invocation advances them.

use super::arg;
use super::wgsl::{self, Binding, Program};
use crate::ops::cpu::adamw::AdamW;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;
use serde::Serialize;

const THREADS: usize = 256;
/// Vectors per invocation: several loads at once, and few workgroups.
const ITEMS: usize = 4;
/// Most bindings of one launch.
const MOST_BINDINGS: usize = 128;

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
/// 1 launch for the clock, 1 for each 25 tensors with copies, and 1 for each 31 others (5 and 7 where a device has 31 bindings).
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
    // The clock and the scale need one binding each.
    let bindings = clock.client.properties().hardware.max_bindings as usize;
    let most = |each: usize| (bindings.min(MOST_BINDINGS).saturating_sub(2) / each).max(1);
    let (with, without): (Vec<_>, Vec<_>) = slots.iter().partition(|it| it.copy.is_some());
    for batch in with.chunks(most(5)).chain(without.chunks(most(4))) {
        launch(batch, clock, scale, rule);
    }
}

/// Launches slots that all have copies, or none.
fn launch(batch: &[&AdamwTensors], clock: &CubeTensor, scale: &CubeTensor, rule: &AdamW) {
    let (program, buffers) = program(batch, clock, scale, rule);
    let groups = program.values.groups;
    wgsl::launch(program, groups, &buffers);
}

/// The program for these slots, and its buffers.
fn program<'a>(
    batch: &[&AdamwTensors<'a>],
    clock: &'a CubeTensor,
    scale: &'a CubeTensor,
    rule: &AdamW,
) -> (Program<AdamwValues>, Vec<&'a CubeTensor>) {
    let size = |it: &&AdamwTensors| it.tensors[0].meta.num_elements();
    let sizes: Vec<usize> = batch.iter().map(size).collect();
    let lanes = super::vector_width(&sizes);
    let mut end = 0;
    let slots = sizes.iter().map(|size| {
        let (begin, size) = (end, size / lanes);
        end += size.div_ceil(THREADS * ITEMS);
        ParameterRange { begin, end, size }
    });
    let slots: Vec<ParameterRange> = slots.collect();
    let mut named = vec![("clock".to_owned(), clock), ("scale".to_owned(), scale)];
    for (n, slot) in batch.iter().enumerate() {
        let names = ["param", "grad", "m", "v"].map(|name| format!("{name}{n}"));
        named.extend(names.into_iter().zip(slot.tensors));
        named.extend(slot.copy.map(|copy| (format!("copy{n}"), copy)));
    }
    let buffers: Vec<(&str, &CubeTensor)> = named.iter().map(|(name, it)| (&**name, *it)).collect();
    let is_value = |name: &str| matches!(name, "clock" | "scale");
    let values = AdamwValues {
        bindings: wgsl::bindings(&buffers, |name| if is_value(name) { 1 } else { lanes }),
        threads: THREADS,
        items: ITEMS,
        groups: wgsl::groups(end),
        lanes,
        slots,
        copies: batch[0].copy.is_some(),
        beta1: text(rule.beta1),
        beta2: text(rule.beta2),
        rest1: text(1.0 - rule.beta1),
        rest2: text(1.0 - rule.beta2),
        rate: text(rule.lr),
        decay: text(rule.lr * rule.weight_decay),
        eps: text(rule.eps),
    };
    let program = Program::new("adamw_update.wgsl", THREADS, values);
    (program, buffers.into_iter().map(|(_, it)| it).collect())
}

/// A number of the rule as f32 in a text, which has no infinity.
fn text(number: f64) -> String {
    format!("{:?}", (number as f32).clamp(f32::MIN, f32::MAX))
}

/// The values that fill in the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct AdamwValues {
    bindings: Vec<Binding>,
    threads: usize,
    /// Vectors of an invocation, and values of a vector.
    items: usize,
    lanes: usize,
    groups: [usize; 3],
    slots: Vec<ParameterRange>,
    copies: bool,
    beta1: String,
    beta2: String,
    /// 1 − β₁ and 1 − β₂.
    rest1: String,
    rest2: String,
    rate: String,
    /// Rate times weight decay.
    decay: String,
    eps: String,
}

/// The first workgroup of a parameter, the one after its last, and its length in vectors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct ParameterRange {
    begin: usize,
    end: usize,
    size: usize,
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

#[cfg(test)]
mod tests {
    use super::super::check::{self, TestDevice};
    use super::super::empty_of;
    use super::super::wgsl::Wgsl as _;
    use super::*;
    use burn::tensor::DType;

    #[test]
    fn texts_with_copies_and_without_are_valid_wgsl() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let rule = AdamW {
            lr: 1e39,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.01,
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
