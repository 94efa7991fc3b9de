//! The data of events, with their units.

use serde::{Deserialize, Deserializer, Serialize};

use super::profile::KernelSummary;
use super::roof::Roof;
use super::run::{Device, Num, RunSpec, Slot, Spread, is_zero};

/// The greeting of an engine, or of another program, which may leave parts out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    pub protocol: u32,
    /// Version of the program.
    pub version: String,
    pub pid: u32,
    pub os: String,
    pub cores: u32,
    /// Date of the run, `YYYY-MM-DD`, UTC.
    pub date: String,
    /// The host's name, where it is another program's greeting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogMessage {
    /// `info`, `warn` or `error`.
    pub level: String,
    pub text: String,
}

/// One device as `doctor` and the device list show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The word for `--device`.
    pub select: String,
    pub device: Device,
    /// `Vulkan`, `Metal`, `flex`…
    pub backend: String,
    pub driver: String,
    /// True if kernels can be timed on the device's own clock.
    pub timestamps: bool,
    /// A further note for a learner; it may be empty.
    pub note: String,
    /// The measured peaks; `None` if they are not known yet.
    pub roof: Option<Roof>,
}

/// A run begins (or goes on with other knobs).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    pub run: RunSpec,
    /// Content hash of the configuration.
    pub config: String,
    pub device: Device,
    pub parameters: u64,
    pub tensors: u32,
    pub ln_vocab: f64,
    /// Lowest reachable loss in nats, where the data's entropy is known.
    pub entropy: Option<f64>,
    pub forward_flops: f64,
    /// Step at which this begins: above 0 when knobs were changed in mid-run.
    pub from_step: u64,
    /// The measured peaks of the device.
    pub roof: Option<Box<Roof>>,
    /// True for one of two runs that are measured in turns: its steps begin at 0 and its times belong to the pair.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paired: bool,
    /// True if products run on matrix cores. Without them, their formats are emulated: operands are rounded, and products are in f32.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub matrix_cores: bool,
    /// The number of the command that it answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
}

/// A run of another program begins. Each part but the name may be missing; what follows from a missing part is not shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForeignRun {
    pub slot: Slot,
    /// The program's name for its run.
    pub name: String,
    /// The number of this process among the processes that train together, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The number of processes that train together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// Classes that the loss chooses from; the vocabulary of a language model. Guessing loses ln of it in nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<u64>,
    /// Parameters that require a gradient, and their tensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensors: Option<u32>,
    /// Parameters that require none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<u64>,
    /// Samples and tokens of one step, accumulated micro-batches included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Step at which it begins: above 0 where it goes on from a checkpoint.
    pub from_step: u64,
    /// It trains beside a run of the other slot and never goes on with that run's weights.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

/// What one process of a watched training does. Times of steps and phases are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankReading {
    /// The slot of the training that it belongs to.
    #[serde(skip_serializing_if = "Slot::is_a")]
    pub slot: Slot,
    pub rank: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its latest step; `None` before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Median length of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ms: Option<f64>,
    /// Means of its phases over the steps of ordinary length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhaseTimes>,
    /// The phase that it was in when it last said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Median time of a step that the program spends on being watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_ms: Option<f64>,
    /// Seconds since its last step, where that is unusually long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_step_s: Option<u64>,
    /// Seconds since its last line, where that is unusually long: the process may be gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_s: Option<u64>,
    /// It is over; with the reason where that was early, else empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// One optimizer step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub slot: Slot,
    /// From 0. The loss of step 0 is taken before any update.
    pub step: u64,
    /// Mean cross-entropy in nats; `None` where another program does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Num>,
    /// Wall time of the step in milliseconds, on the host's clock.
    pub ms: f64,
    /// True if the time ends at a device sync. An unsynchronised time measures enqueueing.
    pub synced: bool,
    /// True for a diagnostic step, which is excluded from all statistics: it ran under the profiler, or without the configured syncs to
    /// measure the time of the device alone.
    pub profiled: bool,
    pub phases: Option<PhaseTimes>,
    /// Three readings of this very step, now and then: only where it ended with a sync. Its device time is missing where a
    /// device tells it under the profiler only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<StepClocks>,
}

/// The parts of a step in milliseconds. `residual` is `step` less all other parts, signed, where `step` is a bracket of its own that
/// ends with a device sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseTimes {
    pub forward: f64,
    pub backward: f64,
    pub optimizer: f64,
    pub residual: f64,
    /// Waiting for the next batch. Our engine makes its batches within `forward` and does not tell this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<f64>,
    /// Exchange with other processes, where it is told apart from `backward`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub communication: Option<f64>,
    /// Length of the sync-terminated bracket.
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

