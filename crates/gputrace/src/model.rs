//! One model for every format: lanes, slices, links between launches and kernels, counters, and rows that could not be read. Times are
//! whole nanoseconds. A value that a file does not contain is `None` here and in every figure, never 0.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::names::{self, Family};
use super::{doubts, owners};

/// Index into `Trace::names`.
pub type NameId = u32;
/// Stands for "no other slice" in `Slice::link`, and for "no detail" in `Slice::detail`.
pub const NONE: u32 = u32::MAX;
/// Longest name that is kept, in bytes.
const NAME_BYTES: usize = 16 * 1024;
/// Most slices that are kept: about 1.3 GB while they are sorted.
const SLICES: usize = 16_000_000;
/// Most different reasons that are kept for rows that could not be read.
const REASONS: usize = 32;

/// The kind of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SliceKind {
    /// One execution of a kernel on a device.
    Kernel,
    /// A whole graph on a device, if the profiler did not record its kernels.
    Graph,
    /// A copy between or within memories, done by a device.
    Copy,
    /// A memory region filled by a device (CUDA only; in HIP this is a kernel).
    Memset,
    /// A call of the host that launches a kernel.
    Launch,
    /// A call of the host that launches a graph.
    GraphLaunch,
    /// A call in which the host waits for a device.
    Sync,
    /// Any other call of a runtime or driver.
    Api,
    /// An operation of the framework, on the host.
    Op,
    /// A function of Python, as the profiler records it with stacks.
    Frame,
    /// A range named by the program, on the host: a step, a phase.
    Annotation,
    /// The same range, projected onto a device by the profiler.
    DeviceAnnotation,
    /// Overhead of the profiler.
    Overhead,
    /// Anything else.
    Other,
}

impl SliceKind {
    /// Whether a device does this work.
    pub fn on_device(self) -> bool {
        matches!(self, Self::Kernel | Self::Graph | Self::Copy | Self::Memset)
    }

    /// Whether it is a call of a runtime or driver.
    pub fn is_call(self) -> bool {
        matches!(
            self,
            Self::Launch | Self::GraphLaunch | Self::Sync | Self::Api
        )
    }

    /// The kind of an event, from its category as named by Kineto, rocprofv3 and this program, and from its name.
    pub(crate) fn of_category(category: &str, name: &str) -> Self {
        match category {
            "" => Self::of_name(name),
            "cpu_op" | "operator" => Self::Op,
            "python_function" => Self::Frame,
            "kernel" | "gpu_kernel" | "kernel_dispatch" | "concurrent_kernel" => Self::Kernel,
            "graph" => Self::Graph,
            "gpu_memcpy" | "memcpy" | "memory_copy" => Self::Copy,
            "gpu_memset" | "memset" => Self::Memset,
            "user_annotation" | "nvtx" | "roctx" | "marker_api" | "annotation" | "step"
            | "phase" => Self::Annotation,
            "gpu_user_annotation" => Self::DeviceAnnotation,
            "overhead" => Self::Overhead,
            _ if ["runtime", "driver", "hip_api", "cuda_api", "hsa_api"]
                .into_iter()
                .any(|it| category.contains(it)) =>
            {
                Self::of_call(name)
            }
            _ if names::is_step(name) => Self::Annotation,
            // Older versions begin with a capital, rocprof-sys with `rocm_`, and an event may have several.
            _ => category
                .split(',')
                .map(|it| it.trim().trim_start_matches("rocm_").to_ascii_lowercase())
                .filter(|it| it != category)
                .map(|it| Self::of_category(&it, name))
                .find(|kind| *kind != Self::Other)
                .unwrap_or(Self::Other),
        }
    }

    /// The kind of an event without a category, by its name.
    fn of_name(name: &str) -> Self {
        let begins = |with: &str| name.starts_with(with);
        let called = |after: &str| {
            let rest = name.strip_prefix(after).unwrap_or("");
            rest.starts_with(|c: char| c.is_ascii_uppercase())
        };
        if names::is_step(name) || names::phase(name).is_some() {
            Self::Annotation
        } else if begins("Memcpy") {
            Self::Copy
        } else if begins("Memset") {
            Self::Memset
        } else if begins("aten::") {
            Self::Op
        } else if ["cuda", "cu", "hip"].into_iter().any(called) {
            Self::of_call(name)
        } else {
            Self::Other
        }
    }

