//! Dynamic loss scaling (Micikevicius et al., 2017, arXiv 1710.03740, section 3.2): the loss is multiplied by a factor, which keeps
//! gradients in f16 above its smallest number, and the optimizer divides by the factor. A step whose gradients are not finite is
//! skipped and halves the factor. After [`GROWTH_INTERVAL`] clean steps the factor doubles. On a GPU the factor stays on the device, so the
//! host does not wait for it.

pub(super) mod fused_gpu;

use burn::backend::Cube;
use burn::tensor::{Device, Tensor};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::backend::is_cpu;
use super::{gpu, grad_norm, learner_kernel, primitive};

/// The factor with which a run begins.
pub const FIRST: f32 = 65_536.0;
/// The number of steps without an overflow after which the factor doubles.
pub const GROWTH_INTERVAL: u32 = 200;
/// The largest factor. Without a limit the factor would become infinite and stay so.
pub const LARGEST: f32 = 16_777_216.0;

/// The state of loss scaling on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleState {
    pub factor: f32,
    /// The factor by which the optimizer multiplies the gradients of the last step: 1 over that step's factor, or 0 to skip the step.
    pub inverse: f32,
    /// The number of clean steps since the factor changed.
    pub clean: u32,
    /// The number of steps that were skipped so far.
    pub skipped: u32,
}

/// The state of loss scaling, on the device that computes the gradients.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one exists for each run")]
pub enum LossScale {
    Host(ScaleState),
    /// The fields of [`ScaleState`] in their order, `[4]`.
    Device(CubeTensor),
}

impl ScaleState {
    /// Returns the state with this factor before the first step.
    fn at(factor: f32) -> Self {
        Self {
            factor,
            inverse: 1.0 / factor,
            clean: 0,
            skipped: 0,
        }
    }

    /// Returns the state after a step; `finite` tells whether the step's gradients are finite.
    fn after(self, finite: bool) -> Self {
        if !finite {
            return Self {
                factor: (self.factor / 2.0).max(1.0),
                inverse: 0.0,
                clean: 0,
                skipped: self.skipped + 1,
            };
        }
        let grows = self.clean + 1 >= GROWTH_INTERVAL;
        Self {
            factor: if grows {
                (2.0 * self.factor).min(LARGEST)
            } else {
                self.factor
            },
            inverse: 1.0 / self.factor,
            clean: if grows { 0 } else { self.clean + 1 },
            skipped: self.skipped,
        }
    }

    /// Returns true if the last step was skipped although the factor is the smallest possible, so that scaling can no longer help.
    pub fn exhausted(self) -> bool {
        self.inverse == 0.0 && self.factor <= 1.0
    }
}

/// Chooses gradients that are finite only if the gradients of all parameters are: those of the norms' gains, `[1, d]`.
///
/// A gradient becomes infinite where a product rounds to f16. Products and sums with an infinity or NaN are never finite, so the infinity
/// reaches the input of that product, and then the gain of the norm before it: norm 2 for the feed-forward products, norm 1 for those of
/// attention, the final norm for the head. A learner's kernel may stop it, and a detached norm gets no gradient; then all gradients are
/// chosen.
pub fn to_check(gradients: &[Option<Tensor<2>>]) -> Vec<&Tensor<2>> {
    let all = || gradients.iter().flatten();
    let gains: Vec<_> = all().filter(|gradient| gradient.dims()[0] == 1).collect();
    if gains.is_empty() || learner_kernel::any() {
        return all().collect();
    }
    gains
}

impl LossScale {
    /// Starts with the first factor, on a device with or without autodiff.
    pub fn new(device: &Device) -> Self {
        Self::at(FIRST, device)
    }

    /// Starts with another factor.
    pub fn at(factor: f32, device: &Device) -> Self {
        if is_cpu(device) {
            return Self::Host(ScaleState::at(factor));
        }
        let values = [[factor, 1.0 / factor, 0.0, 0.0]];
        let state = Tensor::from_data(values, &device.clone().inner()); // [1, 4]
        Self::Device(primitive::<Cube>(state))
    }

