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

/// Returns the length in ms of the step that a profile's rows are compared with. Recordings of older versions do not name it.
fn step_ms(profile: &StepProfile) -> f64 {
    let sum = profile.device_ms + profile.unbracketed_ms;
    profile.step_ms.unwrap_or(sum)
}

/// Returns the words for the step that a share of kernels refers to. Kernels of a step never take longer than the step: a larger share
/// refers to the steps around it, which ran without the profiler.
pub fn step_of(coverage: f64) -> &'static str {
    if coverage > 1.0 {
        "a step without the profiler"
    } else {
        "the step"
    }
}

/// Returns a profile whose times are medians over several profiles: the time of each row, and that of the rest of the step. The step is
/// their sum, so that all shares refer to one step.
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

    #[test]
    fn medians_over_profiles_add_up_to_the_step() {
        let profile = |row: f64, rest: f64| StepProfile {
            rows: vec![KernelRow {
                op: "linear".to_owned(),
                ms: row,
                ..KernelRow::default()
            }],
            device_ms: row,
            unbracketed_ms: rest,
            coverage: row / (row + rest),
            step_ms: Some(row + rest),
            ..StepProfile::default()
        };
        // The latest one was disturbed.
        let profiles = [profile(30.0, 10.0), profile(32.0, 8.0), profile(70.0, 90.0)];
        let found = typical(&profiles[2], profiles.iter());
        assert_eq!((found.rows[0].ms, found.device_ms), (32.0, 32.0));
        assert_eq!((found.unbracketed_ms, found.step_ms), (10.0, Some(42.0)));
        assert_eq!(found.coverage, 32.0 / 42.0);
        assert_eq!(typical(&profiles[2], [].iter()), profiles[2]);
    }

    #[test]
    fn kernels_of_a_step_never_take_more_than_the_step() {
        let profile = |times: [f64; 2]| StepProfile {
            rows: ["linear", "rope"]
                .into_iter()
                .zip(times)
                .map(|(op, ms)| KernelRow {
                    op: op.to_owned(),
                    ms,
                    ..KernelRow::default()
                })
                .collect(),
            device_ms: times.iter().sum(),
            step_ms: Some(times.iter().sum::<f64>() + 1.0),
            ..StepProfile::default()
        };
        // Each row is slow in two of three profiles, but both in one only: the medians add up to more than the median step.
        let profiles = [[10.0, 1.0], [1.0, 10.0], [10.0, 10.0]].map(profile);
        let found = typical(&profiles[0], profiles.iter());
        assert_eq!((found.device_ms, found.step_ms), (20.0, Some(21.0)));
        assert_eq!(step_of(found.coverage), "the step");
        assert_eq!(step_of(1.04), "a step without the profiler");
    }
}