    /// The category that `of_category` maps to this kind.
    pub(crate) fn category(self) -> &'static str {
        match self {
            Self::Kernel => "kernel_dispatch",
            Self::Graph => "graph",
            Self::Copy => "memory_copy",
            Self::Memset => "memset",
            Self::Launch | Self::GraphLaunch | Self::Sync | Self::Api => "runtime_api",
            Self::Op => "cpu_op",
            Self::Frame => "python_function",
            Self::Annotation => "annotation",
            Self::DeviceAnnotation => "gpu_user_annotation",
            Self::Overhead => "overhead",
            Self::Other => "other",
        }
    }

    /// The kind of a call of CUDA, HIP or a driver, by its name; versions such as `_v7000` do not matter.
    pub(crate) fn of_call(name: &str) -> Self {
        let name = match name.rfind("_v") {
            Some(at) if name[at + 2..].bytes().all(|b| b.is_ascii_digit()) => &name[..at],
            _ => name,
        };
        let has = |part: &str| name.contains(part);
        if has("GraphLaunch") {
            Self::GraphLaunch
        } else if has("Synchronize")
            && ["Device", "Stream", "Event", "Context", "Ctx"]
                .into_iter()
                .any(has)
        {
            Self::Sync
        } else if has("Launch")
            && (has("Kernel")
                || has("LaunchByPtr")
                || has("LaunchGrid")
                || matches!(name, "cudaLaunch" | "cuLaunch"))
            && !has("HostFunc")
        {
            Self::Launch
        } else {
            Self::Api
        }
    }
}

/// What works on a lane.
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
    /// What works on it, or what it is.
    pub kind: LaneKind,
    /// The process or device it belongs to, as the file names it.
    pub group: String,
    /// The thread, queue or stream, as the file names it.
    pub name: String,
    /// Index into `Trace::devices`, for lanes with work of a device.
    pub device: Option<u32>,
    /// Index into `Trace::processes`. `None` in a trace of one process, and for work that fits several processes.
    pub process: Option<u32>,
}

/// A process, in a trace of several: mostly a rank of a training run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// As the file names it, or `rank 3`.
    pub label: String,
    /// The rank, if it is known.
    pub rank: Option<u64>,
    /// The process's own file, in a trace that was joined from several files.
    pub file: Option<String>,
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the host to a device.
    H2D,
    /// From a device to the host.
    D2H,
    /// Within a device.
    D2D,
    /// Within the host.
    H2H,
    /// From one device to another.
    P2P,
    /// Not in the file, or another memory such as arrays.
    Other,
}

impl Direction {
    /// Whether host and device exchange data.
    pub(crate) fn crosses(self) -> bool {
        matches!(self, Self::H2D | Self::D2H)
    }

    /// The direction in a name: `Memcpy HtoD (…)`, `MEMORY_COPY_HOST_TO_DEVICE`, `Host-to-Device`.
    pub(crate) fn of_name(name: &str) -> Self {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let name = letters.collect::<String>().to_ascii_lowercase();
        let has = |(_, parts): &&(Self, [&str; 3])| parts.iter().any(|part| name.contains(part));
        DIRECTIONS
            .iter()
            .find(has)
            .map_or(Self::Other, |(direction, _)| *direction)
    }

    /// The name in the JSON: `H2D`.
    pub(crate) fn label(self) -> &'static str {
        ["H2D", "D2H", "D2D", "H2H", "P2P", "other"][self as usize]
    }
}

/// What a name contains, in lower case and without marks, by direction.
const DIRECTIONS: [(Direction, [&str; 3]); 5] = [
    (Direction::H2D, ["htod", "hosttodevice", "h2d"]),
    (Direction::D2H, ["dtoh", "devicetohost", "d2h"]),
    (Direction::D2D, ["dtod", "devicetodevice", "d2d"]),
    (Direction::H2H, ["htoh", "hosttohost", "h2h"]),
    (Direction::P2P, ["ptop", "peertopeer", "p2p"]),
];

