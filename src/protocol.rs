//! Everything that crosses between the engine and its readers: commands in, events out, one JSON object a line.
//! Plain data only. Screens, `--json`, recordings, replays, checks and tests read these same events.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::RunConfig;

/// Version of this protocol. A reader refuses a larger one and says so.
pub const PROTOCOL: u32 = 1;

/// A number that may be NaN or infinite; JSON has no such numbers, so those travel as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Num(pub f64);

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_str(&self.to_string())
        }
    }
}

impl<'de> Deserialize<'de> for Num {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(x) => Ok(Self(x)),
            Form::Text(text) => match text.as_str() {
                "NaN" => Ok(Self(f64::NAN)),
                "inf" => Ok(Self(f64::INFINITY)),
                "-inf" => Ok(Self(f64::NEG_INFINITY)),
                _ => Err(serde::de::Error::custom(format!(
                    "`{text}` is not a number, NaN, inf or -inf"
                ))),
            },
        }
    }
}

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() {
            f.write_str("NaN")
        } else if self.0.is_infinite() {
            f.write_str(if self.0 > 0.0 { "inf" } else { "-inf" })
        } else {
            self.0.fmt(f)
        }
    }
}

impl From<f64> for Num {
    fn from(x: f64) -> Self {
        Self(x)
    }
}

/// Which of the two runs on the screen: A is the first, B the one after a toggle or in a comparison.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Slot {
    #[default]
    A,
    B,
}

/// What to run. `steps: None` runs until stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The stage's number; 0 when the run belongs to no stage.
    pub stage: u32,
    /// `broken`, `fixed` or `custom`.
    pub variant: String,
    pub slot: Slot,
    pub config: RunConfig,
    pub steps: Option<u64>,
}

/// What a reader asks of the engine. Imperative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    /// First line of every conversation.
    Hello {
        protocol: u32,
    },
    /// Lists the devices.
    Probe,
    /// Opens a device (`auto`, `cpu`, `gpu`, `gpu:N`, `vulkan-cpu`) without training; answered by `device-ready` or `failed`.
    Open {
        device: String,
    },
    /// Trains. Replaces the run in progress.
    Start {
        device: String,
        run: RunSpec,
    },
    /// Changes knobs that keep the parameters, at the next step boundary; the run goes on in the spec's slot.
    Apply {
        run: RunSpec,
    },
    /// Both configurations, interleaved A B B A, until `pairs` pairs are measured (0: until the verdict is clear, at least 30).
    Pair {
        device: String,
        stage: u32,
        a: RunSpec,
        b: RunSpec,
        pairs: u32,
    },
    Pause,
    Resume,
    /// Profiles the next step.
    Profile,
    /// Ends the run; answered by `finished`.
    Stop,
    /// Ends the process.
    Quit,
}

/// One line of the stream: when (seconds since the engine started) and what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub t: f64,
    #[serde(flatten)]
    pub event: Event,
}

/// What happened. Past tense.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    Hello(Hello),
    /// Sent about twice a second by a thread of its own.
    Heartbeat,
    Log(Log),
    Devices {
        devices: Vec<DeviceInfo>,
    },
    DeviceReady {
        device: Device,
    },
    /// Kernels are being compiled; the total is not knowable.
    Compiling {
        kernels: u32,
        latest: String,
    },
    Started(Started),
    Step(Step),
    Throughput(Throughput),
    Kernels(Kernels),
    Gradients(Gradients),
    Evidence(Evidence),
    Memory(Memory),
    /// All plausibility lints that hold now; an empty list clears them.
    Lints {
        slot: Slot,
        lints: Vec<Lint>,
    },
    Pair(Pair),
    Paused {
        slot: Slot,
    },
    Resumed {
        slot: Slot,
    },
    Finished(Box<Finished>),
    Failed(Failed),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    /// Version of the program.
    pub version: String,
    pub pid: u32,
    pub os: String,
    pub cores: u32,
    /// Date of the run, `YYYY-MM-DD`, UTC.
    pub date: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// `info`, `warn` or `error`.
    pub level: String,
    pub text: String,
}

/// The device of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// `cpu`, `gpu` or `vulkan-cpu`.
    pub kind: String,
    /// `EPYC 9654, 2 threads`, `NVIDIA H100 (Vulkan)`.
    pub name: String,
}

