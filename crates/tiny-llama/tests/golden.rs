//! Our logits, loss, gradients and one AdamW step against PyTorch's, for weights that a formula gives. Every knob that must not change the
//! mathematics is tested, on the CPU device and, where there is an adapter, through wgpu.

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

/// The device is lavapipe where it is installed, otherwise any adapter.
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

/// Returns the knobs of f16 and of bf16 with their unit roundoffs: they have 11 and 8 significant bits.
fn short_formats(own: bool) -> Vec<(Vec<(&'static str, &'static str)>, f64)> {
    let matmul = if own { "own" } else { "library" };
    let attention = if own { "flash" } else { "composed" };
    [("f16", -11), ("bf16", -8)]
        .map(|(format, power)| {
            let knobs = vec![
                ("train.precision", format),
                ("train.optimizer", "fused"),
                // In f16 the loss is multiplied by a factor.
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
fn short_formats_differ_by_no_more_than_their_rounding() {
    let golden = Golden::load();
    let device = burn::tensor::Device::flex().autodiff();
    for own in [false, true] {
        for (knobs, unit) in short_formats(own) {
            compare_short(&golden, &knobs, &device, unit);
        }
    }
}

#[test]
fn the_golden_sizes_make_a_valid_configuration_that_is_no_preset() {
    let golden = Golden::load();
    let config = golden.config(&[]);
    assert!(config.problems().is_empty(), "{:?}", config.problems());
    assert_ne!(config, RunConfig::preset(Preset::Tiny));
    assert_eq!(config.model.init, config::Init::Normal002);
}
