//! One model for every format: lanes, slices, links between launches and kernels, counters, and rows that could not be read. Times are
//! whole nanoseconds. A value that a file does not contain is `None` here and in every figure, never 0.

mod builder;
mod families;
mod kind;

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use super::names::{self, Family};
pub use builder::TraceBuilder;
pub use kind::{Direction, SliceKind};

/// An index into `Trace::names`.
pub type NameId = u32;
/// Stands for "no other slice" in `Slice::link`, and for "no detail" in `Slice::detail`.
pub const NONE: u32 = u32::MAX;

/// The side of a machine that works on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// A thread of a host process.
    Host,
    /// A queue or stream of a device.
    Device,
}

/// A row of slices: a host thread or a device queue.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The side of the machine that works on this lane.
    pub kind: LaneKind,
    /// The process or device that the lane belongs to, as the file names it.
    pub group: String,
    /// The thread, queue or stream, as the file names it.
    pub name: String,
    /// An index into `Trace::devices`; `None` for a lane without work of a device.
    pub device: Option<u32>,
    /// An index into `Trace::processes`; `None` in a trace of one process, and for work that fits several processes.
    pub process: Option<u32>,
}

/// A process in a trace of several processes: mostly a rank of a training run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The name of the process in the file, or `rank 3`.
    pub label: String,
    /// The rank; `None` if it is not known.
    pub rank: Option<u64>,
    /// The file of this process alone, in a trace that was joined from several files.
    pub file: Option<String>,
}

/// Further data about work of a device. A trace stores equal details once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Detail {
    /// The number of bytes copied or filled.
    pub bytes: Option<u64>,
    /// The direction of a copy.
    pub direction: Option<Direction>,
    /// The size of the launch in x, y and z: in workgroups, or in work items if `Trace::grid_in_items`.
    pub grid: Option<[u32; 3]>,
    /// The size of a workgroup in x, y and z, in work items.
    pub block: Option<[u32; 3]>,
    /// The collective that a kernel takes part in: a name that joins its group and kind, and its number within the group.
    pub collective: Option<(NameId, u64)>,
}

impl Detail {
    /// Makes a detail with the size of a launch and of its workgroups, and nothing else.
    pub(crate) fn from_launch(grid: Option<[u32; 3]>, block: Option<[u32; 3]>) -> Self {
        Self {
            grid,
            block,
            ..Self::default()
        }
    }
}

/// An interval on a lane.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// The start in nanoseconds; adding `Trace::bias` gives the file's own clock.
    pub start: i64,
    /// The end in nanoseconds, which is never before `start`.
    pub end: i64,
    /// An index into `Trace::lanes`.
    pub lane: u32,
    /// The name of the kernel, call, operation or range.
    pub name: NameId,
    /// An index into `Trace::slices`: the launching call of work of a device, or the first work that a call launched. `NONE` otherwise.
    pub link: u32,
    /// An index into `Trace::details`, or `NONE`.
    pub detail: u32,
    /// The kind of work, call or range that the slice shows.
    pub kind: SliceKind,
}

impl Slice {
    /// Returns the length in nanoseconds.
    pub fn ns(&self) -> u64 {
        self.end.abs_diff(self.start)
    }

    /// Returns start and end in nanoseconds.
    pub fn span(&self) -> (i64, i64) {
        (self.start, self.end)
    }
}

/// Adds numbers; a sum that does not fit is the largest number.
pub(crate) fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Returns the time from the first start to the last end of these slices, in nanoseconds; `None` without slices.
pub(crate) fn span_of<'a>(slices: impl Iterator<Item = &'a Slice>) -> Option<(i64, i64)> {
    let spans = slices.map(Slice::span);
    spans.reduce(|all, span| (all.0.min(span.0), all.1.max(span.1)))
}

