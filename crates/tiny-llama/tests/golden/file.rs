//! Reads PyTorch's reference values and compares a model with them.

use burn::tensor::{Device, Tensor};
use protocol::config::{Knob, KnobValue, Preset, RunConfig};
use serde::Deserialize;
use tiny_llama::data::Batch;
use tiny_llama::model::weights::{self, Weight};
use tiny_llama::model::{Model, Tokens};
use tiny_llama::ops::loss_scale::{FIRST, LossScale};
use tiny_llama::ops::optimizer::Optimizer;

#[derive(Deserialize)]
pub(super) struct Golden {
    config: Sizes,
    loss: f64,
    logits: Vec<f64>,
    parameters: Vec<Reference>,
    loss_after_one_step: f64,
}

#[derive(Deserialize)]
struct Sizes {
    vocab: usize,
    hidden: usize,
    layers: usize,
    heads: usize,
    kv_heads: usize,
    ffn: usize,
    context: usize,
    batch: usize,
}

#[derive(Deserialize)]
struct Reference {
    k: usize,
    name: String,
    grad: Vec<f64>,
    update: Vec<f64>,
}

impl Golden {
    pub(super) fn load() -> Self {
        serde_json::from_str(include_str!("../../assets/golden/tiny_llama.json"))
            .expect("the golden file is valid")
    }

    pub(super) fn config(&self, knobs: &[(&str, &str)]) -> RunConfig {
        let mut config = RunConfig::preset(Preset::Tiny);
        let s = &self.config;
        config.model.vocab = s.vocab;
        config.model.hidden = s.hidden;
        config.model.layers = s.layers;
        config.model.heads = s.heads;
        config.model.kv_heads = s.kv_heads;
        config.model.ffn = s.ffn;
        config.train.context = s.context;
        config.train.batch = s.batch;
        for (path, value) in knobs {
            Knob::find(path)
                .expect("known")
                .set(&mut config, &KnobValue::Text((*value).to_owned()))
                .expect("valid");
        }
        config
    }

    /// w[i] = scale·sin(0.7·i + 1.3·(k+1) + 0.001·i·(k+1)); matrices: scale 0.3; gains: 1 + 0.1·formula.
    fn weights(&self, config: &RunConfig) -> Vec<Weight> {
        weights::names(&config.model)
            .into_iter()
            .map(|(name, shape)| {
                let k = self
                    .parameters
                    .iter()
                    .find(|p| p.name == name)
                    .expect("a golden parameter")
                    .k as f64;
                let wave = |i: usize| {
                    (0.7 * i as f64 + 1.3 * (k + 1.0) + 0.001 * i as f64 * (k + 1.0)).sin()
                };
                let value = |i| {
                    if name.contains("norm") {
                        1.0 + 0.1 * wave(i)
                    } else {
                        0.3 * wave(i)
                    }
                };
                let values = (0..shape[0] * shape[1]).map(|i| value(i) as f32).collect();
                Weight {
                    name,
                    shape,
                    values,
                }
            })
            .collect()
    }

    fn batch(&self) -> Batch {
        let n = self.config.batch * self.config.context;
        let vocab = self.config.vocab;
        let make = |a: usize, b: usize| (0..n).map(|i| ((a * i + b) % vocab) as i32).collect();
        Batch {
            inputs: make(7, 3),
            targets: make(11, 5),
        }
    }

    /// The reference rows for one of our parameters, joined when projections are fused.
    fn expected(&self, name: &str, pick: fn(&Reference) -> &Vec<f64>) -> Vec<f64> {
        let parts: &[&str] = if name.contains("qkv_proj") {
            &["q_proj", "k_proj", "v_proj"]
        } else if name.contains("gate_up_proj") {
            &["gate_proj", "up_proj"]
        } else {
            &[""]
        };
        let mut all = Vec::new();
        for part in parts {
            let wanted = name.replace("qkv_proj", part).replace("gate_up_proj", part);
            let wanted = if part.is_empty() {
                name.to_owned()
            } else {
                wanted
            };
            all.extend_from_slice(pick(
                self.parameters
                    .iter()
                    .find(|p| p.name == wanted)
                    .expect("a golden parameter"),
            ));
        }
        all
    }
}

