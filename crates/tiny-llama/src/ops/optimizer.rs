//! AdamW (Loshchilov and Hutter, 2017, arXiv 1711.05101): p −= lr·wd·p, m = β₁m + (1−β₁)g, v = β₂v + (1−β₂)g²,
//! p −= lr·(m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε). The library's version updates tensor by tensor; ours updates all tensors in one pass.

mod fused_cpu;
mod fused_gpu;

use std::collections::BTreeMap;

use burn::backend::{Cube, Flex};
use burn::optim::{AdamW, AdamWConfig, AdamWState, Optimizer as _};
use burn::tensor::{Tensor, TensorData};

use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::backend::is_cpu;
use super::cost::{self, Cost, Phase, Scope, SpanRow};
use super::gpu;
use super::loss_scale::{self, LossScale, ScaleState};
use super::{Parameter, linear, primitive};
use fused_cpu::{AdamW as OwnAdamW, Parameter as Slices};
pub use fused_cpu::{BETA_1, BETA_2, EPSILON, WEIGHT_DECAY};
use fused_gpu::AdamwTensors;
use protocol::config;

/// AdamW with its state, which has one slot for each parameter. A slot is empty until the parameter's first gradient.
pub struct Optimizer(Version);

#[expect(clippy::large_enum_variant, reason = "one exists for each run")]
enum Version {
    Library {
        rule: AdamW,
        states: Vec<Option<AdamWState<2>>>,
    },
    Own {
        moments: Vec<Option<Moments>>,
        /// The indices of the parameters that the last update changed.
        moved: Vec<usize>,
        clocks: Clocks,
        /// The state of loss scaling that a GPU's kernel reads in runs without loss scaling. It leaves gradients unchanged.
        unscaled: Option<CubeTensor>,
    },
}

/// The first and second moments of a parameter, and the number of their updates. Each parameter has its own bias corrections, because a
/// parameter whose first gradient comes late starts with new moments.
struct Moments {
    mean: Tensor<2>,
    square: Tensor<2>,
    updates: i32,
}

/// The bias corrections on a GPU, by the number of updates. In most runs all parameters have one number.
type Clocks = BTreeMap<i32, CubeTensor>;

impl Optimizer {
    /// Makes an optimizer without history.
    pub fn new(version: config::Optimizer, parameters: usize) -> Self {
        let version = match version {
            config::Optimizer::Library => Version::Library {
                rule: AdamWConfig::new()
                    .with_beta_1(BETA_1 as f32)
                    .with_beta_2(BETA_2 as f32)
                    .with_epsilon(EPSILON as f32)
                    .with_weight_decay(WEIGHT_DECAY as f32)
                    .build(),
                states: (0..parameters).map(|_| None).collect(),
            },
            config::Optimizer::Fused => Version::Own {
                moments: (0..parameters).map(|_| None).collect(),
                moved: Vec::new(),
                clocks: Clocks::new(),
                unscaled: None,
            },
        };
        Self(version)
    }

    /// Returns the bytes of all moments. A parameter without a gradient so far has none.
    pub fn moment_bytes(&self, parameters: &[&Parameter]) -> u64 {
        let has_moments = |index: usize| match &self.0 {
            Version::Library { states, .. } => states[index].is_some(),
            Version::Own { moments, .. } => moments[index].is_some(),
        };
        parameters
            .iter()
            .enumerate()
            .filter(|(index, _)| has_moments(*index))
            .map(|(_, parameter)| 8 * parameter.value.shape().num_elements() as u64)
            .sum()
    }

    /// Counts the device's replays of the last update, for the parameters that it changed. `times` is -1 if the update was only recorded.
    pub fn count_replays(&mut self, times: i32) {
        let Version::Own {
            moments,
            moved,
            clocks,
            ..
        } = &mut self.0
        else {
            return;
        };
        let mut new_ages = BTreeMap::new();
        for index in moved {
            if let Some(moments) = &mut moments[*index] {
                new_ages.insert(moments.updates, moments.updates + times);
                moments.updates += times;
            }
        }
        // All are removed before the first is inserted, because a new age may be another's old one.
        let advanced: Vec<_> = new_ages
            .into_iter()
            .filter_map(|(before, now)| Some((now, clocks.remove(&before)?)))
            .collect();
        clocks.extend(advanced);
    }

