//! The medians of a run's kernel rows over its profiled steps.

use super::robust::median;
use crate::{KernelRow, StepProfile};

/// Returns the times of a row in milliseconds, in all profiles that have it.
pub fn times_of<'a>(profiles: impl Iterator<Item = &'a StepProfile>, row: &KernelRow) -> Vec<f64> {
    let is_same = |other: &&KernelRow| {
        (&other.part, &other.phase, &other.op, &other.kernel)
            == (&row.part, &row.phase, &row.op, &row.kernel)
    };
    profiles
        .filter_map(|profile| profile.rows.iter().find(is_same))
        .map(|row| row.ms)
        .collect()
}

/// Returns the length in milliseconds of the step that a profile's rows are compared with. Recordings of older versions do not name it.
fn step_ms(profile: &StepProfile) -> f64 {
    profile
        .step_ms
        .unwrap_or(profile.device_ms + profile.unbracketed_ms)
}

/// Returns a name for the step that `coverage` refers to. The kernels of a step never take longer than the step, so a coverage above 1 refers to the
/// steps around the profiled one, which ran without the profiler.
pub fn step_of(coverage: f64) -> &'static str {
    if coverage > 1.0 {
        "a step without the profiler"
    } else {
        "the step"
    }
}

/// Returns the `latest` profile with medians over several profiles in place of its times: the time of each row, and the rest of the step.
/// Its step is their sum, so that all shares refer to one step.
pub fn typical<'a>(
    latest: &StepProfile,
    profiles: impl Iterator<Item = &'a StepProfile> + Clone,
) -> StepProfile {
    let mut kernels = latest.clone();
    for row in &mut kernels.rows {
        let times = times_of(profiles.clone(), row);
        if times.is_empty() {
            continue;
        }
        let ms = median(&times);
        if row.ms > 0.0 {
            row.work_ms = row.work_ms.map(|work| work * ms / row.ms);
        }
        row.ms = ms;
    }
    kernels.rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let rests: Vec<f64> = profiles
        .map(|profile| step_ms(profile) - profile.device_ms)
        .collect();
    if !rests.is_empty() {
        let rest = median(&rests);
        kernels.device_ms = kernels.rows.iter().map(|row| row.ms).sum();
        let step = kernels.device_ms + rest;
        kernels.coverage = kernels.device_ms / step;
        kernels.unbracketed_ms = rest.max(0.0);
        kernels.step_ms = kernels.step_ms.map(|_| step);
    }
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the profile of a step in which operations take these times in milliseconds, and the rest of the step `rest`.
    fn profile(rows: &[(&str, f64)], rest: f64) -> StepProfile {
        let kernel_rows: Vec<KernelRow> = rows
            .iter()
            .map(|(op, ms)| KernelRow {
                op: (*op).to_owned(),
                ms: *ms,
                ..KernelRow::default()
            })
            .collect();
        let device_ms: f64 = kernel_rows.iter().map(|row| row.ms).sum();
        StepProfile {
            rows: kernel_rows,
            device_ms,
            unbracketed_ms: rest,
            coverage: device_ms / (device_ms + rest),
            step_ms: Some(device_ms + rest),
            ..StepProfile::default()
        }
    }

    #[test]
    fn medians_over_profiles_add_up_to_the_step() {
        let disturbed = profile(&[("linear", 70.0)], 90.0);
        let profiles = [
            profile(&[("linear", 30.0)], 10.0),
            profile(&[("linear", 32.0)], 8.0),
            disturbed.clone(),
        ];

        let typical = typical(&disturbed, profiles.iter());

        assert_eq!((typical.rows[0].ms, typical.device_ms), (32.0, 32.0));
        assert_eq!(
            (typical.unbracketed_ms, typical.step_ms),
            (10.0, Some(42.0))
        );
        assert_eq!(typical.coverage, 32.0 / 42.0);
    }

    #[test]
    fn without_profiles_the_latest_one_stays() {
        let latest = profile(&[("linear", 70.0)], 90.0);
        assert_eq!(typical(&latest, [].iter()), latest);
    }

    #[test]
    fn kernels_of_a_typical_step_never_take_more_than_the_step() {
        // Each row is slow in two of three profiles, but both in one only: the medians add up to more than the median step.
        let profiles = [[10.0, 1.0], [1.0, 10.0], [10.0, 10.0]]
            .map(|[linear, rope]| profile(&[("linear", linear), ("rope", rope)], 1.0));

        let typical = typical(&profiles[0], profiles.iter());

        assert_eq!((typical.device_ms, typical.step_ms), (20.0, Some(21.0)));
        assert_eq!(step_of(typical.coverage), "the step");
    }

    #[test]
    fn a_coverage_above_1_refers_to_steps_without_the_profiler() {
        assert_eq!(step_of(1.04), "a step without the profiler");
    }
}
