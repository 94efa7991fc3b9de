//! The profile of a step: one row for each kernel of an operation, and their sums.

use serde::{Deserialize, Serialize};

use super::run::{Slot, is_zero};

/// The time and the work of one kernel in one operation, part and phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRow {
    /// The part of the model: `mlp.gate`, `attention`, `norm1`, `optimizer`…
    pub part: String,
    /// The phase: `forward`, `backward` or `optimizer`.
    pub phase: String,
    /// Our operation: `linear`, `rms-norm`…
    pub op: String,
    /// The name of the kernel that ran: a GPU kernel, or our CPU implementation.
    pub kernel: String,
    /// The number of layers that ran the kernel.
    pub layers: u32,
    pub calls: u32,
    /// The time of all calls in milliseconds.
    pub ms: f64,
    /// The beginning and the length of each call in nanoseconds. Beginnings count from the first call of the phase. Empty if the device
    /// does not report them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<(u64, u64)>,
    /// The floating-point operations of all calls, computed from the shapes.
    pub flops: Option<f64>,
    /// The bytes of all calls, each operand moved once.
    pub bytes: Option<f64>,
    /// The time of all kernels of the operation in milliseconds. `Some` in the row that carries the work of an operation with several kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ms: Option<f64>,
    /// True if the operation's products ran on matrix cores, whose peak then limits them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub matrix_cores: bool,
    /// The reason why the work is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_work: Option<String>,
}

/// The text of a kernel as its driver gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledKernel {
    /// The name of the kernel, as in its rows of the profile.
    pub kernel: String,
    /// The file with its source.
    pub file: String,
    /// The number of invocations of a workgroup along x, y and z.
    pub workgroup: String,
    pub text: String,
    /// The names, as on the screen, of the rows of the profile that launch the kernel; empty if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
}

/// The profile of one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepProfile {
    pub slot: Slot,
    pub step: u64,
    /// The rows, the longest time first. An operation that calls others has no row of its own.
    pub rows: Vec<KernelRow>,
    pub launches: u32,
    /// The number of different kernels.
    pub unique: u32,
    /// The sum of the rows' times in milliseconds.
    pub device_ms: f64,
    /// The wall time of the profiled step in milliseconds.
    pub profiled_step_ms: f64,
    /// `device_ms` divided by `step_ms`. Below 1, the device waited for the host in the rest of the step.
    pub coverage: f64,
    /// The length in milliseconds of the step that the rows are compared with. On the CPU, where rows and step share a clock, that is the
    /// profiled step. On a GPU it is an unprofiled step that waits for the device only at its end: the waits of a profiled step are not
    /// work of the device, and they change how its launches follow each other.
    pub step_ms: Option<f64>,
    /// The number of profiles before this one that were discarded because they disagreed with the steps around them, as they do while a
    /// clock changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub discarded: u32,
    /// The time of the step that belongs to no row, in milliseconds.
    pub unbracketed_ms: f64,
    /// The clock of the rows: `device`, `system` or `host`.
    pub clock: String,
    /// The number of launches of the forward, backward and optimizer phase.
    pub launches_by_phase: [u32; 3],
    /// The reason why there are no rows; `None` if there are some.
    pub reason: Option<String>,
    /// The number of the `profile` command that this profile answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
    /// The trace file that another program wrote of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The profiles of a run in the form of its summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelSummary {
    pub launches_per_step: u32,
    pub unique: u32,
    pub device_ms: f64,
    pub coverage: f64,
    /// The rows with the longest times.
    pub top: Vec<TopKernel>,
    /// The number of profiles from which the median times in `top` were taken; 0 if the times are those of a single profile.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub profiles: u32,
    /// The number of profiles that were discarded because they disagreed with the steps around them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub discarded: u32,
    pub reason: Option<String>,
}

/// One row of a profile in the form of the summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopKernel {
    pub kernel: String,
    /// The part of the model and the phase: `mlp.gate/backward`.
    pub scope: String,
    /// Our operation: `linear`, `rms-norm`…; empty in older recordings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub op: String,
    pub calls: u32,
    pub ms: f64,
    /// The speed and the intensity; `None` if the work does not follow from shapes.
    pub gflop_per_s: Option<f64>,
    pub gb_per_s: Option<f64>,
    pub flop_per_byte: Option<f64>,
    /// The share of the speed that the device's measured peaks allow at that intensity; 1 is all of it.
    #[serde(rename = "roof_share")]
    pub peak_share: Option<f64>,
    /// The reason why the work is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_work: Option<String>,
}
