//! The round values at the ticks of a linear or logarithmic axis, and their labels: an axis from 2 to 60 has 10, 20, 30, 40, 50 and 60, on a
//! logarithmic scale 2, 5, 10, 20 and 50.

use crate::scale::Scale;

impl Scale {
    /// Returns round values along the axis, at most `count` + 2 of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let count = count.max(2);
        if self.log && self.high / self.low > 3.0 {
            let multiples = self.multiples_of_powers(&[1.0, 2.0, 5.0]);
            if multiples.len() <= count + 2 {
                return multiples;
            }
            let powers = self.multiples_of_powers(&[1.0]);
            let every = powers.len().div_ceil(count + 2).max(1);
            return powers.into_iter().step_by(every).collect();
        }
        let min_step = (self.high - self.low) / count as f64;
        if !(min_step.is_finite() && min_step > 0.0) {
            return vec![self.low];
        }
        let power = 10f64.powf(min_step.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * power)
            .into_iter()
            .find(|step| *step >= min_step)
            .unwrap_or(min_step);
        let first = (self.low / step).ceil();
        (0..=2 * count)
            .map(|index| (first + index as f64) * step)
            .take_while(|value| *value <= self.high)
            .collect()
    }

    /// Returns the powers of ten times each factor, as far as they are on the axis.
    fn multiples_of_powers(&self, factors: &[f64]) -> Vec<f64> {
        // An end of the axis may be zero or infinite.
        let first = (self.low.log10().floor() as i32).max(f64::MIN_10_EXP);
        let last = (self.high.log10().ceil() as i32).min(f64::MAX_10_EXP);
        let mut values = Vec::new();
        for power in (first..=last).map(|exponent| 10f64.powi(exponent)) {
            values.extend(factors.iter().map(|factor| factor * power));
        }
        values.retain(|value| (self.low..=self.high).contains(value));
        values
    }
}

/// Returns the label of a value on an axis: at most three decimals, or an exponent for very small and very large values.
pub fn tick_label(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(0.001..99_999.5).contains(&size) => format!("{value:.0e}"),
        _ => {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loss may come near the largest number, so the ends include zero and infinity.
    #[test]
    fn no_axis_has_more_ticks_than_were_asked_for() {
        let ends = [
            0.0,
            5e-324,
            1e-300,
            1e-3,
            1.0,
            7.0,
            1e5,
            1e300,
            f64::MAX,
            f64::INFINITY,
        ];
        for low in ends {
            for high in ends.into_iter().filter(|high| *high > low) {
                for (log, count) in [(true, 2), (true, 8), (false, 2), (false, 8)] {
                    let ticks = Scale { low, high, log }.ticks(count);
                    let few = ticks.len() <= count + 2;
                    assert!(few, "{low} to {high}, {log}: {ticks:?}");
                }
            }
        }
    }

    #[test]
    fn round_values_lie_along_the_axis() {
        let scale = |low, high, log| Scale { low, high, log };
        assert_eq!(
            scale(2.0, 60.0, true).ticks(8),
            [2.0, 5.0, 10.0, 20.0, 50.0]
        );
        assert_eq!(scale(0.5, 2e4, true).ticks(3), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert_eq!(scale(0.0, 8.0, false).ticks(4), [0.0, 2.0, 4.0, 6.0, 8.0]);
    }
}
