//! The values that a person steps through with two keys of the keyboard: choices in the order of the table, whole numbers by halving and
//! doubling, the learning rate by factors of about three. The values of a key in words are here too.

use super::knobs::{Knob, KnobValue, ValueKind};
use super::run::RunConfig;

const LEARNING_RATES: [f64; 7] = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2];

impl Knob {
    /// Returns the last part of the path: `init`.
    pub fn name(&self) -> &'static str {
        self.path
            .rsplit_once('.')
            .map_or(self.path, |(_, name)| name)
    }

    /// Returns the value that is `by` steps after the value `from`. After the last choice comes the first one. A number moves one step up or down
    /// with the sign of `by`; `None` if it is at its limit.
    pub fn after(&self, from: &str, by: i32) -> Option<KnobValue> {
        match self.kind {
            ValueKind::Choice(names) => {
                let index = names.iter().position(|name| *name == from)?;
                let next = (index as i32 + by).rem_euclid(names.len() as i32);
                Some(KnobValue::Text(names[next as usize].to_owned()))
            }
            ValueKind::Whole { least, most } => {
                let number: u64 = from.parse().ok()?;
                let wanted = if self.path == "train.seed" {
                    number.saturating_add_signed(by.signum().into())
                } else if by > 0 {
                    (number * 2).max(1)
                } else {
                    number / 2
                };
                let next = wanted.clamp(least, most);
                if next == number {
                    return None;
                }
                i64::try_from(next).ok().map(KnobValue::Integer)
            }
            ValueKind::Number => {
                let number: f64 = from.parse().ok()?;
                let next = if by > 0 {
                    LEARNING_RATES.iter().find(|rate| **rate > number * 1.001)
                } else {
                    LEARNING_RATES.iter().rfind(|rate| **rate < number * 0.999)
                };
                next.copied().map(KnobValue::Number)
            }
        }
    }

    /// Returns the values that the key takes, in words, for comments in files and for the screen.
    pub fn allowed(&self) -> String {
        match self.kind {
            ValueKind::Choice(names) => names.join(", "),
            ValueKind::Whole { least, most } => format!("a whole number from {least} to {most}"),
            ValueKind::Number => "a number above 0, such as 1e-4, 3e-4 or 1e-3".to_owned(),
        }
    }

    /// Returns the value as a file has it, words in quotes.
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
    fn every_knob_can_be_stepped_and_takes_each_value_on_the_way() {
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
