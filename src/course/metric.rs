//! The figures of a finished run by name, such as `step_ms` or `part.attention.ms`, for checks and placeholders. A figure that was not measured
//! is `None`, never 0.

use protocol::Finished;

/// A figure of a run.
pub struct RunMetric {
    /// The name: `step_ms`.
    pub name: &'static str,
    /// The number of digits after the point.
    pub decimals: usize,
    /// The unit; empty for a number without one.
    pub unit: &'static str,
    /// One line about the figure, for authors.
    pub about: &'static str,
    /// Reads the figure of a run; `None` if it was not measured.
    pub value: fn(&Finished) -> Option<f64>,
}

/// Returns the metric with this name.
pub fn find(name: &str) -> Option<&'static RunMetric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// Returns the names of all metrics.
pub fn names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.name)
}

/// Returns the value of a metric, of `part.<name>.ms`, or of `group.<name>.ms`; `None` if it was not measured.
pub fn value(name: &str, finished: &Finished) -> Option<f64> {
    match part_of(name) {
        Some((part, group)) => part_ms(finished, part, group),
        None => (find(name)?.value)(finished),
    }
}

/// Returns the number of digits after the point with which a figure is shown, and its unit.
pub fn decimals_and_unit(name: &str) -> (usize, &'static str) {
    find(name).map_or((3, "ms"), |metric| (metric.decimals, metric.unit))
}

/// Returns true for the name of a metric or of the time of a part.
pub fn is_known(name: &str) -> bool {
    find(name).is_some() || part_of(name).is_some()
}

/// Returns true for a figure that is computed from the times of many steps. It still changes after few steps.
pub fn depends_on_step_times(name: &str) -> bool {
    let is_time = |metric: &RunMetric| ["ms", "samples/s", "tokens/s"].contains(&metric.unit);
    name.starts_with("phases.") || find(name).is_some_and(is_time)
}

/// Returns true if a kernel of the run belongs to a part of the model, such as `attention` or `mlp.swiglu`; `None` without a profile.
pub fn has_part(finished: &Finished, part: &str) -> Option<bool> {
    let mut rows = profiled(finished)?.kernels.top.iter();
    Some(rows.any(|row| belongs(&row.scope, part, false)))
}

/// Returns the part in the name of a time, and true for a group: `attention` for `part.attention.ms`, which means the kernels of exactly
/// this part; `mlp` for `group.mlp.ms`, which includes `mlp.gate`.
pub(super) fn part_of(name: &str) -> Option<(&str, bool)> {
    let (head, rest) = name.split_once('.')?;
    let part = rest.strip_suffix(".ms")?;
    let is_plain = part
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || ".-".contains(c));
    let is_part = is_plain && !part.is_empty() && ["part", "group"].contains(&head);
    is_part.then_some((part, head == "group"))
}

/// Returns true if a kernel with this scope, such as `layers.0/mlp.gate`, belongs to the part, or with `group` to a part below it.
fn belongs(scope: &str, part: &str, group: bool) -> bool {
    scope.split('/').any(|piece| {
        let rest = piece.strip_prefix(part);
        rest.is_some_and(|rest| rest.is_empty() || (group && rest.starts_with('.')))
    })
}

/// Returns the device time of the part's kernels in a step, in milliseconds; `None` without such a kernel.
fn part_ms(finished: &Finished, part: &str, group: bool) -> Option<f64> {
    finished
        .kernels
        .top
        .iter()
        .filter(|row| belongs(&row.scope, part, group))
        .map(|row| row.ms)
        .reduce(|sum, ms| sum + ms)
}

/// Returns the run if it has made a step.
fn steps(f: &Finished) -> Option<&Finished> {
    (f.steps > 0).then_some(f)
}

/// Returns the run if one of its steps was profiled.
fn profiled(f: &Finished) -> Option<&Finished> {
    (f.kernels.reason.is_none() && f.kernels.launches_per_step > 0).then_some(f)
}

fn launches(f: &Finished) -> Option<f64> {
    Some(f64::from(profiled(f)?.kernels.launches_per_step))
}

/// Returns the run if its gradients were looked at.
fn audited(f: &Finished) -> Option<&Finished> {
    (f.grad.tensors > 0).then_some(f)
}

fn mib(bytes: u64) -> Option<f64> {
    (bytes > 0).then(|| bytes as f64 / (1024.0 * 1024.0))
}

// A row has the name, the digits after the point, the unit, the words about the figure, and the function that reads it.
macro_rules! metrics {
    ($($name:literal $decimals:literal $unit:literal $about:literal $value:expr;)+) => {
        /// Every figure of a run.
        pub static METRICS: &[RunMetric] = &[$(RunMetric {
            name: $name, decimals: $decimals, unit: $unit, about: $about, value: $value
        }),+];
    };
}

