//! The figures of a trace: one JSON object, the table of kernels, the ledger, lints. Times are whole nanoseconds. Busy time is the union
//! of the intervals of a device's kernels, summed over devices. A figure that the file does not contain is `None`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::model::{Doubt, Unread};
use super::names::Family;

/// A fault of a trace, or of the run it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceLint {
    /// The name of the lint: `launch-bound`.
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
    /// The number of executions.
    pub calls: u64,
    /// The time of all executions in nanoseconds.
    pub total_ns: u64,
}

/// The figures of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceFigures {
    /// The number of kernel executions.
    pub kernels: u64,
    /// The time of all kernels in nanoseconds.
    pub kernel_ns: u64,
    /// The time in which at least one kernel runs, in nanoseconds.
    pub busy_ns: u64,
}

/// A number of copies or memsets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// The number of copies or memsets.
    pub count: u64,
    /// The number of bytes; `None` if the file does not contain it for all of them.
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

/// The figures of one annotated step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceStep {
    /// The full name, as in the file.
    pub name: String,
    /// The process; `None` in a trace of one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The length in nanoseconds.
    pub dur_ns: u64,
    /// The number of kernels that started inside the range; `None` if the process of a kernel is not known.
    pub kernels_by_start: Option<u64>,
    /// The number of kernels whose launch call started inside the range.
    pub kernels_by_launch: Option<u64>,
    /// The time in which at least one kernel runs, in nanoseconds; `None` if the process of a kernel is not known.
    pub busy_ns: Option<u64>,
    /// The number of calls in which the host waits for a device.
    pub syncs: Option<u64>,
    /// The number of copies between host and device.
    pub host_device_copies: Option<u64>,
    /// The step's ledger.
    #[serde(skip)]
    pub ledger: Ledger,
    /// Start and end in nanoseconds, as in a `Slice`.
    #[serde(skip)]
    pub span: (i64, i64),
}

/// Rows that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct UnreadRows {
    /// The number of rows.
    pub count: u64,
    /// The reasons, each with its number of rows.
    pub why: Vec<Unread>,
}

/// The time that the processes of a trace need for a phase: per step, or for the whole trace if no steps are annotated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseOfRanks {
    /// The name of the phase, such as `forward kernels`.
    pub name: &'static str,
    /// The median over the processes in nanoseconds.
    pub median_ns: u64,
    /// The longest time in nanoseconds.
    pub worst_ns: u64,
    /// The process with the longest time.
    pub worst: String,
    /// The rank of this process; `None` if it is not known.
    pub worst_rank: Option<u64>,
}

/// The processes that arrive last at collectives. The process that waits least came last. Only collectives are compared that several
/// processes give the same number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Arrivals {
    /// The number of collectives with kernels of several processes.
    pub collectives: u64,
    /// Processes that were last at some of them, most collectives first.
    pub last: Vec<LastArrival>,
}

/// A process that arrived last at some collectives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LastArrival {
    /// The process.
    pub process: String,
    /// The number of collectives at which it was last.
    pub collectives: u64,
    /// The longest time that another process waited for it, summed over these collectives, in nanoseconds.
    pub awaited_ns: u64,
}

/// All figures of a trace, in the order of the JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// The name of the file.
    pub file: String,
    /// The name of the format: `kineto json`.
    pub format: &'static str,
    /// The rank; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// The number of ranks of the run; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world_size: Option<u64>,
    /// The process that these figures belong to; `None` for the figures of a whole trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The number of kernel executions.
    pub kernels: u64,
    /// The number of rows or events that could not be read.
    pub bad_rows: u64,
    /// The number of events whose times are far outside of all others. They are counted nowhere else.
    pub set_aside: u64,
    /// The number of kernels whose length contradicts the work after them. Each counts up to the start of that work.
    pub contradicts: u64,
    /// The number of pieces of work that fit several processes. They are linked with none of them.
    pub unlinked: u64,
    /// The number of different kernel names.
    pub distinct_names: u64,
    /// The time of all kernels in nanoseconds.
    pub kernel_ns: u64,
    /// The three kernels with the largest total time.
    pub top: Vec<Top>,
    /// The time in which at least one kernel runs, in nanoseconds.
    pub busy_ns: Option<u64>,
    /// The time from the first start of a kernel to the last end in nanoseconds, summed over processes.
    pub device_span_ns: Option<u64>,
    /// The time of all kernels of collectives in nanoseconds: each waits for other ranks, then exchanges data.
    pub communication_ns: u64,
    /// The time in which a device runs only kernels of collectives, in nanoseconds, summed over devices.
    pub communication_exposed_ns: Option<u64>,
    /// The time in which a device runs kernels of collectives beside others, in nanoseconds, summed over devices.
    pub communication_hidden_ns: Option<u64>,
    /// The share of the span of all devices in which no kernel runs, 0 to 1.
    #[serde(serialize_with = "six_digits")]
    pub idle_share: Option<f64>,
    /// The median length of a kernel in nanoseconds.
    pub median_kernel_ns: Option<u64>,
    /// The number of kernels of 0 ns.
    pub zero_length_kernels: Option<u64>,
    /// The figures of each device, by its label.
    pub devices: Option<BTreeMap<String, DeviceFigures>>,
    /// The number of device queues with kernels.
    pub lanes: Option<u64>,
    /// The number of calls that launch a kernel.
    pub launches: Option<u64>,
    /// The number of these calls whose kernel is not in the file.
    pub launches_without_kernel: Option<u64>,
    /// The number of launches that were captured into a graph and did not run.
    pub launches_captured: Option<u64>,
    /// The number of calls that launch a graph.
    pub graph_launches: Option<u64>,
    /// The number of graphs that were traced as a whole.
    pub graph_trace_rows: Option<u64>,
    /// The time of these graphs in nanoseconds.
    pub graph_trace_ns: Option<u64>,
    /// The number of calls in which the host waits for a device.
    pub syncs: Option<u64>,
    /// Copies by devices.
    pub copies: Option<Copies>,
    /// Memory regions filled by devices.
    pub memsets: Option<Amount>,
    /// Annotated steps.
    pub steps: Option<Vec<TraceStep>>,
    /// The time from the first start of any slice to the last end, in nanoseconds.
    pub trace_span_ns: Option<u64>,
    /// The versions of a database's schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<Vec<String>>,
    /// The known tables that a database does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables_absent: Option<Vec<String>>,
    /// The lints that apply.
    pub lints: Vec<TraceLint>,
    /// Rows that could not be read, by reason.
    pub unread: Option<UnreadRows>,
    /// Impossible times, and work that fits several processes, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
    /// The figures of each process; empty in a trace of one process. The figures of the trace are their sums.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<Summary>,
    /// The phases of a step, compared over the processes; empty in a trace of one process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases_of_ranks: Vec<PhaseOfRanks>,
    /// The processes that arrive last at collectives; `None` if the file does not number collectives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The operations of the host with their own time, longest total first; empty if there are kernels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<KernelTotals>,
    /// One row for each kernel name, longest total first.
    #[serde(skip)]
    pub table: Vec<KernelTotals>,
    /// The ledger of all steps, or from the first to the last kernel if no steps are annotated.
    #[serde(skip)]
    pub ledger: Option<Ledger>,
    /// Kernel time and number of kernels by phase.
    #[serde(skip)]
    pub phases: PhaseTotals,
    /// The label of a device that several processes name. The file does not show whether they mean one device.
    #[serde(skip)]
    pub shared_device: Option<String>,
    /// The number of kernels that started before the call that launched them, and the number of linked kernels.
    #[serde(skip)]
    pub early: (u64, u64),
    /// The idle share, 0 to 1, if graphs that were traced as a whole count as work.
    #[serde(skip)]
    pub idle_with_graphs: Option<f64>,
    /// The median step in nanoseconds: of the steps measured without a profiler, otherwise of annotated steps.
    #[serde(skip)]
    pub step_ns: Option<u64>,
}

