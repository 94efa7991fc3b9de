//! The round values at the ticks of a linear or logarithmic axis, and their labels.

use crate::scale::Scale;

impl Scale {
    /// Returns round values along the axis, at most `count` + 2 of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let (low, high, count) = (self.low, self.high, count.max(2));
        if self.log && high / low > 3.0 {
            let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
            // Powers of ten that a number can have: an end may be zero or infinite.
            let decades = first.max(f64::MIN_10_EXP)..=last.min(f64::MAX_10_EXP);
            let multiples = |factors: &[f64]| -> Vec<f64> {
                decades
                    .clone()
                    .flat_map(|decade| {
                        factors
                            .iter()
                            .map(move |factor| factor * 10f64.powi(decade))
                    })
                    .filter(|value| (low..=high).contains(value))
                    .collect()
            };
            let dense = multiples(&[1.0, 2.0, 5.0]);
            if dense.len() <= count + 2 {
                return dense;
            }
            let powers = multiples(&[1.0]);
            let every = powers.len().div_ceil(count + 2).max(1);
            return powers.into_iter().step_by(every).collect();
        }
        let rough = (high - low) / count as f64;
        if !(rough.is_finite() && rough > 0.0) {
            return vec![low];
        }
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * power)
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (low / step).ceil();
        (0..=2 * count)
            .map(|index| (first + index as f64) * step)
            .take_while(|value| *value <= high)
            .collect()
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