metrics! {
    "steps" 0 "" "steps of the run" |f| Some(f.steps as f64);
    "loss_first" 2 "nats" "loss of the first step" |f| {
        // A run that went on with another's weights has no loss before any update.
        (steps(f)?.first_step == 0).then_some(f.loss_first.0)
    };
    "loss_last" 3 "nats" "loss of the last step" |f| Some(steps(f)?.loss_last.0);
    "ln_vocab" 3 "nats" "loss of a model that knows nothing" |f| Some(steps(f)?.ln_vocab);
    "entropy" 3 "nats" "entropy rate of the data: the lowest honest loss" |f| f.entropy;
    "samples_per_s" 1 "samples/s" "rows trained in a second" |f| f.samples_per_s;
    "enqueue_samples_per_s" 1 "samples/s" "rows submitted in a second, where no step waited"
        |f| f.enqueue_samples_per_s;
    "tokens_per_s" 0 "tokens/s" "tokens trained in a second" |f| f.tokens_per_s;
    "step_ms" 2 "ms" "time of a step, median" |f| Some(f.step_ms?.median);
    "step_ms.p25" 2 "ms" "a quarter of the steps took less" |f| Some(f.step_ms?.p25);
    "step_ms.p75" 2 "ms" "a quarter of the steps took more" |f| Some(f.step_ms?.p75);
    "step_ms.p95" 2 "ms" "one step in twenty took more" |f| Some(f.step_ms?.p95);
    "step_ms.n" 0 "" "steps that were timed" |f| Some(f.step_ms?.n as f64);
    "phases.forward" 2 "ms" "time of the forward pass" |f| Some(f.phases_ms?.forward);
    "phases.backward" 2 "ms" "time of the backward pass" |f| Some(f.phases_ms?.backward);
    "phases.optimizer" 2 "ms" "time of the optimizer" |f| Some(f.phases_ms?.optimizer);
    "phases.sum" 2 "ms" "forward, backward and optimizer" |f| {
        let phases = f.phases_ms?;
        Some(phases.forward + phases.backward + phases.optimizer)
    };
    "phases.residual" 2 "ms" "time of the step in no phase: unaccounted"
        |f| Some(f.phases_ms?.residual);
    "phases.step" 2 "ms" "time of a step with its phases" |f| Some(f.phases_ms?.step);
    "phases.residual_pct" 1 "%" "the unaccounted share of the step" |f| {
        let phases = f.phases_ms.filter(|phases| phases.step > 0.0)?;
        Some(100.0 * phases.residual.abs() / phases.step)
    };
    "phases.backward_over_forward" 2 ""
        "time of the backward pass over the time of the forward pass"
        |f| {
            let phases = f.phases_ms.filter(|phases| phases.forward > 0.0)?;
            Some(phases.backward / phases.forward)
        };
    "phases.backward_pct" 1 "%" "the share of backward in the three phases" |f| {
        let phases = f.phases_ms?;
        let all = phases.forward + phases.backward + phases.optimizer;
        (all > 0.0).then(|| 100.0 * phases.backward / all)
    };
    "grad.tensors" 0 "" "parameter tensors" |f| Some(f64::from(audited(f)?.grad.tensors));
    "grad.with_grad" 0 "" "parameter tensors that received a gradient"
        |f| Some(f64::from(audited(f)?.grad.with_grad));
    "grad.params_pct" 2 "%" "share of parameters that received a gradient"
        |f| Some(audited(f)?.grad.params_pct);
    "grad.zero_pct" 2 "%"
        "share of gradient elements that are exactly zero, in the step that was profiled last"
        |f| audited(f)?.grad.zero_pct;
    "grad.loss_scale" 0 "" "factor of the loss in the last profiled step"
        |f| audited(f)?.grad.loss_scale;
    "grad.skipped" 0 "" "steps left out because a gradient overflowed"
        |f| Some(f64::from(audited(f)?.grad.skipped?));
    "kernels.launches_per_step" 0 "" "kernels launched in a step" launches;
    "kernels.unique" 0 "" "different kernels" |f| Some(f64::from(profiled(f)?.kernels.unique));
    "kernels.us_per_launch" 1 "µs" "time of a step over its launches"
        |f| Some(1e3 * f.step_ms?.median / launches(f)?);
    "kernels.tokens_per_launch" 2 "" "tokens of a step over its launches" |f| {
        Some(f.tokens_per_s? * f.step_ms?.median / 1e3 / launches(f)?)
    };
    "kernels.device_ms" 2 "ms" "device time of a profiled step"
        |f| Some(profiled(f)?.kernels.device_ms);
    "kernels.coverage_pct" 1 "%" "share of the step that rows explain"
        |f| Some(100.0 * profiled(f)?.kernels.coverage);
    "memory.peak_mib" 1 "MiB" "highest use of memory, measured" |f| mib(f.memory.peak_bytes?);
    "memory.weights_mib" 1 "MiB" "weights" |f| mib(f.memory.weights);
    "memory.gradients_mib" 1 "MiB" "gradients" |f| mib(f.memory.gradients);
    "memory.moments_mib" 1 "MiB" "the optimizer's moments" |f| mib(f.memory.moments);
    "parity" 3 "" "largest difference of the logits from the reference, over the largest logit"
        |f| {
        Some(f.evidence.as_ref()?.parity?.0)
    };
    "logit_std" 2 "" "spread of the first logits" |f| Some(f.evidence.as_ref()?.logit_std?.0);
    "logit_min" 1 "" "smallest of the first logits" |f| Some(f.evidence.as_ref()?.logit_min?.0);
    "logit_max" 1 "" "largest of the first logits" |f| Some(f.evidence.as_ref()?.logit_max?.0);
    "argmax_is_input_pct" 0 "%" "positions that predict their own input token" |f| {
        Some(100.0 * f.evidence.as_ref()?.argmax_is_input?)
    };
    "rms_first" 3 "" "size of the residual stream after the embedding"
        |f| Some(f.evidence.as_ref()?.rms.first()?.0);
    "rms_last" 3 "" "size of the residual stream after the last layer"
        |f| Some(f.evidence.as_ref()?.rms.last()?.0);
    "clocks.enqueue" 2 "ms" "one step on the host's clock, without waiting"
        |f| Some(f.evidence.as_ref()?.clocks?.enqueue);
    "clocks.host_sync" 2 "ms" "one step on the host's clock, with a wait at its end"
        |f| Some(f.evidence.as_ref()?.clocks?.host_sync);
    "clocks.device" 2 "ms" "sum of the device's times of all kernels"
        |f| f.evidence.as_ref()?.clocks?.device;
}