/// All values of the knobs that keep the mathematics, every pair of them at least once: each knob alone, all at once,
/// and every combination of the ones that share data.
pub(super) fn every_combination() -> Vec<Vec<(&'static str, &'static str)>> {
    let mut all = vec![vec![]];
    for qkv in ["separate", "fused"] {
        for attention in ["composed", "kernel", "flash"] {
            for swiglu in [
                "separate",
                "naive-kernel",
                "fused-gate-up",
                "fused-activation",
            ] {
                for own in [false, true] {
                    let mut knobs = vec![
                        ("model.qkv", qkv),
                        ("model.attention", attention),
                        ("model.swiglu", swiglu),
                    ];
                    if own {
                        knobs.extend([
                            ("model.norm", "fused"),
                            ("model.loss", "fused"),
                            ("model.matmul", "own"),
                            ("train.optimizer", "fused"),
                        ]);
                    }
                    all.push(knobs);
                }
            }
        }
    }
    for (knob, value) in [
        ("model.norm", "fused"),
        ("model.loss", "fused"),
        ("model.loss", "in-parts"),
        ("model.matmul", "own"),
        ("train.optimizer", "fused"),
        ("model.kv-layout", "strided"),
    ] {
        all.push(vec![(knob, value)]);
    }
    all.push(vec![("model.loss", "in-parts"), ("model.matmul", "own")]);
    all
}

/// Every value of every knob at least once, the plain and the full set of our own kernels among them: a shorter list,
/// because each kernel is compiled when it is first used.
pub(super) fn device_combinations() -> Vec<Vec<(&'static str, &'static str)>> {
    let own = [
        ("model.norm", "fused"),
        ("model.loss", "fused"),
        ("model.matmul", "own"),
        ("train.optimizer", "fused"),
    ];
    let mut all = vec![vec![], own.to_vec()];
    for (qkv, attention, swiglu) in [
        ("fused", "flash", "fused-activation"),
        ("separate", "flash", "naive-kernel"),
        ("fused", "kernel", "fused-gate-up"),
        ("separate", "kernel", "separate"),
    ] {
        let mut knobs = vec![
            ("model.qkv", qkv),
            ("model.attention", attention),
            ("model.swiglu", swiglu),
        ];
        all.push(knobs.clone());
        knobs.extend(own);
        all.push(knobs);
    }
    all.push(vec![("model.kv-layout", "strided")]);
    all.push(vec![("model.loss", "in-parts")]);
    all.push(vec![("model.loss", "in-parts"), ("model.matmul", "own")]);
    all
}

fn numbers(tensor: Tensor<2>) -> Vec<f64> {
    tensor
        .inner()
        .into_data()
        .iter::<f32>()
        .map(f64::from)
        .collect()
}

/// max|difference| / max|reference|
fn distance(have: &[f64], want: &[f64]) -> f64 {
    assert_eq!(have.len(), want.len());
    assert!(have.iter().all(|x| x.is_finite()));
    let largest = want.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    have.iter()
        .zip(want)
        .fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()))
        / largest
}

/// Compares logits and gradients of a run in a short format of this unit roundoff. Each operand of a product is rounded once, by
/// at most `unit` of itself, so each product is off by at most 2·unit of its terms, and what comes before adds up along the
/// longest path: 6 products a layer (q, score, mix, o, gate, down) and the head for a logit, and the same way back for a
/// gradient. The tolerances are 2·unit times these products. Measured on the CPU device, the worst are 0.6 of it.
pub(super) fn compare_short(golden: &Golden, knobs: &[(&str, &str)], device: &Device, unit: f64) {
    let config = golden.config(knobs);
    let model = Model::new(&config, &golden.weights(&config), device).expect("golden weights fit");
    let tokens = Tokens::new(&golden.batch(), device);
    let products = (6 * config.model.layers + 1) as f64;
    let allowed = [1.0, 2.0].map(|passes| passes * 2.0 * unit * products);

    let logits = distance(&numbers(model.logits(&tokens, None)), &golden.logits);
    println!(
        "{knobs:?}: logits {:.3} of their bound",
        logits / allowed[0]
    );
    assert!(
        logits <= allowed[0],
        "{knobs:?}: logits differ by {logits:e}"
    );
    assert!(logits > 0.01 * unit, "{knobs:?}: nothing was rounded");

    let scale = LossScale::new(device);
    let gradients = model.loss(&tokens, Some(&scale)).backward();
    let mut worst = 0.0_f64;
    for parameter in model.parameters() {
        let gradient = parameter.value.grad(&gradients).expect("a gradient");
        let data = gradient.into_data();
        let unscaled = data.iter::<f32>().map(|g| f64::from(g) / f64::from(FIRST));
        let have: Vec<f64> = unscaled.collect();
        let off = distance(&have, &golden.expected(&parameter.name, |p| &p.grad));
        let name = &parameter.name;
        assert!(
            off <= allowed[1],
            "{knobs:?}: gradient of {name} differs by {off:e}"
        );
        worst = worst.max(off / allowed[1]);
    }
    println!("{knobs:?}: gradients {worst:.3} of their bound");
}

