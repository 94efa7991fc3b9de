//! The reasons why a configuration cannot run.

use super::knobs::KNOBS;
use super::run::{Launches, LossScaling, Optimizer, Precision, RunConfig, Swiglu};
use crate::thresholds;

/// A reason why a configuration cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    pub key: &'static str,
    pub what: String,
}

impl RunConfig {
    /// Returns all reasons why this configuration cannot run. Each has the key at fault, what is wrong and what to write instead.
    pub fn problems(&self) -> Vec<ConfigProblem> {
        let out_of_range = KNOBS.iter().filter_map(|knob| {
            Some(ConfigProblem {
                key: knob.path,
                what: knob.problem(self)?,
            })
        });
        let mut found: Vec<ConfigProblem> = out_of_range.collect();
        let mut report = |key: &'static str, what: String| found.push(ConfigProblem { key, what });
        let m = &self.model;
        if m.heads > 0 && !m.hidden.is_multiple_of(m.heads) {
            let near = nearest_divisor(m.hidden, m.heads);
            report(
                "model.heads",
                format!(
                    "{} heads do not divide hidden = {}; write heads = {near}",
                    m.heads, m.hidden
                ),
            );
        } else if m.heads > 0 && m.hidden > 0 && (m.hidden / m.heads) % 2 == 1 {
            let dh = m.hidden / m.heads;
            report(
                "model.heads",
                format!(
                    "the head dimension hidden / heads = {dh} is odd; rotary embedding turns pairs, so make it even"
                ),
            );
        }
        if m.kv_heads > 0 && m.heads > 0 && !m.heads.is_multiple_of(m.kv_heads) {
            let near = nearest_divisor(m.heads, m.kv_heads);
            report(
                "model.kv-heads",
                format!(
                    "{} kv-heads do not divide heads = {}; write kv-heads = {near}",
                    m.kv_heads, m.heads
                ),
            );
        }
        let rate = self.train.learning_rate;
        if !(rate.is_finite() && rate > 0.0) {
            report(
                "train.learning-rate",
                format!("a learning rate of {rate} trains nothing; write 3e-4"),
            );
        }
        let short = self.train.precision;
        let scaled = self.scales_loss();
        if short != Precision::F32 && m.swiglu == Swiglu::NaiveKernel {
            report(
                "model.swiglu",
                format!(
                    "the naive kernel multiplies in f32 only; with precision = \"{short}\" write swiglu = \"separate\""
                ),
            );
        }
        if scaled && self.train.optimizer == Optimizer::Library {
            report(
                "train.loss-scaling",
                "the library's optimizer cannot leave out a step whose gradients overflow; write optimizer = \"fused\", or \
                 loss-scaling = \"none\""
                    .to_owned(),
            );
        }
        if self.records() && self.train.optimizer == Optimizer::Library {
            report(
                "train.launches",
                "the library's optimizer puts the weights elsewhere in each step, where a replay does not look; write \
                 optimizer = \"fused\", or launches = \"each-step\""
                    .to_owned(),
            );
        }
        found
    }

    /// Returns true if a GPU's launches are recorded once and replayed.
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

fn nearest_divisor(of: usize, wanted: usize) -> usize {
    let divisors = (1..=of).filter(|d| of.is_multiple_of(*d));
    divisors.min_by_key(|d| d.abs_diff(wanted)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    #[test]
    fn impossible_shapes_name_the_nearest_right_one() {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.model.heads = 3;
        assert_eq!(config.problems()[0].key, "model.heads");
        let what = |config: &RunConfig| config.problems()[0].what.clone();
        assert!(what(&config).contains("write heads = 2"));
        config = RunConfig::preset(Preset::Tiny);
        config.model.kv_heads = 3;
        assert!(what(&config).contains("write kv-heads = 2"));
        config = RunConfig::preset(Preset::Tiny);
        config.train.batch = 0;
        assert_eq!(what(&config), "train.batch is 0; write 1 or more");
    }

    #[test]
    fn a_recorded_step_needs_weights_that_stay_where_they_are() {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.train.launches = Launches::Recorded;
        let keys = |config: &RunConfig| {
            let problems = config.problems().into_iter();
            problems.map(|problem| problem.key).collect::<Vec<_>>()
        };
        assert_eq!(keys(&config), ["train.launches"]);
        config.train.optimizer = Optimizer::Fused;
        assert!(keys(&config).is_empty());
    }
}
