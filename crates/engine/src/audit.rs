//! Facts that a run shows besides its speed: which parameters got a gradient, how the logits are distributed and how far they are from the
//! reference's, and which tensor stopped being finite.

use std::time::{Duration, Instant};

use anyhow::Result;
use burn::tensor::{Device, Tensor};

use super::observer::{self, Profiled};
use super::worker::Worker;
use protocol::{Evidence, Exponents, GradientRow, Gradients, Num};
use tiny_llama::model::ForwardRecord;
use tiny_llama::ops::backend::is_cpu;
use tiny_llama::ops::format::Format;
use tiny_llama::ops::loss_scale::LossScale;
use tiny_llama::ops::{Parameter, grad_norm, learner_kernel};

/// Returns √Σx², in double precision. This copies the tensor to the host.
fn norm(tensor: &Tensor<2>) -> f64 {
    let data = tensor.clone().into_data();
    data.iter::<f64>().map(|x| x * x).sum::<f64>().sqrt()
}

/// The results of one step under the profiler.
pub struct ProfiledStep {
    /// The wall time of the step, without the audit and without reading the profile.
    pub took: Duration,
    pub gradients: Gradients,
    pub profiled: Profiled,
    /// The bytes in use on a GPU after the forward or the backward pass, whichever is more; `None` on the CPU.
    pub bytes_in_use: Option<u64>,
}

/// Takes one step under the profiler, with the gradient audit between backward and update.
///
/// # Errors
/// Fails when the device is lost.
pub fn profiled_step(worker: &mut Worker) -> Result<ProfiledStep> {
    worker.sync()?;
    let profile = observer::start(is_cpu(&worker.device));
    let began = Instant::now();
    worker.forward();
    let after_forward = bytes_in_use(&worker.device);
    worker.backward();
    let after_backward = bytes_in_use(&worker.device);
    worker.sync()?;
    let mut took = began.elapsed();
    let gradients = profile.excluding(|| gradients(worker));
    let began = Instant::now();
    worker.update();
    worker.sync()?;
    took += began.elapsed();
    Ok(ProfiledStep {
        took,
        gradients,
        profiled: profile.stop(),
        bytes_in_use: after_forward.max(after_backward),
    })
}

/// Returns the bytes that tensors use on a GPU; `None` on the CPU. The GPU's pool reserves more, in whole pages.
pub fn bytes_in_use(device: &Device) -> Option<u64> {
    if is_cpu(device) {
        return None;
    }
    device.memory_pool_usage().map(|usage| usage.bytes_in_use)
}

/// Audits the gradients of the step in progress: call it between backward and update. Norms are without the loss scale.
pub fn gradients(worker: &Worker) -> Gradients {
    let parameters = worker.model.parameters();
    let mut audit = Gradients {
        tensors: parameters.len() as u32,
        ..Gradients::default()
    };
    let mut total = 0_u64;
    let mut reached = 0_u64;
    let mut squares = 0.0;
    let present: Vec<&Tensor<2>> = worker.gradients.iter().flatten().collect();
    let scale = worker.loss_scale.as_ref().and_then(LossScale::read);
    let factor = scale.map_or(1.0, |scale| f64::from(scale.factor));
    let all_counts = grad_norm::exponents(&present);
    audit.exponents = (!present.is_empty()).then(|| exponents(&all_counts, factor));
    audit.loss_scale = scale.map(|scale| f64::from(scale.factor));
    audit.skipped = scale.map(|scale| scale.skipped);
    let norms = grad_norm::lengths(&present);
    let mut measured = norms.iter().zip(&all_counts);
    for (index, parameter) in parameters.iter().enumerate() {
        let mut row = GradientRow {
            name: parameter.name.clone(),
            parameters: parameter.value.shape().num_elements() as u64,
            ..GradientRow::default()
        };
        total += row.parameters;
        if worker.gradients.get(index).is_some_and(Option::is_some)
            && let Some((scaled_norm, counts)) = measured.next()
        {
            let norm = scaled_norm / factor;
            squares += norm * norm;
            if norm.is_finite() && norm > 0.0 {
                reached += row.parameters;
                audit.with_grad += 1;
            }
            row.norm = Some(Num(norm));
            row.zero_pct = zero_pct(counts);
        }
        audit.rows.push(row);
    }
    audit.params_pct = 100.0 * reached as f64 / total.max(1) as f64;
    audit.norm = Num(squares.sqrt());
    audit
}

/// Returns the percentage of a tensor's elements that are zero; `None` for a tensor without elements.
fn zero_pct(counts: &[u64; 256]) -> Option<f64> {
    let all: u64 = counts.iter().sum();
    (all > 0).then(|| 100.0 * counts[0] as f64 / all as f64)
}