/// A row of a summary file: one kernel name, or one name and launch shape.
#[derive(Clone, Debug, Default)]
pub struct KernelStat {
    /// The name of the kernel.
    pub name: NameId,
    /// The number of executions, or of calls of the runtime.
    pub calls: u64,
    /// The time of all executions in nanoseconds.
    pub total: u64,
    /// The median length in nanoseconds.
    pub median: Option<u64>,
    /// The shortest length in nanoseconds.
    pub min: Option<u64>,
    /// The longest length in nanoseconds.
    pub max: Option<u64>,
    /// The standard deviation of the length in nanoseconds.
    pub std_dev: Option<f64>,
}

/// A counter: a value that changes over time.
#[derive(Clone, Debug)]
pub struct Counter {
    /// The name of the counter.
    pub name: String,
    /// The unit of the values; empty if it is not known.
    pub unit: String,
    /// The samples, each a time in nanoseconds and a value, sorted by time.
    pub samples: Vec<(i64, f64)>,
}

/// The kinds of records that a file can contain. A kind is true even if the file has no record of it: then its count is known to be 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holds {
    /// Kernels, one by one or as a summary.
    pub kernels: bool,
    /// Calls of the runtime: launches and synchronisations.
    pub calls: bool,
    /// Copies by devices.
    pub copies: bool,
    /// Memory regions filled by devices.
    pub memsets: bool,
    /// Ranges named by the program.
    pub annotations: bool,
    /// Graphs traced as a whole.
    pub graphs: bool,
}

/// Rows, events or packets that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct Unread {
    /// The number of rows, events or packets.
    pub count: u64,
    /// The reason.
    pub why: String,
    /// The place of the first one: `line 7`, `byte 1024`.
    pub first: String,
}

/// A trace of any format. Slices are sorted by start, longer ones first.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The name of the file.
    pub source: String,
    /// The name of the format in the JSON: `kineto json`.
    pub format: &'static str,
    /// All names; a `NameId` is an index into this list.
    pub names: Vec<Arc<str>>,
    /// The labels of the devices, in the file's numbering.
    pub devices: Vec<String>,
    /// The processes that launch work or own work of a device; empty if there is only one.
    pub processes: Vec<Process>,
    /// The queues of devices and the threads of hosts.
    pub lanes: Vec<Lane>,
    /// All slices.
    pub slices: Vec<Slice>,
    /// Further data about slices.
    pub details: Vec<Detail>,
    /// The counters.
    pub counters: Vec<Counter>,
    /// The part that is counted and exported; `None` if this is the whole trace.
    pub counted: Option<Box<Trace>>,
    /// The kernels of a file that contains only sums; `None` for a file with slices.
    pub stats: Option<Vec<KernelStat>>,
    /// The kinds of records that the file can contain.
    pub holds: Holds,
    /// Rows, events or packets that could not be read, by reason.
    pub unread: Vec<Unread>,
    /// Impossible times, and work that fits several processes, by reason.
    pub doubts: Vec<Doubt>,
    /// A sentence about where the file ends too early; `None` for a whole file.
    pub truncated: Option<String>,
    /// The rank; `None` if it is not known.
    pub rank: Option<u64>,
    /// The number of ranks of the run; `None` if it is not known.
    pub world: Option<u64>,
    /// The kind of a device whose records this crate does not know: `MTIA`.
    pub unknown_device: Option<String>,
    /// True if the kernels of a lane run one after another, as in a stream of CUDA. Kernels of a queue may overlap.
    pub serial: bool,
    /// The offset from stored times to the file's own clock, in nanoseconds.
    pub bias: i128,
    /// True if launch sizes count work items (ROCm) instead of workgroups (CUDA).
    pub grid_in_items: bool,
    /// The versions of a database's schema.
    pub schema_version: Option<Vec<String>>,
    /// The known tables that a database does not have.
    pub tables_absent: Option<Vec<String>>,
    /// The number of steps in the sums; `None` if it is not known.
    pub summed_steps: Option<u64>,
    /// Advice on how to record a trace with work of a device; if `None`, a lint gives the general advice for the format.
    pub record_again: Option<&'static str>,
    /// The median step without the profiler in nanoseconds; `None` if it is not known.
    pub unprofiled_step: Option<u64>,
    /// The families of kernels and operations, by `NameId`. The families of other names follow from the names alone.
    pub(crate) families: HashMap<NameId, Family>,
}

