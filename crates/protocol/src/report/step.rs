//! The engine's reports of steps: their times, gradients and evidence.

use serde::{Deserialize, Deserializer, Serialize};

use crate::run::{Num, Slot, Spread};

/// One optimizer step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub slot: Slot,
    /// The number of the step, from 0. The loss of step 0 is taken before any update.
    pub step: u64,
    /// The mean cross-entropy in nats; `None` if another program does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Num>,
    /// The wall time of the step in milliseconds, on the host's clock.
    pub ms: f64,
    /// True if the time ends at a device sync. An unsynchronised time measures enqueueing.
    pub synced: bool,
    /// True for a diagnostic step, which is excluded from all statistics: it ran under the profiler, or without the configured syncs to
    /// measure the time of the device alone.
    pub profiled: bool,
    pub phases: Option<PhaseTimes>,
    /// Three readings of this step, which only some steps that end with a sync have. The device's reading is missing if the device
    /// reports it only under the profiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<StepClocks>,
}

/// The parts of a step in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseTimes {
    pub forward: f64,
    pub backward: f64,
    pub optimizer: f64,
    /// `step` minus all other parts. It can be negative, because each part has a timer of its own.
    pub residual: f64,
    /// The time of waiting for the next batch. Our engine makes its batches within `forward` and leaves this out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<f64>,
    /// The time of exchanging data with other processes, if `backward` does not include it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub communication: Option<f64>,
    /// The length of the whole step. Its timer stops after a sync of the device.
    pub step: f64,
}

impl PhaseTimes {
    /// Returns the phases of a step of this length. The residual follows from the three parts.
    pub fn from_parts([forward, backward, optimizer]: [f64; 3], step: f64) -> Self {
        Self {
            forward,
            backward,
            optimizer,
            residual: step - (forward + backward + optimizer),
            step,
            ..Self::default()
        }
    }
}

/// The state of a run's step times, which shows how far they can be trusted. `StepTimes::state` has the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum TimingState {
    #[default]
    #[strum(to_string = "warming up")]
    Warming,
    Settling,
    Steady,
    Drifting,
    Noisy,
}

/// The clock of step times that end when the work is submitted, because nothing waits for the device.
pub const ENQUEUE: &str = "enqueue";

/// The throughput, from unprofiled steps after warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    pub slot: Slot,
    pub step: u64,
    pub state: TimingState,
    pub step_ms: Spread,
    /// The batch divided by the median step time. If no step waits for the device, the samples between two waits of the audit, divided
    /// by the wall time between them.
    pub samples_per_s: f64,
    pub tokens_per_s: f64,
    /// The batch divided by the median time of submitting a step, if no step waits for the device. This is no throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueue_samples_per_s: Option<f64>,
    /// All samples divided by all wall time since the run began, including profiling and the engine's own pauses.
    pub wall_samples_per_s: f64,
    /// The mean phases of the half of these steps whose length is nearest the median.
    pub phases: Option<PhaseTimes>,
    /// The FLOP/s of the model: 3 × the FLOPs of a forward pass, divided by the median step time. `None` if the times are not
    /// synchronised.
    pub flops: Option<f64>,
    /// The device's measured peak in FLOP/s; `None` until it is measured.
    pub peak_flops: Option<f64>,
    /// The share of the cores that other programs used while the peak was measured; `None` if they did not disturb it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_load: Option<f64>,
    /// The clock of the step times: `host-sync` or `enqueue`.
    pub clock: String,
}

/// Reads a throughput. Recordings of older versions have no `enqueue_samples_per_s`: for a run that never waits for the device, they
/// call that rate `samples_per_s`. The rate by wall time replaces it.
pub(crate) fn read_throughput<'de, D: Deserializer<'de>>(from: D) -> Result<Throughput, D::Error> {
    let mut found = Throughput::deserialize(from)?;
    if found.clock == ENQUEUE && found.enqueue_samples_per_s.is_none() {
        found.tokens_per_s *= found.wall_samples_per_s / found.samples_per_s.max(1e-9);
        found.enqueue_samples_per_s = Some(found.samples_per_s);
        found.samples_per_s = found.wall_samples_per_s;
    }
    Ok(found)
}

/// The gradient audit of one step. A gradient counts when it is finite and its norm is not zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gradients {
    pub slot: Slot,
    pub step: u64,
    /// The number of tensors.
    pub tensors: u32,
    /// The number of tensors that received a gradient.
    pub with_grad: u32,
    /// The share of parameters that received a gradient, in percent.
    pub params_pct: f64,
    /// The global norm, √Σ|g|².
    pub norm: Num,
    pub rows: Vec<GradientRow>,
    /// The factor by which the loss of this step is scaled; `None` if it is not. All figures here are divided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<f64>,
    /// The number of steps so far that were skipped because a gradient overflowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponents: Option<Exponents>,
}

/// A histogram of the sizes of all gradients' elements; on a GPU, of a sample of each tensor's elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exponents {
    /// The number of elements that are zero.
    pub zeros: u64,
    /// The number of elements from 2^e up to 2^(e+1), for each e from [`Exponents::LOWEST`] to [`Exponents::HIGHEST`]. The first and the
    /// last number include all smaller and all larger elements.
    pub counts: Vec<u64>,
}

impl Exponents {
    pub const LOWEST: i32 = -40;
    pub const HIGHEST: i32 = 4;

    /// Returns the number of counted elements, zeros included.
    pub fn total(&self) -> u64 {
        self.counts
            .iter()
            .copied()
            .fold(self.zeros, u64::saturating_add)
    }
}

/// The gradient of one tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GradientRow {
    pub name: String,
    /// The number of elements.
    pub parameters: u64,
    /// The norm; `None` if the tensor received no gradient.
    pub norm: Option<Num>,
    /// The share of elements that are exactly zero, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_pct: Option<f64>,
}

/// Measurements of the model that lessons refer to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub slot: Slot,
    pub step: u64,
    /// The standard deviation of the logits.
    pub logit_std: Option<Num>,
    pub logit_min: Option<Num>,
    pub logit_max: Option<Num>,
    /// The share of positions, 0 to 1, whose largest logit belongs to their own input token.
    pub argmax_is_input: Option<f64>,
    /// The root mean square of the residual stream after the embedding and after each layer.
    pub rms: Vec<Num>,
    /// The largest difference of the logits from those of the plain reference model with equal weights, divided by the largest logit.
    pub parity: Option<Num>,
    /// The strides, in elements, of q, k and v as the attention operation received them.
    pub strides: Vec<(String, Vec<usize>)>,
    /// Three clocks of one step; the device's reading is that of the latest profiled step.
    pub clocks: Option<StepClocks>,
}

/// The length of one step in milliseconds on three clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepClocks {
    /// The time until the step's work is submitted to the device.
    pub enqueue: f64,
    /// The time until the host has waited for the device.
    pub host_sync: f64,
    /// The sum of the device's own times of its kernels.
    pub device: Option<f64>,
}