/// One device as `doctor` and the device list show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// What to pass to `--device`.
    pub select: String,
    pub device: Device,
    /// `Vulkan`, `Metal`, `flex`…
    pub backend: String,
    pub driver: String,
    /// Whether kernels can be timed on the device's own clock.
    pub timestamps: bool,
    /// What else a learner should know, or empty.
    pub note: String,
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
}

/// One optimizer step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub slot: Slot,
    /// From 0. The loss of step 0 is taken before any update.
    pub step: u64,
    /// Mean cross-entropy in nats.
    pub loss: Num,
    /// Wall time of the step in milliseconds, on the host's clock.
    pub ms: f64,
    /// Whether the time ends at a device sync. An unsynchronised time measures enqueueing.
    pub synced: bool,
    /// Profiled steps are slower and count in no statistic.
    pub profiled: bool,
    pub phases: Option<Phases>,
}

/// The parts of a step in milliseconds. `residual = step - (forward + backward + optimizer)`, signed,
/// where `step` is a bracket of its own that ends with a device sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    pub forward: f64,
    pub backward: f64,
    pub optimizer: f64,
    pub residual: f64,
    /// Length of the sync-terminated bracket.
    pub step: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    #[default]
    Warming,
    Settling,
    Steady,
    Drifting,
    Noisy,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warming => "warming up",
            Self::Settling => "settling",
            Self::Steady => "steady",
            Self::Drifting => "drifting",
            Self::Noisy => "noisy",
        })
    }
}

/// Median, quartiles and 95th percentile of step times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub p25: f64,
    pub p75: f64,
    pub p95: f64,
    pub n: u64,
}

/// Throughput from unprofiled steps after warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    pub slot: Slot,
    pub step: u64,
    pub state: State,
    pub step_ms: Spread,
    /// batch / median.
    pub samples_per_s: f64,
    pub tokens_per_s: f64,
    /// Samples over all wall time since the run began, profiling and pauses of the engine's own included.
    pub wall_samples_per_s: f64,
    /// Median phases of the same steps.
    pub phases: Option<Phases>,
    /// Model FLOP/s reached: 3 × forward FLOPs / median step time. None while times are not synchronised.
    pub flops: Option<f64>,
    /// The device's measured peak in FLOP/s, once calibrated.
    pub peak_flops: Option<f64>,
    /// `host-sync` or `enqueue`.
    pub clock: String,
}

/// Where a piece of work belongs.
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
    /// Floating-point operations by shape, over all calls; 0 where the row is part of an operation counted elsewhere.
    pub flops: f64,
    /// Bytes by shape, each operand once, over all calls.
    pub bytes: f64,
}

/// The profile of one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kernels {
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
    /// device_ms / the time it explains (on the CPU the profiled step; on a GPU the unprofiled median step).
    pub coverage: f64,
    /// Time of the step in no row.
    pub unbracketed_ms: f64,
    /// `device`, `system` or `host`.
    pub clock: String,
    /// Launches by phase: forward, backward, optimizer.
    pub launches_by_phase: [u32; 3],
    /// Why there are no rows, where there are none.
    pub reason: Option<String>,
}

/// The gradient audit of one step. A gradient counts when it is finite and its norm is not zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GradientRow {
    pub name: String,
    pub parameters: u64,
    /// None: no gradient arrived.
    pub norm: Option<Num>,
}

/// What the stage's lesson points at, measured on this model.
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
    /// Three readings of one step in ms: enqueue only, host with sync, sum of device times.
    pub clocks: Option<Clocks>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clocks {
    pub enqueue: f64,
    pub host_sync: f64,
    pub device: Option<f64>,
}

/// Memory of the engine's device work, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    pub slot: Slot,
    pub peak_bytes: Option<u64>,
    pub current_bytes: Option<u64>,
    pub weights: u64,
    pub gradients: u64,
    pub moments: u64,
    /// Why a figure is missing.
    pub reason: Option<String>,
}

/// One plausibility lint that holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lint {
    pub name: String,
    pub why: String,
    pub next: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Faster,
    Slower,
    Same,
    #[default]
    Unclear,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same within noise",
            Self::Unclear => "unclear",
        })
    }
}