/// Throughput from unprofiled steps after warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    pub slot: Slot,
    pub step: u64,
    pub state: TimingState,
    pub step_ms: Spread,
    /// batch / median; where nothing waited for the device, samples over the wall time between two waits of the audit.
    pub samples_per_s: f64,
    pub tokens_per_s: f64,
    /// batch / median of steps that were only submitted: no throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueue_samples_per_s: Option<f64>,
    /// Samples over all wall time since the run began, profiling and pauses of the engine's own included.
    pub wall_samples_per_s: f64,
    /// Mean phases of the half of these steps whose length is nearest the median.
    pub phases: Option<PhaseTimes>,
    /// Model FLOP/s reached: 3 × forward FLOPs / median step time. None while times are not synchronised.
    pub flops: Option<f64>,
    /// The device's measured peak in FLOP/s, once calibrated.
    pub peak_flops: Option<f64>,
    /// The share of the cores that other programs used while that peak was measured, where it was disturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_load: Option<f64>,
    /// `host-sync` or `enqueue`.
    pub clock: String,
}

/// Reads a throughput. Recordings of older versions give the rate at which steps were submitted as the rate of a run that waits for
/// nothing; a run's rate is by wall time.
pub(crate) fn read_throughput<'de, D: Deserializer<'de>>(from: D) -> Result<Throughput, D::Error> {
    let mut found = Throughput::deserialize(from)?;
    if found.clock == ENQUEUE && found.enqueue_samples_per_s.is_none() {
        found.tokens_per_s *= found.wall_samples_per_s / found.samples_per_s.max(1e-9);
        found.enqueue_samples_per_s = Some(found.samples_per_s);
        found.samples_per_s = found.wall_samples_per_s;
    }
    Ok(found)
}

/// Reads a summary, as [`read_throughput`] does. One of an older version has no rate by wall time.
pub(crate) fn read_finished<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Finished>, D::Error> {
    let mut found = Box::<Finished>::deserialize(from)?;
    if found.clock == ENQUEUE && found.enqueue_samples_per_s.is_none() {
        found.enqueue_samples_per_s = found.samples_per_s.take();
        found.tokens_per_s = None;
    }
    Ok(found)
}

/// The gradient audit of one step. A gradient counts when it is finite and its norm is not zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gradients {
    pub slot: Slot,
    pub step: u64,
    pub tensors: u32,
    pub with_grad: u32,
    /// Share of parameters that received a gradient, in percent.
    pub params_pct: f64,
    /// Global norm, √Σ|g|².
    pub norm: Num,
    pub rows: Vec<GradientRow>,
    /// The factor of the loss in this step, which no figure here contains; `None`: the loss is not scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<f64>,
    /// Steps left out so far, because a gradient overflowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponents: Option<Exponents>,
}

/// The sizes of the elements of all gradients; on a GPU, of a sample of each tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exponents {
    pub zeros: u64,
    /// Elements from 2^e up to 2^(e+1), for e from [`Exponents::LOWEST`] on. The first and the last hold what lies beyond.
    pub counts: Vec<u64>,
}

impl Exponents {
    pub const LOWEST: i32 = -40;
    pub const HIGHEST: i32 = 4;

    /// Returns the number of counted elements, zeros included.
    pub fn total(&self) -> u64 {
        let counts = self.counts.iter().copied();
        counts.fold(self.zeros, u64::saturating_add)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GradientRow {
    pub name: String,
    pub parameters: u64,
    /// None: no gradient arrived.
    pub norm: Option<Num>,
    /// Share of its elements that are exactly zero, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_pct: Option<f64>,
}

/// Measurements of this model that lessons refer to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub slot: Slot,
    pub step: u64,
    /// Standard deviation of the logits.
    pub logit_std: Option<Num>,
    pub logit_min: Option<Num>,
    pub logit_max: Option<Num>,
    /// Share of positions whose largest logit is their own input token.
    pub argmax_is_input: Option<f64>,
    /// Root mean square of the residual stream after the embedding and after each layer.
    pub rms: Vec<Num>,
    /// Largest difference of the logits from the plain reference model with the same weights, over the largest logit.
    pub parity: Option<Num>,
    /// Strides, in elements, of q, k and v as the attention operation received them.
    pub strides: Vec<(String, Vec<usize>)>,
    /// Three readings in ms: handing a step's work over, the same step to its sync on the host's clock, and the sum of
    /// device times of the latest profiled step.
    pub clocks: Option<StepClocks>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepClocks {
    pub enqueue: f64,
    pub host_sync: f64,
    pub device: Option<f64>,
}

/// The load of the machine by other programs, reported once a second: the median of several windows of one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The share of the engine's cores that other programs use, 0 to 1. The engine and its reader do not count.
    pub others: Option<f64>,
    /// True if other programs slow our steps down. It has hysteresis, so that it does not flicker.
    pub busy: bool,
    /// The reason why the load is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Memory of the engine's device work, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub slot: Slot,
    pub peak_bytes: Option<u64>,
    pub current_bytes: Option<u64>,
    pub weights: u64,
    pub gradients: u64,
    pub moments: u64,
    /// The reason why a figure is missing.
    pub reason: Option<String>,
}

/// A plausibility lint that applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lint {
    pub name: String,
    pub why: String,
    pub next: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    Faster,
    Slower,
    #[strum(to_string = "less than 1 % apart")]
    Same,
    #[default]
    Unclear,
}

