//! The row that is selected in the kernels panel, and the card with the text of its kernel.

use super::kernel_rows::sorted;
use super::view::Search;
use super::{App, Effect, Overlay};
use protocol::config::RunConfig;
use protocol::{CompiledKernel, KernelRow, Slot, StepProfile};

impl App {
    /// The profile that the panel shows: the running slot's, and until it has one, the other's.
    pub fn profiled(&self) -> Option<(Slot, StepProfile)> {
        let active = self.shown_run().active;
        let mut slots = [active, active.other()].into_iter();
        slots.find_map(|slot| Some((slot, self.shown_run().slot(slot).typical()?)))
    }

    /// The row that is selected in the panel.
    pub fn selected_kernel(&self) -> Option<KernelRow> {
        let (_, kernels) = self.profiled()?;
        let rows = sorted(&kernels, self.view.sort);
        let last = rows.len().checked_sub(1)?;
        Some(rows[self.view.kernel.min(last)].clone())
    }

    /// Shows the text of the selected row's kernel. The texts are read once for a configuration.
    pub(super) fn open_kernel(&mut self) {
        let (Some((slot, _)), Some(row)) = (self.profiled(), self.selected_kernel()) else {
            return;
        };
        let run = &self.shown_run().slot(slot).description;
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