    /// Makes one update. A parameter without a gradient does not change, as in PyTorch. Our version divides gradients by the loss
    /// scale; the library's version ignores it.
    pub fn step(
        &mut self,
        parameters: Vec<&mut Parameter>,
        gradients: Vec<Option<Tensor<2>>>,
        lr: f64,
        scale: Option<&LossScale>,
    ) {
        match &mut self.0 {
            Version::Library { rule, states } => {
                for ((parameter, gradient), state) in
                    parameters.into_iter().zip(gradients).zip(states)
                {
                    let Some(gradient) = gradient else { continue };
                    library_update(rule, state, parameter, gradient, lr);
                }
            }
            Version::Own {
                moments,
                moved,
                clocks,
                unscaled,
            } => {
                let unscale = match scale {
                    Some(LossScale::Host(ScaleState { inverse, .. })) => *inverse,
                    Some(LossScale::Device(_)) | None => 1.0,
                };
                if unscale == 0.0 {
                    return;
                }
                let mut by_age: BTreeMap<i32, Vec<Work>> = BTreeMap::new();
                let mut elements = 0;
                moved.clear();
                for ((index, parameter), (gradient, moments)) in parameters
                    .into_iter()
                    .enumerate()
                    .zip(gradients.into_iter().zip(moments))
                {
                    let Some(gradient) = gradient else { continue };
                    moved.push(index);
                    elements += gradient.shape().num_elements();
                    let updates = moments.as_ref().map_or(0, |m| m.updates);
                    let work = (parameter, gradient, moments);
                    by_age.entry(updates).or_default().push(work);
                }
                cost::span(row("own", elements), || {
                    // Parameters with the most updates come first, so that their clock advances before another takes its place.
                    for (updates, work) in by_age.into_iter().rev() {
                        let time = updates + 1;
                        let rule = OwnAdamW { lr, time, unscale };
                        if is_cpu(&work[0].0.value.device()) {
                            on_cpu(&rule, work);
                        } else {
                            on_gpu(&rule, work, clocks, scale, unscaled);
                        }
                    }
                });
            }
        }
    }
}

/// Updates one parameter with the library's version, then renews the copy of it that products read.
fn library_update(
    rule: &AdamW,
    state: &mut Option<AdamWState<2>>,
    parameter: &mut Parameter,
    gradient: Tensor<2>,
    lr: f64,
) {
    let row = row("library", gradient.shape().num_elements());
    cost::span(row, || {
        let before = parameter.value.clone().inner(); // [rows, columns]
        let (after, next) = rule.step(lr, before, gradient, state.take());
        *state = next;
        parameter.value = Tensor::from_inner(after).require_grad(); // [rows, columns]
        if parameter.operand.is_some() {
            linear::copy_operands(vec![parameter]);
        }
    });
}

/// A parameter with its gradient and moments, as burn's tensors. Parameters with equally many updates are updated together.
type Work<'a> = (&'a mut Parameter, Tensor<2>, &'a mut Option<Moments>);

/// A parameter with its gradient and moments as the backend's contiguous tensors.
struct Flat<'a, T> {
    parameter: &'a mut Parameter,
    moments: &'a mut Option<Moments>,
    value: T,
    gradient: T,
    mean: T,
    square: T,
}

impl<'a, T> Flat<'a, T> {
    /// Makes the contiguous tensors of a parameter; `value` is the parameter's tensor.
    fn new(
        (parameter, gradient, moments): Work<'a>,
        value: Tensor<2>,
        flat: impl Fn(Tensor<2>) -> T,
    ) -> Self {
        let [mean, square] = match moments.take() {
            Some(Moments { mean, square, .. }) => [mean, square],
            None => [value.zeros_like(), value.zeros_like()], // [rows, columns] each
        };
        Self {
            parameter,
            moments,
            value: flat(value),
            gradient: flat(gradient),
            mean: flat(mean),
            square: flat(square),
        }
    }

