//! The figures of a trace: one JSON object, the table of kernels, the ledger, lints. Times are whole
//! nanoseconds; busy time is the union of the intervals of a device's kernels, summed over devices. A figure that the file does not
//! contain is `None`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::model::{Doubt, Unread};
use super::names::Family;

/// A fault of a trace, or of the run it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceLint {
    /// The full name, as in the file.
    pub name: &'static str,
    /// What was found, in sentences.
    pub why: String,
    /// What to do, in sentences.
    pub next: String,
}

/// One of the kernels with the largest share of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Top {
    /// The full name, as in the file.
    pub name: String,
    /// Number of executions.
    pub calls: u64,
    /// Time of all executions in nanoseconds.
    pub total_ns: u64,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceFigures {
    /// Number of kernel executions.
    pub kernels: u64,
    /// Time of all kernels in nanoseconds.
    pub kernel_ns: u64,
    /// Time in which at least one kernel runs, in nanoseconds.
    pub busy_ns: u64,
}

/// A count, and the bytes if the file contains them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// The number.
    pub count: u64,
    /// Bytes, if the file contains them.
    pub bytes: Option<u64>,
}

/// Copies of all directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copies {
    /// All copies together.
    #[serde(flatten)]
    pub all: Amount,
    /// Copies of each direction: `H2D`, `D2H` and others.
    pub by_direction: BTreeMap<&'static str, Amount>,
}

/// One annotated step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceStep {
    /// The full name, as in the file.
    pub name: String,
    /// The process, in a trace of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Length in nanoseconds.
    pub dur_ns: u64,
    /// Kernels that started inside the range; `None` if not every kernel's process is known.
    pub kernels_by_start: Option<u64>,
    /// Kernels whose launch call started inside the range.
    pub kernels_by_launch: Option<u64>,
    /// Time in which at least one kernel runs, in nanoseconds; `None` if not every kernel's process is known.
    pub busy_ns: Option<u64>,
    /// Number of calls in which the host waits for a device.
    pub syncs: Option<u64>,
    /// Number of copies between host and device.
    pub host_device_copies: Option<u64>,
    /// The step's ledger.
    #[serde(skip)]
    pub ledger: Ledger,
    /// Start and end on the trace's clock.
    #[serde(skip)]
    pub span: (i64, i64),
}

/// Rows that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct UnreadRows {
    /// The number.
    pub count: u64,
    /// What was found, in sentences.
    pub why: Vec<Unread>,
}

/// A phase of a step over the processes of a trace; a phase without steps is that of the whole trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseOfRanks {
    /// The phase, and of what its time is.
    pub name: &'static str,
    /// Median over the processes in nanoseconds.
    pub median_ns: u64,
    /// The longest time in nanoseconds.
    pub worst_ns: u64,
    /// The process with the longest time.
    pub worst: String,
    /// Its rank, if it is known.
    pub worst_rank: Option<u64>,
}

/// Who arrives last at collectives that several processes number alike: the one that waits least.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Arrivals {
    /// Number of collectives with kernels of several processes.
    pub collectives: u64,
    /// Processes that were last at some of them, most collectives first.
    pub last: Vec<LastArrival>,
}

/// A process that arrived last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LastArrival {
    /// The process.
    pub process: String,
    /// Number of collectives at which it was last.
    pub collectives: u64,
    /// How long others waited for it, at most, summed over these collectives, in nanoseconds.
    pub awaited_ns: u64,
}

