//! The devices of this machine, and opening one. A driver that panics is caught and named.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Error, Result, anyhow};
use burn::tensor::Device;
use burn_wgpu::WgpuSetup;

use super::adapters::{RankedAdapter, adapters, named};
use protocol::{self, DeviceInfo, Peaks};
use tiny_llama::ops::adapter::has_matrix_cores;
use tiny_llama::ops::learner_kernel::LearnerKernels;

/// An opened device with its properties.
#[derive(Clone, Debug)]
pub struct OpenDevice {
    pub device: Device,
    pub info: protocol::Device,
    /// The driver and its version; peaks measured under another one do not count.
    pub driver: String,
    /// True for the CPU: it is synchronous, so its work goes through a queue of ours.
    pub queued: bool,
    /// True if matrix cores can multiply f16.
    pub matrix_cores: bool,
    /// The measured peaks, if there are any.
    pub peaks: Option<Peaks>,
    /// True if the peaks are to be measured for the work that the device was opened for.
    pub peaks_due: bool,
    /// The wgpu device and queue of a GPU; `None` on the CPU and for a driver that computes on the cores.
    pub gpu: Option<WgpuSetup>,
    /// The learner's kernels that compute in models on this device.
    pub learner: LearnerKernels,
}

/// Lists every device: the CPU first, then GPUs in the order of `gpu:N`, then CPU drivers of Vulkan.
pub fn probe() -> Vec<DeviceInfo> {
    let cpu = DeviceInfo {
        select: "cpu".to_owned(),
        device: cpu(),
        backend: "flex".to_owned(),
        driver: instructions(),
        timestamps: false,
        note: "operations are timed by brackets on the host".to_owned(),
        peaks: None,
    };
    let mut devices = vec![cpu];
    for adapter in &adapters() {
        // `--device` has no name for a second driver that computes on the CPU.
        if devices.iter().all(|known| known.select != adapter.select) {
            devices.push(describe(adapter));
        }
    }
    devices
}

/// Opens `auto`, `cpu`, `gpu`, `gpu:N` or `vulkan-cpu`.
///
/// # Errors
/// Fails when there is no such device, or it cannot be opened. The error lists the devices or has advice.
pub fn open(select: &str) -> Result<OpenDevice> {
    if select == "cpu" {
        return Ok(OpenDevice {
            device: Device::flex(),
            info: cpu(),
            driver: instructions(),
            queued: true,
            matrix_cores: false,
            peaks: None,
            peaks_due: false,
            gpu: None,
            learner: LearnerKernels::default(),
        });
    }
    let found = adapters();
    if select == "auto" {
        return match found.iter().find(|adapter| !adapter.on_cpu()) {
            Some(gpu) => open_adapter(gpu),
            None => open("cpu"),
        };
    }
    open_adapter(named(select, &found).map_err(Error::msg)?)
}

fn open_adapter(adapter: &RankedAdapter) -> Result<OpenDevice> {
    adapter.ensure_usable().map_err(Error::msg)?;
    let info = adapter.device();
    let kind = &info.kind;
    let name = &adapter.info.name;
    let options = Device::wgpu_options()
        .device_kind(adapter.kind.clone())
        .tasks_max(24);
    let (device, setup) = catch_unwind(AssertUnwindSafe(|| options.init_with_setup()))
        .map_err(|_| {
            anyhow!(
                "{kind}: the driver of {name} panicked while it was opened; the log has its text"
            )
        })?
        .map_err(|error| anyhow!("{kind}: {name} could not be opened: {error:?}"))?;
    Ok(OpenDevice {
        device,
        info,
        driver: adapter.driver(),
        queued: false,
        matrix_cores: has_matrix_cores(&adapter.adapter),
        peaks: None,
        peaks_due: false,
        gpu: (!adapter.on_cpu()).then_some(setup),
        learner: LearnerKernels::default(),
    })
}

fn describe(adapter: &RankedAdapter) -> DeviceInfo {
    let note = match adapter.ensure_usable() {
        Err(why) => why,
        Ok(()) if adapter.timestamps => String::new(),
        Ok(()) => "no timestamp queries: kernel times include submission".to_owned(),
    };
    DeviceInfo {
        select: adapter.select.clone(),
        device: adapter.device(),
        backend: format!("{:?}", adapter.info.backend),
        driver: adapter.driver(),
        timestamps: adapter.timestamps,
        note,
        peaks: None,
    }
}

/// Names the instruction set that the CPU's kernels use. The CPU has it in place of a driver.
fn instructions() -> String {
    format!(
        "{:?} instructions",
        tiny_llama::ops::cpu::Instructions::detect()
    )
    .to_lowercase()
}

/// Returns the CPU as a device: the processor's name and the number of threads.
fn cpu() -> protocol::Device {
    let text = protocol::machine::system("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| {
        line.strip_prefix("model name")?
            .split_once(':')
            .map(|(_, name)| name.trim().to_owned())
    });
    let name = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    protocol::Device {
        kind: "cpu".to_owned(),
        name: format!("{name}, {} threads", rayon::current_num_threads()),
    }
}