    /// Returns the factor `[1, 1]` that gradients are multiplied by, on `device`, which is one without autodiff.
    pub fn factor(&self, device: &Device) -> Tensor<2> {
        match self {
            Self::Host(state) => Tensor::from_data([[state.factor]], device), // [1, 1]
            Self::Device(state) => Tensor::from_primitive::<Cube>(fused_gpu::factor(state)), // [1, 1]
        }
    }

    /// Advances by a step with these gradients, which are still scaled; [`to_check`] chooses them.
    pub fn advance(&mut self, gradients: &[&Tensor<2>]) {
        match self {
            Self::Host(state) => {
                let finite = grad_norm::lengths(gradients).iter().all(|x| x.is_finite());
                *state = state.after(finite);
            }
            Self::Device(state) => {
                let tensors: Vec<CubeTensor> = gradients
                    .iter()
                    .map(|gradient| into_contiguous(primitive::<Cube>((*gradient).clone())))
                    .collect();
                fused_gpu::advance(state, &tensors, GROWTH_INTERVAL, LARGEST);
            }
        }
    }

    /// Reads the state; `None` if the device does not answer. Waits for a GPU.
    pub fn read(&self) -> Option<ScaleState> {
        let tensor = match self {
            Self::Host(state) => return Some(*state),
            Self::Device(tensor) => tensor,
        };
        let [factor, inverse, clean, skipped] = gpu::read(tensor)?.try_into().ok()?;
        Some(ScaleState {
            factor,
            inverse,
            clean: clean as u32,
            skipped: skipped as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the states after steps whose gradients are finite or not.
    fn run(device: &Device, steps: &[bool]) -> Vec<ScaleState> {
        let mut scale = LossScale::new(device);
        let step = |finite: &bool| {
            let value = if *finite { 3.0 } else { f32::INFINITY };
            let always_finite = Tensor::<2>::full([70, 300], 0.5, device); // [70, 300]
            let gradient = Tensor::<2>::full([1, 1], value, device); // [1, 1]
            scale.advance(&[&always_finite, &gradient]);
            scale.read().expect("the device answers")
        };
        steps.iter().map(step).collect()
    }

    #[test]
    fn an_overflow_halves_the_factor_and_leaves_the_step_out() {
        let states = run(&Device::flex(), &[true, false, false, true]);
        let seen = states
            .iter()
            .map(|state| (state.factor, state.inverse, state.clean, state.skipped));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [
                (FIRST, 1.0 / FIRST, 1, 0),
                (FIRST / 2.0, 0.0, 0, 1),
                (FIRST / 4.0, 0.0, 0, 2),
                (FIRST / 4.0, 4.0 / FIRST, 1, 2),
            ]
        );
    }

    #[test]
    fn the_factor_doubles_after_clean_steps_and_stays_between_its_ends() {
        let interval = GROWTH_INTERVAL as usize;
        let states = run(&Device::flex(), &vec![true; interval]);
        let factors = [states[interval - 2], states[interval - 1]].map(|state| state.factor);
        assert_eq!(factors, [FIRST, 2.0 * FIRST]);
        let most = ScaleState {
            factor: LARGEST,
            clean: GROWTH_INTERVAL - 1,
            ..ScaleState::at(FIRST)
        };
        assert_eq!(most.after(true).factor, LARGEST);
        let least = ScaleState {
            factor: 1.0,
            ..ScaleState::at(FIRST)
        };
        assert_eq!(least.after(false).factor, 1.0);
        assert!(least.after(false).exhausted() && !least.after(true).exhausted());
    }

    #[test]
    fn the_state_on_a_gpu_advances_like_the_state_on_the_host() {
        let Some(device) = gpu::check::TestDevice::any() else {
            return;
        };
        let mut steps = vec![true; GROWTH_INTERVAL as usize + 2];
        steps[1] = false;
        steps.extend([false, true]);
        assert_eq!(run(&device.burn(), &steps), run(&Device::flex(), &steps));
    }
}
