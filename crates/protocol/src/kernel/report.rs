//! The report of a check of a learner's kernels.

use serde::{Deserialize, Serialize};

use super::{KernelFill, KernelShape};
use crate::run::{Device, Num, Spread};
use crate::size::with_names;

/// The reason why a text is not a kernel that can be run, and its place. Line and column count from 1, in characters of the learner's
/// file; both are 0 where the error is about the text as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelError {
    pub line: u32,
    pub column: u32,
    /// The offending piece of the text, on one line; may be empty.
    pub text: String,
    pub message: String,
    /// The advice on what to write instead.
    pub instead: String,
    /// True for valid WGSL that no device would launch.
    #[serde(default)]
    pub launch: bool,
}

impl KernelError {
    /// Adds the sizes to the message if the shape is a drawn one, whose label means nothing to a learner.
    pub fn at(self, shape: &KernelShape) -> Self {
        if !shape.is_drawn() {
            return self;
        }
        let message = format!("{}, at {}", self.message, with_names(&shape.sizes));
        Self { message, ..self }
    }
}

/// Facts about a kernel that follow from its text, without a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// The number of invocations of a workgroup along x, y and z.
    pub workgroup: [u32; 3],
    /// The workgroup memory at the largest shape, in bytes.
    pub workgroup_bytes: u64,
    /// True if the kernel asks for the length of a buffer.
    pub array_length: bool,
    /// True if the kernel multiplies on matrix cores. Once it has run, true only if its outputs are made of such products.
    #[serde(default)]
    pub matrix_cores: bool,
}

/// The result of one check of a learner's kernels. A wrong, slow or endless kernel is a result like any other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    pub id: u64,
    pub exercise: String,
    pub device: Option<Device>,
    pub files: Vec<KernelResult>,
    /// The reason why no device ran the kernels, if none did. Then the results come from the host alone.
    pub host_only: Option<String>,
    /// The reason why nothing could be checked: no device of that name, or the check's own process ended.
    pub failed: Option<String>,
    /// True if a kernel does not end, so that the process that checked it has to be killed.
    pub restart: bool,
    /// The wall time of the check, in seconds.
    pub seconds: f64,
    /// The processor time of the check, in seconds; `None` if the system does not report it.
    pub processor_seconds: Option<f64>,
    /// The seed of the numbers and of the drawn shapes.
    #[serde(default)]
    pub seed: u64,
}

/// The progress of a check that is still at work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelProgress {
    pub id: u64,
    pub exercise: String,
    /// The results so far.
    pub files: Vec<KernelResult>,
    /// The index of the file that is checked now; `None` while the device is opened.
    pub file: Option<u64>,
    /// The label of the shape that is tried now; empty while the text is read.
    pub shape: String,
    /// True while the kernel is running.
    pub running: bool,
    /// The time that this piece of work has taken so far, if other programs keep the machine busy.
    pub waits: Option<KernelWait>,
}

/// The time that a piece of work has taken on a busy machine, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelWait {
    pub wall: f64,
    /// `None` if the system does not report the processor time.
    pub processor: Option<f64>,
}

/// The result of checking one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelResult {
    pub name: String,
    /// The reason why the text does not compile or breaks a rule.
    pub error: Option<KernelError>,
    pub facts: Option<KernelFacts>,
    /// The shapes at which the outputs were right.
    pub shapes: Vec<KernelMatch>,
    /// The kernel's accesses to buffers and workgroup memory, counted at the small shapes.
    #[serde(default)]
    pub access: Vec<KernelAccess>,
    /// The fault that the kernel showed when it ran.
    pub fault: Option<KernelFault>,
    /// Lines of the text that deserve a look although they are no faults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<KernelError>,
    /// The label of the shape that was not run.
    pub skipped: Option<String>,
    pub time: Option<KernelTime>,
    /// The reason why there is no `time`.
    pub time_reason: Option<KernelUntimed>,
}

/// The reason why a kernel that is right was not timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelUntimed {
    /// Only the last of several shapes is timed, and the job has a single one.
    OneShape,
    /// A CPU driver ran the kernel.
    CpuDriver,
    /// The job did not ask for a time.
    NotAsked,
}

/// The number of uses of an element that `KernelAccess::fetches` refers to. A kernel without tiles fetches the element for each of them.
pub const USES: f64 = 16.0;

