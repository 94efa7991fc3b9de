//! Medians with their spread, and the state of a series of step times.

use std::collections::VecDeque;

use crate::{PhaseTimes, Spread, TimingState};

/// The number of step times that are kept for the headline.
const WINDOW: usize = 256;
/// The number of steps after which a series can be called settled.
const SETTLE: usize = 16;

/// Returns the value that separates the lower share `q` of the sorted values from the others, interpolated; NaN without values.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = q * last as f64;
    let low = position.floor() as usize;
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (position - low as f64)
}

/// Returns the median of values in any order; NaN without values.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// Returns the mean phases of the half of the steps whose length is nearest the median; `None` without steps. Means over one set of steps
/// add up to the mean step. Medians of the phases would not: they leave a residual that no step has.
pub fn typical_phases(steps: &[PhaseTimes]) -> Option<PhaseTimes> {
    let mut by_length: Vec<&PhaseTimes> = steps.iter().collect();
    by_length.sort_by(|a, b| a.step.total_cmp(&b.step));
    let quarter = by_length.len() / 4;
    let middle = &by_length[quarter..by_length.len() - quarter];
    if middle.is_empty() {
        return None;
    }
    let mean = |part: fn(&PhaseTimes) -> f64| {
        middle.iter().map(|step| part(step)).sum::<f64>() / middle.len() as f64
    };
    // A part that any of the steps lacks has no mean.
    let mean_of_all = |part: fn(&PhaseTimes) -> Option<f64>| {
        let sum: Option<f64> = middle.iter().map(|step| part(step)).sum();
        sum.map(|sum| sum / middle.len() as f64)
    };
    let parts = [
        mean(|step| step.forward),
        mean(|step| step.backward),
        mean(|step| step.optimizer),
    ];
    let data = mean_of_all(|step| step.data);
    let communication = mean_of_all(|step| step.communication);
    let phases = PhaseTimes::from_parts(parts, mean(|step| step.step));
    Some(PhaseTimes {
        residual: phases.residual - data.unwrap_or_default() - communication.unwrap_or_default(),
        data,
        communication,
        ..phases
    })
}

/// Returns the values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut ascending = values.to_vec();
    ascending.sort_by(f64::total_cmp);
    ascending
}

/// Returns the median, the quartiles and the 95th percentile of values in any order; NaN without values.
pub fn spread(values: &[f64]) -> Spread {
    let sorted = sorted(values);
    Spread {
        median: quantile(&sorted, 0.5),
        p25: quantile(&sorted, 0.25),
        p75: quantile(&sorted, 0.75),
        p95: quantile(&sorted, 0.95),
        n: values.len() as u64,
    }
}

/// The latest step times of a run in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct StepTimes {
    recent: VecDeque<f64>,
    /// The number of all steps, those that are no longer kept included.
    total: u64,
}

impl StepTimes {
    /// Adds one step time in milliseconds.
    pub fn push(&mut self, ms: f64) {
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(ms);
        self.total += 1;
    }

    /// Returns the spread of the latest step times, in which `n` counts all steps; `None` without steps.
    pub fn spread(&self) -> Option<Spread> {
        if self.recent.is_empty() {
            return None;
        }
        let values: Vec<f64> = self.recent.iter().copied().collect();
        Some(Spread {
            n: self.total,
            ..spread(&values)
        })
    }

    /// Judges the last 64 steps. They drift if the medians of their two halves differ by more than 5 %. Else they are noisy if the quartiles
    /// are more than 10 % of the median apart. Else they are steady if the medians of the halves differ by at most 2 %.
    pub fn state(&self) -> TimingState {
        let tail: Vec<f64> = self.recent.iter().rev().take(64).rev().copied().collect();
        if tail.is_empty() {
            return TimingState::Warming;
        }
        if tail.len() < SETTLE {
            return TimingState::Settling;
        }
        let (old, new) = tail.split_at(tail.len() / 2);
        let shift = (median(new) / median(old) - 1.0).abs();
        let spread = spread(&tail);
        let width = (spread.p75 - spread.p25) / spread.median;
        if shift > 0.05 {
            TimingState::Drifting
        } else if width > 0.10 {
            TimingState::Noisy
        } else if shift <= 0.02 {
            TimingState::Steady
        } else {
            TimingState::Settling
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_between_two_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, 5.0]).p25, 2.0);
    }

    #[test]
    fn typical_phases_add_up_although_their_medians_do_not() {
        // In each step another phase is the long one, so that the median of every phase is 40 ms.
        let kinds = [
            [200.0, 40.0, 40.0],
            [40.0, 200.0, 40.0],
            [40.0, 40.0, 200.0],
        ];
        let steps: Vec<PhaseTimes> = kinds
            .into_iter()
            .cycle()
            .take(30)
            .map(|parts| PhaseTimes::from_parts(parts, 280.5))
            .collect();

        let typical = typical_phases(&steps).expect("there are steps");

        assert_eq!(typical.step, 280.5);
        assert!((typical.residual - 0.5).abs() < 1e-9, "{typical:?}");
    }

    #[test]
    fn without_steps_there_are_no_typical_phases() {
        assert_eq!(typical_phases(&[]), None);
    }

    /// Returns the state after steps of these lengths in milliseconds, each with the number of steps.
    fn state_after(steps: &[(usize, f64)]) -> TimingState {
        let mut times = StepTimes::default();
        for (count, ms) in steps {
            (0..*count).for_each(|_| times.push(*ms));
        }
        times.state()
    }

    #[test]
    fn step_times_are_steady_after_some_equal_steps() {
        assert_eq!(state_after(&[]), TimingState::Warming);
        assert_eq!(state_after(&[(15, 10.0)]), TimingState::Settling);
        assert_eq!(state_after(&[(79, 10.0)]), TimingState::Steady);
    }

    #[test]
    fn step_times_that_double_drift() {
        assert_ne!(state_after(&[(79, 10.0), (20, 20.0)]), TimingState::Steady);
        assert_eq!(
            state_after(&[(79, 10.0), (40, 20.0)]),
            TimingState::Drifting
        );
    }
}
