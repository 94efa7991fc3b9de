//! The graphics adapters of this machine, in the one order that training and kernel checks count GPUs by.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use burn::cubecl::future::block_on;
use burn::tensor::DeviceKind;
use burn_wgpu::wgpu;
use directories::BaseDirs;

/// An adapter with its place in the order.
pub(crate) struct RankedAdapter {
    pub adapter: wgpu::Adapter,
    pub info: wgpu::AdapterInfo,
    /// How burn names it.
    pub kind: DeviceKind,
    pub timestamps: bool,
    /// What `--device` calls it: `gpu`, `gpu:1`… or `vulkan-cpu`.
    pub select: String,
}

impl RankedAdapter {
    /// Whether it computes on the CPU.
    pub(crate) fn on_cpu(&self) -> bool {
        self.info.device_type == wgpu::DeviceType::Cpu
    }

    /// Its name and properties.
    pub(crate) fn device(&self) -> protocol::Device {
        protocol::Device {
            kind: if self.on_cpu() { "vulkan-cpu" } else { "gpu" }.to_owned(),
            name: format!("{} ({:?})", self.info.name, self.info.backend),
        }
    }

    /// # Errors
    /// When its driver would end this process, with what to do instead.
    pub(crate) fn ensure_usable(&self) -> Result<(), String> {
        let driver = self.driver();
        match mesa(&driver) {
            Some(major) if self.on_cpu() && major < OLDEST_MESA => Err(format!(
                "{driver} is too old and crashes in a run; use --device cpu. Mesa {OLDEST_MESA} or newer comes with Ubuntu 22.04 and Debian 12"
            )),
            _ => Ok(()),
        }
    }

    /// Its driver's name and version.
    pub(crate) fn driver(&self) -> String {
        let (name, version) = (&self.info.driver, &self.info.driver_info);
        format!("{name} {version}").trim().to_owned()
    }
}

/// The oldest Mesa whose Vulkan on the CPU is used: 20.3.5 crashes, 22.3.6 runs everything.
const OLDEST_MESA: u32 = 21;

/// The first number of Mesa's version, as in `llvmpipe Mesa 20.3.5 (LLVM 11.0.1)`.
fn mesa(driver: &str) -> Option<u32> {
    let (_, version) = driver.split_once("Mesa ")?;
    version.split_once('.')?.0.parse().ok()
}

/// All adapters of the first graphics API that has one: GPUs in the order of `gpu:N`, then drivers that compute on the CPU.
/// A driver that panics while it is asked hides them all.
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
        let found = list(wgpu::Backends::PRIMARY);
        // Some drivers print messages when OpenGL is tried, so it comes last.
        match found.is_empty() {
            true => list(wgpu::Backends::GL),
            false => found,
        }
    };
    in_order(catch_unwind(AssertUnwindSafe(all)).unwrap_or_default())
}

/// NVIDIA's driver keeps compiled shaders for later processes only if this folder exists when it is loaded. The folder makes the
/// second start of an engine fast instead of the third; without it nothing else changes, so errors do not matter.
fn make_shader_folder() {
    let dirs = Path::new("/dev/nvidiactl").exists().then(BaseDirs::new);
    if let Some(dirs) = dirs.flatten() {
        let _ = std::fs::create_dir_all(dirs.cache_dir().join("nvidia/GLCache"));
    }
}