/// Further data about work of a device. Equal details are stored once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Detail {
    /// Bytes copied or filled.
    pub bytes: Option<u64>,
    /// Direction of a copy.
    pub direction: Option<Direction>,
    /// Size of the launch: workgroups, or work items if `Trace::grid_in_items`.
    pub grid: Option<[u32; 3]>,
    /// Work items of a workgroup.
    pub block: Option<[u32; 3]>,
    /// The collective that a kernel takes part in: its group and kind as a name, and its number within the group.
    pub collective: Option<(NameId, u64)>,
}

impl Detail {
    /// The size of a launch and of its workgroups.
    pub(crate) fn of_launch(grid: Option<[u32; 3]>, block: Option<[u32; 3]>) -> Self {
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
    /// Nanoseconds; `Trace::bias` added gives the file's own clock.
    pub start: i64,
    /// Nanoseconds; never before `start`.
    pub end: i64,
    /// Index into `Trace::lanes`.
    pub lane: u32,
    /// Its name.
    pub name: NameId,
    /// For work of a device, the call that launched it; for a call, the first work it launched; otherwise `NONE`.
    pub link: u32,
    /// Index into `Trace::details`, or `NONE`.
    pub detail: u32,
    /// What works on it, or what it is.
    pub kind: SliceKind,
}

impl Slice {
    /// Length in nanoseconds.
    pub fn ns(&self) -> u64 {
        self.end.abs_diff(self.start)
    }

    /// Start and end.
    pub fn span(&self) -> (i64, i64) {
        (self.start, self.end)
    }
}

/// A sum that stops at the largest number.
pub(crate) fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// A row of a summary file: one kernel name, or one name and launch shape.
#[derive(Clone, Debug, Default)]
pub struct KernelStat {
    /// Its name.
    pub name: NameId,
    /// Number of executions, or of calls of the runtime.
    pub calls: u64,
    /// Nanoseconds, like the other times.
    pub total: u64,
    /// Median length in nanoseconds.
    pub median: Option<u64>,
    /// Shortest length in nanoseconds.
    pub min: Option<u64>,
    /// Longest length in nanoseconds.
    pub max: Option<u64>,
    /// Standard deviation of the length in nanoseconds.
    pub std_dev: Option<f64>,
}

/// Values over time.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Unit of the values; empty if it is not known.
    pub unit: String,
    /// Time in nanoseconds, and the value.
    pub samples: Vec<(i64, f64)>,
}

/// Which kinds of records the file can contain, even if it has none.
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
    /// The number of them.
    pub count: u64,
    /// The reason.
    pub why: String,
    /// Place of the first one.
    pub first: String,
}

/// A trace of any format. Slices are sorted by start, longer ones first.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Name of the file.
    pub source: String,
    /// The name in the JSON: `kineto json`.
    pub format: &'static str,
    /// All names; a `NameId` is an index.
    pub names: Vec<Arc<str>>,
    /// Labels of devices, in the file's numbering.
    pub devices: Vec<String>,
    /// The processes, if there are several that launch work or own work of a device.
    pub processes: Vec<Process>,
    /// Queues of devices and threads of the host.
    pub lanes: Vec<Lane>,
    /// All slices.
    pub slices: Vec<Slice>,
    /// Further data about slices.
    pub details: Vec<Detail>,
    /// Values over time.
    pub counters: Vec<Counter>,
    /// The part that is counted and exported, if it is not the whole trace.
    pub counted: Option<Box<Trace>>,
    /// Kernels of a file that contains only sums.
    pub stats: Option<Vec<KernelStat>>,
    /// Kinds of records that the file can contain.
    pub holds: Holds,
    /// Rows, events or packets that could not be read, by reason.
    pub unread: Vec<Unread>,
    /// Times that cannot be, and work that fits several processes, by reason.
    pub doubts: Vec<Doubt>,
    /// Where and how the file was truncated.
    pub truncated: Option<String>,
    /// The rank, if the file tells it.
    pub rank: Option<u64>,
    /// The number of ranks of the run, if the file tells it.
    pub world: Option<u64>,
    /// Kind of a device whose records are not known here: `MTIA`.
    pub unknown_device: Option<String>,
    /// Whether kernels of a lane run one after another, as in a stream of CUDA; kernels of a queue may overlap.
    pub serial: bool,
    /// Offset from times to the file's own clock, in nanoseconds.
    pub bias: i128,
    /// Whether launch sizes count work items (ROCm) instead of workgroups (CUDA).
    pub grid_in_items: bool,
    /// Version of a database's schema.
    pub schema_version: Option<Vec<String>>,
    /// Known tables that a database does not have.
    pub tables_absent: Option<Vec<String>>,
    /// Number of steps in the sums, if known.
    pub summed_steps: Option<u64>,
    /// How to record a trace with work of a device; without it, a lint gives the general advice for the format.
    pub record_again: Option<&'static str>,
    /// Median step without the profiler in nanoseconds, if known.
    pub unprofiled_step: Option<u64>,
    /// Families of kernels and operations by `NameId`, where they differ from what the name says.
    pub(crate) families: HashMap<NameId, Family>,
}

