//! The kernels of a profiled step: its rows in the order of the panel, the one that is selected, and the text of its kernel.

use std::cmp::Ordering;

use super::view::{Search, Sort};
use super::{App, Effect, Overlay};
use crate::config::RunConfig;
use crate::profile::operations;
use crate::profile::roofline::reached;
use crate::protocol::{CompiledKernel, KernelRow, Kernels, Slot};

/// The texts of the kernels of one configuration on one device.
#[derive(Clone, Debug, Default)]
pub struct KernelTexts {
    /// Whose texts they are.
    of: Option<(String, Box<RunConfig>)>,
    /// The row whose kernel is shown.
    pub row: KernelRow,
    /// None while they are read; or why they cannot be.
    pub read: Option<Result<Vec<CompiledKernel>, String>>,
}

impl App {
    /// The profile that the panel shows: the running slot's, and until it has one, the other's.
    pub fn profiled(&self) -> Option<(Slot, Kernels)> {
        let active = self.run.active;
        let mut slots = [active, active.other()].into_iter();
        slots.find_map(|slot| Some((slot, self.run.slot(slot).typical()?)))
    }

    /// The row that is selected in the panel.
    pub fn selected_kernel(&self) -> Option<KernelRow> {
        let (_, kernels) = self.profiled()?;
        let rows = sorted(&kernels, self.view.sort);
        let last = rows.len().checked_sub(1)?;
        Some(rows[self.view.kernel.min(last)].clone())
    }

    pub(super) fn select_kernel(&mut self, lines: i32) {
        let rows = self.profiled().map_or(0, |(_, it)| it.rows.len());
        let last = rows.saturating_sub(1) as i32;
        let to = (self.view.kernel as i32).saturating_add(lines);
        self.view.kernel = to.clamp(0, last) as usize;
    }

    /// Shows the text of the selected row's kernel. The texts are read once for a configuration.
    pub(super) fn open_kernel(&mut self) {
        let (Some((slot, _)), Some(row)) = (self.profiled(), self.selected_kernel()) else {
            return self.tell("No step was profiled yet", false);
        };
        if self.withholds("names") {
            return self.tell("The kernels' names come after your prediction", false);
        }
        let Some(started) = self.run.slot(slot).started.as_ref() else {
            return;
        };
        let on_cpu = started.device.kind == "cpu";
        let device = self.devices.using.clone();
        let config = Box::new(started.run.config.clone());
        self.kernel_texts.row = row;
        self.view.overlay = Some(Overlay::Kernel);
        (self.view.overlay_scroll, self.view.search) = (0, Search::default());
        let of = Some((device.clone(), config.clone()));
        if on_cpu || self.recording().is_some() || self.kernel_texts.of == of {
            return;
        }
        (self.kernel_texts.of, self.kernel_texts.read) = (of, None);
        self.effects.push(Effect::ReadKernels { device, config });
    }

    /// Takes texts that were read, unless others were asked for since.
    pub(super) fn kernels_read(
        &mut self,
        device: String,
        config: Box<RunConfig>,
        texts: Result<Vec<CompiledKernel>, String>,
    ) {
        if self.kernel_texts.of == Some((device, config)) {
            if texts.is_err() {
                // The next attempt reads again.
                self.kernel_texts.of = None;
            }
            self.kernel_texts.read = Some(texts);
        }
    }
}

/// The rows of a profile in the order of the panel.
pub fn sorted(kernels: &Kernels, sort: Sort) -> Vec<&KernelRow> {
    let mut rows: Vec<&KernelRow> = kernels.rows.iter().collect();
    rows.sort_by(|a, b| order(a, b, sort));
    rows
}

/// `linear mlp.gate bwd`
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