impl Summary {
    /// Returns the rows of kernels, or of operations of the host if there are no kernels.
    pub fn rows(&self) -> &[KernelTotals] {
        if self.table.is_empty() {
            &self.operations
        } else {
            &self.table
        }
    }

    /// Returns the median length of the annotated steps in nanoseconds; `None` without steps.
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

    /// Returns the number of kernel executions per step; `None` if steps are not known.
    pub fn kernels_per_step(&self) -> Option<f64> {
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
    /// The full name as in the file, which may contain control characters.
    pub name: String,
    /// The short name, in at most 60 characters.
    pub short: String,
    /// The family of the kernel.
    pub family: Family,
    /// The number of executions.
    pub calls: u64,
    /// The time of all executions in nanoseconds.
    pub total_ns: u64,
    /// The median length in nanoseconds.
    pub median_ns: Option<u64>,
    /// The shortest length in nanoseconds.
    pub min_ns: Option<u64>,
    /// The longest length in nanoseconds.
    pub max_ns: Option<u64>,
    /// The standard deviation of the length in nanoseconds.
    pub std_dev_ns: Option<f64>,
    /// The share of the time of all rows, 0 to 1.
    pub share_of_kernels: f64,
    /// The share of the time from the first to the last event on all devices, 0 to 1.
    pub share_of_wall: Option<f64>,
    /// The number of executions per step; an execution belongs to the step of its launch, if that is known.
    pub a_step: Option<f64>,
}

/// A ledger in nanoseconds. The parts from `busy` to `idle` add up to `wall`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// The length of the window, counted once for each device.
    pub wall: u64,
    /// The time in which at least one kernel runs.
    pub busy: u64,
    /// The time in which no kernel runs, but a copy or a memset does.
    pub copies: u64,
    /// The time in which nothing runs on the device and the host waits for it; `None` if the file has no calls.
    pub syncs: Option<u64>,
    /// The time in which nothing runs and the next work has not been launched yet; `None` if the file has no calls.
    pub host_bound: Option<u64>,
    /// The time in which nothing runs for no reason that the file shows.
    pub idle: u64,
}

impl PhaseTotals {
    /// Adds the times of two processes. A phase that only one of them names has the time of that process.
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
    /// Adds the ledgers of several windows or devices. A part that is `None` in one of them is `None` in the sum.
    pub(crate) fn sum(parts: impl Iterator<Item = Self>) -> Self {
        let zero = Self {
            syncs: Some(0),
            host_bound: Some(0),
            ..Self::default()
        };
        parts.fold(zero, Self::add)
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

/// Kernel time by phase in nanoseconds, if ranges name the phases. Collectives are excluded, because they wait for other processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PhaseTotals {
    /// The kernel time of forward ranges.
    pub forward: Option<u64>,
    /// The kernel time of backward ranges.
    pub backward: Option<u64>,
    /// The kernel time of the optimizer's ranges.
    pub optimizer: Option<u64>,
    /// The number of kernels in the optimizer's ranges.
    pub optimizer_kernels: Option<u64>,
    /// The number of kernels in steps outside of any phase.
    pub other_kernels: Option<u64>,
}

/// Returns the median of sorted numbers; for an even count, the mean of the middle two, rounded down. `None` without numbers.
pub fn median(sorted: &[u64]) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    let low = sorted[last / 2];
    let high = sorted[sorted.len() / 2];
    Some(low.midpoint(high))
}