/// What is wrong with a slice whose record contradicts others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DoubtKind {
    /// Its time is far outside of all others: it is not in the trace.
    Aside,
    /// Its length contradicts the work after it: it counts up to the beginning of that.
    Contradicts,
    /// It fits several processes: it is linked with none.
    Unlinked,
}

/// Slices of the same doubt.
#[derive(Clone, Debug, Serialize)]
pub struct Doubt {
    /// What is wrong.
    pub kind: DoubtKind,
    /// The number of them.
    pub count: u64,
    /// The reason, and what follows, in a sentence.
    pub why: String,
    /// Name and time of the first one.
    pub first: String,
}

impl Trace {
    /// The part that is counted and exported.
    pub fn counted(&self) -> &Self {
        self.counted.as_deref().unwrap_or(self)
    }

    /// The full name as in the file. It may contain any characters, such as escape sequences of a terminal.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("", |name| name)
    }

    /// The family of a kernel or an operation.
    pub fn family(&self, id: NameId) -> Family {
        let told = self.families.get(&id).copied();
        told.unwrap_or_else(|| names::family(self.name(id)))
    }

    /// A lane's title: with its device, if there are several, and its process, if there are several.
    pub fn lane_title(&self, lane: &Lane) -> String {
        let process = lane.process.and_then(|id| self.processes.get(id as usize));
        let label = lane.device.and_then(|id| self.devices.get(id as usize));
        // The label of a device in a joined trace begins with its process. Other labels than numbers name their lanes themselves.
        let number = label
            .and_then(|label| label.rsplit(": ").next())
            .filter(|label| label.bytes().all(|b| b.is_ascii_digit()) && self.devices.len() > 1);
        let mut title = process.map_or(String::new(), |process| format!("{} ", process.label));
        let spoken = lane.name.contains(char::is_alphabetic);
        title += &match (lane.kind, number) {
            (LaneKind::Device, Some(number)) => format!("GPU {number} "),
            (LaneKind::Device, None) if !spoken => "device ".to_owned(),
            (LaneKind::Host, _) if !spoken => "host ".to_owned(),
            _ => String::new(),
        };
        title + &lane.name
    }

    /// Every slice of a kind.
    pub fn of(&self, kind: SliceKind) -> impl Iterator<Item = &Slice> {
        self.slices.iter().filter(move |slice| slice.kind == kind)
    }

    /// From the first start to the last end of slices of some kinds.
    pub fn span(&self, kinds: impl Fn(SliceKind) -> bool) -> Option<(i64, i64)> {
        let slices = self.slices.iter().filter(|slice| kinds(slice.kind));
        slices
            .map(Slice::span)
            .reduce(|all, it| (all.0.min(it.0), all.1.max(it.1)))
    }

    /// The linked slice: a kernel's launch, or a launch's kernel.
    pub fn linked(&self, slice: &Slice) -> Option<&Slice> {
        self.slices.get(slice.link as usize)
    }

    /// Further data about a slice.
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

    /// How many rows or events could not be read.
    pub(crate) fn unread_count(&self) -> u64 {
        sum(self.unread.iter().map(|it| it.count))
    }
}

