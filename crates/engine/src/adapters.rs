//! The graphics adapters of this machine. Training and kernel checks count GPUs in the order of this list.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use burn::cubecl::future::block_on;
use burn::tensor::DeviceKind;
use burn_wgpu::wgpu::{self, DeviceType};
use directories::BaseDirs;

/// An adapter, and the names that burn and `--device` have for it.
pub(crate) struct RankedAdapter {
    pub adapter: wgpu::Adapter,
    pub info: wgpu::AdapterInfo,
    /// The name that burn has for it.
    pub kind: DeviceKind,
    /// True if the device can time its own launches.
    pub timestamps: bool,
    /// The name that `--device` has for it: `gpu`, `gpu:1`… or `vulkan-cpu`.
    pub select: String,
}

impl RankedAdapter {
    /// Returns true if the adapter computes on the CPU.
    pub(crate) fn on_cpu(&self) -> bool {
        self.info.device_type == DeviceType::Cpu
    }

    /// Returns the adapter as a device of the protocol.
    pub(crate) fn device(&self) -> protocol::Device {
        protocol::Device {
            kind: if self.on_cpu() { "vulkan-cpu" } else { "gpu" }.to_owned(),
            name: format!("{} ({:?})", self.info.name, self.info.backend),
        }
    }

    /// Checks that the driver does not end this process.
    ///
    /// # Errors
    /// Fails when the driver is known to crash, with what to do instead.
    pub(crate) fn ensure_usable(&self) -> Result<(), String> {
        let driver = self.driver();
        match mesa_version(&driver) {
            Some(major) if self.on_cpu() && major < OLDEST_MESA => Err(format!(
                "{driver} is too old and crashes in a run; use --device cpu. \
                 Mesa {OLDEST_MESA} or newer comes with Ubuntu 22.04 and Debian 12"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the driver's name and version.
    pub(crate) fn driver(&self) -> String {
        let info = &self.info;
        let driver = format!("{} {}", info.driver, info.driver_info);
        driver.trim().to_owned()
    }
}

/// The oldest major version of Mesa whose Vulkan on the CPU is used: 20.3.5 crashes, 22.3.6 runs everything.
const OLDEST_MESA: u32 = 21;

/// Returns the major version of Mesa in a text such as `llvmpipe Mesa 20.3.5 (LLVM 11.0.1)`; `None` for another driver.
fn mesa_version(driver: &str) -> Option<u32> {
    let (_, version) = driver.split_once("Mesa ")?;
    version.split_once('.')?.0.parse().ok()
}

/// Lists all adapters of the first graphics API that has one: GPUs in the order of `gpu:N`, then drivers that compute on the CPU. The list is empty
/// if a driver panics.
pub(crate) fn adapters() -> Vec<RankedAdapter> {
    make_shader_folder();
    let list = |backends| {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        block_on(instance.enumerate_adapters(backends))
    };
    let all = || {
        let mut found = list(wgpu::Backends::PRIMARY);
        // Some drivers print messages when OpenGL is tried, so it comes last.
        if found.is_empty() {
            found = list(wgpu::Backends::GL);
        }
        found
    };
    ranked(&catch_unwind(AssertUnwindSafe(all)).unwrap_or_default())
}

/// Makes the folder in which NVIDIA's driver keeps compiled shaders for later processes. The driver uses it only if it exists when the driver is
/// loaded. The folder makes the second start of an engine fast instead of the third; nothing else depends on it, so errors do not matter.
fn make_shader_folder() {
    if Path::new("/dev/nvidiactl").exists()
        && let Some(dirs) = BaseDirs::new()
    {
        let _ = std::fs::create_dir_all(dirs.cache_dir().join("nvidia/GLCache"));
    }
}

/// Returns burn's name for the adapter with this number among those of its type.
type NumberedKind = fn(usize) -> DeviceKind;

/// The types of adapters in the order of `gpu:N`, then drivers that compute on the CPU. Each has burn's name for
/// its adapters.
const TYPES: [(DeviceType, NumberedKind); 5] = [
    (DeviceType::DiscreteGpu, DeviceKind::DiscreteGpu),
    (DeviceType::IntegratedGpu, DeviceKind::IntegratedGpu),
    (DeviceType::VirtualGpu, DeviceKind::VirtualGpu),
    (DeviceType::Other, |_| DeviceKind::DefaultDevice),
    (DeviceType::Cpu, |_| DeviceKind::Cpu),
];

/// Keeps the adapters of one graphics API, and orders and names them.
fn ranked(all: &[wgpu::Adapter]) -> Vec<RankedAdapter> {
    // The library prefers APIs in this order.
    let preferred = [
        wgpu::Backend::Metal,
        wgpu::Backend::Vulkan,
        wgpu::Backend::Dx12,
        wgpu::Backend::Gl,
    ];
    let infos: Vec<wgpu::AdapterInfo> = all.iter().map(wgpu::Adapter::get_info).collect();
    let Some(chosen) = preferred
        .into_iter()
        .find(|backend| infos.iter().any(|info| info.backend == *backend))
    else {
        return Vec::new();
    };
    let mut ranked: Vec<RankedAdapter> = Vec::new();
    for (device_type, kind) in TYPES {
        let of_type = all
            .iter()
            .zip(&infos)
            .filter(|(_, info)| info.backend == chosen && info.device_type == device_type);
        for (number, (adapter, info)) in of_type.enumerate() {
            ranked.push(RankedAdapter {
                timestamps: adapter.features().contains(wgpu::Features::TIMESTAMP_QUERY),
                kind: kind(number),
                select: match device_type {
                    DeviceType::Cpu => "vulkan-cpu".to_owned(),
                    _ => gpu_name(ranked.len()),
                },
                adapter: adapter.clone(),
                info: info.clone(),
            });
        }
    }
    ranked
}

/// Returns `gpu` for the first GPU, and `gpu:N` for the others, counted from 0.
fn gpu_name(index: usize) -> String {
    if index == 0 {
        "gpu".to_owned()
    } else {
        format!("gpu:{index}")
    }
}

/// The advice on what to install on a machine without a GPU.
pub(crate) const CPU_DRIVER: &str = "a CPU driver of Vulkan runs small sizes: install \
    mesa-vulkan-drivers (Debian, Ubuntu, Fedora) or vulkan-swrast (Arch)";

/// Returns the adapter that `gpu`, `gpu:N` or `vulkan-cpu` names.
///
/// # Errors
/// Fails when there is no such adapter, with what to do about it.
pub(crate) fn named<'a>(
    select: &str,
    adapters: &'a [RankedAdapter],
) -> Result<&'a RankedAdapter, String> {
    let (on_cpu, gpus): (Vec<_>, Vec<_>) = adapters.iter().partition(|adapter| adapter.on_cpu());
    if select == "vulkan-cpu" {
        let missing = || format!("vulkan-cpu: there is no CPU driver of Vulkan; {CPU_DRIVER}");
        return on_cpu.first().copied().ok_or_else(missing);
    }
    let index = gpu_index(select).ok_or_else(|| {
        format!("unknown device `{select}`; write auto, cpu, gpu, gpu:N or vulkan-cpu")
    })?;
    gpus.get(index).copied().ok_or_else(|| {
        let names: Vec<_> = gpus.iter().map(|gpu| gpu.info.name.as_str()).collect();
        if names.is_empty() {
            format!(
                "{select}: no GPU found. Looked for Vulkan, Metal, DirectX 12 and OpenGL adapters. \
                 Without a GPU, {CPU_DRIVER}"
            )
        } else {
            let count = names.len();
            let list = names.join(", ");
            format!("{select}: there are {count} GPUs, counted from 0: {list}")
        }
    })
}

/// Returns the N of `gpu:N`, and 0 for `gpu`; `None` for any other text.
fn gpu_index(select: &str) -> Option<usize> {
    match select.strip_prefix("gpu")? {
        "" => Some(0),
        rest => rest.strip_prefix(':')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_mesa_is_read() {
        let lavapipe = "llvmpipe Mesa 20.3.5 (LLVM 11.0.1)";
        assert_eq!(mesa_version(lavapipe), Some(20));
        assert_eq!(mesa_version("NVIDIA 570.86.15"), None);
    }

    #[test]
    fn the_name_of_a_gpu_gives_its_index() {
        for index in 0..3 {
            assert_eq!(gpu_index(&gpu_name(index)), Some(index));
        }
        for other in ["gpu2", "cpu", "gpu:x"] {
            assert_eq!(gpu_index(other), None, "{other}");
        }
    }
}