/// The way in which the record of a slice contradicts other records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DoubtKind {
    /// The time of the slice is far outside of all others. The trace does not contain the slice.
    Aside,
    /// The length of the slice contradicts the work after it. The slice counts up to the start of that work.
    Contradicts,
    /// The slice fits several processes. It is linked with none of them.
    Unlinked,
}

/// All slices of a trace that are doubtful for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Doubt {
    /// The way in which the slices contradict other records.
    pub kind: DoubtKind,
    /// The number of slices.
    pub count: u64,
    /// The reason, and what follows from it, in a sentence.
    pub why: String,
    /// The name of the first slice, in most cases with a time.
    pub first: String,
}

impl Trace {
    /// Returns the part that is counted and exported, which may be the whole trace.
    pub fn counted(&self) -> &Self {
        self.counted.as_deref().unwrap_or(self)
    }

    /// Returns the full name as in the file. It may contain any characters, such as escape sequences of a terminal.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("", |name| name)
    }

    /// Returns the family of a kernel or an operation.
    pub fn family(&self, id: NameId) -> Family {
        let known = self.families.get(&id).copied();
        known.unwrap_or_else(|| names::family(self.name(id)))
    }

    /// Returns a title for a lane, with its device and its process if the trace has several of them.
    pub fn lane_title(&self, lane: &Lane) -> String {
        let process = lane.process.and_then(|id| self.processes.get(id as usize));
        let label = lane.device.and_then(|id| self.devices.get(id as usize));
        // The label of a device in a joined trace begins with its process. A label that is not a number is already in the names of its lanes.
        let number = label
            .and_then(|label| label.rsplit(": ").next())
            .filter(|label| label.bytes().all(|b| b.is_ascii_digit()) && self.devices.len() > 1);
        let mut title = process.map_or(String::new(), |process| format!("{} ", process.label));
        let has_letters = lane.name.contains(char::is_alphabetic);
        title += &match (lane.kind, number) {
            (LaneKind::Device, Some(number)) => format!("GPU {number} "),
            (LaneKind::Device, None) if !has_letters => "device ".to_owned(),
            (LaneKind::Host, _) if !has_letters => "host ".to_owned(),
            _ => String::new(),
        };
        title + &lane.name
    }

    /// Returns all slices of a kind, by start.
    pub fn slices_of(&self, kind: SliceKind) -> impl Iterator<Item = &Slice> {
        self.slices.iter().filter(move |slice| slice.kind == kind)
    }

    /// Returns the time from the first start to the last end of slices of some kinds, in nanoseconds; `None` without such slices.
    pub fn span(&self, kinds: impl Fn(SliceKind) -> bool) -> Option<(i64, i64)> {
        span_of(self.slices.iter().filter(|slice| kinds(slice.kind)))
    }

    /// Returns the linked slice: a kernel's launch, or a launch's kernel.
    pub fn linked(&self, slice: &Slice) -> Option<&Slice> {
        self.slices.get(slice.link as usize)
    }

    /// Returns further data about a slice; all `None` if the file has none.
    pub fn detail(&self, slice: &Slice) -> Detail {
        self.details
            .get(slice.detail as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Converts a time to the file's own clock, in nanoseconds.
    pub(crate) fn clock(&self, time: i64) -> i128 {
        i128::from(time) + self.bias
    }

    /// Returns the number of rows or events that could not be read.
    pub(crate) fn unread_count(&self) -> u64 {
        sum(self.unread.iter().map(|unread| unread.count))
    }
}
