//! Compares two traces: kernels matched by name and by family (or operations of the host, if neither has kernels), launches, times,
//! and kernels that occur in only one of them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::figures::{KernelTotals, Summary};
use super::names::{self, Family};

/// A figure of both traces; `None` if a file does not contain it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PerSide<T> {
    /// The figure of the first trace.
    pub a: Option<T>,
    /// The figure of the second trace.
    pub b: Option<T>,
}

/// A figure of the whole files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// The name of the figure: `idle share`.
    pub name: &'static str,
    /// The unit: `ns`, `B`, `share` (0 to 1), or empty for a count.
    pub unit: &'static str,
    /// The figure of both traces.
    #[serde(flatten)]
    pub both: PerSide<f64>,
    /// The figure of B over that of A; `None` if one is not known, or if A is 0.
    pub ratio: Option<f64>,
}

/// Executions and time of a kernel or a family in one trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// The number of executions.
    pub calls: u64,
    /// The time of all executions in nanoseconds.
    pub total_ns: u64,
    /// The share of the time of all rows, 0 to 1.
    pub share_of_kernels: f64,
    /// The number of different names.
    pub names: u64,
}

/// A family in both traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FamilyRow {
    /// The family.
    pub family: Family,
    /// Executions and time in both traces.
    #[serde(flatten)]
    pub both: PerSide<Share>,
}

/// A kernel in both traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NameRow {
    /// The full name, as in the file.
    pub name: String,
    /// The short name, in at most 60 characters.
    pub short: String,
    /// The family.
    pub family: Family,
    /// Executions and time in both traces.
    #[serde(flatten)]
    pub both: PerSide<Share>,
}

/// The comparison of two traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceComparison {
    /// The names of the files, A first.
    pub files: [String; 2],
    /// The formats of the files.
    pub formats: [&'static str; 2],
    /// The figures of the whole files.
    pub figures: Vec<ComparedFigure>,
    /// One row for each family of either trace.
    pub families: Vec<FamilyRow>,
    /// The kernels in both traces, largest time first.
    pub kernels: Vec<NameRow>,
    /// The kernels of A only, largest time first.
    pub vanished: Vec<NameRow>,
    /// The kernels of B only, largest time first.
    pub new: Vec<NameRow>,
    /// The names of the lints of each trace.
    pub lints: [Vec<&'static str>; 2],
}

/// Compares two traces by their figures.
pub fn compare(a: &Summary, b: &Summary) -> TraceComparison {
    // Operations of the host are compared only if neither trace has kernels.
    let tables = if a.table.is_empty() && b.table.is_empty() {
        [a.operations.as_slice(), b.operations.as_slice()]
    } else {
        [a.table.as_slice(), b.table.as_slice()]
    };
    let mut kernels = Vec::new();
    let mut vanished = Vec::new();
    let mut new = Vec::new();
    for (name, both) in sum_by(tables, |row| row.name.as_str()) {
        let row = NameRow {
            name: name.to_owned(),
            short: names::short(name, names::LONGEST),
            family: names::family(name),
            both,
        };
        match (both.a, both.b) {
            (Some(_), Some(_)) => kernels.push(row),
            (Some(_), None) => vanished.push(row),
            _ => new.push(row),
        }
    }
    let time = |share: Option<Share>| share.map_or(0, |share| share.total_ns);
    for rows in [&mut kernels, &mut vanished, &mut new] {
        rows.sort_by_key(|row: &NameRow| std::cmp::Reverse(time(row.both.a).max(time(row.both.b))));
    }
    let families = sum_by(tables, |row| row.family).into_iter();
    TraceComparison {
        files: [a.file.clone(), b.file.clone()],
        formats: [a.format, b.format],
        figures: figures(a, b),
        families: families
            .map(|(family, both)| FamilyRow { family, both })
            .collect(),
        kernels,
        vanished,
        new,
        lints: [a, b].map(|summary| summary.lints.iter().map(|lint| lint.name).collect()),
    }
}

/// Adds up the rows of both tables by a key.
fn sum_by<'a, K: Ord>(
    tables: [&'a [KernelTotals]; 2],
    key: impl Fn(&'a KernelTotals) -> K,
) -> BTreeMap<K, PerSide<Share>> {
    let mut rows: BTreeMap<K, PerSide<Share>> = BTreeMap::new();
    for (is_b, table) in [false, true].into_iter().zip(tables) {
        for row in table {
            let both = rows.entry(key(row)).or_default();
            let side = if is_b { &mut both.b } else { &mut both.a };
            let sum = side.get_or_insert_default();
            sum.calls = sum.calls.saturating_add(row.calls);
            sum.total_ns = sum.total_ns.saturating_add(row.total_ns);
            sum.share_of_kernels += row.share_of_kernels;
            sum.names += 1;
        }
    }
    rows
}

/// Reads a figure of a trace; `None` if its file does not contain it.
type Figure = fn(&Summary) -> Option<f64>;

/// The name, the unit and the value of each figure that is compared.
#[rustfmt::skip] // One line for each figure.
const FIGURES: [(&str, &str, Figure); 15] = [
    ("kernels", "", |trace| Some(trace.kernels as f64)),
    ("unique kernels", "", |trace| Some(trace.distinct_names as f64)),
    ("kernel time", "ns", |trace| Some(trace.kernel_ns as f64)),
    ("device busy", "ns", |trace| Some(trace.busy_ns? as f64)),
    ("device span", "ns", |trace| Some(trace.device_span_ns? as f64)),
    ("idle share", "share", |trace| trace.idle_share),
    ("median kernel", "ns", |trace| Some(trace.median_kernel_ns? as f64)),
    ("launch calls", "", |trace| Some(trace.launches? as f64)),
    ("graph launches", "", |trace| Some(trace.graph_launches? as f64)),
    ("kernels per step", "", Summary::kernels_per_step),
    ("median step", "ns", |trace| Some(trace.step_ns? as f64)),
    ("host-bound", "ns", |trace| Some(trace.ledger?.host_bound? as f64)),
    ("synchronisations", "", |trace| Some(trace.syncs? as f64)),
    ("copies", "", |trace| Some(trace.copies.as_ref()?.all.count as f64)),
    ("bytes copied", "B", |trace| Some(trace.copies.as_ref()?.all.bytes? as f64)),
];

fn figures(a: &Summary, b: &Summary) -> Vec<ComparedFigure> {
    let mut rows = Vec::new();
    for (name, unit, figure) in FIGURES {
        let both = PerSide {
            a: figure(a),
            b: figure(b),
        };
        let ratio = match (both.a, both.b) {
            (Some(a), Some(b)) if a > 0.0 => Some(b / a),
            _ => None,
        };
        rows.push(ComparedFigure {
            name,
            unit,
            both,
            ratio,
        });
    }
    rows
}

impl TraceComparison {
    /// Writes the comparison as one JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