/// A paired comparison so far. Ratios are time of A / time of B: above 1, B is faster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Pairs measured. Before the first one only the limits and the looks are known.
    pub n: u32,
    /// Pairs at the next look, where the verdict is given.
    pub wanted: u32,
    /// Ratio, interval, verdict and the times of both sides are those of the latest look; before the first look, of all
    /// pairs so far.
    pub ratio: f64,
    /// 95 % interval of the ratio: none below 10 pairs.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub verdict: Verdict,
    pub a_ms: Spread,
    pub b_ms: Spread,
    /// Seconds left at the present pace, if no look ends it before.
    pub remaining_s: f64,
    /// The last one of this comparison.
    pub done: bool,
    /// Paths at which the two configurations differ.
    pub differs: Vec<String>,
    /// Most pairs and seconds; both are fixed before the first pair.
    #[serde(default)]
    pub limit_pairs: u32,
    #[serde(default)]
    pub limit_s: f64,
    #[serde(default)]
    pub looks: Vec<Look>,
    /// Tokens of a step of A and of B, where these differ in batch or context: the ratio is that of times per token then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<[u64; 2]>,
    /// The number of the command that it answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
}

/// A look at a comparison. The interval is `None` until the look is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The number of pairs at which the look is made.
    pub pairs: u32,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Pair {
    /// Returns the number of pairs behind ratio, interval, verdict and times: those of the latest look. More may have been measured since.
    pub fn judged(&self) -> u64 {
        match self.a_ms.n {
            0 => self.n.into(),
            judged => judged,
        }
    }

    /// Returns the ratio with its interval, `1.200x [1.100, 1.300]`, or with the reason why it has none. If the figures do not include all
    /// pairs so far, it says how many they include.
    pub fn figures(&self) -> String {
        let per = if self.tokens.is_some() {
            " per token"
        } else {
            ""
        };
        let interval = match self.low.zip(self.high) {
            Some((low, high)) => format!("[{low:.3}, {high:.3}]"),
            None if self.judged() >= 10 => "(no interval yet)".to_owned(),
            None => NO_INTERVAL.to_owned(),
        };
        let of = match self.judged() {
            judged if judged < self.n.into() => format!(" of the first {judged} pairs"),
            _ => String::new(),
        };
        format!("{:.3}x{per} {interval}{of}", self.ratio)
    }
}

/// The words in the place of a missing interval.
pub const NO_INTERVAL: &str = "(no interval below 10 pairs)";

/// The summary that ends a run: the last line of `--json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub stage: u32,
    pub variant: String,
    pub slot: Slot,
    /// Content hash of the configuration.
    pub config: String,
    pub device: Device,
    pub steps: u64,
    pub loss_first: Num,
    /// The step of that loss: above 0 where the knobs were changed in mid-run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_step: u64,
    pub loss_last: Num,
    pub ln_vocab: f64,
    pub entropy: Option<f64>,
    /// None: not enough synchronised, unprofiled steps.
    pub samples_per_s: Option<f64>,
    pub tokens_per_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueue_samples_per_s: Option<f64>,
    pub step_ms: Option<Spread>,
    pub phases_ms: Option<PhaseTimes>,
    /// `host-sync`, or `enqueue` when nothing waited for the device.
    pub clock: String,
    pub state: TimingState,
    pub grad: GradSummary,
    pub kernels: KernelSummary,
    pub memory: Memory,
    pub evidence: Option<Evidence>,
    pub lints: Vec<Lint>,
    pub pair: Option<Pair>,
    /// The share of the cores that other programs used while this was measured, 0 to 1, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// The reason why the run ended before its steps were done: `stopped`, `not-finite: <tensor>`.
    pub ended: Option<String>,
    /// The number of the last command that the run took.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GradSummary {
    pub tensors: u32,
    pub with_grad: u32,
    pub params_pct: f64,
    /// Share of all gradient elements that are exactly zero, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_pct: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u32>,
}

impl From<&Gradients> for GradSummary {
    fn from(audit: &Gradients) -> Self {
        let shares = audit
            .rows
            .iter()
            .filter_map(|row| Some((row.parameters as f64, row.zero_pct?)));
        let (count, zeros) = shares.fold((0.0, 0.0), |(count, zeros), (parameters, share)| {
            (count + parameters, zeros + parameters * share)
        });
        Self {
            tensors: audit.tensors,
            with_grad: audit.with_grad,
            params_pct: audit.params_pct,
            zero_pct: (count > 0.0).then_some(zeros / count),
            loss_scale: audit.loss_scale,
            skipped: audit.skipped,
        }
    }
}

/// Something could not be done. The engine goes on unless it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub kind: FailedKind,
    pub reason: String,
    /// The number of the command that it answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailedKind {
    /// The configuration or the command was wrong.
    Usage,
    /// A change of the run in progress is impossible. The run goes on unchanged.
    Refused,
    /// The device is missing, or was lost.
    Device,
    /// A fault of the engine itself.
    #[default]
    Internal,
}
