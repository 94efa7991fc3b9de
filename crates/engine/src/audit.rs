//! What every run shows besides speed: which parameters got a gradient, what the logits look like, whether they are the
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

/// √Σx², in double precision. Copies the tensor to the host.
fn norm(tensor: &Tensor<2>) -> f64 {
    let data = tensor.clone().into_data();
    data.iter::<f64>().map(|x| x * x).sum::<f64>().sqrt()
}

/// What a step under the profiler showed.
pub struct ProfiledStep {
    pub took: Duration,
    pub gradients: Gradients,
    pub profiled: Profiled,
    /// Bytes in use on a GPU after the forward or the backward pass, whichever is more.
    pub kept: Option<u64>,
}

/// One step under the profiler, with the gradient audit between backward and update. The audit's own time, and that of
/// reading the profile, is not in the wall time returned.
///
/// # Errors
/// When the device is lost.
pub fn profiled_step(worker: &mut Worker) -> Result<ProfiledStep> {
    worker.sync()?;
    let profile = observer::start(is_cpu(&worker.device));
    let began = Instant::now();
    worker.forward();
    let mut kept = in_use(&worker.device);
    worker.backward();
    kept = kept.max(in_use(&worker.device));
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
        kept,
    })
}

/// Bytes in tensors on a GPU; its pool reserves more, in pages.
pub fn in_use(device: &Device) -> Option<u64> {
    if is_cpu(device) {
        return None;
    }
    device.memory_pool_usage().map(|usage| usage.bytes_in_use)
}

/// The gradient audit of the step in progress, between backward and update.
pub fn gradients(worker: &Worker) -> Gradients {
    let parameters = worker.model.parameters();
    let mut audit = Gradients {
        tensors: parameters.len() as u32,
        ..Gradients::default()
    };
    let (mut total, mut reached, mut squares) = (0_u64, 0_u64, 0.0);
    let present: Vec<&Tensor<2>> = worker.gradients.iter().flatten().collect();
    let scale = worker.loss_scale.as_ref().and_then(LossScale::read);
    let factor = scale.map_or(1.0, |scale| f64::from(scale.factor));
    let lengths = grad_norm::lengths(&present).into_iter();
    let mut lengths = lengths.map(|length| length / factor);
    let counts = grad_norm::exponents(&present);
    audit.exponents = (!present.is_empty()).then(|| exponents(&counts, factor));
    let mut counts = counts.iter();
    audit.loss_scale = scale.map(|scale| f64::from(scale.factor));
    audit.skipped = scale.map(|scale| scale.skipped);
    for (index, parameter) in parameters.iter().enumerate() {
        let count = parameter.value.shape().num_elements() as u64;
        let gradient = worker.gradients.get(index).and_then(Option::as_ref);
        let length = gradient.and_then(|_| lengths.next());
        let counts = gradient.and_then(|_| counts.next());
        total += count;
        if let Some(length) = length {
            squares += length * length;
            if length.is_finite() && length > 0.0 {
                reached += count;
                audit.with_grad += 1;
            }
        }
        audit.rows.push(GradientRow {
            name: parameter.name.clone(),
            parameters: count,
            norm: length.map(Num),
            zero_pct: counts.and_then(zero_pct),
        });
    }
    audit.params_pct = 100.0 * reached as f64 / total.max(1) as f64;
    audit.norm = Num(squares.sqrt());
    audit
}

/// The share of a tensor's elements that are zero.
fn zero_pct(counts: &[u64; 256]) -> Option<f64> {
    let all: u64 = counts.iter().sum();
    (all > 0).then(|| 100.0 * counts[0] as f64 / all as f64)
}

/// The sizes of all elements, without the loss scale, which is a power of two.
fn exponents(tensors: &[[u64; 256]], factor: f64) -> Exponents {
    let shift = factor.log2().round() as i32;
    let (lowest, highest) = (Exponents::LOWEST, Exponents::HIGHEST);
    let mut sizes = Exponents {
        zeros: 0,
        counts: vec![0; (highest - lowest + 1) as usize],
    };
    for (bits, count) in tensors.iter().flat_map(|counts| counts.iter().enumerate()) {
        let exponent = (bits as i32 - 127 - shift).clamp(lowest, highest);
        match bits {
            0 => sizes.zeros += count,
            _ => sizes.counts[(exponent - lowest) as usize] += count,
        }
    }
    sizes
}

