//! PyTorch's logits, loss, gradients and one AdamW step, for weights given by a formula, against ours: every knob that
//! claims the same mathematics, on the CPU device and, where there is an adapter, through wgpu.

#[path = "golden/file.rs"]
mod file;

use file::{Golden, compare, compare_short, device_combinations, every_combination};
use protocol::config::{self, Preset, RunConfig};

#[test]
fn cpu_reproduces_pytorch_with_every_knob() {
    let golden = Golden::load();
    let device = burn::tensor::Device::flex().autodiff();
    for knobs in every_combination() {
        compare(&golden, &knobs, &device);
    }
}

/// Through wgpu: on lavapipe where it is installed, else on whatever adapter there is.
#[test]
fn wgpu_reproduces_pytorch() {
    let Some(held) = crate::ops::case::wgpu() else {
        return;
    };
    let golden = Golden::load();
    for knobs in device_combinations() {
        compare(&golden, &knobs, &held.device);
    }
}

/// The knobs of f16 and bf16, with the unit roundoff of each: 11 and 8 significant bits.
fn short_formats(own: bool) -> Vec<(Vec<(&'static str, &'static str)>, f64)> {
    let matmul = if own { "own" } else { "library" };
    let attention = if own { "flash" } else { "composed" };
    [("f16", -11), ("bf16", -8)]
        .map(|(format, power)| {
            let knobs = vec![
                ("train.precision", format),
                ("train.optimizer", "fused"),
                // A factor for the loss in f16, and a loss that takes one.
                ("train.loss-scaling", "dynamic"),
                ("model.matmul", matmul),
                ("model.attention", attention),
                ("model.loss", if own { "in-parts" } else { "composed" }),
            ];
            (knobs, 2f64.powi(power))
        })
        .to_vec()
}

#[test]
fn short_formats_are_off_by_their_rounding() {
    let golden = Golden::load();
    let device = burn::tensor::Device::flex().autodiff();
    for own in [false, true] {
        for (knobs, unit) in short_formats(own) {
            compare_short(&golden, &knobs, &device, unit);
        }
    }
}

#[test]
fn the_golden_shapes_are_those_of_the_configuration() {
    let golden = Golden::load();
    let config = golden.config(&[]);
    assert!(config.problems().is_empty());
    assert_ne!(config, RunConfig::preset(Preset::Tiny));
    assert_eq!(config.model.init, config::Init::Normal002);
}
