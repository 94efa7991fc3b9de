//! Medians of a run's kernel rows over its profiled steps.

use super::robust::median;
use crate::{KernelRow, StepProfile};

/// Milliseconds of a row in each of the profiles that have it.
pub fn times_of<'a>(profiles: impl Iterator<Item = &'a StepProfile>, row: &KernelRow) -> Vec<f64> {
    let same = |it: &&KernelRow| {
        (&it.part, &it.phase, &it.op, &it.kernel) == (&row.part, &row.phase, &row.op, &row.kernel)
    };
    let rows = profiles.filter_map(|profile| profile.rows.iter().find(same));
    rows.map(|it| it.ms).collect()
}

/// The step that a profile's rows are held against; recordings of older versions do not name it.
fn whole(it: &StepProfile) -> f64 {
    it.step_ms.unwrap_or(it.device_ms + it.unbracketed_ms)
}

/// A profile whose times are medians over several: each row's, and the step's that they are held against.
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
    let steps: Vec<f64> = profiles.map(whole).collect();
    if !steps.is_empty() {
        // Sum, rest and share follow from the medians that are shown beside them.
        let (step, rows) = (median(&steps), kernels.rows.iter());
        kernels.device_ms = rows.map(|row| row.ms).sum();
        kernels.coverage = kernels.device_ms / step;
        kernels.unbracketed_ms = (step - kernels.device_ms).max(0.0);
        kernels.step_ms = kernels.step_ms.map(|_| step);
    }
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_over_profiles_are_held_against_the_median_step() {
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
        assert_eq!((found.unbracketed_ms, found.step_ms), (8.0, Some(40.0)));
        assert_eq!(found.coverage, 0.8);
        assert_eq!(typical(&profiles[2], [].iter()), profiles[2]);
    }
}
