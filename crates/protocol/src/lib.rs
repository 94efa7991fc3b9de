//! The messages between the engine and its readers: commands go in and events come out, one JSON object on each line. They are plain data.
//! Screens, `--json`, recordings, replays, checks and tests all read these events.
//!
//! # Which answer belongs to which question
//!
//! Commands and events cross each other on their way: an event that arrives after a command was sent may answer an earlier one. So the commands
//! `start`, `apply`, `pair` and `profile` carry a number, `request`, and their answers repeat it:
//!
//! - `start` and `apply` are answered by `started`, `pair` by two `started` and by each `pair`, `profile` by the `kernels` of the step that was
//!   profiled for it. Each of them may be answered by `failed` instead.
//! - `finished`, and a `failed` that ends a run, have the number of the last `start`, `apply` or `pair` that the run took. If a run ends while
//!   it takes an `apply`, or before it takes a profile that was asked for, `finished` is the only answer.
//! - Every other event has no number. It belongs to the run that started last.
//!
//! The reader chooses the numbers. They begin at 1 and rise, so that an answer with a smaller number belongs to an earlier question. 0 is not
//! written: a script that sends no number gets none, and recordings of older versions have none.

pub mod config;
mod covered;
pub mod files;
pub mod handle;
mod kernel;
pub mod lints;
pub mod machine;
mod peaks;
mod profile;
pub mod random;
pub mod reference;
mod report;
mod run;
mod size;
pub mod stats;
pub mod story;
pub mod template;
pub mod thresholds;
pub mod units;
pub mod validate;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use kernel::*;
pub use peaks::*;
pub use profile::*;
pub use report::*;
pub use run::*;
pub use size::*;

/// The version of this protocol. A reader refuses a larger one with a message.
pub const PROTOCOL: u32 = 1;

/// A request of a reader to the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    /// The first line of every conversation.
    Hello {
        protocol: u32,
        /// The number of threads of the CPU device; `None` means that the engine's machine decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threads: Option<u32>,
    },
    /// Lists the devices.
    Probe,
    /// Opens a device (`auto`, `cpu`, `gpu`, `gpu:N`, `vulkan-cpu`) without training; answered by `device-ready` or `failed`.
    Open {
        device: String,
    },
    /// Measures a device's peaks again and keeps them; answered by `calibrated` or `failed`. Ends the run in progress.
    Calibrate {
        device: String,
    },
    /// Trains. Replaces the run in progress.
    Start {
        device: String,
        run: RunSpec,
        #[serde(default, skip_serializing_if = "is_zero")]
        request: u64,
    },
    /// Changes knobs that keep the parameters, at the next step boundary; the run goes on in the spec's slot.
    Apply {
        run: RunSpec,
        #[serde(default, skip_serializing_if = "is_zero")]
        request: u64,
    },
    /// Takes steps of both configurations in turns until a look gives a clear verdict, for at most `pairs` pairs. With 0, the pace of the
    /// warm-up decides on the number.
    Pair {
        device: String,
        stage: u32,
        a: RunSpec,
        b: RunSpec,
        pairs: u32,
        #[serde(default, skip_serializing_if = "is_zero")]
        request: u64,
    },
    Pause,
    Resume,
    /// Profiles the next step. If there is no run, `failed` answers a command that has a number.
    Profile {
        #[serde(default, skip_serializing_if = "is_zero")]
        request: u64,
    },
    /// Ends the run; answered by `finished`.
    Stop,
    /// Checks a learner's kernels; answered by `kernel-checking` on the way and one `kernel-checked`. An engine that gets this command should do
    /// nothing else, because a kernel that does not end takes its process with it.
    CheckKernel {
        device: String,
        job: Box<KernelJob>,
    },
    /// Lets kernels that passed their check replace a part of the model at the next step boundary; answered by one `kernel-used` after a step
    /// with them. A swap without kernels gives the part its own kernels back and has no answer.
    UseKernel {
        swap: KernelSwap,
    },
    /// Ends the process.
    Quit,
}

/// One line of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamLine {
    /// The time since the engine started, in seconds.
    pub t: f64,
    #[serde(flatten)]
    pub event: Event,
}

/// Reads a `StreamLine` or a `Command` from its text.
///
/// # Errors
/// Fails if the text is not one of these. The error names the fault and its column.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| match error.to_string() {
        why if why.starts_with("recursion limit") => "nested too deeply".to_owned(),
        why => why.replace(" at line 1 column ", " in column "),
    })
}

/// A report of the engine: something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    Hello(Hello),
    /// The process is alive. A thread of its own sends this about twice a second.
    Heartbeat {
        /// The time since the work on the device last made progress, in seconds; `None` while there is no work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device_s: Option<f64>,
    },
    Log(LogMessage),
    Devices {
        devices: Vec<DeviceInfo>,
    },
    DeviceReady {
        device: Device,
    },
    Calibrated {
        device: Device,
        #[serde(rename = "roof")]
        peaks: Peaks,
    },
    /// The text of a kernel that was compiled. Only an engine that was asked for texts sends it.
    CompiledKernel(CompiledKernel),
    /// Kernels are being compiled. `kernels` counts those so far; nobody knows how many there will be.
    Compiling {
        kernels: u32,
        latest: String,
    },
    Started(Started),
    /// A run of another program begins.
    Run(ForeignRun),
    /// The present state of each process of a watched training.
    Ranks {
        ranks: Vec<RankReading>,
    },
    Step(Step),
    #[serde(deserialize_with = "report::read_throughput")]
    Throughput(Throughput),
    Kernels(StepProfile),
    Gradients(Gradients),
    Evidence(Evidence),
    Memory(Memory),
    Load(Load),
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
    #[serde(deserialize_with = "report::read_finished")]
    Finished(Box<Finished>),
    KernelChecked {
        report: Box<KernelReport>,
    },
    /// A kernel check made progress.
    KernelChecking {
        progress: Box<KernelProgress>,
    },
    /// A learner's kernels compute a part of the model, or `why_not` has the reason why they do not.
    KernelUsed {
        exercise: String,
        part: String,
        why_not: Option<String>,
    },
    Failed(Failed),
}

impl Event {
    /// Returns the run that begins with this event; `None` for other events.
    pub fn begins_run(&self) -> Option<&Started> {
        match self {
            Self::Started(started) => Some(started),
            _ => None,
        }
    }

    /// Returns the slot that a step or a figure belongs to; `None` for other events.
    pub fn slot(&self) -> Option<Slot> {
        match self {
            Self::Step(step) => Some(step.slot),
            Self::Throughput(throughput) => Some(throughput.slot),
            Self::Kernels(profile) => Some(profile.slot),
            Self::Gradients(gradients) => Some(gradients.slot),
            Self::Evidence(evidence) => Some(evidence.slot),
            Self::Memory(memory) => Some(memory.slot),
            Self::Lints { slot, .. } => Some(*slot),
            _ => None,
        }
    }

    /// Returns the number of the command that this event answers; 0 for an event without a number.
    pub fn request(&self) -> u64 {
        match self {
            Self::Started(started) => started.request,
            Self::Kernels(profile) => profile.request,
            Self::Pair(pair) => pair.request,
            Self::Finished(finished) => finished.request,
            Self::Failed(failed) => failed.request,
            _ => 0,
        }
    }

    /// Returns the time since the work on the device made progress, in seconds; `None` if the event does not report it.
    pub fn progress_s(&self) -> Option<f64> {
        match self {
            Self::Heartbeat { device_s } => *device_s,
            Self::Hello(_) | Self::Load(_) | Self::Log(_) => None,
            _ => Some(0.0),
        }
    }
}