    /// Stores the new value in the parameter, and the moments.
    fn put_back(self, updates: i32, tensor: impl Fn(T) -> Tensor<2>) {
        *self.moments = Some(Moments {
            mean: tensor(self.mean),
            square: tensor(self.square),
            updates,
        });
        self.parameter.value = Tensor::from_inner(tensor(self.value)).require_grad(); // [rows, columns]
    }
}

/// Updates all parameters in one parallel region, in place.
fn on_cpu(rule: &OwnAdamW, work: Vec<Work>) {
    let placeholder = Tensor::<2>::zeros([1, 1], &work[0].1.device());
    let mut all: Vec<_> = work
        .into_iter()
        .map(|work| {
            // The value is taken out of the model, so that it has one owner and is updated in place.
            let value = std::mem::replace(&mut work.0.value, placeholder.clone()).inner();
            Flat::new(work, value, |tensor| {
                primitive::<Flex>(tensor).to_contiguous()
            })
        })
        .collect();
    rule.step(all.iter_mut().map(|flat| Slices {
        value: flat.value.storage_mut::<f32>(),
        gradient: flat.gradient.storage::<f32>(),
        mean: flat.mean.storage_mut::<f32>(),
        square: flat.square.storage_mut::<f32>(),
    }));
    for flat in all {
        flat.put_back(rule.time, Tensor::from_primitive::<Flex>);
    }
}

/// Updates many parameters in one launch, in place; the bias corrections are a clock on the device.
fn on_gpu(
    rule: &OwnAdamW,
    work: Vec<Work>,
    clocks: &mut Clocks,
    scale: Option<&LossScale>,
    unscaled: &mut Option<CubeTensor>,
) {
    let all: Vec<_> = work
        .into_iter()
        .map(|work| {
            let value = work.0.value.clone().inner();
            Flat::new(work, value, |tensor| {
                into_contiguous(primitive::<Cube>(tensor))
            })
        })
        .collect();
    let first = &all[0];
    let before = rule.time - 1;
    let clock = clocks
        .remove(&before)
        .unwrap_or_else(|| clock_at(before, &first.parameter.value));
    let copies: Vec<_> = all
        .iter()
        .map(|flat| flat.parameter.operand.clone().map(primitive::<Cube>))
        .collect();
    let slots: Vec<_> = all
        .iter()
        .zip(&copies)
        .map(|(flat, copy)| AdamwTensors {
            tensors: [&flat.value, &flat.gradient, &flat.mean, &flat.square],
            copy: copy.as_ref().filter(|copy| gpu::is_f16(copy)),
        })
        .collect();
    let scale = match scale {
        Some(LossScale::Device(state)) => state.clone(),
        Some(LossScale::Host(_)) | None => unscaled
            .get_or_insert_with(|| loss_scale::fused_gpu::neutral(&first.value))
            .clone(),
    };
    fused_gpu::step(&slots, &clock, &scale, rule);
    clocks.insert(rule.time, clock);
    for flat in all {
        flat.put_back(rule.time, Tensor::from_primitive::<Cube>);
    }
}

/// Makes the bias corrections 1 − β₁ᵗ and 1 − β₂ᵗ, `[2]`, after `time` updates. The first update needs them, and so do parameters that had no
/// gradient while others with as many updates were updated.
fn clock_at(time: i32, like: &Tensor<2>) -> CubeTensor {
    let corrections = [BETA_1, BETA_2].map(|beta| (1.0 - beta.powi(time)) as f32);
    Tensor::<1>::from_data(
        TensorData::new(corrections.to_vec(), [2]),
        &like.device().inner(),
    )
    .try_into_primitive::<Cube>()
    .expect("the device was checked")
}

/// Returns the row of an update of this many elements in a profile.
fn row(version: &'static str, elements: usize) -> SpanRow {
    let n = elements as f64;
    SpanRow {
        scope: Scope::outside("optimizer"),
        phase: Phase::Optimizer,
        op: "adamw",
        version,
        // Reads p, g, m and v; writes p, m and v.
        cost: Cost::new(12.0 * n, 7.0 * n),
    }
}
