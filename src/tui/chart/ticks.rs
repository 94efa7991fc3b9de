//! Round values for an axis, linear or logarithmic, and how they are written.

/// Round values within a range, at most about `count` of them.
pub fn ticks((low, high): (f64, f64), log: bool, count: usize) -> Vec<f64> {
    if log && high / low > 3.0 {
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = |per: &[f64]| -> Vec<f64> {
            let values = decades.clone().flat_map(|d| {
                per.iter()
                    .map(move |m| m * 10f64.powi(d))
                    .collect::<Vec<_>>()
            });
            values.filter(|v| (low..=high).contains(v)).collect()
        };
        let dense = all(&[1.0, 2.0, 5.0]);
        return if dense.len() > count + 2 {
            all(&[1.0])
        } else {
            dense
        };
    }
    let rough = (high - low) / count as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let first = (low / step).ceil();
    (0..=2 * count)
        .map(|i| (first + i as f64) * step)
        .take_while(|value| *value <= high)
        .collect()
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
