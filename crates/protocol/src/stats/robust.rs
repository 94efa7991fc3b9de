//! Medians with spread, and the state of a series of step times.

use crate::{PhaseTimes, Spread, TimingState};

/// The number of step times that are kept for the headline.
const WINDOW: usize = 256;
/// The number of steps after which a series can be called settled.
const SETTLE: usize = 16;

/// Returns the value below which the share `q` of the sorted values lies, interpolated; NaN without values.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = q * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
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
    // A part that a step lacks has no mean: either all steps have it, or none.
    let mean_of_all = |part: fn(&PhaseTimes) -> Option<f64>| {
        let times: Option<Vec<f64>> = middle.iter().map(|step| part(step)).collect();
        times.map(|times| times.iter().sum::<f64>() / middle.len() as f64)
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

/// Median, quartiles and 95th percentile.
pub fn spread(values: &[f64]) -> Spread {
    let s = sorted(values);
    Spread {
        median: quantile(&s, 0.5),
        p25: quantile(&s, 0.25),
        p75: quantile(&s, 0.75),
        p95: quantile(&s, 0.95),
        n: values.len() as u64,
    }
}

/// The latest step times, and whether they can be trusted yet.
#[derive(Clone, Debug, Default)]
pub struct StepTimes {
    recent: std::collections::VecDeque<f64>,
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

    /// Statistics of the window; `n` counts all steps.
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

    /// Steady when, over the last 64 steps, the medians of the two halves differ by at most 2 % and the quartiles lie
    /// within 10 % of the median; drifting when the halves differ by more than 5 %; noisy when only the spread is wide.
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
        let s = spread(&tail);
        let width = (s.p75 - s.p25) / s.median;
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
    fn quantiles_interpolate() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, 5.0]).p25, 2.0);
    }

    #[test]
    fn the_residual_is_not_made_of_noise() {
        // Each step adds up; of such steps the medians of the parts do not.
        let steps: Vec<PhaseTimes> = (0..30)
            .map(|at| {
                let [long, short] = [200.0, 40.0];
                let parts = match at % 3 {
                    0 => [long, short, short],
                    1 => [short, long, short],
                    _ => [short, short, long],
                };
                PhaseTimes::from_parts(parts, 280.5)
            })
            .collect();
        let typical = typical_phases(&steps).expect("steps");
        assert!((typical.residual - 0.5).abs() < 1e-9 && typical.step == 280.5);
        assert!(PhaseTimes::from_parts([40.0; 3], 280.5).residual > 100.0);
        assert_eq!(typical_phases(&[]), None);
    }

    #[test]
    fn states() {
        let mut series = StepTimes::default();
        assert_eq!(series.state(), TimingState::Warming);
        (0..15).for_each(|_| series.push(10.0));
        assert_eq!(series.state(), TimingState::Settling);
        (0..64).for_each(|_| series.push(10.0));
        assert_eq!(series.state(), TimingState::Steady);
        (0..20).for_each(|_| series.push(20.0));
        assert_ne!(series.state(), TimingState::Steady);
        (0..20).for_each(|_| series.push(20.0));
        assert_eq!(series.state(), TimingState::Drifting);
    }
}
