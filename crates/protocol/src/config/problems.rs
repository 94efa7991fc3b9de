//! The reasons why a configuration cannot run.

use super::knobs::KNOBS;
use super::run::{Launches, LossScaling, Optimizer, Precision, RunConfig, Swiglu};
use crate::thresholds;

/// A reason why a configuration cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    pub key: &'static str,
    pub message: String,
}

impl ConfigProblem {
    fn new(key: &'static str, message: String) -> Self {
        Self { key, message }
    }
}

impl RunConfig {
    /// Returns all reasons why this configuration cannot run. Each has the key at fault, what is wrong and what to write instead.
    pub fn problems(&self) -> Vec<ConfigProblem> {
        let mut found: Vec<ConfigProblem> = KNOBS
            .iter()
            .filter_map(|knob| Some(ConfigProblem::new(knob.path, knob.problem(self)?)))
            .collect();
        found.extend(self.problem_of_heads());
        found.extend(self.problem_of_kv_heads());
        let rate = self.train.learning_rate;
        if !(rate.is_finite() && rate > 0.0) {
            found.push(ConfigProblem::new(
                "train.learning-rate",
                format!("a learning rate of {rate} trains nothing; write 3e-4"),
            ));
        }
        let precision = self.train.precision;
        if precision != Precision::F32 && self.model.swiglu == Swiglu::NaiveKernel {
            found.push(ConfigProblem::new(
                "model.swiglu",
                format!(
                    "the naive kernel multiplies in f32 only; \
                     with precision = \"{precision}\" write swiglu = \"separate\""
                ),
            ));
        }
        if self.scales_loss() && self.train.optimizer == Optimizer::Library {
            found.push(ConfigProblem::new(
                "train.loss-scaling",
                "the library's optimizer cannot leave out a step whose gradients overflow; \
                 write optimizer = \"fused\", or loss-scaling = \"none\""
                    .to_owned(),
            ));
        }
        if self.records() && self.train.optimizer == Optimizer::Library {
            found.push(ConfigProblem::new(
                "train.launches",
                "the library's optimizer puts the weights elsewhere in each step, \
                 where a replay does not look; \
                 write optimizer = \"fused\", or launches = \"each-step\""
                    .to_owned(),
            ));
        }
        found
    }

    /// Returns the problem of a number of heads that does not divide the width, or that makes the width of a head odd.
    fn problem_of_heads(&self) -> Option<ConfigProblem> {
        let heads = self.model.heads;
        let hidden = self.model.hidden;
        let head_dim = hidden.checked_div(heads)?;
        let what = if !hidden.is_multiple_of(heads) {
            let near = nearest_divisor(hidden, heads);
            format!("{heads} heads do not divide hidden = {hidden}; write heads = {near}")
        } else if head_dim % 2 == 1 {
            format!(
                "the head dimension hidden / heads = {head_dim} is odd; \
                 rotary embedding turns pairs, so make it even"
            )
        } else {
            return None;
        };
        Some(ConfigProblem::new("model.heads", what))
    }

    /// Returns the problem of a number of key and value heads that does not divide the number of heads.
    fn problem_of_kv_heads(&self) -> Option<ConfigProblem> {
        let kv_heads = self.model.kv_heads;
        let heads = self.model.heads;
        if kv_heads == 0 || heads.is_multiple_of(kv_heads) {
            return None;
        }
        let near = nearest_divisor(heads, kv_heads);
        Some(ConfigProblem::new(
            "model.kv-heads",
            format!("{kv_heads} kv-heads do not divide heads = {heads}; write kv-heads = {near}"),
        ))
    }

    /// Returns true if the launches of a step on a GPU are recorded once and replayed.
    pub fn records(&self) -> bool {
        self.train.launches == Launches::Recorded
    }

    /// Returns true if the backward pass begins with a scaled loss.
    pub fn scales_loss(&self) -> bool {
        self.train.precision == Precision::F16 && self.train.loss_scaling == LossScaling::Dynamic
    }

    /// Returns the largest parity that rounding explains.
    pub fn rounding(&self) -> f64 {
        match self.train.precision {
            Precision::F32 => thresholds::PARITY_F32,
            Precision::F16 => thresholds::PARITY_F16,
            Precision::Bf16 => thresholds::PARITY_BF16,
        }
    }
}

/// Returns the divisor of `number` that is nearest to `wanted`.
fn nearest_divisor(number: usize, wanted: usize) -> usize {
    (1..=number)
        .filter(|divisor| number.is_multiple_of(*divisor))
        .min_by_key(|divisor| divisor.abs_diff(wanted))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    /// Returns the first problem of `tiny` after a change, its key and its text.
    fn first_problem(change: impl FnOnce(&mut RunConfig)) -> Option<(&'static str, String)> {
        let mut config = RunConfig::preset(Preset::Tiny);
        change(&mut config);
        let first = config.problems().into_iter().next()?;
        Some((first.key, first.message))
    }

    #[test]
    fn a_number_of_heads_that_divides_nothing_names_the_nearest_one_that_does() {
        let (key, text) = first_problem(|config| config.model.heads = 3).expect("3 heads");
        assert_eq!(key, "model.heads");
        assert!(text.contains("write heads = 2"), "{text}");

        let (key, text) = first_problem(|config| config.model.kv_heads = 3).expect("3 kv-heads");
        assert_eq!(key, "model.kv-heads");
        assert!(text.contains("write kv-heads = 2"), "{text}");
    }

    #[test]
    fn a_number_out_of_range_names_the_limit() {
        let (_, text) = first_problem(|config| config.train.batch = 0).expect("no batch");
        assert_eq!(text, "train.batch is 0; write 1 or more");
    }

    #[test]
    fn recorded_launches_need_our_optimizer() {
        let recorded = first_problem(|config| config.train.launches = Launches::Recorded);
        let fused = first_problem(|config| {
            config.train.launches = Launches::Recorded;
            config.train.optimizer = Optimizer::Fused;
        });

        assert_eq!(recorded.map(|(key, _)| key), Some("train.launches"));
        assert_eq!(fused, None);
    }
}
