//! The selected row of the kernels panel, and the card with the text of its kernel.

use std::path::PathBuf;

use super::kernel_rows::sorted;
use super::view::Search;
use super::{Effect, Overlay, RequestedRun, View};
use protocol::config::RunConfig;
use protocol::{CompiledKernel, KernelRow, Slot, StepProfile};

impl RequestedRun {
    /// Returns the profile that the kernels panel shows, with its slot. It is the running slot's, or the other one's until that has one.
    pub fn profiled(&self) -> Option<(Slot, StepProfile)> {
        let mut slots = [self.active, self.active.other()].into_iter();
        slots.find_map(|slot| Some((slot, self.slot(slot).typical()?)))
    }

    /// Returns the trace file that another program wrote of that profile; `None` for a profile of our engine.
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
        let device = device?.to_owned();
        let wanted = Some((device.clone(), config.clone()));
        if self.kernel_texts.of == wanted {
            return None;
        }
        self.kernel_texts.of = wanted;
        self.kernel_texts.read = None;
        Some(Effect::ReadKernels { device, config })
    }

    /// Takes the texts that were read, unless others were requested since.
    pub(super) fn on_kernels_read(
        &mut self,
        device: String,
        config: Box<RunConfig>,
        texts: Result<Vec<CompiledKernel>, String>,
    ) {
        if self.kernel_texts.of == Some((device, config)) {
            if texts.is_err() {
                // Opening the card again repeats the reading.
                self.kernel_texts.of = None;
            }
            self.kernel_texts.read = Some(texts);
        }
    }
}