/// A forward pass without gradients, with its logits and the residual stream examined.
pub fn evidence(worker: &Worker) -> Evidence {
    let Some(tokens) = &worker.tokens else {
        return Evidence::default();
    };
    let model = worker.model.without_gradients();
    let mut seen = ForwardRecord::default();
    let logits = model.logits(tokens, Some(&mut seen)); // [n, vocab]
    let [rows, vocab] = logits.dims();
    let values: Vec<f32> = logits.into_data().iter::<f32>().collect();
    let n = values.len() as f64;
    let mean = values.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let squares = values.iter().map(|x| (f64::from(*x) - mean).powi(2));
    let variance = squares.sum::<f64>() / n;
    let inputs: Vec<i32> = tokens.inputs.clone().into_data().iter::<i32>().collect();
    let is_own = |(row, token): &(&[f32], &i32)| {
        let largest = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        largest.is_some_and(|(index, _)| index as i32 == **token)
    };
    let rows_and_inputs = values.chunks_exact(vocab).zip(&inputs);
    let own = rows_and_inputs.filter(is_own).count();
    let extreme =
        |pick: fn(f32, f32) -> f32| values.iter().copied().reduce(pick).map(|x| Num(x.into()));
    let rms = |x: &Tensor<2>| Num(norm(x) / (x.shape().num_elements() as f64).sqrt());
    Evidence {
        logit_std: Some(Num(variance.sqrt())),
        logit_min: extreme(f32::min),
        logit_max: extreme(f32::max),
        argmax_is_input: Some(own as f64 / rows as f64),
        rms: seen.residual.iter().map(rms).collect(),
        parity: parity(worker, &values),
        strides: model.attention_strides(),
        ..Evidence::default()
    }
}

/// The longest context over which the reference writes its scores, which take context² values a head.
const LONGEST_REFERENCE: usize = 1024;

/// max|logits − reference| / max|reference| with the same weights and tokens; 0 when the model is the reference.
/// Over a longer context, of the first tokens of the first sequence only: what comes after them must not matter.
fn parity(worker: &Worker, logits: &[f32]) -> Option<Num> {
    let (tokens, context) = (worker.tokens.as_ref()?, worker.model.context());
    let reference = worker.model.reference(context.min(LONGEST_REFERENCE));
    let same = reference.config() == worker.model.config();
    if same && worker.model.format() == Format::Full && !learner_kernel::any() {
        return Some(Num(0.0));
    }
    let want = learner_kernel::without(|| {
        if context > LONGEST_REFERENCE {
            reference.logits(&tokens.first(LONGEST_REFERENCE), None) // [1024, vocab]
        } else {
            reference.logits(tokens, None) // [n, vocab]
        }
    });
    let want: Vec<f32> = want.into_data().iter::<f32>().collect();
    let largest = want.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
    let off = logits.iter().zip(&want).map(|(a, b)| (a - b).abs());
    let off = off.fold(0.0_f32, |m, it| if it.is_nan() { it } else { m.max(it) });
    Some(Num(f64::from(off / largest)))
}

/// The first tensor that is not finite: gradients of the step first, then weights, else the loss itself.
pub fn not_finite(worker: &Worker) -> String {
    let bad = |tensor: &Tensor<2>| !norm(tensor).is_finite();
    let parameters: Vec<&Parameter> = worker.model.parameters();
    let weight = parameters.iter().find(|p| bad(&p.value.clone().inner()));
    if let Some(parameter) = weight {
        return format!("the weight {}", parameter.name);
    }
    let mut gradients = worker.gradients.iter().zip(&parameters);
    match gradients.find(|(g, _)| g.as_ref().is_some_and(bad)) {
        Some((_, parameter)) => format!("the gradient of {}", parameter.name),
        None => "the logits".to_owned(),
    }
}
