//! The common part of the tests of operations: the devices, one run with its gradients, and the comparison of all versions with the formula.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use burn::tensor::Device;
use engine::devices;
use tiny_llama::ops::{Operation, Scope, apply};

use crate::adapter;
use crate::ops::matrix::Matrix;

/// The relative tolerance against the formula in double precision, and between versions.
pub(crate) const CLOSE: f64 = 2e-5;
/// The relative tolerance against central differences of the formula, whose own error is about 1e-9.
pub(crate) const GRADIENT: f64 = 5e-5;
/// The number of elements of an input that get a central difference, spread evenly over it.
const DIFFERENCES: usize = 48;
/// The step of a central difference, as a share of the input's largest value.
const STEP: f64 = 1e-5;

/// Returns the CPU device.
pub(crate) fn cpu() -> Device {
    Device::flex().autodiff()
}

/// A device that one test uses at a time.
pub(crate) struct HeldDevice {
    pub device: Device,
    _turn: MutexGuard<'static, ()>,
}

/// Opens the CPU driver of Vulkan, else a GPU. Prints that the test is skipped and returns `None` if there is neither.
pub(crate) fn wgpu() -> Option<HeldDevice> {
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
        Ok(device) => Some(HeldDevice {
            device: device.clone(),
            _turn: turn,
        }),
        Err(error) => {
            adapter::skip(error);
            None
        }
    }
}

/// The results of one run of an operation.
pub(crate) struct Outcome<const N: usize> {
    pub output: Matrix,
    pub gradients: [Option<Matrix>; N],
}

/// Returns the output y, and the gradients of Σ y·dy.
pub(crate) fn run<O: Operation<N>, const N: usize>(
    device: &Device,
    op: O,
    inputs: &[Matrix; N],
    dy: &Matrix,
) -> Outcome<N> {
    let leaves = inputs.each_ref().map(|m| m.on(device).require_grad()); // [rows, columns]
    let output = apply(Scope::outside("test"), op, leaves.clone());
    let gradients = (output.clone() * dy.on(device)).sum().backward();
    Outcome {
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
    /// Compares every version with the formula, with its central differences, and with the first version, which is the composed one.
    pub(crate) fn check<O: Operation<N>>(&self, device: &Device, versions: &[O]) {
        let want = (self.formula)(&self.inputs);
        let slopes = std::array::from_fn::<_, N, _>(|k| self.differences(k));
        let mut composed: Option<Outcome<N>> = None;
        for op in versions {
            let version = format!("{}, {} ({})", self.name, O::NAME, op.version());
            let found = run(device, op.clone(), &self.inputs, &self.dy);
            found
                .output
                .assert_near(&want, CLOSE, &format!("{version}: output"));
            for (k, slopes) in slopes.iter().enumerate() {
                let name = format!("{version}: gradient of input {k}");
                let gradient = found.gradients[k]
                    .as_ref()
                    .unwrap_or_else(|| panic!("{name}: there is none"));
                let limit = GRADIENT * gradient.scale();
                for (index, slope) in slopes {
                    let got = gradient.values[*index];
                    assert!(
                        (got - slope).abs() <= limit,
                        "{name}: element {index} is {got:e}, central differences give {slope:e}, \
                         allowed is {limit:e}"
                    );
                }
                if let Some(composed) = &composed
                    && let Some(want) = &composed.gradients[k]
                {
                    let name = format!("{name} against the composed version");
                    gradient.assert_near(want, CLOSE, &name);
                }
            }
            composed.get_or_insert(found);
        }
    }

    /// Returns (f(x + h) − f(x − h)) / 2h with f = Σ formula·dy for some elements of input `k`, with their indices.
    fn differences(&self, k: usize) -> Vec<(usize, f64)> {
        let mut inputs = self.inputs.clone();
        let count = inputs[k].values.len();
        let step = STEP * inputs[k].largest().max(1.0);
        let value = |inputs: &[Matrix; N]| (self.formula)(inputs).dot(&self.dy);
        (0..count.min(DIFFERENCES))
            .map(|i| {
                let index = i * count / count.min(DIFFERENCES);
                let original = inputs[k].values[index];
                inputs[k].values[index] = original + step;
                let above = value(&inputs);
                inputs[k].values[index] = original - step;
                let below = value(&inputs);
                inputs[k].values[index] = original;
                (index, (above - below) / (2.0 * step))
            })
            .collect()
    }
}