/// A paired comparison so far. Ratios are time of A / time of B: above 1, B is faster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub n: u32,
    /// Pairs needed before a verdict.
    pub wanted: u32,
    pub ratio: f64,
    /// Bootstrap 95 % interval of the ratio.
    pub low: f64,
    pub high: f64,
    pub verdict: Verdict,
    pub a_ms: Spread,
    pub b_ms: Spread,
    /// Seconds left at the present pace.
    pub remaining_s: f64,
    /// The last one of this comparison.
    pub done: bool,
    /// Paths at which the two configurations differ.
    pub differs: Vec<String>,
}

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
    pub loss_last: Num,
    pub ln_vocab: f64,
    pub entropy: Option<f64>,
    /// None: not enough synchronised, unprofiled steps.
    pub samples_per_s: Option<f64>,
    pub tokens_per_s: Option<f64>,
    pub step_ms: Option<Spread>,
    pub phases_ms: Option<Phases>,
    /// `host-sync`, or `enqueue` when nothing waited for the device.
    pub clock: String,
    pub state: State,
    pub grad: GradSummary,
    pub kernels: KernelSummary,
    pub memory: Memory,
    pub evidence: Option<Evidence>,
    pub lints: Vec<Lint>,
    pub pair: Option<Pair>,
    /// Why the run ended before its steps were done: `stopped`, `not-finite: <tensor>`.
    pub ended: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GradSummary {
    pub tensors: u32,
    pub with_grad: u32,
    pub params_pct: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelSummary {
    pub launches_per_step: u32,
    pub unique: u32,
    pub device_ms: f64,
    pub coverage: f64,
    pub top: Vec<TopKernel>,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopKernel {
    pub kernel: String,
    pub scope: String,
    pub calls: u32,
    pub ms: f64,
}

/// Something could not be done. The engine goes on unless it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub kind: FailedKind,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailedKind {
    /// The configuration or the command was wrong.
    Usage,
    /// The device is not here, or was lost.
    Device,
    /// A fault of the engine itself.
    #[default]
    Internal,
}

/// A kernel exercise as the learner has it, with what it is held against. Every number is resolved: the engine reads
/// no course.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelJob {
    /// Repeated in the report.
    pub id: u64,
    /// The exercise's id.
    pub exercise: String,
    pub files: Vec<KernelFile>,
    /// Small and odd ones first; the last is the one to time.
    pub shapes: Vec<KernelShape>,
    pub asks: Vec<KernelAsk>,
    /// Part of the model whose kernel these can replace.
    pub replaces: Option<String>,
    /// Whether the last shape is run and timed; on a CPU driver it never is.
    pub timed: bool,
    /// Whether the last shape, too, is held against the plain Rust reference; that can take seconds.
    pub thorough: bool,
}

/// One WGSL file. Texts hold `{{N}}` where a size belongs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelFile {
    pub name: String,
    pub text: String,
    /// Why there is no text.
    pub unreadable: Option<KernelError>,
    pub starter: String,
    pub solution: String,
    /// Name of the reference that computes the expected outputs.
    pub reference: String,
    /// In the order of `@binding`.
    pub bindings: Vec<KernelBinding>,
    /// Along x, y and z.
    pub grid: [KernelGrid; 3],
    /// Largest error allowed, relative to the largest expected value.
    pub tolerance: f64,
}

/// A named choice of sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelShape {
    pub label: String,
    pub sizes: std::collections::BTreeMap<String, u64>,
}

/// One storage buffer of f32.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelBinding {
    pub name: String,
    pub role: KernelRole,
    pub fill: KernelFill,
    /// Elements, one number for each shape.
    pub counts: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelRole {
    #[default]
    In,
    Out,
    InOut,
}

/// What an input holds: N(0, 1), a hundred times that, or uniform in 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelFill {
    #[default]
    Normal,
    Large,
    Positive,
}

/// Workgroups along one axis: `counts`, or as many as cover them with the workgroup's size along axis `per`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelGrid {
    /// One number for each shape.
    pub counts: Vec<u64>,
    /// 0, 1 or 2.
    pub per: Option<u8>,
}

/// A criterion of the exercise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelAsk {
    pub name: String,
    pub metric: KernelMetric,
    /// Whether the starter fails it.
    pub starter_fails: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelMetric {
    /// Every output of every shape within the tolerance.
    Correct,
    /// At least so many times as fast as the starter; counts on a real GPU only.
    Speed(f64),
    /// At least so many invocations in a workgroup.
    Invocations(u64),
    /// Uses workgroup memory.
    Shared,
}

