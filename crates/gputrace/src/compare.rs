//! Compares two traces: kernels matched by name and by family (or operations of the host, if neither has kernels), launches, times,
//! and kernels that occur in only one of them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::figures::{KernelTotals, Summary};
use super::names::{self, Family};

/// A figure of both sides; `None` if a file does not contain it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PerSide<T> {
    /// The figure of the first trace.
    pub a: Option<T>,
    /// The figure of the second trace.
    pub b: Option<T>,
}

/// A row with a figure of the whole file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// The full name, as in the file.
    pub name: &'static str,
    /// `ns`, `B`, `share` (0 to 1), or nothing for a count.
    pub unit: &'static str,
    /// Both sides.
    #[serde(flatten)]
    pub both: PerSide<f64>,
    /// B over A, if both are known and A is not 0.
    pub ratio: Option<f64>,
}

/// Executions and time of a name or a family on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Number of executions.
    pub calls: u64,
    /// Time of all executions in nanoseconds.
    pub total_ns: u64,
    /// Share of the time of all rows, 0 to 1.
    pub share_of_kernels: f64,
    /// Number of different names.
    pub names: u64,
}

/// A family on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FamilyRow {
    /// The family.
    pub family: Family,
    /// Both sides.
    #[serde(flatten)]
    pub both: PerSide<Share>,
}

/// A kernel on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NameRow {
    /// The full name, as in the file.
    pub name: String,
    /// The short name, in at most 60 characters.
    pub short: String,
    /// The family.
    pub family: Family,
    /// Both sides.
    #[serde(flatten)]
    pub both: PerSide<Share>,
}

/// The comparison of two traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceComparison {
    /// Files and formats.
    pub files: [String; 2],
    /// Formats of the files.
    pub formats: [&'static str; 2],
    /// Figures of the whole files.
    pub figures: Vec<ComparedFigure>,
    /// One row for each family of either side.
    pub families: Vec<FamilyRow>,
    /// Kernels of both sides, largest time first.
    pub kernels: Vec<NameRow>,
    /// Kernels of A only.
    pub vanished: Vec<NameRow>,
    /// Kernels of B only.
    pub new: Vec<NameRow>,
    /// Names of lints.
    pub lints: [Vec<&'static str>; 2],
}

/// Compares two traces.
pub fn compare(a: &Summary, b: &Summary) -> TraceComparison {
    // Operations of the host are compared only if neither side has kernels.
    let (rows, others) = match a.table.is_empty() && b.table.is_empty() {
        true => (&a.operations, &b.operations),
        false => (&a.table, &b.table),
    };
    let tables = [rows.as_slice(), others.as_slice()];
    let (mut kernels, mut vanished, mut new) = (Vec::new(), Vec::new(), Vec::new());
    for (name, both) in joined(tables, |row| row.name.as_str()) {
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
    let weight = |it: Option<Share>| it.map_or(0, |it| it.total_ns);
    for rows in [&mut kernels, &mut vanished, &mut new] {
        rows.sort_by_key(|row: &NameRow| {
            std::cmp::Reverse(weight(row.both.a).max(weight(row.both.b)))
        });
    }
    let families = joined(tables, |row| row.family).into_iter();
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
        lints: [a, b].map(|it| it.lints.iter().map(|lint| lint.name).collect()),
    }
}

/// The rows of both tables, summed by a key.
fn joined<'a, K: Ord>(
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

fn figures(a: &Summary, b: &Summary) -> Vec<ComparedFigure> {
    type Get = fn(&Summary) -> Option<f64>;
    #[rustfmt::skip] // One line for each figure.
    let rows: [(&'static str, &'static str, Get); 15] = [
        ("kernels", "", |it| Some(it.kernels as f64)),
        ("unique kernels", "", |it| Some(it.distinct_names as f64)),
        ("kernel time", "ns", |it| Some(it.kernel_ns as f64)),
        ("device busy", "ns", |it| it.busy_ns.map(|it| it as f64)),
        ("device span", "ns", |it| it.device_span_ns.map(|it| it as f64)),
        ("idle share", "share", |it| it.idle_share),
        ("median kernel", "ns", |it| it.median_kernel_ns.map(|it| it as f64)),
        ("launch calls", "", |it| it.launches.map(|it| it as f64)),
        ("graph launches", "", |it| it.graph_launches.map(|it| it as f64)),
        ("kernels per step", "", Summary::a_step),
        ("median step", "ns", |it| it.step_ns.map(|it| it as f64)),
        ("host-bound", "ns", |it| it.ledger.and_then(|it| it.host_bound).map(|it| it as f64)),
        ("synchronisations", "", |it| it.syncs.map(|it| it as f64)),
        ("copies", "", |it| it.copies.as_ref().map(|it| it.all.count as f64)),
        ("bytes copied", "B", |it| it.copies.as_ref().and_then(|it| it.all.bytes).map(|it| it as f64)),
    ];
    let row = |(name, unit, get): (&'static str, &'static str, Get)| {
        let both = PerSide {
            a: get(a),
            b: get(b),
        };
        let ratio = both.a.filter(|a| *a > 0.0).zip(both.b).map(|(a, b)| b / a);
        ComparedFigure {
            name,
            unit,
            both,
            ratio,
        }
    };
    rows.into_iter().map(row).collect()
}

impl TraceComparison {
    /// As one JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
