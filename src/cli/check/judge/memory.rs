//! Peak memory over a sweep, and the polynomial in its value that fits it.

use super::Found;

use crate::course::metric;
use crate::profile::fit::{Fit, polynomial};
use crate::units::show;

/// Peak memory in MiB over the sweep's values, with this setting.
fn memory(found: &Found, with: &str) -> (Vec<(f64, f64)>, Option<String>) {
    let mut points = Vec::new();
    let mut why = None;
    for point in found
        .points
        .iter()
        .filter(|point| point.with.as_deref() == Some(with))
    {
        match &point.run {
            Ok(run) => match (
                point.value.parse::<f64>(),
                metric::value("memory.peak_mib", run),
            ) {
                (Ok(x), Some(mib)) => points.push((x, mib)),
                _ => why = run.memory.reason.clone().or(why),
            },
            Err(error) => why = Some(error.clone()),
        }
    }
    (points, why)
}

pub(super) fn fitted(found: &Found, with: &str) -> Result<(Fit, f64), String> {
    let (points, why) = memory(found, with);
    let largest = points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
    polynomial(&points, 2)
        .map(|fit| (fit, largest))
        .map_err(|error| match why {
            Some(why) => format!("not measured: {why}"),
            None => format!("not measured: {error}"),
        })
}

pub(super) fn law(fit: &Fit) -> String {
    let [a, b, c] = fit.coefficients[..] else {
        return String::new();
    };
    format!(
        "{} + {}·S + {}·S² MiB (largest miss {} MiB)",
        show(a, 2),
        show(b, 5),
        show(c, 7),
        show(fit.largest, 2)
    )
}
