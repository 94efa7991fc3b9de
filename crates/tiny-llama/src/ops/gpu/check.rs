//! Helpers for the tests of GPU kernels: the machine's adapter, comparisons, and a check that a text is valid WGSL.

use burn::tensor::{DeviceKind, Tensor, TensorData};
use burn_cubecl::{CubeBackend, tensor::CubeTensor};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

#[path = "../../../tests/support/adapter.rs"]
mod support;

pub use crate::ops::adapter::is_any_with_matrix_cores as has_matrix_cores;
use crate::ops::linear::planner::Problem;

/// An adapter that one test uses at a time.
pub struct TestDevice {
    device: burn::tensor::Device,
    _turn: MutexGuard<'static, ()>,
}

impl TestDevice {
    /// Opens the default adapter, which may be a software one. Prints that the test is skipped and returns `None` if there is none.
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

    /// Returns the device for burn.
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
    let scale = want
        .iter()
        .fold(1.0f32, |largest, value| largest.max(value.abs()));
    for (index, (value, expected)) in got.iter().zip(want).enumerate() {
        let error = (value - expected).abs() / scale;
        assert!(
            error <= tolerance,
            "{name}: {value} instead of {expected} at {index}"
        );
    }
}

/// Returns A·B `[rows, columns]`, summed in f64.
pub(crate) fn product(problem: &Problem, a: &[f32], b: &[f32]) -> Vec<f64> {
    let Problem {
        rows,
        columns,
        inner,
        a_transposed,
        b_transposed,
    } = *problem;
    let mut sums = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let products = (0..inner).map(|k| {
                let left = if a_transposed {
                    a[k * rows + row]
                } else {
                    a[row * inner + k]
                };
                let right = if b_transposed {
                    b[column * inner + k]
                } else {
                    b[k * columns + column]
                };
                f64::from(left) * f64::from(right)
            });
            sums.push(products.sum());
        }
    }
    sums
}

/// The bytes of workgroup memory that every device with matrix cores has.
pub const WORKGROUP_MEMORY: u32 = 49_152;

/// Returns the bytes of workgroup memory that a text uses. Fails when the text is not valid WGSL, or uses too much.
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
    let bytes: u32 = module
        .global_variables
        .iter()
        .filter(|(_, variable)| variable.space == naga::AddressSpace::WorkGroup)
        .map(|(_, variable)| sizes[variable.ty].size)
        .sum();
    assert!(
        bytes <= WORKGROUP_MEMORY,
        "{bytes} bytes of workgroup memory"
    );
    bytes
}