fn in_order(all: Vec<wgpu::Adapter>) -> Vec<RankedAdapter> {
    // The order in which the library chooses an API.
    let order = [
        wgpu::Backend::Metal,
        wgpu::Backend::Vulkan,
        wgpu::Backend::Dx12,
        wgpu::Backend::Gl,
    ];
    let has = |backend: &wgpu::Backend| all.iter().any(|it| it.get_info().backend == *backend);
    let Some(chosen) = order.into_iter().find(has) else {
        return Vec::new();
    };
    let mut found: Vec<(usize, RankedAdapter)> = Vec::new();
    for adapter in all {
        let info = adapter.get_info();
        if info.backend != chosen {
            continue;
        }
        let (class, kind): (usize, fn(usize) -> DeviceKind) = match info.device_type {
            wgpu::DeviceType::DiscreteGpu => (0, DeviceKind::DiscreteGpu),
            wgpu::DeviceType::IntegratedGpu => (1, DeviceKind::IntegratedGpu),
            wgpu::DeviceType::VirtualGpu => (2, DeviceKind::VirtualGpu),
            wgpu::DeviceType::Other => (3, |_| DeviceKind::DefaultDevice),
            wgpu::DeviceType::Cpu => (4, |_| DeviceKind::Cpu),
        };
        let before = found.iter().filter(|it| it.0 == class).count();
        let one = RankedAdapter {
            timestamps: adapter.features().contains(wgpu::Features::TIMESTAMP_QUERY),
            kind: kind(before),
            select: String::new(),
            adapter,
            info,
        };
        found.push((class, one));
    }
    found.sort_by_key(|it| it.0);
    let mut found: Vec<RankedAdapter> = found.into_iter().map(|it| it.1).collect();
    let names = name_all(&found.iter().map(RankedAdapter::on_cpu).collect::<Vec<_>>());
    for (it, name) in found.iter_mut().zip(names) {
        it.select = name;
    }
    found
}

/// `gpu`, `gpu:1`, …, `vulkan-cpu`.
fn name_all(on_cpu: &[bool]) -> Vec<String> {
    let mut gpus = 0;
    let name = |on_cpu: &bool| {
        if *on_cpu {
            return "vulkan-cpu".to_owned();
        }
        gpus += 1;
        match gpus {
            1 => "gpu".to_owned(),
            count => format!("gpu:{}", count - 1),
        }
    };
    on_cpu.iter().map(name).collect()
}

/// What to install where there is no GPU.
pub(crate) const CPU_DRIVER: &str = "a CPU driver of Vulkan runs small sizes: install mesa-vulkan-drivers (Debian, Ubuntu, Fedora) or vulkan-swrast \
                              (Arch)";

/// The adapter that `gpu`, `gpu:N` or `vulkan-cpu` means.
///
/// # Errors
/// When there is none, with what to do about it.
pub(crate) fn named<'a>(
    select: &str,
    adapters: &'a [RankedAdapter],
) -> Result<&'a RankedAdapter, String> {
    let (on_cpu, gpus): (Vec<_>, Vec<_>) = adapters.iter().partition(|it| it.on_cpu());
    if select == "vulkan-cpu" {
        let none = || format!("vulkan-cpu: there is no CPU driver of Vulkan; {CPU_DRIVER}");
        return on_cpu.first().copied().ok_or_else(none);
    }
    let index = gpu_index(select).ok_or_else(|| {
        format!("unknown device `{select}`; write auto, cpu, gpu, gpu:N or vulkan-cpu")
    })?;
    gpus.get(index).copied().ok_or_else(|| {
        let names: Vec<_> = gpus.iter().map(|it| it.info.name.as_str()).collect();
        if names.is_empty() {
            format!(
                "{select}: no GPU found. Looked for Vulkan, Metal, DirectX 12 and OpenGL adapters. Without a GPU, {CPU_DRIVER}"
            )
        } else {
            let (count, names) = (names.len(), names.join(", "));
            format!("{select}: there are {count} GPUs, counted from 0: {names}")
        }
    })
}

/// The N of `gpu` or `gpu:N`; None for any other text.
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
        assert_eq!(mesa("llvmpipe Mesa 20.3.5 (LLVM 11.0.1)"), Some(20));
        assert_eq!(mesa("NVIDIA 570.86.15"), None);
    }

    #[test]
    fn adapters_are_named_as_devices_are_asked_for() {
        assert_eq!(
            name_all(&[false, false, true]),
            ["gpu", "gpu:1", "vulkan-cpu"]
        );
        assert_eq!((gpu_index("gpu"), gpu_index("gpu:2")), (Some(0), Some(2)));
        assert_eq!(
            (gpu_index("gpu2"), gpu_index("cpu"), gpu_index("gpu:x")),
            (None, None, None)
        );
    }
}
