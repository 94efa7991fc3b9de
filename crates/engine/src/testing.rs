//! Devices for the tests of this crate.

use burn::cubecl::future::block_on;
use burn::tensor::{Device, DeviceKind};
use burn_wgpu::wgpu;
use tiny_llama::ops::adapter;

#[path = "../../tiny-llama/tests/support/adapter.rs"]
mod support;

/// Returns the default adapter, which may be a software one. Says that the test is skipped where there is none.
pub(crate) fn any_gpu() -> Option<Device> {
    let options = Device::wgpu_options().device_kind(DeviceKind::DefaultDevice);
    options
        .init()
        .map_err(|error| support::skip(format!("{error:?}")))
        .ok()
}

/// True if an adapter of this machine has the matrix cores that f16 needs.
pub(crate) fn has_matrix_cores() -> bool {
    let backends = wgpu::Backends::PRIMARY;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = block_on(instance.enumerate_adapters(backends));
    adapters.iter().any(adapter::has_matrix_cores)
}
