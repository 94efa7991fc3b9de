//! What the tests of this folder share: the first usable adapter, seeded data, comparison.

use burn::tensor::{DeviceKind, Tensor, TensorData};
use burn_cubecl::{CubeBackend, tensor::CubeTensor};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::random::Rng;

#[path = "../../../tests/support/adapter.rs"]
mod adapter;

/// An adapter, held by one test at a time.
pub struct Device {
    device: burn::tensor::Device,
    _turn: MutexGuard<'static, ()>,
}

impl Device {
    /// The default adapter (a software one counts), or `None` after saying so.
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
                adapter::skip(why);
                None
            }
        }
    }

    pub fn tensor<const D: usize>(&self, values: &[f32], shape: [usize; D]) -> CubeTensor {
        Tensor::<D>::from_data(TensorData::new(values.to_vec(), shape), &self.device)
            .try_into_primitive::<CubeBackend>()
            .expect("the device is a cubecl device")
    }

    pub fn read(&self, tensor: &CubeTensor) -> Vec<f32> {
        let bytes = tensor
            .client
            .read_one(tensor.handle.clone())
            .expect("the kernel ran");
        bytes
            .chunks_exact(4)
            .take(tensor.meta.num_elements())
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    }
}

/// Values in [-1, 1), the same for the same seed.
pub fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..count)
        .map(|_| 2.0 * rng.uniform() as f32 - 1.0)
        .collect()
}

/// Fails when any value differs by more than `tolerance`, relative to the largest expected one.
pub fn close(name: &str, got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len(), "{name}: length");
    let scale = want.iter().fold(1.0f32, |m, v| m.max(v.abs()));
    let (mut worst, mut at) = (0.0f32, 0);
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let error = (g - w).abs() / scale;
        if error > worst || error.is_nan() {
            (worst, at) = (error, i);
        }
    }
    println!("{name} [{}]: {worst:.1e}", got.len());
    assert!(
        worst <= tolerance,
        "{name}: {} instead of {} at {at} (off by {worst:e})",
        got[at],
        want[at]
    );
}
