//! f16 on the CPU device: gradients that become zero without a loss scale, and what they are worth; curves beside f32; overflow.

use burn::tensor::{Device, Tensor};
use protocol::config::{Knob, KnobValue, Preset, RunConfig};
use tiny_llama::data::BatchSource;
use tiny_llama::model::{Model, Tokens, weights};
use tiny_llama::ops::grad_norm;
use tiny_llama::ops::loss_scale::LossScale;
use tiny_llama::ops::optimizer::Optimizer;

fn config(knobs: &[(&str, &str)]) -> RunConfig {
    let mut config = RunConfig::preset(Preset::Tiny);
    let fast = [
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
    for (path, value) in fast.iter().chain(knobs) {
        let knob = Knob::find(path).expect("known");
        knob.set(&mut config, &KnobValue::from_word(value))
            .expect("valid");
    }
    assert!(config.problems().is_empty(), "{:?}", config.problems());
    config
}

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

    /// The loss of a step, and its gradients, scaled as the run says.
    fn gradients(&self, step: u64) -> (f64, Vec<Option<Tensor<2>>>) {
        let tokens = Tokens::new(&self.source.batch(step), &self.device);
        let loss = self.model.loss(&tokens, self.scale.as_ref()); // [1, 1]
        let value = loss.clone().into_data().iter::<f64>().next().expect("one");
        let mut all = loss.backward();
        let parameters = self.model.parameters();
        let found = parameters.iter().map(|p| p.value.grad_remove(&mut all));
        (value, found.collect())
    }

    fn step(&mut self, step: u64) -> f64 {
        let (loss, found) = self.gradients(step);
        if let Some(scale) = &mut self.scale {
            scale.advance(&found.iter().flatten().collect::<Vec<_>>());
        }
        let rate = self.config.train.learning_rate;
        let parameters = self.model.parameters_mut();
        self.optimizer
            .step(parameters, found, rate, self.scale.as_ref());
        loss
    }
}

/// The gradient of a logit is about 1 / (vocab · tokens) = 2^-26 here, below half of f16's least number.
#[test]
fn gradients_that_underflow_without_a_scale_survive_with_it() {
    let zeros = |precision: &str, scaling: &str| {
        let run = Run::new(config(&[
            ("model.layers", "1"),
            ("model.vocab", "16384"),
            ("train.batch", "64"),
            ("train.precision", precision),
            ("train.loss-scaling", scaling),
        ]));
        let (_, found) = run.gradients(0);
        let found: Vec<&Tensor<2>> = found.iter().flatten().collect();
        let counts = grad_norm::exponents(&found);
        let all: u64 = counts.iter().flatten().sum();
        let zeros: u64 = counts.iter().map(|counts| counts[0]).sum();
        zeros as f64 / all as f64
    };
    assert_eq!(zeros("f32", "none"), 0.0);
    let lost = zeros("f16", "none");
    assert!(lost > 0.5, "{lost}");
    assert_eq!(zeros("f16", "dynamic"), 0.0);
    assert_eq!(zeros("bf16", "none"), 0.0);
}

/// Two runs from the same weights and tokens drift apart as rounding differs. Means over 50 steps were measured to differ by at
/// most 0.0005 nats; the bound is ten times that.
#[test]
fn a_loss_curve_in_f16_is_that_of_f32() {
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
    let (full, half) = (curve("f32"), curve("f16"));
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean(&full[250..]) < mean(&full[..50]) - 1.0, "it learns");
    let apart = full.chunks(50).zip(half.chunks(50));
    let apart: Vec<f64> = apart.map(|(a, b)| mean(b) - mean(a)).collect();
    println!("f16 − f32, means of 50 steps: {apart:.5?}");
    assert!(apart.iter().all(|x| x.abs() <= 0.005), "{apart:?}");
}
