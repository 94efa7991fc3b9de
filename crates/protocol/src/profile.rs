//! The profile of a step: a row for each operation and kernel, and their sums.

use serde::{Deserialize, Serialize};

use super::run::{Slot, is_zero};

/// The time and the work of one kernel in one operation, part and phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRow {
    /// `mlp.gate`, `attention`, `norm1`, `optimizer`…
    pub part: String,
    /// `forward`, `backward` or `optimizer`.
    pub phase: String,
    /// Our operation: `linear`, `rms-norm`…
    pub op: String,
    /// The kernel that ran: a GPU kernel's name, or our CPU implementation's.
    pub kernel: String,
    /// Layers that did this, e.g. 8.
    pub layers: u32,
    pub calls: u32,
    pub ms: f64,
    /// Each call: its beginning in ns after that of the phase's first one, and its length in ns. None where the device does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<(u64, u64)>,
    /// Floating-point operations by shape, over all calls.
    pub flops: Option<f64>,
    /// Bytes by shape, each operand once, over all calls.
    pub bytes: Option<f64>,
    /// Time of that work in ms, where an operation has several kernels and this row carries the work of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ms: Option<f64>,
    /// The operation's products ran on matrix cores: their peak is the roof.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub matrix_cores: bool,
    /// The reason why the work is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_work: Option<String>,
}

/// The text of a kernel as its driver gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledKernel {
    /// The name, which rows of the profile have as well.
    pub kernel: String,
    /// The file with its source.
    pub file: String,
    /// The number of invocations of a workgroup along x, y and z.
    pub workgroup: String,
    pub text: String,
    /// The rows of the profile that launch it, by their names on the screen; empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
}

/// The profile of one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepProfile {
    pub slot: Slot,
    pub step: u64,
    /// Sorted by time, longest first. Leaf operations only.
    pub rows: Vec<KernelRow>,
    pub launches: u32,
    pub unique: u32,
    /// Sum over rows.
    pub device_ms: f64,
    /// Wall time of the profiled step itself.
    pub profiled_step_ms: f64,
    /// `device_ms` over `step_ms`. Below 1, the device waited for the host for the rest of the time.
    pub coverage: f64,
    /// The step whose time the rows are compared with. On the CPU, where brackets and step share a clock, the profiled step itself.
    /// On a GPU an unprofiled step that waits for the device at its end only: waits between phases are no work of the
    /// device's, and under the profiler the launches do not follow each other as they otherwise do.
    pub step_ms: Option<f64>,
    /// Profiles taken before this one that disagreed with the steps around them, as they do while a clock changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub discarded: u32,
    /// Time of the step in no row.
    pub unbracketed_ms: f64,
    /// `device`, `system` or `host`.
    pub clock: String,
    /// Launches by phase: forward, backward, optimizer.
    pub launches_by_phase: [u32; 3],
    /// The reason why there are no rows; `None` if there are some.
    pub reason: Option<String>,
    /// The number of the `profile` that asked for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
    /// The trace file that another program wrote of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelSummary {
    pub launches_per_step: u32,
    pub unique: u32,
    pub device_ms: f64,
    pub coverage: f64,
    pub top: Vec<TopKernel>,
    /// Profiled steps whose medians the times of `top` are; 0 where they are of one step.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub profiles: u32,
    /// Profiles that were not used, because they disagreed with the steps around them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub discarded: u32,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopKernel {
    pub kernel: String,
    pub scope: String,
    /// Our operation: `linear`, `rms-norm`…; empty in older recordings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub op: String,
    pub calls: u32,
    pub ms: f64,
    /// The speed in GFLOP/s; `None` if the work does not follow from shapes. The next two figures are in GB/s and FLOP per byte.
    pub gflop_per_s: Option<f64>,
    pub gb_per_s: Option<f64>,
    pub flop_per_byte: Option<f64>,
    /// Share of the device's measured roof at that intensity: 1 is the roof.
    pub roof_share: Option<f64>,
    /// The reason why the work is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_work: Option<String>,
}
