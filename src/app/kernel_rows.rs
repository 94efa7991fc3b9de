//! The rows of the kernels panel, and the card with the text of the selected row's kernel.

use std::cmp::Ordering;
use std::path::PathBuf;

use super::view::{Search, Sort};
use super::{Effect, Overlay, RequestedRun, View};
use protocol::config::RunConfig;
use protocol::stats::operations;
use protocol::stats::roofline::reached;
use protocol::{CompiledKernel, KernelRow, Slot, StepProfile};

/// The texts of the kernels of one configuration on one device.
#[derive(Clone, Debug, Default)]
pub struct KernelTexts {
    /// The device and the configuration whose texts were requested. `None` before the first request, and after one that failed.
    requested: Option<(String, Box<RunConfig>)>,
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

/// Compares two rows: the first has the longer time, more calls, the higher rate or the earlier name.
fn order(a: &KernelRow, b: &KernelRow, sort: Sort) -> Ordering {
    let rate = |row: &KernelRow| reached(row, None).flops_per_s.unwrap_or(0.0);
    match sort {
        Sort::Time => b.ms.total_cmp(&a.ms),
        Sort::Calls => b.calls.cmp(&a.calls),
        Sort::Rate => rate(b).total_cmp(&rate(a)),
        Sort::Name => name(a).cmp(&name(b)),
    }
}

impl RequestedRun {
    /// Returns the profile that the kernels panel shows, with its slot. It is the running slot's, or the other slot's until the running one
    /// has a profile.
    pub fn profiled(&self) -> Option<(Slot, StepProfile)> {
        [self.active, self.active.other()]
            .into_iter()
            .find_map(|slot| Some((slot, self.slot(slot).typical()?)))
    }

    /// Returns the trace file of the profile that the kernels panel shows, if another program wrote it. `None` for a profile of our engine.
    pub(super) fn trace_file(&self) -> Option<PathBuf> {
        self.profiled()?.1.file.map(PathBuf::from)
    }
}

impl View {
    /// Returns the selected row of the kernels panel. `None` if the run has no profile, or an empty one.
    pub fn selected_kernel(&self, run: &RequestedRun) -> Option<KernelRow> {
        let (_, profile) = run.profiled()?;
        let rows = sorted(&profile, self.sort);
        let last = rows.len().checked_sub(1)?;
        Some(rows[self.kernel.min(last)].clone())
    }

    /// Shows the text of the selected row's kernel. Returns the effect that reads the texts, unless they were read for this configuration
    /// and device. `device` is `None` for a recording, whose texts cannot be read.
    pub(super) fn open_kernel(
        &mut self,
        run: &RequestedRun,
        device: Option<&str>,
    ) -> Option<Effect> {
        let row = self.selected_kernel(run)?;
        let (slot, _) = run.profiled()?;
        let description = &run.slot(slot).description;
        let config = Box::new(description.config.clone()?);
        self.kernel_texts.row = row;
        self.overlay = Some(Overlay::Kernel);
        self.overlay_scroll = 0;
        self.search = Search::default();
        if description.on_cpu() {
            return None;
        }
        let request = (device?.to_owned(), config);
        if self.kernel_texts.requested.as_ref() == Some(&request) {
            return None;
        }
        self.kernel_texts.requested = Some(request.clone());
        self.kernel_texts.read = None;
        let (device, config) = request;
        Some(Effect::ReadKernels { device, config })
    }

    /// Takes the texts that were read, unless others were requested since.
    pub(super) fn on_kernels_read(
        &mut self,
        device: String,
        config: Box<RunConfig>,
        texts: Result<Vec<CompiledKernel>, String>,
    ) {
        if self.kernel_texts.requested == Some((device, config)) {
            if texts.is_err() {
                // Opening the card again repeats the reading.
                self.kernel_texts.requested = None;
            }
            self.kernel_texts.read = Some(texts);
        }
    }
}