/// Builds a trace from plain data, for readers of files and for other sources.
#[derive(Default)]
pub struct TraceBuilder {
    trace: Trace,
    ids: HashMap<Arc<str>, NameId>,
    details: HashMap<Detail, u32>,
    /// Devices by label.
    devices: HashMap<String, u32>,
    /// Calls by scope (a process, or a kind of number) and correlation.
    calls: HashMap<(u64, u64), u32>,
    /// Work of devices by scope and correlation.
    work: Vec<(u32, u64, u64)>,
    /// Work of devices by correlation, where the file does not tell the process.
    loose: Vec<(u32, u64)>,
    /// Processes by label.
    processes: HashMap<String, u32>,
}

impl TraceBuilder {
    /// An empty trace of `source`. `unsigned` means that times come from an unsigned 64-bit clock.
    pub fn new(source: &str, format: &'static str, unsigned: bool) -> Self {
        let bias = if unsigned { 1 << 63 } else { 0 };
        Self {
            trace: Trace {
                source: source.to_owned(),
                format,
                bias,
                ..Trace::default()
            },
            ..Self::default()
        }
    }

    /// The trace so far, for fields without a function.
    pub fn trace(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// The number of a name. Very long names are cut.
    pub fn name(&mut self, text: &str) -> NameId {
        let text = &text[..text.floor_char_boundary(NAME_BYTES)];
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.trace.names.len() as NameId;
        let text: Arc<str> = text.into();
        self.trace.names.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    /// The number of a device, by its label.
    pub fn device(&mut self, label: &str) -> u32 {
        if let Some(id) = self.devices.get(label) {
            return *id;
        }
        let id = self.trace.devices.len() as u32;
        self.trace.devices.push(label.to_owned());
        self.devices.insert(label.to_owned(), id);
        id
    }

    /// A new lane.
    pub fn lane(&mut self, kind: LaneKind, group: &str, name: &str, device: Option<u32>) -> u32 {
        let (group, name) = (group.to_owned(), name.to_owned());
        self.trace.lanes.push(Lane {
            kind,
            group,
            name,
            device,
            process: None,
        });
        self.trace.lanes.len() as u32 - 1
    }

    /// Says which process a lane belongs to, and returns the process's number.
    pub(crate) fn of_process(&mut self, lane: u32, label: &str) -> u32 {
        let next = self.trace.processes.len() as u32;
        let id = *self.processes.entry(label.to_owned()).or_insert(next);
        if id == next {
            let label = label.to_owned();
            let process = Process {
                label,
                ..Process::default()
            };
            self.trace.processes.push(process);
        }
        self.trace.lanes[lane as usize].process = Some(id);
        id
    }

    /// A new lane of a device, by the device's label.
    pub(crate) fn device_lane(&mut self, device: &str, name: &str) -> u32 {
        let id = Some(self.device(device));
        self.lane(LaneKind::Device, &format!("GPU {device}"), name, id)
    }

    /// The number of a new counter without samples.
    pub(crate) fn counter(&mut self, name: &str, unit: &str) -> usize {
        self.trace.counters.push(Counter {
            name: name.to_owned(),
            unit: unit.to_owned(),
            samples: Vec::new(),
        });
        self.trace.counters.len() - 1
    }

    /// Converts a time of the file's clock to the stored form.
    pub(crate) fn time(&self, clock: i128) -> Option<i64> {
        i64::try_from(clock.checked_sub(self.trace.bias)?).ok()
    }

    /// Adds a slice and returns its number, which is valid until `finish`; `place` gives its place in the file if it cannot be read.
    pub fn slice(
        &mut self,
        kind: SliceKind,
        lane: u32,
        name: NameId,
        (start, end): (i128, i128),
        place: impl FnOnce() -> String,
    ) -> Option<u32> {
        let (Some(start), Some(end)) = (self.time(start), self.time(end)) else {
            self.unread("a time is beyond 64 bits", place);
            return None;
        };
        if end < start {
            self.unread("the end is before the start", place);
            return None;
        }
        if self.full() {
            self.unread(
                "more events than fit in memory: the first 16 million are shown",
                place,
            );
            return None;
        }
        if kind.on_device() {
            self.trace.lanes[lane as usize].kind = LaneKind::Device;
        }
        self.trace.slices.push(Slice {
            start,
            end,
            lane,
            name,
            link: NONE,
            detail: NONE,
            kind,
        });
        Some(self.trace.slices.len() as u32 - 1)
    }

    /// Adds a detail to a slice.
    pub fn detail(&mut self, slice: u32, detail: Detail) {
        let next = self.trace.details.len() as u32;
        let id = *self.details.entry(detail).or_insert(next);
        if id == next {
            self.trace.details.push(detail);
        }
        self.trace.slices[slice as usize].detail = id;
    }

    /// Sets the end of an open slice, in the file's clock.
    pub(crate) fn close(&mut self, slice: u32, end: i128) -> bool {
        let end = self.time(end);
        let slice = &mut self.trace.slices[slice as usize];
        let end = end.filter(|end| *end >= slice.start);
        slice.end = end.unwrap_or(slice.end);
        end.is_some()
    }

    /// Sets the correlation of a call. The first launch with a number counts.
    fn call(&mut self, slice: u32, scope: u64, correlation: u64) {
        let slices = &self.trace.slices;
        let launches = |at: u32| {
            matches!(
                slices[at as usize].kind,
                SliceKind::Launch | SliceKind::GraphLaunch
            )
        };
        let known = self.calls.entry((scope, correlation)).or_insert(slice);
        if launches(slice) && !launches(*known) {
            *known = slice;
        }
    }

    /// Links calls and work of devices that have the same correlation within a scope, such as a process.
    pub fn link(&mut self, slice: u32, scope: u64, correlation: Option<u64>) {
        let Some(correlation) = correlation else {
            return;
        };
        let kind = self.trace.slices[slice as usize].kind;
        if kind.is_call() {
            self.call(slice, scope, correlation);
        } else if kind.on_device() {
            self.work.push((slice, scope, correlation));
        }
    }

    /// Links work of a device with the call of the same correlation, whichever process made it. The scope of calls is then the number
    /// of their process.
    pub(crate) fn link_in_any(&mut self, slice: u32, correlation: Option<u64>) {
        self.loose.extend(correlation.map(|it| (slice, it)));
    }

    /// Whether the trace accepts no more slices.
    pub(crate) fn full(&self) -> bool {
        self.trace.slices.len() >= SLICES
    }

    /// Counts a row, an event or a packet that could not be read.
    pub(crate) fn unread(&mut self, why: &str, place: impl FnOnce() -> String) {
        self.unread_many(why, 1, place);
    }

    /// The same for many at once.
    pub(crate) fn unread_many(&mut self, why: &str, count: u64, place: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        let known = self.trace.unread.iter().position(|it| it.why == why);
        let at = known.or((self.trace.unread.len() >= REASONS).then_some(REASONS - 1));
        match at {
            Some(at) => self.trace.unread[at].count += count,
            None => self.trace.unread.push(Unread {
                count,
                why: why.to_owned(),
                first: place(),
            }),
        }
    }

    /// The finished trace: linked, sorted, its processes told apart, and without times that cannot be.
    pub fn finish(mut self) -> Trace {
        let loose = std::mem::take(&mut self.loose);
        let (calls, unlinked) = owners::calls(&self.trace, &self.calls, &loose);
        let known = self
            .work
            .into_iter()
            .filter_map(|(work, scope, correlation)| {
                Some((work, *self.calls.get(&(scope, correlation))?))
            });
        let slices = &mut self.trace.slices;
        for (work, call) in known.chain(calls) {
            slices[work as usize].link = call;
            let kind = slices[work as usize].kind;
            let call = &mut slices[call as usize];
            if call.link == NONE && (kind != SliceKind::Memset || call.kind != SliceKind::Launch) {
                call.link = work;
            }
        }
        owners::tell_apart(&mut self.trace, &unlinked);
        let order = sorted(&self.trace.slices);
        let kept = doubts::far_outside(&mut self.trace, &order);
        arrange(&mut self.trace, order, kept);
        doubts::shorten(&mut self.trace);
        self.trace.completed()
    }

    /// The trace of finished ones, whose slices are linked already.
    pub(crate) fn joined(mut self) -> Trace {
        let order = sorted(&self.trace.slices);
        let kept = 0..order.len();
        arrange(&mut self.trace, order, kept);
        self.trace.completed()
    }
}

/// Numbers of slices in the order of a trace: by start, longer ones first.
fn sorted(slices: &[Slice]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..slices.len() as u32).collect();
    order.sort_by_key(|&i| {
        let slice = &slices[i as usize];
        (slice.start, std::cmp::Reverse(slice.end), i)
    });
    order
}

/// Puts slices into an order, and drops those outside of a range of it.
fn arrange(trace: &mut Trace, order: Vec<u32>, kept: Range<usize>) {
    let slices = &mut trace.slices;
    // What is kept comes first.
    let (before, after) = (&order[..kept.start], &order[kept.end..]);
    let mut place = vec![0_u32; order.len()];
    for (new, old) in (0..).zip(order[kept.clone()].iter().chain(before).chain(after)) {
        place[*old as usize] = new;
    }
    drop(order);
    for slice in slices.iter_mut().filter(|slice| slice.link != NONE) {
        let link = place[slice.link as usize];
        slice.link = if (link as usize) < kept.len() {
            link
        } else {
            NONE
        };
    }
    // Sorts in place, because a second copy of all slices would need too much memory.
    for at in 0..place.len() {
        while place[at] as usize != at {
            let to = place[at] as usize;
            slices.swap(at, to);
            place.swap(at, to);
        }
    }
    slices.truncate(kept.len());
}

impl Trace {
    /// Fills in what follows from the sorted slices.
    fn completed(mut self) -> Self {
        let holds = &mut self.holds;
        for slice in &self.slices {
            match slice.kind {
                SliceKind::Kernel => holds.kernels = true,
                SliceKind::Copy => holds.copies = true,
                SliceKind::Memset => holds.memsets = true,
                SliceKind::Annotation => holds.annotations = true,
                SliceKind::Graph => holds.graphs = true,
                kind => holds.calls |= kind.is_call(),
            }
        }
        for counter in &mut self.counters {
            counter.samples.sort_by_key(|sample| sample.0);
        }
        self.families = self.families_of_work();
        self
    }

