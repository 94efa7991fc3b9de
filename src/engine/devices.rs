//! Which devices there are, and opening one. Nothing here panics: a driver that does is caught and named.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Result, anyhow, bail};
use burn::tensor::wgpu::wgpu;
use burn::tensor::{Device, DeviceKind};

use crate::protocol::{self, DeviceInfo};

/// What to do where no GPU driver is found.
const NO_GPU: &str = "no GPU found. Looked for Vulkan, Metal, DirectX 12 and OpenGL adapters";
const NO_LAVAPIPE: &str =
    "no CPU Vulkan driver found; on Debian and Ubuntu: apt install mesa-vulkan-drivers";

/// An opened device with how it presents itself.
#[derive(Clone, Debug)]
pub struct Opened {
    pub device: Device,
    pub info: protocol::Device,
    /// Whether work is handed to a queue of ours, because the device itself is synchronous.
    pub queued: bool,
}

struct Adapter {
    info: wgpu::AdapterInfo,
    timestamps: bool,
    kind: DeviceKind,
}

/// Every device, the CPU first, then GPUs in the order of `gpu:N`, then CPU drivers of Vulkan.
pub fn probe() -> Vec<DeviceInfo> {
    let mut found = vec![DeviceInfo {
        select: "cpu".to_owned(),
        device: cpu(),
        backend: "flex".to_owned(),
        driver: format!("{:?} instructions", crate::ops::cpu::Instructions::detect())
            .to_lowercase(),
        timestamps: false,
        note: "operations are timed by brackets on the host".to_owned(),
    }];
    let adapters = adapters();
    for (index, adapter) in adapters.iter().filter(|a| is_gpu(a)).enumerate() {
        let select = if index == 0 {
            "gpu".to_owned()
        } else {
            format!("gpu:{index}")
        };
        found.push(describe(adapter, &select, "gpu"));
    }
    if let Some(adapter) = adapters
        .iter()
        .find(|a| a.info.device_type == wgpu::DeviceType::Cpu)
    {
        found.push(describe(adapter, "vulkan-cpu", "vulkan-cpu"));
    }
    found
}

/// Opens `auto`, `cpu`, `gpu`, `gpu:N` or `vulkan-cpu`.
///
/// # Errors
/// When there is no such device, with what was looked for.
pub fn open(select: &str) -> Result<Opened> {
    match select {
        "cpu" => Ok(Opened {
            device: Device::flex(),
            info: cpu(),
            queued: true,
        }),
        "auto" => match adapters().into_iter().find(is_gpu) {
            Some(adapter) => open_adapter(&adapter, "gpu"),
            None => open("cpu"),
        },
        "vulkan-cpu" => match adapters()
            .into_iter()
            .find(|a| a.info.device_type == wgpu::DeviceType::Cpu)
        {
            Some(adapter) => open_adapter(&adapter, "vulkan-cpu"),
            None => bail!("vulkan-cpu: {NO_LAVAPIPE}"),
        },
        other => {
            let index = match other.strip_prefix("gpu") {
                Some("") => 0,
                Some(rest) => rest
                    .strip_prefix(':')
                    .and_then(|n| n.parse::<usize>().ok())
                    .ok_or_else(|| unknown(other))?,
                None => return Err(unknown(other)),
            };
            let gpus: Vec<Adapter> = adapters().into_iter().filter(is_gpu).collect();
            match gpus.get(index) {
                Some(adapter) => open_adapter(adapter, "gpu"),
                None if gpus.is_empty() => bail!("{other}: {NO_GPU}"),
                None => bail!(
                    "{other}: there are {} GPUs, counted from 0: {}",
                    gpus.len(),
                    gpus.iter()
                        .map(|a| a.info.name.as_str())
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            }
        }
    }
}

fn unknown(select: &str) -> anyhow::Error {
    anyhow!("unknown device `{select}`; write auto, cpu, gpu, gpu:N or vulkan-cpu")
}

fn open_adapter(adapter: &Adapter, kind: &str) -> Result<Opened> {
    let options = Device::wgpu_options()
        .device_kind(adapter.kind.clone())
        .tasks_max(32);
    let device = catch_unwind(AssertUnwindSafe(|| options.init()))
        .map_err(|_| {
            anyhow!(
                "{kind}: the driver of {} panicked while it was opened; the log has its text",
                adapter.info.name
            )
        })?
        .map_err(|error| {
            anyhow!(
                "{kind}: {} could not be opened: {error:?}",
                adapter.info.name
            )
        })?;
    Ok(Opened {
        device,
        info: name(adapter, kind),
        queued: false,
    })
}

fn name(adapter: &Adapter, kind: &str) -> protocol::Device {
    protocol::Device {
        kind: kind.to_owned(),
        name: format!("{} ({:?})", adapter.info.name, adapter.info.backend),
    }
}

fn describe(adapter: &Adapter, select: &str, kind: &str) -> DeviceInfo {
    DeviceInfo {
        select: select.to_owned(),
        device: name(adapter, kind),
        backend: format!("{:?}", adapter.info.backend),
        driver: format!("{} {}", adapter.info.driver, adapter.info.driver_info)
            .trim()
            .to_owned(),
        timestamps: adapter.timestamps,
        note: if adapter.timestamps {
            String::new()
        } else {
            "no timestamp queries: kernel times include submission".to_owned()
        },
    }
}

fn is_gpu(adapter: &Adapter) -> bool {
    adapter.info.device_type != wgpu::DeviceType::Cpu
}

/// Adapters on the graphics API the library settles on: the first of its order that has one.
fn adapters() -> Vec<Adapter> {
    let list = || {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        burn::cubecl::future::block_on(instance.enumerate_adapters(wgpu::Backends::all()))
    };
    let all = catch_unwind(AssertUnwindSafe(list)).unwrap_or_default();
    let order = [
        wgpu::Backend::Metal,
        wgpu::Backend::Vulkan,
        wgpu::Backend::Dx12,
        wgpu::Backend::Gl,
    ];
    let Some(chosen) = order
        .into_iter()
        .find(|backend| all.iter().any(|a| a.get_info().backend == *backend))
    else {
        return Vec::new();
    };
    let mut counts = [0_usize; 4];
    let mut found = Vec::new();
    for adapter in all.iter().filter(|a| a.get_info().backend == chosen) {
        let info = adapter.get_info();
        let mut next = |class: usize| {
            counts[class] += 1;
            counts[class] - 1
        };
        let kind = match info.device_type {
            wgpu::DeviceType::DiscreteGpu => DeviceKind::DiscreteGpu(next(0)),
            wgpu::DeviceType::IntegratedGpu => DeviceKind::IntegratedGpu(next(1)),
            wgpu::DeviceType::VirtualGpu => DeviceKind::VirtualGpu(next(2)),
            wgpu::DeviceType::Other => DeviceKind::DefaultDevice,
            wgpu::DeviceType::Cpu => DeviceKind::Cpu,
        };
        let timestamps = adapter.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        found.push(Adapter {
            info,
            timestamps,
            kind,
        });
    }
    let rank = |adapter: &Adapter| match adapter.info.device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    };
    found.sort_by_key(rank);
    found
}

/// The processor's name and how many threads work.
fn cpu() -> protocol::Device {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
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
