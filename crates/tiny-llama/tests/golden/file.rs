//! PyTorch's reference values, which `assets/golden/tiny_llama.json` holds, and the comparison of a model with them.

use burn::tensor::{Device, Tensor};
use protocol::config::{Knob, KnobValue, Preset, RunConfig};
use serde::Deserialize;
use tiny_llama::data::Batch;
use tiny_llama::model::weights::{self, Weight};
use tiny_llama::model::{Model, Tokens};
use tiny_llama::ops::loss_scale::{FIRST, LossScale};
use tiny_llama::ops::optimizer::Optimizer;

/// The golden file.
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

/// The reference values of one parameter.
#[derive(Deserialize)]
struct Reference {
    /// The parameter's number in the formula of its weights.
    k: usize,
    name: String,
    grad: Vec<f64>,
    /// The change of the parameter in one AdamW step.
    update: Vec<f64>,
}

impl Golden {
    pub(super) fn load() -> Self {
        serde_json::from_str(include_str!("../../assets/golden/tiny_llama.json"))
            .expect("the golden file is valid")
    }

    /// Returns the configuration of the golden sizes with these knobs, given as paths and values.
    pub(super) fn config(&self, knobs: &[(&str, &str)]) -> RunConfig {
        let mut config = RunConfig::preset(Preset::Tiny);
        let sizes = &self.config;
        config.model.vocab = sizes.vocab;
        config.model.hidden = sizes.hidden;
        config.model.layers = sizes.layers;
        config.model.heads = sizes.heads;
        config.model.kv_heads = sizes.kv_heads;
        config.model.ffn = sizes.ffn;
        config.train.context = sizes.context;
        config.train.batch = sizes.batch;
        for (path, value) in knobs {
            Knob::find(path)
                .expect("known")
                .set(&mut config, &KnobValue::Text((*value).to_owned()))
                .expect("valid");
        }
        config
    }

    /// Returns the weights of the formula wave(i) = sin(0.7·i + 1.3·(k+1) + 0.001·i·(k+1)) for parameter k: 0.3·wave(i) for matrices,
    /// 1 + 0.1·wave(i) for gains.
    fn weights(&self, config: &RunConfig) -> Vec<Weight> {
        weights::names(&config.model)
            .into_iter()
            .map(|(name, shape)| {
                let k = self.parameter(&name).k as f64;
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

    fn parameter(&self, name: &str) -> &Reference {
        let found = self.parameters.iter().find(|known| known.name == name);
        found.expect("a golden parameter")
    }

    /// Returns the tokens of the golden batch: (7·i + 3) mod vocab as inputs, (11·i + 5) mod vocab as targets.
    fn batch(&self) -> Batch {
        let n = self.config.batch * self.config.context;
        let vocab = self.config.vocab;
        let tokens = |a: usize, b: usize| (0..n).map(|i| ((a * i + b) % vocab) as i32).collect();
        Batch {
            inputs: tokens(7, 3),
            targets: tokens(11, 5),
        }
    }

    /// Returns the reference values for one of our parameters. PyTorch's projections are separate, so the values of several are joined for
    /// a fused projection.
    fn expected(&self, name: &str, values: fn(&Reference) -> &Vec<f64>) -> Vec<f64> {
        let separate: &[&str] = if name.contains("qkv_proj") {
            &["q_proj", "k_proj", "v_proj"]
        } else if name.contains("gate_up_proj") {
            &["gate_proj", "up_proj"]
        } else {
            return values(self.parameter(name)).clone();
        };
        separate
            .iter()
            .flat_map(|part| {
                let name = name.replace("qkv_proj", part).replace("gate_up_proj", part);
                values(self.parameter(&name)).clone()
            })
            .collect()
    }
}

/// Returns combinations of the knobs that keep the mathematics: each value alone, all of our own kernels at once, and every combination of the
/// knobs whose operations share data.
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

/// Returns a shorter list of combinations for a GPU, because each kernel is compiled when it is first used. Every value of every knob occurs,
/// and so do the plain versions alone and all of our own kernels at once.
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

/// Returns max|difference| / max|want|. Fails if a value is not finite.
fn distance(got: &[f64], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    assert!(got.iter().all(|x| x.is_finite()));
    let differences: Vec<f64> = got.iter().zip(want).map(|(a, b)| a - b).collect();
    largest(&differences) / largest(want)
}

/// Returns the largest magnitude.
fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0_f64, |most, x| most.max(x.abs()))
}

/// Compares logits and gradients of a run in a short format of this unit roundoff. Each operand of a product is rounded once, by at most `unit`
/// of itself, so each product is off by at most 2·unit of its terms. These errors add up along the longest path: 6 products a layer (q, score,
/// mix, o, gate, down) and the head for a logit, and as many on the way back for a gradient. The tolerances are 2·unit times the number of
/// products. On the CPU device, the worst differences were measured at 0.6 of them.
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
        let unscaled: Vec<f64> = gradient
            .into_data()
            .iter::<f32>()
            .map(|g| f64::from(g) / f64::from(FIRST))
            .collect();
        let name = &parameter.name;
        let off = distance(&unscaled, &golden.expected(name, |p| &p.grad));
        assert!(
            off <= allowed[1],
            "{knobs:?}: gradient of {name} differs by {off:e}"
        );
        worst = worst.max(off / allowed[1]);
    }
    println!("{knobs:?}: gradients {worst:.3} of their bound");
}

/// Compares logits, loss and gradients within 1e-4 of the largest reference value, and one update within 1e-3 of it.
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
        let name = &parameter.name;
        let got: Vec<f64> = gradient.to_data().iter::<f32>().map(f64::from).collect();
        let off = distance(&got, &golden.expected(name, |p| &p.grad));
        assert!(
            off <= 1e-4,
            "{knobs:?}: gradient of {name} differs by {off:e}"
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
        let want = golden.expected(&parameter.name, |p| &p.update);
        let gradient = golden.expected(&parameter.name, |p| &p.grad);
        let noise = 1e-5 * largest(&gradient);
        for (i, ((got, want_i), g)) in update.iter().zip(&want).zip(&gradient).enumerate() {
            // AdamW's first step divides g by |g| + 1e-8. Where |g| is small, rounding of the gradient, far inside its own tolerance, moves
            // the quotient. How far follows from its derivative 1e-8/(|g| + 1e-8)² and a noise of 1e-5 of the largest gradient.
            let from_noise = rate * 1e-8 * noise / (g.abs() + 1e-8).powi(2);
            let allowed = 1e-3 * largest(&want) + from_noise.min(largest(&want));
            assert!(
                (got - want_i).abs() <= allowed,
                "{knobs:?}: update {i} of {} is {got:e}, not {want_i:e}",
                parameter.name
            );
        }
    }
    let after = numbers(model.loss(&tokens, None))[0];
    assert!(
        (after - golden.loss_after_one_step).abs() <= 1e-4 * golden.loss_after_one_step,
        "{knobs:?}: loss {after} after one step against {}",
        golden.loss_after_one_step
    );
}
