//! Devices for the tests of this crate.

use std::sync::OnceLock;

use burn::cubecl::future::block_on;
use burn::tensor::{Device, DeviceKind};
use burn_wgpu::{WgpuSetup, wgpu};
use tiny_llama::ops::adapter;

#[path = "../../tiny-llama/tests/support/adapter.rs"]
mod support;

/// Returns the default adapter, which may be a software one. Without an adapter it reports a skipped test and returns `None`.
pub(crate) fn any_gpu() -> Option<Device> {
    any_gpu_and_queue().map(|(device, _)| device)
}

/// Returns the default adapter as [`any_gpu`] does, with its wgpu device and queue.
pub(crate) fn any_gpu_and_queue() -> Option<(Device, WgpuSetup)> {
    static DEVICE: OnceLock<Result<(Device, WgpuSetup), String>> = OnceLock::new();
    let opened = DEVICE.get_or_init(|| {
        Device::wgpu_options()
            .device_kind(DeviceKind::DefaultDevice)
            .init_with_setup()
            .map_err(|error| format!("{error:?}"))
    });
    match opened {
        Ok(opened) => Some(opened.clone()),
        Err(why) => {
            support::skip(why);
            None
        }
    }
}

/// Returns true if an adapter of this machine has the matrix cores that f16 needs.
pub(crate) fn has_matrix_cores() -> bool {
    let backends = wgpu::Backends::PRIMARY;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = block_on(instance.enumerate_adapters(backends));
    adapters.iter().any(adapter::has_matrix_cores)
}
