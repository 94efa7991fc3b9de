//! Medians with spread, the state of a series of step times, and the verdict of a paired comparison.

use crate::protocol::{Spread, State, Verdict};
use crate::random::Rng;

/// Step times kept for the headline.
const WINDOW: usize = 256;
/// Steps after which a series can be called settled.
const SETTLE: usize = 16;
/// Half of the dead band: effects below 1 % are no effect.
const DEAD_BAND: f64 = 0.01;
/// Share of bootstrap samples that may contradict `faster` or `slower`.
const CAUTION: f64 = 0.0025;
/// Bootstrap samples for an interval.
const RESAMPLES: usize = 2000;
/// Consecutive pairs drawn together, because neighbouring step times are not independent.
const BLOCK: usize = 4;
/// Pairs below which no verdict is given.
pub const MIN_PAIRS: usize = 30;

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

fn sorted(values: &[f64]) -> Vec<f64> {
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
pub struct Series {
    recent: std::collections::VecDeque<f64>,
    total: u64,
}

impl Series {
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
    pub fn state(&self) -> State {
        let tail: Vec<f64> = self.recent.iter().rev().take(64).rev().copied().collect();
        if tail.is_empty() {
            return State::Warming;
        }
        if tail.len() < SETTLE {
            return State::Settling;
        }
        let (old, new) = tail.split_at(tail.len() / 2);
        let shift = (median(new) / median(old) - 1.0).abs();
        let s = spread(&tail);
        let width = (s.p75 - s.p25) / s.median;
        if shift > 0.05 {
            State::Drifting
        } else if width > 0.10 {
            State::Noisy
        } else if shift <= 0.02 {
            State::Steady
        } else {
            State::Settling
        }
    }
}

/// Interval and verdict of a paired comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median of time A / time B: above 1, B is faster.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    pub verdict: Verdict,
}

/// Compares pairs of step times (A, B): the median log ratio with a block bootstrap 95 % interval (Künsch, 1989).
/// The bootstrap's draws depend on the number of pairs alone, so equal data give an equal interval.
pub fn compare(pairs: &[(f64, f64)]) -> Comparison {
    let logs: Vec<f64> = pairs
        .iter()
        .map(|(a, b)| (a / b).ln())
        .filter(|x| x.is_finite())
        .collect();
    if logs.is_empty() {
        return Comparison {
            ratio: f64::NAN,
            low: f64::NAN,
            high: f64::NAN,
            verdict: Verdict::Unclear,
        };
    }
    let mut rng = Rng::named(logs.len() as u64, "bootstrap", 0);
    let block = BLOCK.min(logs.len());
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut sample = Vec::with_capacity(logs.len() + block);
            while sample.len() < logs.len() {
                let from = rng.below(logs.len() - block + 1);
                sample.extend_from_slice(&logs[from..from + block]);
            }
            sample.truncate(logs.len());
            median(&sample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let (low, high) = (quantile(&medians, 0.025), quantile(&medians, 0.975));
    // A comparison is looked at again and again while it grows, so the verdict asks for more than the interval shown.
    let surely = [
        quantile(&medians, CAUTION),
        quantile(&medians, 1.0 - CAUTION),
    ];
    let verdict = verdict(logs.len(), surely, [low, high]);
    Comparison {
        ratio: median(&logs).exp(),
        low: low.exp(),
        high: high.exp(),
        verdict,
    }
}

/// The mean of log ratios as a ratio, with mean ± 2·s/√n and the same verdict as a paired comparison.
pub fn mean_ratio(logs: &[f64]) -> Comparison {
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = 2.0 * (variance / n).sqrt();
    let interval = [mean - half, mean + half];
    Comparison {
        ratio: mean.exp(),
        low: interval[0].exp(),
        high: interval[1].exp(),
        verdict: verdict(logs.len(), interval, interval),
    }
}

/// What an interval of log ratios says beyond the dead band: `surely` decides faster and slower, `interval` same.
fn verdict(pairs: usize, surely: [f64; 2], interval: [f64; 2]) -> Verdict {
    let band = DEAD_BAND.ln_1p();
    if pairs < MIN_PAIRS {
        Verdict::Unclear
    } else if surely[0] > band {
        Verdict::Faster
    } else if surely[1] < -band {
        Verdict::Slower
    } else if interval[0] >= -band && interval[1] <= band {
        Verdict::Same
    } else {
        Verdict::Unclear
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

    fn noisy(n: usize, ratio: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut rng = Rng::named(seed, "test", 0);
        (0..n)
            .map(|_| {
                (
                    10.0 * ratio * (0.05 * rng.normal()).exp(),
                    10.0 * (0.05 * rng.normal()).exp(),
                )
            })
            .collect()
    }

    #[test]
    fn verdicts() {
        assert_eq!(compare(&noisy(60, 2.0, 1)).verdict, Verdict::Faster);
        assert_eq!(compare(&noisy(60, 0.5, 2)).verdict, Verdict::Slower);
        assert_eq!(compare(&noisy(10, 2.0, 3)).verdict, Verdict::Unclear);
        assert_eq!(compare(&[(1.0, 1.0); 40]).verdict, Verdict::Same);
        for seed in 0..50 {
            let verdict = compare(&noisy(60, 1.0, seed)).verdict;
            assert!(
                matches!(verdict, Verdict::Same | Verdict::Unclear),
                "seed {seed}: {verdict}"
            );
        }
    }

    #[test]
    fn states() {
        let mut series = Series::default();
        assert_eq!(series.state(), State::Warming);
        (0..15).for_each(|_| series.push(10.0));
        assert_eq!(series.state(), State::Settling);
        (0..64).for_each(|_| series.push(10.0));
        assert_eq!(series.state(), State::Steady);
        (0..20).for_each(|_| series.push(20.0));
        assert_ne!(series.state(), State::Steady);
        (0..20).for_each(|_| series.push(20.0));
        assert_eq!(series.state(), State::Drifting);
    }
}
