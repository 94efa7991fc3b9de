//! The rows of the kernels panel in its order, and the texts of their kernels.

use std::cmp::Ordering;

use super::view::Sort;
use protocol::config::RunConfig;
use protocol::stats::operations;
use protocol::stats::roofline::reached;
use protocol::{CompiledKernel, KernelRow, StepProfile};

/// The texts of the kernels of one configuration on one device.
#[derive(Clone, Debug, Default)]
pub struct KernelTexts {
    /// The device and the configuration that the texts belong to.
    pub of: Option<(String, Box<RunConfig>)>,
    /// The row whose kernel is shown.
    pub row: KernelRow,
    /// The texts, or why they cannot be read. `None` while they are being read.
    pub read: Option<Result<Vec<CompiledKernel>, String>>,
}

/// Returns the rows of a profile in the order of the panel.
pub fn sorted(profile: &StepProfile, sort: Sort) -> Vec<&KernelRow> {
    let mut rows: Vec<&KernelRow> = profile.rows.iter().collect();
    rows.sort_by(|a, b| order(a, b, sort));
    rows
}

/// Returns the name of a row, as in `linear mlp.gate bwd`.
pub fn name(row: &KernelRow) -> String {
    operations::name(&row.op, &row.part, &row.phase)
}

fn order(a: &KernelRow, b: &KernelRow, sort: Sort) -> Ordering {
    let rate = |row: &KernelRow| reached(row, None).flops_per_s.unwrap_or(0.0);
    match sort {
        Sort::Time => b.ms.total_cmp(&a.ms),
        Sort::Calls => b.calls.cmp(&a.calls),
        Sort::Rate => rate(b).total_cmp(&rate(a)),
        Sort::Name => name(a).cmp(&name(b)),
    }
}
