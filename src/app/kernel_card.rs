//! The row that is selected in the kernels panel, and the card with the text of its kernel.

use super::kernel_rows::sorted;
use super::view::{ScreenSize, Search};
use super::{App, Effect, Overlay, Panel};
use protocol::config::RunConfig;
use protocol::{CompiledKernel, KernelRow, Slot, StepProfile};

impl App {
    /// The profile that the panel shows: the running slot's, and until it has one, the other's.
    pub fn profiled(&self) -> Option<(Slot, StepProfile)> {
        let active = self.bench.run.active;
        let mut slots = [active, active.other()].into_iter();
        slots.find_map(|slot| Some((slot, self.bench.run.slot(slot).typical()?)))
    }

    /// The row that is selected in the panel.
    pub fn selected_kernel(&self) -> Option<KernelRow> {
        let (_, kernels) = self.profiled()?;
        let rows = sorted(&kernels, self.view.sort);
        let last = rows.len().checked_sub(1)?;
        Some(rows[self.view.kernel.min(last)].clone())
    }

    /// Whether keys that scroll move the selected row: the panel has the focus, or stands as a strip with none above it.
    pub fn selects_kernels(&self) -> bool {
        let view = &self.view;
        let strips =
            view.screen_size() == ScreenSize::Compact && !view.expanded && !view.lesson_open;
        strips || view.focus == Some(Panel::Kernels)
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
        let run = &self.bench.run.slot(slot).description;
        let Some(config) = run.config.clone() else {
            return;
        };
        let on_cpu = run.on_cpu();
        let device = self.devices.using.clone();
        let config = Box::new(config);
        self.view.kernel_texts.row = row;
        self.view.overlay = Some(Overlay::Kernel);
        (self.view.overlay_scroll, self.view.search) = (0, Search::default());
        let of = Some((device.clone(), config.clone()));
        if on_cpu || !self.mode.is_live() || self.view.kernel_texts.of == of {
            return;
        }
        (self.view.kernel_texts.of, self.view.kernel_texts.read) = (of, None);
        self.effects.push(Effect::ReadKernels { device, config });
    }

    /// Takes texts that were read, unless others were asked for since.
    pub(super) fn kernels_read(
        &mut self,
        device: String,
        config: Box<RunConfig>,
        texts: Result<Vec<CompiledKernel>, String>,
    ) {
        if self.view.kernel_texts.of == Some((device, config)) {
            if texts.is_err() {
                // The next attempt reads again.
                self.view.kernel_texts.of = None;
            }
            self.view.kernel_texts.read = Some(texts);
        }
    }
}
