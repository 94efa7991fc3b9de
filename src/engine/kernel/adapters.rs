//! Which device a check runs on, in the order in which the training engine counts its GPUs.

use burn::cubecl::future::block_on;
use burn::tensor::wgpu::wgpu;

const NO_LAVAPIPE: &str = "a CPU driver of Vulkan runs kernels at small sizes: install mesa-vulkan-drivers (Debian, Ubuntu, Fedora) or \
                           vulkan-swrast (Arch)";

/// All adapters of the first graphics API, in the order of `gpu:N`, that has one: as the training engine counts them.
pub fn adapters() -> Vec<wgpu::Adapter> {
    let found = |backends| {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        block_on(instance.enumerate_adapters(backends))
    };
    let mut all = found(wgpu::Backends::PRIMARY);
    if all.is_empty() {
        // Looking for OpenGL makes some drivers talk, so it is left for last.
        all = found(wgpu::Backends::GL);
    }
    let order = [
        wgpu::Backend::Metal,
        wgpu::Backend::Vulkan,
        wgpu::Backend::Dx12,
        wgpu::Backend::Gl,
    ];
    let chosen = order.into_iter().find(|backend| {
        all.iter()
            .any(|adapter| adapter.get_info().backend == *backend)
    });
    all.retain(|adapter| Some(adapter.get_info().backend) == chosen);
    all.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    all
}

/// The adapter that `select` means.
///
/// # Errors
/// When there is none, with what to do about it.
pub fn choose<'a>(
    select: &str,
    adapters: &'a [wgpu::Adapter],
) -> Result<&'a wgpu::Adapter, String> {
    let (on_cpu, gpus): (Vec<_>, Vec<_>) = adapters
        .iter()
        .partition(|a| a.get_info().device_type == wgpu::DeviceType::Cpu);
    let none = || {
        format!(
            "nothing here can run a WGSL kernel: no GPU was found, and no CPU driver of Vulkan. Without a GPU, {NO_LAVAPIPE}"
        )
    };
    match select {
        "auto" => gpus.first().or(on_cpu.first()).copied().ok_or_else(none),
        "cpu" => on_cpu.first().or(gpus.first()).copied().ok_or_else(none),
        "vulkan-cpu" => on_cpu
            .first()
            .copied()
            .ok_or_else(|| format!("vulkan-cpu: there is no CPU driver of Vulkan; {NO_LAVAPIPE}")),
        other => {
            let index = match other.strip_prefix("gpu") {
                Some("") => Some(0),
                Some(rest) => rest.strip_prefix(':').and_then(|n| n.parse::<usize>().ok()),
                None => None,
            };
            let index = index.ok_or_else(|| {
                format!("unknown device `{other}`; write auto, cpu, gpu, gpu:N or vulkan-cpu")
            })?;
            let found = gpus.len();
            gpus.get(index).copied().ok_or_else(|| {
                format!(
                    "{other}: there are {found} GPUs, counted from 0. Without one, {NO_LAVAPIPE}"
                )
            })
        }
    }
}