/// Adds up the elements of all tensors by their exponent. Each tensor is given as counts by the exponent bits of f32. The loss scale `factor`, a
/// power of two, is taken out.
fn exponents(tensors: &[[u64; 256]], factor: f64) -> Exponents {
    let shift = factor.log2().round() as i32;
    let lowest = Exponents::LOWEST;
    let highest = Exponents::HIGHEST;
    let mut exponents = Exponents {
        zeros: 0,
        counts: vec![0; (highest - lowest + 1) as usize],
    };
    for (bits, count) in tensors.iter().flat_map(|counts| counts.iter().enumerate()) {
        let exponent = (bits as i32 - 127 - shift).clamp(lowest, highest);
        match bits {
            0 => exponents.zeros += count,
            _ => exponents.counts[(exponent - lowest) as usize] += count,
        }
    }
    exponents
}

/// Makes a forward pass without gradients, and describes its logits and the residual stream.
pub fn evidence(worker: &Worker) -> Evidence {
    let Some(tokens) = &worker.tokens else {
        return Evidence::default();
    };
    let model = worker.model.without_gradients();
    let mut record = ForwardRecord::default();
    let logits = model.logits(tokens, Some(&mut record)); // [n, vocab]
    let [rows, vocab] = logits.dims();
    let values: Vec<f32> = logits.into_data().iter::<f32>().collect();
    let n = values.len() as f64;
    let mean = values.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let variance = values
        .iter()
        .map(|x| (f64::from(*x) - mean).powi(2))
        .sum::<f64>()
        / n;
    let inputs: Vec<i32> = tokens.inputs.clone().into_data().iter::<i32>().collect();
    let predicts_input = |(row, token): &(&[f32], &i32)| {
        let largest = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        largest.is_some_and(|(index, _)| index as i32 == **token)
    };
    let predicted_inputs = values
        .chunks_exact(vocab)
        .zip(&inputs)
        .filter(predicts_input)
        .count();
    let extreme =
        |pick: fn(f32, f32) -> f32| values.iter().copied().reduce(pick).map(|x| Num(x.into()));
    let rms = |x: &Tensor<2>| Num(norm(x) / (x.shape().num_elements() as f64).sqrt());
    Evidence {
        logit_std: Some(Num(variance.sqrt())),
        logit_min: extreme(f32::min),
        logit_max: extreme(f32::max),
        argmax_is_input: Some(predicted_inputs as f64 / rows as f64),
        rms: record.residual.iter().map(rms).collect(),
        parity: parity(worker, &values),
        strides: model.attention_strides(),
        ..Evidence::default()
    }
}

/// The longest context that the reference computes. It writes its attention scores, context² values for each head.
const LONGEST_REFERENCE: usize = 1024;

/// Returns max|logits − reference| / max|reference| for equal weights and tokens; 0 if the model computes as the reference does, and `None` before
/// the first batch. In a context longer than [`LONGEST_REFERENCE`] only the first tokens of the first sequence are compared: they must not depend
/// on the tokens after them.
fn parity(worker: &Worker, logits: &[f32]) -> Option<Num> {
    let tokens = worker.tokens.as_ref()?;
    let context = worker.model.context();
    let reference = worker.model.reference(context.min(LONGEST_REFERENCE));
    let is_reference = reference.config() == worker.model.config()
        && worker.model.format() == Format::Full
        && !learner_kernel::any();
    if is_reference {
        return Some(Num(0.0));
    }
    let expected_logits = learner_kernel::without(|| {
        if context > LONGEST_REFERENCE {
            reference.logits(&tokens.first(LONGEST_REFERENCE), None) // [1024, vocab]
        } else {
            reference.logits(tokens, None) // [n, vocab]
        }
    });
    let expected: Vec<f32> = expected_logits.into_data().iter::<f32>().collect();
    let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let mut difference = 0.0_f32;
    for (logit, expected) in logits.iter().zip(&expected) {
        let error = (logit - expected).abs();
        // `f32::max` ignores a NaN, and a NaN has to show.
        difference = if error.is_nan() {
            error
        } else {
            difference.max(error)
        };
    }
    Some(Num(f64::from(difference / largest)))
}

/// Returns a name for the first tensor that is not finite: a weight, else a gradient of the step. If all are finite, it names the logits.
pub fn not_finite(worker: &Worker) -> String {
    let not_finite = |tensor: &Tensor<2>| !norm(tensor).is_finite();
    let parameters: Vec<&Parameter> = worker.model.parameters();
    let weight = parameters
        .iter()
        .find(|parameter| not_finite(&parameter.value.clone().inner()));
    if let Some(parameter) = weight {
        return format!("the weight {}", parameter.name);
    }
    let gradient = worker
        .gradients
        .iter()
        .zip(&parameters)
        .find(|(gradient, _)| gradient.as_ref().is_some_and(not_finite));
    match gradient {
        Some((_, parameter)) => format!("the gradient of {}", parameter.name),
        None => "the logits".to_owned(),
    }
}