/// Every figure, in the order of the JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Name of the file.
    pub file: String,
    /// Name of the format: `kineto json`.
    pub format: &'static str,
    /// The rank, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// The number of ranks of the run, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world_size: Option<u64>,
    /// The process, for figures of one of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Number of kernel executions.
    pub kernels: u64,
    /// Number of rows or events that could not be read.
    pub bad_rows: u64,
    /// Number of events whose times are far outside of all others: they are counted nowhere else.
    pub set_aside: u64,
    /// Number of kernels whose length contradicts the work after them: each counts up to the beginning of that.
    pub contradicts: u64,
    /// Number of pieces of work that fit several processes, and are linked with none.
    pub unlinked: u64,
    /// Number of different kernel names.
    pub distinct_names: u64,
    /// Time of all kernels in nanoseconds.
    pub kernel_ns: u64,
    /// The three kernels with the largest total time.
    pub top: Vec<Top>,
    /// Time in which at least one kernel runs, in nanoseconds.
    pub busy_ns: Option<u64>,
    /// From the first start of a kernel to the last end, summed over processes.
    pub device_span_ns: Option<u64>,
    /// Time of all kernels of collectives in nanoseconds: each waits for other ranks, then exchanges data.
    pub communication_ns: u64,
    /// Time in which a device runs only kernels of collectives, in nanoseconds, summed over devices.
    pub communication_exposed_ns: Option<u64>,
    /// Time in which a device runs kernels of collectives beside others, in nanoseconds, summed over devices.
    pub communication_hidden_ns: Option<u64>,
    /// Share of the span of all devices in which no kernel runs, 0 to 1.
    #[serde(serialize_with = "six_digits")]
    pub idle_share: Option<f64>,
    /// Median length of a kernel in nanoseconds.
    pub median_kernel_ns: Option<u64>,
    /// Number of kernels of 0 ns.
    pub zero_length_kernels: Option<u64>,
    /// Figures of each device, by its label.
    pub devices: Option<BTreeMap<String, DeviceFigures>>,
    /// Device queues with kernels.
    pub lanes: Option<u64>,
    /// Number of calls that launch a kernel.
    pub launches: Option<u64>,
    /// Number of these calls whose kernel is not in the file.
    pub launches_without_kernel: Option<u64>,
    /// Number of launches that were captured into a graph, and did not run.
    pub launches_captured: Option<u64>,
    /// Number of calls that launch a graph.
    pub graph_launches: Option<u64>,
    /// Number of graphs that were traced as a whole.
    pub graph_trace_rows: Option<u64>,
    /// Time of these graphs in nanoseconds.
    pub graph_trace_ns: Option<u64>,
    /// Number of calls in which the host waits for a device.
    pub syncs: Option<u64>,
    /// Copies by devices.
    pub copies: Option<Copies>,
    /// Memory regions filled by devices.
    pub memsets: Option<Amount>,
    /// Annotated steps.
    pub steps: Option<Vec<TraceStep>>,
    /// From the first start of anything to the last end.
    pub trace_span_ns: Option<u64>,
    /// Version of a database's schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<Vec<String>>,
    /// Known tables that a database does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables_absent: Option<Vec<String>>,
    /// Lints that apply.
    pub lints: Vec<TraceLint>,
    /// Rows that could not be read, by reason.
    pub unread: Option<UnreadRows>,
    /// Times that cannot be, and work that fits several processes, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
    /// The figures of each process, in a trace of several: those above are their sums.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<Summary>,
    /// Phases of a step over the processes, in a trace of several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases_of_ranks: Vec<PhaseOfRanks>,
    /// Who arrives last at collectives; `None` if the file does not number them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// If there are no kernels: operations of the host with their own time, longest total first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<KernelTotals>,
    /// One row for each name, longest total first.
    #[serde(skip)]
    pub table: Vec<KernelTotals>,
    /// Ledger of all steps, or from the first to the last kernel if no steps are annotated.
    #[serde(skip)]
    pub ledger: Option<Ledger>,
    /// Kernel time and kernels launched in phases of these names.
    #[serde(skip)]
    pub phases: PhaseTotals,
    /// Several processes name one device, and the file does not tell whether it is the same.
    #[serde(skip)]
    pub shared_device: Option<String>,
    /// Number of kernels that started before the call that launched them, and number of linked kernels.
    #[serde(skip)]
    pub early: (u64, u64),
    /// Idle share if graphs that were traced as a whole count as work.
    #[serde(skip)]
    pub idle_with_graphs: Option<f64>,
    /// Median step: of the steps measured without a profiler, otherwise of annotated steps.
    #[serde(skip)]
    pub step_ns: Option<u64>,
}

impl Summary {
    /// Kernels, or operations of the host if there are no kernels.
    pub fn rows(&self) -> &[KernelTotals] {
        match self.table.is_empty() {
            true => &self.operations,
            false => &self.table,
        }
    }