/// The accesses of one place in the text to an array that invocations share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelAccess {
    /// The byte of the learner's file at which the place begins.
    pub site: u64,
    pub line: u32,
    /// The array's name in the learner's file.
    pub array: String,
    /// The number of the buffer; `None` for workgroup memory.
    pub binding: Option<u64>,
    /// The number of loads of the array, at this and all other places, for `USES` uses of one of its numbers. Of several shapes, the
    /// largest number counts.
    pub fetches: f64,
    /// The number of invocations in a row that load neighbouring elements, in any order; 0 where no two invocations came
    /// here together. Of several shapes, the smallest number counts.
    pub neighbours: u64,
    /// The number of invocations of a workgroup that come here together in at least half of the cases. Of several shapes, the largest
    /// number counts.
    #[serde(default)]
    pub lanes: f64,
}

/// A shape at which the outputs are right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelMatch {
    pub shape: String,
    /// The largest error, divided by the largest expected value.
    pub error: f64,
    /// The largest error of an element, divided by the error that rounding explains there; at most 1.
    #[serde(default)]
    pub share: f64,
    /// `reference` (the exercise's plain loop, f64) or `solution` (the course's kernel on this device).
    pub against: String,
}

/// The kind of a fault. `place` and `reason` are fields of `KernelFault`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelFaultKind {
    /// Elements of an output have wrong values.
    #[default]
    Wrong,
    /// The kernel never wrote some elements of an output.
    Unwritten,
    /// The kernel wrote past the end of a buffer.
    OutOfBounds,
    /// The kernel wrote to a buffer that is only for reading.
    WroteInput,
    /// The result depends on the memory past the end of a buffer.
    ReadsPastEnd,
    /// Invocations race at `place`, and `reason` names the other access. Without a place, two runs on equal inputs differ.
    Races,
    /// Some invocations do not reach the barrier at `place`, or reach it with different values.
    Barrier,
    /// The kernel reads an output before any invocation wrote it.
    ReadsUnwritten,
    /// WGSL leaves the result of `place` open; `reason` explains it and gives what to write instead.
    Open,
    /// The check does not support what the kernel does at `place`; `reason` has what to write instead.
    NotUnderstood,
    /// The kernel did not end within the limit.
    Endless,
    /// The kernel took more memory, or more time to compile, than a check allows.
    TooMuch,
    /// The driver refused the kernel.
    Device,
    /// The device was lost while the kernel ran.
    Lost,
}

/// A fault that a kernel showed when it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelFault {
    pub kind: KernelFaultKind,
    /// The label of the shape.
    pub shape: String,
    /// The kind of numbers in the buffers, if the shape was drawn.
    pub values: Option<KernelFill>,
    /// The name of the buffer; empty if the fault concerns no single buffer.
    pub buffer: String,
    /// The index of the element in the buffer.
    pub at: Option<i64>,
    pub expected: Option<Num>,
    pub found: Option<Num>,
    /// The error of element `at`, divided by the largest expected value.
    pub error: Option<Num>,
    /// The largest error allowed for element `at`, divided by the largest expected value.
    pub allowed: Option<f64>,
    /// The number of wrong elements in the buffer.
    pub count: u64,
    /// The number of elements in the buffer.
    pub of: u64,
    /// The place in the learner's file: an index, a loop, a barrier.
    pub place: Option<KernelError>,
    /// The limit of an endless kernel: rounds of the loop at `place`, or without a place seconds of processor time.
    pub limit: f64,
    /// True if two runs on equal numbers differ.
    pub unsteady: bool,
    /// The driver's message, or the interpreter's explanation and what to write instead.
    pub reason: String,
    /// The fault as a sentence. The engine leaves it empty; the judge fills it in.
    pub text: String,
}

/// The time of one launch at the last shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    pub shape: String,
    pub ms: Spread,
    pub starter_ms: Option<Spread>,
    pub solution_ms: Option<Spread>,
    /// The starter's time divided by this kernel's: above 1, this kernel is faster.
    pub against_starter: Option<KernelRatio>,
    /// The solution's time divided by this kernel's: above 1, this kernel is faster.
    pub against_solution: Option<KernelRatio>,
    /// The number of floating-point operations, computed from the shape.
    pub flops: f64,
    /// The bytes of all buffers, each operand moved once.
    pub bytes: f64,
    /// The time at the device's measured peak, divided by this kernel's time.
    pub share_of_peak: Option<f64>,
    /// True if the device's memory, not its arithmetic, limits the kernel.
    pub memory_bound: bool,
    /// `device` or `host`.
    pub clock: String,
}

/// A ratio of times with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRatio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}