/// Why a text is not a kernel that can be run. Line and column count from 1, in characters of the learner's file; 0
/// where the text as a whole is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelError {
    pub line: u32,
    pub column: u32,
    /// The piece of text that is meant, on one line; may be empty.
    pub text: String,
    pub message: String,
    /// What to write instead.
    pub instead: String,
}

/// What the text says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// Invocations along x, y and z.
    pub workgroup: [u32; 3],
    /// Bytes of workgroup memory, at the largest shape.
    pub workgroup_bytes: u64,
    /// Whether it asks for the length of a buffer.
    pub array_length: bool,
}

/// What is said about one check of a learner's kernels. A wrong, slow or endless kernel is data here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    pub id: u64,
    pub exercise: String,
    pub device: Option<Device>,
    pub files: Vec<KernelResult>,
    pub criteria: Vec<KernelCriterion>,
    /// The card: what to show, line by line.
    pub card: Vec<CardLine>,
    /// Whether no criterion failed and the text is no longer the starter's.
    pub passed: bool,
    /// Why nothing could be checked: no device, or the check's own process ended.
    pub failed: Option<String>,
    /// A kernel does not end: the process that checked it has to be killed.
    pub restart: bool,
    /// What to give the training engine, where every file is right and the exercise asks for it.
    pub swap: Option<KernelSwap>,
    /// Wall time of the check.
    pub seconds: f64,
}

/// One file of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelResult {
    pub name: String,
    /// It does not compile, or breaks a rule.
    pub error: Option<KernelError>,
    pub facts: Option<KernelFacts>,
    /// Shapes that were right.
    pub shapes: Vec<KernelMatch>,
    /// What went wrong when it ran.
    pub fault: Option<KernelFault>,
    /// Shapes that were not run, and why.
    pub skipped: Option<String>,
    pub time: Option<KernelTime>,
    /// Why there is no time.
    pub time_reason: Option<String>,
}

/// A shape whose outputs are right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelMatch {
    pub shape: String,
    /// Largest error over the largest expected value.
    pub error: f64,
    /// `reference` (plain Rust, f64) or `solution` (the course's kernel on this device).
    pub against: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelFaultKind {
    #[default]
    Wrong,
    /// Elements of an output were never written.
    Unwritten,
    /// Wrote past the end of a buffer.
    OutOfBounds,
    /// Wrote to a buffer that is only for reading.
    WroteInput,
    /// What lies past the end of a buffer changes the result.
    ReadsPastEnd,
    /// Two runs on the same input differ: invocations race.
    Races,
    /// Did not end within the limit.
    Endless,
    /// The driver refused the kernel, or the device was lost.
    Device,
}

/// How a kernel went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelFault {
    pub kind: KernelFaultKind,
    /// Label of the shape.
    pub shape: String,
    /// Name of the buffer; empty where none is meant.
    pub buffer: String,
    /// Element of the buffer.
    pub at: Option<u64>,
    pub expected: Option<Num>,
    pub found: Option<Num>,
    /// Largest error over the largest expected value.
    pub error: Option<Num>,
    /// The same in words.
    pub text: String,
}

/// How long one launch at the last shape takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    pub shape: String,
    pub ms: Spread,
    pub starter_ms: Option<Spread>,
    pub solution_ms: Option<Spread>,
    /// Times of the starter over times of this kernel, above 1: this one is faster.
    pub against_starter: Option<KernelRatio>,
    pub against_solution: Option<KernelRatio>,
    /// Floating-point operations by shape.
    pub flops: f64,
    /// Bytes by shape, each operand once.
    pub bytes: f64,
    /// Time at the device's measured roof over time taken.
    pub share_of_peak: Option<f64>,
    /// Whether the roof that binds is the memory's.
    pub memory_bound: bool,
    /// `device` or `host`.
    pub clock: String,
}

/// A ratio of medians with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRatio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

/// A criterion: what was asked, what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCriterion {
    pub name: String,
    pub found: String,
    /// None: does not count on this device.
    pub passed: Option<bool>,
}

/// A line of the card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardLine {
    /// Good, bad, or only a remark.
    pub good: Option<bool>,
    pub text: String,
}

/// Kernels that passed their check, to take over a part of the running model at the next step boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSwap {
    pub exercise: String,
    pub part: String,
    /// Forward, then backward where there is one: text with its places, and workgroup size.
    pub kernels: Vec<KernelText>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelText {
    pub text: String,
    pub workgroup: [u32; 3],
}
