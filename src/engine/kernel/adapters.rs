//! Which device a check runs on: one that takes WGSL, and a GPU rather than a CPU driver.

use super::super::adapters::{Found, gpu_index};

const NO_LAVAPIPE: &str = "a CPU driver of Vulkan runs kernels at small sizes: install mesa-vulkan-drivers (Debian, Ubuntu, Fedora) or \
                           vulkan-swrast (Arch)";

/// The adapter that `select` means.
///
/// # Errors
/// When there is none, with what to do about it.
pub fn choose<'a>(select: &str, adapters: &'a [Found]) -> Result<&'a Found, String> {
    let (on_cpu, gpus): (Vec<_>, Vec<_>) = adapters.iter().partition(|it| it.on_cpu());
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
            let index = gpu_index(other).ok_or_else(|| {
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
