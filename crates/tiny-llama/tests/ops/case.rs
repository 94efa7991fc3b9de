//! Devices, one run of an operation with its gradients, and the comparison of its versions with the formula.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use burn::tensor::Device;
use engine::devices;
use tiny_llama::ops::{Operation, Scope, apply};

use crate::adapter;
use crate::ops::matrix::Matrix;

/// Relative tolerance against the formula in double precision, and between versions.
pub(crate) const CLOSE: f64 = 2e-5;
/// Relative tolerance against central differences of the formula, whose own error is about 1e-9.
pub(crate) const GRADIENT: f64 = 5e-5;
/// How many elements of an input get a central difference, spread evenly over it.
const DIFFERENCES: usize = 48;
/// The step of a central difference, as a share of the input's largest value.
const STEP: f64 = 1e-5;

/// The CPU device.
pub(crate) fn cpu() -> Device {
    Device::flex().autodiff()
}

/// A device that one test at a time may use.
pub(crate) struct Held {
    pub device: Device,
    _turn: MutexGuard<'static, ()>,
}

/// The CPU driver of Vulkan, else a GPU, or `None` after printing why.
pub(crate) fn wgpu() -> Option<Held> {
    static DEVICE: OnceLock<Result<Device, String>> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let opened = DEVICE.get_or_init(|| {
        devices::open("vulkan-cpu")
            .or_else(|_| devices::open("gpu"))
            .map(|opened| opened.device.autodiff())
            .map_err(|error| format!("{error:#}"))
    });
    match opened {
        Ok(device) => Some(Held {
            device: device.clone(),
            _turn: turn,
        }),
        Err(error) => {
            adapter::skip(error);
            None
        }
    }
}

/// The results of one run.
pub(crate) struct Found<const N: usize> {
    pub output: Matrix,
    pub gradients: [Option<Matrix>; N],
}

/// Output and gradients of Σ y·dy.
pub(crate) fn run<O: Operation<N>, const N: usize>(
    device: &Device,
    op: O,
    inputs: &[Matrix; N],
    dy: &Matrix,
) -> Found<N> {
    let leaves = inputs.each_ref().map(|m| m.on(device).require_grad()); // [rows, columns]
    let output = apply(Scope::outside("test"), op, leaves.clone());
    let gradients = (output.clone() * dy.on(device)).sum().backward();
    Found {
        output: Matrix::read(output.inner()),
        gradients: leaves.map(|leaf| leaf.grad(&gradients).map(Matrix::read)),
    }
}

/// An operation's inputs, the gradient that arrives at its output, and its formula.
pub(crate) struct Case<'a, const N: usize> {
    pub name: &'a str,
    pub inputs: [Matrix; N],
    pub dy: Matrix,
    pub formula: &'a dyn Fn(&[Matrix; N]) -> Matrix,
}

impl<const N: usize> Case<'_, N> {
    /// Compares every version with the formula, its central differences, and the first version, which is the composed one.
    pub(crate) fn check<O: Operation<N>>(&self, device: &Device, versions: &[O]) {
        let want = (self.formula)(&self.inputs);
        let slopes = std::array::from_fn::<_, N, _>(|k| self.differences(k));
        let mut composed: Option<Found<N>> = None;
        for op in versions {
            let what = format!("{}, {} ({})", self.name, O::NAME, op.version());
            let found = run(device, op.clone(), &self.inputs, &self.dy);
            found.output.near(&want, CLOSE, &format!("{what}: output"));
            for (k, slopes) in slopes.iter().enumerate() {
                let what = format!("{what}: gradient of input {k}");
                let gradient = found.gradients[k]
                    .as_ref()
                    .unwrap_or_else(|| panic!("{what}: there is none"));
                let limit = GRADIENT * gradient.scale();
                for (at, slope) in slopes {
                    let have = gradient.values[*at];
                    assert!(
                        (have - slope).abs() <= limit,
                        "{what}: element {at} is {have:e}, central differences give {slope:e}, allowed is {limit:e}"
                    );
                }
                let plain = composed.as_ref().and_then(|c| c.gradients[k].as_ref());
                if let Some(plain) = plain {
                    gradient.near(plain, CLOSE, &format!("{what} against the composed path"));
                }
            }
            composed.get_or_insert(found);
        }
    }

    /// (f(x + h) − f(x − h)) / 2h with f = Σ formula·dy, for some elements of input `k`.
    fn differences(&self, k: usize) -> Vec<(usize, f64)> {
        let mut inputs = self.inputs.clone();
        let count = inputs[k].values.len();
        let step = STEP * inputs[k].largest().max(1.0);
        let value = |inputs: &[Matrix; N]| (self.formula)(inputs).dot(&self.dy);
        (0..count.min(DIFFERENCES))
            .map(|i| {
                let at = i * count / count.min(DIFFERENCES);
                let kept = inputs[k].values[at];
                inputs[k].values[at] = kept + step;
                let above = value(&inputs);
                inputs[k].values[at] = kept - step;
                let below = value(&inputs);
                inputs[k].values[at] = kept;
                (at, (above - below) / (2.0 * step))
            })
            .collect()
    }
}
