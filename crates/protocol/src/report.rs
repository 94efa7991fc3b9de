//! The data of events, with their units.

mod finished;
mod pair;
mod step;

use serde::{Deserialize, Serialize};

use super::peaks::Peaks;
use super::run::{Device, RunSpec, Slot, is_zero};

pub use finished::*;
pub use pair::*;
pub use step::*;

/// The first line of a stream: the program that writes it, and its machine. Another program may leave parts out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// The version of the protocol.
    pub protocol: u32,
    /// The version of the program.
    pub version: String,
    pub pid: u32,
    pub os: String,
    pub cores: u32,
    /// The date of the run in UTC, `YYYY-MM-DD`.
    pub date: String,
    /// The name of the host on which another program runs; our engine leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// A message of the engine's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogMessage {
    /// The level: `info`, `warn` or `error`.
    pub level: String,
    pub text: String,
}

/// One device, as `doctor` and the device list show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The value of `--device` that selects it.
    pub select: String,
    pub device: Device,
    /// The interface to the device: `Vulkan`, `Metal`, `flex`…
    pub backend: String,
    pub driver: String,
    /// True if kernels can be timed on the device's own clock.
    pub timestamps: bool,
    /// A further note for a learner; it may be empty.
    pub note: String,
    /// The measured peaks; `None` if they are not known yet.
    #[serde(rename = "roof")]
    pub peaks: Option<Peaks>,
}

/// A run begins, or goes on with other knobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    pub run: RunSpec,
    /// The hash of the configuration's content.
    pub config: String,
    pub device: Device,
    /// The number of parameters, and of the tensors that hold them.
    pub parameters: u64,
    pub tensors: u32,
    /// The loss of guessing all tokens with equal probability, in nats.
    pub ln_vocab: f64,
    /// The entropy rate of the data in nats, below which no loss can stay; `None` if it is not known.
    pub entropy: Option<f64>,
    /// The floating-point operations of one forward pass.
    pub forward_flops: f64,
    /// The step at which the run begins: above 0 when knobs were changed in mid-run.
    pub from_step: u64,
    /// The measured peaks of the device.
    #[serde(rename = "roof")]
    pub peaks: Option<Box<Peaks>>,
    /// True for one of two runs that are measured in turns: its steps begin at 0 and its times belong to the pair.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paired: bool,
    /// True if products run on matrix cores. Without them, their formats are emulated: operands are rounded, and products are in f32.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub matrix_cores: bool,
    /// The number of the command that this event answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
}

/// A run of another program begins. Every part but the name may be missing; figures that need a missing part are not shown.
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
    /// The number of classes of the loss: the vocabulary of a language model. Guessing among n classes loses ln n nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<u64>,
    /// The number of parameters that require a gradient, and of the tensors that hold them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensors: Option<u32>,
    /// The number of parameters that require no gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<u64>,
    /// The samples and the tokens of one step, accumulated micro-batches included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The step at which the run begins: above 0 if it goes on from a checkpoint.
    pub from_step: u64,
    /// True if the run trains beside a run of the other slot and never goes on with that run's weights.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

/// The state of one process of a watched training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankReading {
    /// The slot of the training that it belongs to.
    #[serde(skip_serializing_if = "Slot::is_a")]
    pub slot: Slot,
    pub rank: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The latest step; `None` before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The median length of a step in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ms: Option<f64>,
    /// The mean phases, in milliseconds, of the steps of ordinary length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhaseTimes>,
    /// The phase that the process reported last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The median time of a step, in milliseconds, that the program spends on being watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_ms: Option<f64>,
    /// The seconds since the last step, if that is unusually long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_step_s: Option<u64>,
    /// The seconds since the last line, if that is unusually long: the process may be gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_s: Option<u64>,
    /// The reason why the process ended early; empty if it ended as planned, and `None` while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
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

/// The memory of the engine's work on the device, in bytes.
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
    /// The figures that cannot be true, or should not be, as a sentence.
    pub why: String,
    /// The advice, as a sentence.
    pub next: String,
}

/// The engine could not do something. It goes on with its other work, unless `reason` announces its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub kind: FailedKind,
    pub reason: String,
    /// The number of the command that this event answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
}

/// The kind of a failure.
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
