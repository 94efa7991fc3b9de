//! Medians with spread, and the state of a series of step times.

use crate::{PhaseTimes, Spread, TimingState};

/// Step times kept for the headline.
const WINDOW: usize = 256;
/// Steps after which a series can be called settled.
const SETTLE: usize = 16;
/// The value below which the share `q` of `sorted` lies, interpolated.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = q * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// The median of values in any order; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// Means over the half of the steps whose length is nearest the median; none of no steps. Means of the same steps add up as each
/// step does. What medians of the phases leave of the median step is a residual that no step has.
pub fn typical_phases(steps: &[PhaseTimes]) -> Option<PhaseTimes> {
    let mut steps: Vec<&PhaseTimes> = steps.iter().collect();
    steps.sort_by(|a, b| a.step.total_cmp(&b.step));
    let middle = &steps[steps.len() / 4..steps.len() - steps.len() / 4];
    let mean = |part: fn(&PhaseTimes) -> f64| {
        middle.iter().map(|it| part(it)).sum::<f64>() / middle.len() as f64
    };
    let parts = [
        mean(|it| it.forward),
        mean(|it| it.backward),
        mean(|it| it.optimizer),
    ];
    // Each step has these parts, or none has.
    let has = |part: fn(&PhaseTimes) -> Option<f64>| middle.iter().all(|it| part(it).is_some());
    let data = has(|it| it.data).then(|| mean(|it| it.data.unwrap_or_default()));
    let communication =
        has(|it| it.communication).then(|| mean(|it| it.communication.unwrap_or_default()));
    let told = PhaseTimes::of(parts, mean(|it| it.step));
    (!middle.is_empty()).then(|| PhaseTimes {
        residual: told.residual - data.unwrap_or_default() - communication.unwrap_or_default(),
        data,
        communication,
        ..told
    })
}

/// In ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
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
                PhaseTimes::of(parts, 280.5)
            })
            .collect();
        let typical = typical_phases(&steps).expect("steps");
        assert!((typical.residual - 0.5).abs() < 1e-9 && typical.step == 280.5);
        assert!(PhaseTimes::of([40.0; 3], 280.5).residual > 100.0);
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