    /// Median length of the annotated steps in nanoseconds.
    pub(crate) fn median_step(&self) -> Option<u64> {
        let mut lengths: Vec<u64> = self
            .steps
            .iter()
            .flatten()
            .map(|step| step.dur_ns)
            .collect();
        lengths.sort_unstable();
        median(&lengths)
    }

    /// Kernel executions per step, if steps are known.
    pub fn a_step(&self) -> Option<f64> {
        let known = self.table.iter().any(|row| row.a_step.is_some());
        known.then(|| self.table.iter().filter_map(|row| row.a_step).sum())
    }
}

fn six_digits<S: Serializer>(share: &Option<f64>, out: S) -> Result<S::Ok, S::Error> {
    share
        .map(|share| (share * 1e6).round() / 1e6)
        .serialize(out)
}

/// A kernel's name and the totals of its executions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelTotals {
    /// The full name; not safe for a screen.
    pub name: String,
    /// The short name, in at most 60 characters.
    pub short: String,
    /// The family, from the name.
    pub family: Family,
    /// Number of executions.
    pub calls: u64,
    /// Time of all executions in nanoseconds.
    pub total_ns: u64,
    /// Median length in nanoseconds.
    pub median_ns: Option<u64>,
    /// Shortest length in nanoseconds.
    pub min_ns: Option<u64>,
    /// Longest length in nanoseconds.
    pub max_ns: Option<u64>,
    /// Standard deviation of the length in nanoseconds.
    pub std_dev_ns: Option<f64>,
    /// Share of the time of all rows.
    pub share_of_kernels: f64,
    /// Share of the time from the first to the last event, on every device.
    pub share_of_wall: Option<f64>,
    /// Executions per step, by launch if known.
    pub a_step: Option<f64>,
}

/// A ledger in nanoseconds. The parts from `busy` to `idle` add up to `wall`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// Length of the window, counted once for each device.
    pub wall: u64,
    /// At least one kernel runs.
    pub busy: u64,
    /// No kernel runs, but a copy or a memset does.
    pub copies: u64,
    /// Nothing runs on the device, and the host waits for it; `None` if the file has no calls.
    pub syncs: Option<u64>,
    /// Nothing runs, and the next work has not been launched yet.
    pub host_bound: Option<u64>,
    /// Nothing runs, for no reason that the file shows.
    pub idle: u64,
}

impl PhaseTotals {
    /// The sums of several processes.
    pub(crate) fn add(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            forward: sum(self.forward, other.forward),
            backward: sum(self.backward, other.backward),
            optimizer: sum(self.optimizer, other.optimizer),
            optimizer_kernels: sum(self.optimizer_kernels, other.optimizer_kernels),
            other_kernels: sum(self.other_kernels, other.other_kernels),
        }
    }
}

impl Ledger {
    /// The ledger of several windows or devices.
    pub(crate) fn sum(parts: impl Iterator<Item = Self>) -> Self {
        let none = Self {
            syncs: Some(0),
            host_bound: Some(0),
            ..Self::default()
        };
        parts.fold(none, Self::add)
    }

    fn add(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self {
            wall: self.wall.saturating_add(other.wall),
            busy: self.busy.saturating_add(other.busy),
            copies: self.copies.saturating_add(other.copies),
            syncs: sum(self.syncs, other.syncs),
            host_bound: sum(self.host_bound, other.host_bound),
            idle: self.idle.saturating_add(other.idle),
        }
    }
}

/// Kernel time by phase in nanoseconds without collectives, which wait for others, if ranges name the phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PhaseTotals {
    /// Kernel time of forward ranges.
    pub forward: Option<u64>,
    /// Kernel time of backward ranges.
    pub backward: Option<u64>,
    /// Kernel time of the optimizer's ranges.
    pub optimizer: Option<u64>,
    /// Number of kernels in the optimizer's ranges.
    pub optimizer_kernels: Option<u64>,
    /// Number of kernels in steps outside of any phase.
    pub other_kernels: Option<u64>,
}

/// The median of sorted numbers; for an even count, the mean of the middle two, rounded down.
pub fn median(sorted: &[u64]) -> Option<u64> {
    let (low, high) = (
        sorted.get(sorted.len().checked_sub(1)? / 2)?,
        sorted.get(sorted.len() / 2)?,
    );
    Some(low.midpoint(*high))
}