    /// The family of each kernel and operation. A kernel whose name says nothing takes part in a collective if most of its executions are
    /// within the range of one: on the device, or around the call that launched it.
    fn families_of_work(&self) -> HashMap<NameId, Family> {
        let mut families = HashMap::new();
        let mut unknown: HashMap<NameId, (u64, u64)> = HashMap::new();
        let of_work = |kind| matches!(kind, SliceKind::Kernel | SliceKind::Op);
        for slice in self.slices.iter().filter(|slice| of_work(slice.kind)) {
            let family = families.entry(slice.name);
            let family = *family.or_insert_with(|| names::family(self.name(slice.name)));
            if family == Family::Other && slice.kind == SliceKind::Kernel {
                unknown.entry(slice.name).or_default();
            }
        }
        if unknown.is_empty() {
            return families;
        }
        let mut named: HashMap<NameId, bool> = HashMap::new();
        let mut ranges: HashMap<u32, Vec<(i64, i64)>> = HashMap::new();
        for slice in &self.slices {
            let range = matches!(
                slice.kind,
                SliceKind::Annotation | SliceKind::DeviceAnnotation | SliceKind::Op
            );
            let collective = |id| names::family(self.name(id)) == Family::Communication;
            if range
                && *named
                    .entry(slice.name)
                    .or_insert_with(|| collective(slice.name))
            {
                ranges.entry(slice.lane).or_default().push(slice.span());
            }
        }
        let within = |slice: &Slice| {
            ranges.get(&slice.lane).is_some_and(|ranges| {
                let after = ranges.partition_point(|range| range.0 <= slice.start);
                // Ranges of collectives are nested by a few at most.
                ranges[..after]
                    .iter()
                    .rev()
                    .take(4)
                    .any(|range| slice.start < range.1)
            })
        };
        for slice in self.of(SliceKind::Kernel) {
            if let Some((inside, all)) = unknown.get_mut(&slice.name) {
                *all += 1;
                *inside += u64::from(within(slice) || self.linked(slice).is_some_and(within));
            }
        }
        let collective = unknown
            .into_iter()
            .filter(|(_, (inside, all))| 2 * inside > *all);
        families.extend(collective.map(|(name, _)| (name, Family::Communication)));
        families
    }
}
