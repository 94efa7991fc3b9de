//! An axis, linear or logarithmic: where values lie on it, round values along it, and how they are written.

/// The values along an axis.
#[derive(Clone, Copy)]
pub struct Scale {
    pub low: f64,
    pub high: f64,
    pub log: bool,
}

impl Scale {
    /// Where a value lies between the ends, 0 to 1.
    pub fn share(&self, value: f64) -> f64 {
        let f = |v: f64| match self.log {
            true => v.max(f64::MIN_POSITIVE).ln(),
            false => v,
        };
        let (low, high) = (f(self.low), f(self.high));
        if high > low {
            ((f(value) - low) / (high - low)).clamp(0.0, 1.0)
        } else {
            0.5
        }
    }

    /// Round values, at most about `count` of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let (low, high, count) = (self.low, self.high, count.max(2));
        if self.log && high / low > 3.0 {
            let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
            // Powers of ten that a number can have: an end may be zero or infinite.
            let decades = first.max(f64::MIN_10_EXP)..=last.min(f64::MAX_10_EXP);
            let all = |per: &[f64]| -> Vec<f64> {
                let values = decades
                    .clone()
                    .flat_map(|d| per.iter().map(move |m| m * 10f64.powi(d)));
                values.filter(|v| (low..=high).contains(v)).collect()
            };
            let dense = all(&[1.0, 2.0, 5.0]);
            if dense.len() <= count + 2 {
                return dense;
            }
            let powers = all(&[1.0]);
            let every = powers.len().div_ceil(count + 2).max(1);
            return powers.into_iter().step_by(every).collect();
        }
        let rough = (high - low) / count as f64;
        if !(rough.is_finite() && rough > 0.0) {
            return vec![low];
        }
        let power = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
        let step = steps.into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (low / step).ceil();
        let values = (0..=2 * count).map(|i| (first + i as f64) * step);
        values.take_while(|value| *value <= high).collect()
    }
}

/// A short name for a value on an axis.
pub fn tick_label(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        a if !(0.001..99_999.5).contains(&a) => format!("{value:.0e}"),
        _ => {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of any size, also those that no number has: a loss may come near the largest number there is.
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
