//! The values that a person steps through with two keys, and the same values in words: choices in the order of the table,
//! whole numbers by halving and doubling, the learning rate by steps of about three.

use super::knobs::{Knob, KnobValue, ValueKind};
use super::run::RunConfig;

const LEARNING_RATES: [f64; 7] = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2];

impl Knob {
    /// The last part of the path: `init`.
    pub fn name(&self) -> &'static str {
        self.path
            .rsplit_once('.')
            .map_or(self.path, |(_, name)| name)
    }

    /// The value after `from`, or before it. Choices go round; numbers end at their limits: `None`.
    pub fn after(&self, from: &str, by: i32) -> Option<KnobValue> {
        match self.kind {
            ValueKind::Choice(names) => {
                let at = names.iter().position(|name| *name == from)?;
                let to = (at as i32 + by).rem_euclid(names.len() as i32);
                Some(KnobValue::Text(names[to as usize].to_owned()))
            }
            ValueKind::Whole { least, most } => {
                let from: u64 = from.parse().ok()?;
                let to = match (by > 0, self.path) {
                    (true, "train.seed") => from + 1,
                    (false, "train.seed") => from.saturating_sub(1),
                    (true, _) => (from * 2).max(1),
                    (false, _) => from / 2,
                };
                let to = to.clamp(least, most);
                (to != from).then(|| i64::try_from(to).ok().map(KnobValue::Integer))?
            }
            ValueKind::Number => {
                let from: f64 = from.parse().ok()?;
                let mut rates = LEARNING_RATES.into_iter();
                let to = if by > 0 {
                    rates.find(|rate| *rate > from * 1.001)
                } else {
                    rates.rfind(|rate| *rate < from * 0.999)
                };
                to.map(KnobValue::Number)
            }
        }
    }

    /// The values that the key takes, in words: as comments in files and on the screen.
    pub fn allowed(&self) -> String {
        match self.kind {
            ValueKind::Choice(names) => names.join(", "),
            ValueKind::Whole { least, most } => format!("a whole number from {least} to {most}"),
            ValueKind::Number => "a number above 0, such as 1e-4, 3e-4 or 1e-3".to_owned(),
        }
    }

    /// The value as a file has it: words in quotes.
    pub fn written(&self, config: &RunConfig) -> String {
        let value = (self.get)(config);
        match self.kind {
            ValueKind::Choice(_) => format!("\"{value}\""),
            ValueKind::Whole { .. } | ValueKind::Number => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{KNOBS, Preset};

    #[test]
    fn every_knob_can_be_stepped_and_each_step_is_a_value_it_takes() {
        for knob in KNOBS {
            let mut config = RunConfig::preset(Preset::Tiny);
            let mut steps = 0;
            for by in [1, 1, 1, -1, -1] {
                if let Some(value) = knob.after(&(knob.get)(&config), by) {
                    knob.set(&mut config, &value).expect(knob.path);
                    steps += 1;
                }
            }
            assert!(steps >= 3, "{}", knob.path);
        }
    }

    #[test]
    fn numbers_end_at_their_limits() {
        let batch = Knob::known("train.batch").expect("known");
        assert_eq!(batch.after("8", 1), Some(KnobValue::Integer(16)));
        assert_eq!(batch.after("1", -1), None);
        let rate = Knob::known("train.learning-rate").expect("known");
        assert_eq!(rate.after("0.0003", 1), Some(KnobValue::Number(1e-3)));
        assert_eq!(rate.after("0.0002", -1), Some(KnobValue::Number(1e-4)));
        assert_eq!(rate.after("0.01", 1), None);
    }
}
