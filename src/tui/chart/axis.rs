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
            let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
            let all = |per: &[f64]| -> Vec<f64> {
                let values = decades
                    .clone()
                    .flat_map(|d| per.iter().map(move |m| m * 10f64.powi(d)));
                values.filter(|v| (low..=high).contains(v)).collect()
            };
            let dense = all(&[1.0, 2.0, 5.0]);
            return match dense.len() > count + 2 {
                true => all(&[1.0]),
                false => dense,
            };
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
