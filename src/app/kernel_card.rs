//! The row that is selected in the kernels panel, and the card with the text of its kernel.

use super::kernel_rows::sorted;
use super::view::Search;
use super::{Effect, Overlay, RequestedRun, View};
use protocol::config::RunConfig;
use protocol::{CompiledKernel, KernelRow, Slot, StepProfile};

impl RequestedRun {
    /// The profile that the panel shows: the running slot's, and until it has one, the other's.
    pub fn profiled(&self) -> Option<(Slot, StepProfile)> {
        let mut slots = [self.active, self.active.other()].into_iter();
        slots.find_map(|slot| Some((slot, self.slot(slot).typical()?)))
    }
}

impl View {
    /// The row that is selected in the panel, of the kernels of this run.
    pub fn selected_kernel(&self, run: &RequestedRun) -> Option<KernelRow> {
        let (_, kernels) = run.profiled()?;
        let rows = sorted(&kernels, self.sort);
        let last = rows.len().checked_sub(1)?;
        Some(rows[self.kernel.min(last)].clone())
    }

    /// Shows the text of the selected row's kernel. The texts are read once for a configuration, of a live run on `device`.
    pub(super) fn open_kernel(
        &mut self,
        run: &RequestedRun,
        device: Option<&str>,
    ) -> Option<Effect> {
        let row = self.selected_kernel(run)?;
        let (slot, _) = run.profiled()?;
        let run = &run.slot(slot).description;
        let config = Box::new(run.config.clone()?);
        self.kernel_texts.row = row;
        self.overlay = Some(Overlay::Kernel);
        (self.overlay_scroll, self.search) = (0, Search::default());
        let device = device.filter(|_| !run.on_cpu())?.to_owned();
        let of = Some((device.clone(), config.clone()));
        if self.kernel_texts.of == of {
            return None;
        }
        (self.kernel_texts.of, self.kernel_texts.read) = (of, None);
        Some(Effect::ReadKernels { device, config })
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
