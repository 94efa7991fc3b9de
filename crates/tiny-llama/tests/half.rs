//! Training in f16 on the CPU device: gradients that become zero without a loss scale, and the loss curve beside that of f32.

use burn::tensor::{Device, Tensor};
use protocol::config::{Knob, KnobValue, Preset, RunConfig};
use tiny_llama::data::BatchSource;
use tiny_llama::model::{Model, Tokens, weights};
use tiny_llama::ops::grad_norm;
use tiny_llama::ops::loss_scale::LossScale;
use tiny_llama::ops::optimizer::Optimizer;

/// Returns a small configuration of our own kernels with these knobs, given as paths and values.
fn config(knobs: &[(&str, &str)]) -> RunConfig {
    let mut config = RunConfig::preset(Preset::Tiny);
    let small_and_fast = [
        ("model.qkv", "fused"),
        ("model.attention", "flash"),
        ("model.norm", "fused"),
        ("model.swiglu", "fused-activation"),
        ("model.loss", "fused"),
        ("model.matmul", "own"),
        ("train.optimizer", "fused"),
        ("model.hidden", "32"),
        ("model.ffn", "64"),
        ("model.heads", "2"),
        ("model.kv-heads", "1"),
    ];
    for (path, value) in small_and_fast.iter().chain(knobs) {
        let knob = Knob::find(path).expect("known");
        knob.set(&mut config, &KnobValue::from_word(value))
            .expect("valid");
    }
    assert!(config.problems().is_empty(), "{:?}", config.problems());
    config
}

/// A training on the CPU device.
struct Run {
    config: RunConfig,
    model: Model,
    optimizer: Optimizer,
    scale: Option<LossScale>,
    source: BatchSource,
    device: Device,
}

impl Run {
    fn new(config: RunConfig) -> Self {
        let device = Device::flex().autodiff();
        let initial = weights::initial(&config.model, config.train.seed);
        let model = Model::new(&config, &initial, &device).expect("weights fit");
        Self {
            optimizer: Optimizer::new(config.train.optimizer, model.parameters().len()),
            scale: config.scales_loss().then(|| LossScale::new(&device)),
            source: BatchSource::new(&config),
            config,
            model,
            device,
        }
    }

    /// Returns the loss of a step and its gradients, which are multiplied by the factor of loss scaling if the run has one.
    fn gradients(&self, step: u64) -> (f64, Vec<Option<Tensor<2>>>) {
        let tokens = Tokens::new(&self.source.batch(step), &self.device);
        let loss = self.model.loss(&tokens, self.scale.as_ref()); // [1, 1]
        let value = loss.to_data().iter::<f64>().next().expect("one loss");
        let mut all = loss.backward();
        let gradients = self
            .model
            .parameters()
            .iter()
            .map(|parameter| parameter.value.grad_remove(&mut all))
            .collect();
        (value, gradients)
    }

    /// Makes one training step and returns its loss.
    fn step(&mut self, step: u64) -> f64 {
        let (loss, gradients) = self.gradients(step);
        if let Some(scale) = &mut self.scale {
            scale.advance(&gradients.iter().flatten().collect::<Vec<_>>());
        }
        let rate = self.config.train.learning_rate;
        let parameters = self.model.parameters_mut();
        self.optimizer
            .step(parameters, gradients, rate, self.scale.as_ref());
        loss
    }
}

/// The gradient of a logit is about 1 / (vocab · tokens) = 2^-26 here, below half of f16's smallest number 2^-24.
#[test]
fn gradients_that_underflow_without_a_scale_survive_with_it() {
    let share_of_zeros = |precision: &str, scaling: &str| {
        let run = Run::new(config(&[
            ("model.layers", "1"),
            ("model.vocab", "16384"),
            ("train.batch", "64"),
            ("train.precision", precision),
            ("train.loss-scaling", scaling),
        ]));
        let (_, gradients) = run.gradients(0);
        let counts = grad_norm::exponents(&gradients.iter().flatten().collect::<Vec<_>>());
        let all: u64 = counts.iter().flatten().sum();
        let zeros: u64 = counts.iter().map(|counts| counts[0]).sum();
        zeros as f64 / all as f64
    };
    assert_eq!(share_of_zeros("f32", "none"), 0.0);
    let lost = share_of_zeros("f16", "none");
    assert!(lost > 0.5, "{lost}");
    assert_eq!(share_of_zeros("f16", "dynamic"), 0.0);
    assert_eq!(share_of_zeros("bf16", "none"), 0.0);
}

/// Two runs from the same weights and tokens drift apart as rounding differs. Means over 50 steps were measured to differ by at
/// most 0.0005 nats; the bound is ten times that.
#[test]
fn a_loss_curve_in_f16_follows_that_of_f32() {
    let curve = |precision: &str| {
        let mut run = Run::new(config(&[
            ("model.layers", "2"),
            ("train.batch", "4"),
            ("train.context", "32"),
            ("train.learning-rate", "3e-3"),
            ("train.precision", precision),
        ]));
        (0..300).map(|step| run.step(step)).collect::<Vec<f64>>()
    };
    let full = curve("f32");
    let half = curve("f16");
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean(&full[250..]) < mean(&full[..50]) - 1.0, "it learns");
    let differences: Vec<f64> = full
        .chunks(50)
        .zip(half.chunks(50))
        .map(|(full, half)| mean(half) - mean(full))
        .collect();
    println!("f16 − f32, means of 50 steps: {differences:.5?}");
    assert!(
        differences.iter().all(|x| x.abs() <= 0.005),
        "{differences:?}"
    );
}
