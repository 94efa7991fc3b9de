//! The figures of a trace: what `perflings open --json` prints, the table of kernels, the ledger, lints. Whole nanoseconds;
//! busy is the union of the intervals of all kernels of a device, summed over devices. What the file does not hold is `None`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::model::Unread;
use super::names::Family;

/// What is wrong with a trace, or with the run it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lint {
    pub name: &'static str,
    pub why: String,
    pub next: String,
    /// The course's page about it: `pytorch-3.md`.
    pub page: Option<&'static str>,
}

/// One of the kernels with the largest share of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Top {
    pub name: String,
    pub calls: u64,
    pub total_ns: u64,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Device {
    pub kernels: u64,
    pub kernel_ns: u64,
    pub busy_ns: u64,
}

/// How many, and how many bytes where the file says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub count: u64,
    pub bytes: Option<u64>,
}

/// Copies of all directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copies {
    pub count: u64,
    pub bytes: Option<u64>,
    pub by_direction: BTreeMap<&'static str, Amount>,
}

/// One annotated step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    pub name: String,
    pub dur_ns: u64,
    /// Kernels that began while the range was open.
    pub kernels_by_start: u64,
    /// Kernels whose launch call began while the range was open.
    pub kernels_by_launch: Option<u64>,
    pub busy_ns: u64,
    pub syncs: Option<u64>,
    pub host_device_copies: Option<u64>,
    /// Where the time of the step went.
    #[serde(skip)]
    pub ledger: Ledger,
    /// Start and end on the trace's clock.
    #[serde(skip)]
    pub span: (i64, i64),
}

/// What could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct UnreadRows {
    pub count: u64,
    pub why: Vec<Unread>,
}

/// Every figure, in the order of the JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub file: String,
    pub format: &'static str,
    pub kernels: u64,
    pub bad_rows: u64,
    pub distinct_names: u64,
    pub kernel_ns: u64,
    pub top: Vec<Top>,
    pub busy_ns: Option<u64>,
    /// From the first start of a kernel to the last end.
    pub device_span_ns: Option<u64>,
    #[serde(serialize_with = "six_digits")]
    pub idle_share: Option<f64>,
    pub median_kernel_ns: Option<u64>,
    pub zero_length_kernels: Option<u64>,
    pub devices: Option<BTreeMap<String, Device>>,
    /// Device queues with kernels.
    pub lanes: Option<u64>,
    pub launches: Option<u64>,
    pub launches_without_kernel: Option<u64>,
    pub graph_launches: Option<u64>,
    pub graph_trace_rows: Option<u64>,
    pub graph_trace_ns: Option<u64>,
    pub syncs: Option<u64>,
    pub copies: Option<Copies>,
    pub memsets: Option<Amount>,
    pub steps: Option<Vec<Step>>,
    /// From the first start of anything to the last end.
    pub trace_span_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables_absent: Option<Vec<String>>,
    pub lints: Vec<Lint>,
    pub unread: Option<UnreadRows>,
    /// Where there are no kernels: operations of the host, with their own time, longest total first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<KernelRow>,
    /// One row for each name, longest total first.
    #[serde(skip)]
    pub table: Vec<KernelRow>,
    /// Of all steps, or from the first to the last kernel where no steps are annotated.
    #[serde(skip)]
    pub ledger: Option<Ledger>,
    /// Kernel time and kernels launched in phases of these names.
    #[serde(skip)]
    pub phases: Phases,
    /// Kernels that began before the call that launched them, and how many are linked.
    #[serde(skip)]
    pub early: (u64, u64),
    /// Idle share with graphs that were traced as a whole counted as work.
    #[serde(skip)]
    pub idle_with_graphs: Option<f64>,
    /// Median step: of those that the source measured without a profiler, else of annotated ones.
    #[serde(skip)]
    pub step_ns: Option<u64>,
}

impl Summary {
    /// Kernels, or operations of the host where there are none.
    pub fn rows(&self) -> &[KernelRow] {
        match self.table.is_empty() {
            true => &self.operations,
            false => &self.table,
        }
    }

    /// Executions of kernels in a step, where steps are known.
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

/// A name of a kernel and what its executions come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelRow {
    /// In full; not safe for a screen.
    pub name: String,
    pub short: String,
    pub family: Family,
    pub calls: u64,
    pub total_ns: u64,
    pub median_ns: Option<u64>,
    pub min_ns: Option<u64>,
    pub max_ns: Option<u64>,
    pub std_dev_ns: Option<f64>,
    /// Of the time of all rows.
    pub share_of_kernels: f64,
    /// Of the time from the first to the last event, on every device.
    pub share_of_wall: Option<f64>,
    /// Executions in a step, by launch where that is known.
    pub a_step: Option<f64>,
}

/// Where time went, in nanoseconds. The parts from `busy` to `idle` sum up to `wall`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// Length of the window, once for each device.
    pub wall: u64,
    /// At least one kernel runs.
    pub busy: u64,
    /// No kernel, but a copy or a memset.
    pub copies: u64,
    /// Nothing runs on the device, and the host waits for it; `None` where calls are not in the file.
    pub syncs: Option<u64>,
    /// Nothing runs, and what runs next has not been launched yet.
    pub host_bound: Option<u64>,
    /// Nothing runs, for no reason the file shows.
    pub idle: u64,
}

impl Ledger {
    /// Adds that of another window or device.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        self.wall = self.wall.saturating_add(other.wall);
        self.busy = self.busy.saturating_add(other.busy);
        self.copies = self.copies.saturating_add(other.copies);
        self.syncs = sum(self.syncs, other.syncs);
        self.host_bound = sum(self.host_bound, other.host_bound);
        self.idle = self.idle.saturating_add(other.idle);
    }
}

/// Kernel time by phase, in nanoseconds, where ranges say what is what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Phases {
    pub forward: Option<u64>,
    pub backward: Option<u64>,
    /// Kernels in the optimizer's ranges, not their time.
    pub optimizer_kernels: Option<u64>,
    /// Kernels in steps, but in no phase.
    pub other_kernels: Option<u64>,
}

/// The middle of sorted numbers; of two, their mean, rounded down.
pub fn median(sorted: &[u64]) -> Option<u64> {
    let (low, high) = (
        sorted.get(sorted.len().checked_sub(1)? / 2)?,
        sorted.get(sorted.len() / 2)?,
    );
    Some(low.midpoint(*high))
}