/// Compares logits, loss and gradients within 1e-4 and one update within 1e-3, relative to the largest reference value.
pub(super) fn compare(golden: &Golden, knobs: &[(&str, &str)], device: &Device) {
    let config = golden.config(knobs);
    let mut model =
        Model::new(&config, &golden.weights(&config), device).expect("golden weights fit");
    let tokens = Tokens::new(&golden.batch(), device);

    let logits = distance(&numbers(model.logits(&tokens, None)), &golden.logits);
    assert!(logits <= 1e-4, "{knobs:?}: logits differ by {logits:e}");

    let loss = model.loss(&tokens, None);
    let value = numbers(loss.clone())[0];
    assert!(
        (value - golden.loss).abs() <= 1e-4 * golden.loss,
        "{knobs:?}: loss {value} against {}",
        golden.loss
    );

    let gradients = loss.backward();
    let mut found = Vec::new();
    let mut before = Vec::new();
    for parameter in model.parameters() {
        let gradient = parameter
            .value
            .grad(&gradients)
            .unwrap_or_else(|| panic!("{knobs:?}: no gradient for {}", parameter.name));
        let off = distance(
            &gradient
                .clone()
                .into_data()
                .iter::<f32>()
                .map(f64::from)
                .collect::<Vec<_>>(),
            &golden.expected(&parameter.name, |p| &p.grad),
        );
        assert!(
            off <= 1e-4,
            "{knobs:?}: gradient of {} differs by {off:e}",
            parameter.name
        );
        found.push(Some(gradient));
        before.push(numbers(parameter.value.clone()));
    }

    let mut optimizer = Optimizer::new(config.train.optimizer, found.len());
    let rate = config.train.learning_rate;
    optimizer.step(model.parameters_mut(), found, rate, None);
    for (parameter, before) in model.parameters().into_iter().zip(before) {
        let update: Vec<f64> = numbers(parameter.value.clone())
            .iter()
            .zip(&before)
            .map(|(a, b)| a - b)
            .collect();
        let (want, slope) = (
            golden.expected(&parameter.name, |p| &p.update),
            golden.expected(&parameter.name, |p| &p.grad),
        );
        let largest = |values: &[f64]| values.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        let noise = 1e-5 * largest(&slope);
        for (i, ((have, want_i), g)) in update.iter().zip(&want).zip(&slope).enumerate() {
            // AdamW's first step divides g by |g| + 1e-8. Where |g| is near 1e-8·10², rounding of the gradient, far inside
            // its own tolerance, moves the quotient: its derivative 1e-8/(|g| + 1e-8)² times a noise of 1e-5 of the largest.
            let conditioned = config.train.learning_rate * 1e-8 * noise / (g.abs() + 1e-8).powi(2);
            let allowed = 1e-3 * largest(&want) + conditioned.min(largest(&want));
            assert!(
                (have - want_i).abs() <= allowed,
                "{knobs:?}: update {i} of {} is {have:e}, not {want_i:e}",
                parameter.name
            );
        }
    }
    let after = numbers(model.loss(&tokens, None))[0];
    assert!(
        (after - golden.loss_after_one_step).abs() <= 1e-4 * golden.loss_after_one_step,
        "{knobs:?}: {after}"
    );
}
