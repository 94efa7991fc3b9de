//! PyTorch's logits, loss, gradients and one AdamW step, for weights given by a formula, against ours: every knob that
//! claims the same mathematics, on the CPU device and, where there is an adapter, through wgpu.

#[path = "support/adapter.rs"]
mod adapter;
#[path = "golden/file.rs"]
mod file;

use file::{Golden, compare, device_combinations, every_combination};
use perflings::config::{self, Preset, RunConfig};
use perflings::engine::devices;

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
    let opened = match devices::open("vulkan-cpu").or_else(|_| devices::open("gpu")) {
        Ok(opened) => opened,
        Err(error) => return adapter::skip(error),
    };
    let golden = Golden::load();
    let device = opened.device.autodiff();
    for knobs in device_combinations() {
        compare(&golden, &knobs, &device);
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
