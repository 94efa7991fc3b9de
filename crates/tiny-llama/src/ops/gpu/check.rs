//! Helpers for the tests of this folder: the first usable adapter, and comparisons.

use burn::cubecl::future::block_on;
use burn::tensor::{DeviceKind, Tensor, TensorData};
use burn_cubecl::{CubeBackend, tensor::CubeTensor};
use burn_wgpu::wgpu;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

#[path = "../../../tests/support/adapter.rs"]
mod support;

use crate::ops::adapter;

/// An adapter that one test uses at a time.
pub struct TestDevice {
    device: burn::tensor::Device,
    _turn: MutexGuard<'static, ()>,
}

impl TestDevice {
    /// The default adapter, which may be a software one; prints a note and returns `None` if there is none.
    pub fn any() -> Option<Self> {
        static DEVICE: OnceLock<Result<burn::tensor::Device, String>> = OnceLock::new();
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let device = DEVICE.get_or_init(|| {
            burn::tensor::Device::wgpu_options()
                .device_kind(DeviceKind::DefaultDevice)
                .init()
                .map_err(|error| format!("{error:?}"))
        });
        match device {
            Ok(device) => Some(Self {
                device: device.clone(),
                _turn: turn,
            }),
            Err(why) => {
                support::skip(why);
                None
            }
        }
    }

    /// The device for burn.
    pub fn burn(&self) -> burn::tensor::Device {
        self.device.clone()
    }

    pub fn tensor<const D: usize>(&self, values: &[f32], shape: [usize; D]) -> CubeTensor {
        Tensor::<D>::from_data(TensorData::new(values.to_vec(), shape), &self.device)
            .try_into_primitive::<CubeBackend>()
            .expect("the device is a cubecl device")
    }

    pub fn read(&self, tensor: &CubeTensor) -> Vec<f32> {
        crate::ops::gpu::read(tensor).expect("the kernel ran")
    }
}

/// Fails when any value differs by more than `tolerance`, relative to the largest expected one.
pub fn close(name: &str, got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len(), "{name}: length");
    let scale = want.iter().fold(1.0f32, |m, v| m.max(v.abs()));
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (got - want).abs() / scale;
        assert!(
            error <= tolerance,
            "{name}: {got} instead of {want} at {at}"
        );
    }
}

/// Returns true if an adapter of this machine has the matrix cores that f16 needs.
pub fn has_matrix_cores() -> bool {
    let backends = wgpu::Backends::PRIMARY;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = block_on(instance.enumerate_adapters(backends));
    adapters.iter().any(adapter::has_matrix_cores)
}

/// Bytes of workgroup memory on devices with matrix cores.
pub const WORKGROUP_MEMORY: u32 = 49_152;

/// The bytes of workgroup memory of a text. Fails when it is not valid WGSL, or uses too much.
pub fn valid_wgsl(text: &str) -> u32 {
    let module = naga::front::wgsl::parse_str(text)
        .unwrap_or_else(|error| panic!("{}\n{text}", error.emit_to_string(text)));
    let mut validator = naga::valid::Validator::new(
        naga::valid::ValidationFlags::all(),
        naga::valid::Capabilities::all(),
    );
    if let Err(error) = validator.validate(&module) {
        panic!("{}\n{text}", error.emit_to_string(text));
    }
    let mut sizes = naga::proc::Layouter::default();
    sizes.update(module.to_ctx()).expect("types have sizes");
    let shared = module.global_variables.iter();
    let shared = shared.filter(|(_, variable)| variable.space == naga::AddressSpace::WorkGroup);
    let bytes: u32 = shared.map(|(_, variable)| sizes[variable.ty].size).sum();
    assert!(
        bytes <= WORKGROUP_MEMORY,
        "{bytes} bytes of workgroup memory"
    );
    bytes
}
