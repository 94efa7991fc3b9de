//! A figure over the steps of a run, in bounded memory: the recent past point by point, all of it in buckets.
//! A ten-hour run takes no more room than a ten-minute one.

use std::collections::VecDeque;

use crate::Num;

/// Points of the recent past.
const RECENT: usize = 512;
/// Buckets over the whole run; when they are full, neighbours merge and each then covers twice as many points.
const BUCKETS: usize = 1024;

/// Some neighbouring points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    pub first: u64,
    pub last: u64,
    pub low: f64,
    pub high: f64,
    pub mean: f64,
    pub points: u64,
    /// Not joined with the bucket before: steps are missing between them.
    pub gap: bool,
}

impl Bucket {
    /// A single point.
    fn new(step: u64, value: f64, gap: bool) -> Self {
        Self {
            first: step,
            last: step,
            low: value,
            high: value,
            mean: value,
            points: 1,
            gap,
        }
    }
}

/// Returns true if no step is missing between the two.
fn follows(step: u64, before: u64) -> bool {
    before.checked_add(1) == Some(step)
}

/// The recorded values of one figure.
#[derive(Clone, Debug, Default)]
pub struct Series {
    recent: VecDeque<(u64, f64)>,
    all: Vec<Bucket>,
    per_bucket: u64,
    /// The first step whose value was no finite number, and that value.
    pub not_finite: Option<(u64, f64)>,
    first: Option<(u64, f64)>,
    last: Option<(u64, f64)>,
}

impl Series {
    /// Adds a point. A value that is not finite is remembered, not drawn.
    pub fn push(&mut self, step: u64, value: f64) {
        self.first.get_or_insert((step, value));
        let previous = self.last.replace((step, value));
        if !value.is_finite() {
            self.not_finite.get_or_insert((step, value));
            return;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((step, value));
        let gap =
            previous.is_some_and(|(last, before)| !follows(step, last) || !before.is_finite());
        self.per_bucket = self.per_bucket.max(1);
        match self.all.last_mut() {
            Some(bucket) if !gap && bucket.points < self.per_bucket => {
                bucket.last = step;
                bucket.low = bucket.low.min(value);
                bucket.high = bucket.high.max(value);
                bucket.points += 1;
                bucket.mean += (value - bucket.mean) / bucket.points as f64;
            }
            _ => {
                if self.all.len() == BUCKETS {
                    self.halve();
                }
                self.all.push(Bucket::new(step, value, gap));
            }
        }
    }

    fn halve(&mut self) {
        // By what there is: a run of many gaps must not coarsen what comes after them.
        let points: u64 = self.all.iter().map(|bucket| bucket.points).sum();
        self.per_bucket = points.div_ceil(BUCKETS as u64 / 2).max(1);
        self.all = self
            .all
            .chunks(2)
            .map(|pair| match pair {
                [a, b] => Bucket {
                    first: a.first,
                    last: b.last,
                    low: a.low.min(b.low),
                    high: a.high.max(b.high),
                    mean: (a.mean * a.points as f64 + b.mean * b.points as f64)
                        / (a.points + b.points) as f64,
                    points: a.points + b.points,
                    gap: a.gap,
                },
                _ => pair[0],
            })
            .collect();
    }

    /// The value at a step; in the far past the mean of its neighbourhood.
    pub fn at(&self, step: u64) -> Option<f64> {
        let recent = self.recent.iter().find(|(at, _)| *at == step);
        let bucket = || {
            let mut all = self.all.iter();
            all.find(|it| (it.first..=it.last).contains(&step))
        };
        recent
            .map(|(_, value)| *value)
            .or_else(|| Some(bucket()?.mean))
    }

    /// The whole run at low detail, oldest first.
    pub fn all(&self) -> &[Bucket] {
        &self.all
    }

    /// The recent past at full detail, oldest first.
    pub fn recent(&self) -> impl ExactSizeIterator<Item = (u64, f64)> + '_ {
        self.recent.iter().copied()
    }

    /// Returns the latest points, at most `points` of them, each in a bucket of its own.
    pub fn latest(&self, points: usize) -> Vec<Bucket> {
        let skip = self.recent.len().saturating_sub(points);
        let mut before = None;
        let bucket = |(step, value): (u64, f64)| {
            let gap = before.replace(step).is_some_and(|it| !follows(step, it));
            Bucket::new(step, value, gap)
        };
        self.recent().skip(skip).map(bucket).collect()
    }

    /// First point, finite or not.
    pub fn first(&self) -> Option<(u64, f64)> {
        self.first
    }

    /// Latest point, finite or not.
    pub fn last(&self) -> Option<(u64, f64)> {
        self.last
    }

    /// Returns true if there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Lowest and highest finite value over the whole run.
    pub fn range(&self) -> Option<(f64, f64)> {
        let low = self.all.iter().map(|b| b.low).reduce(f64::min)?;
        let high = self.all.iter().map(|b| b.high).reduce(f64::max)?;
        Some((low, high))
    }

    /// Number of values held, which memory follows.
    pub fn held(&self) -> usize {
        self.recent.len() + self.all.len()
    }
}

/// Points of a thinned curve; where there are more, every second one is left out.
const THIN: usize = 400;

/// Figures at equally spaced steps, finite or not, for a page that shows the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThinCurve {
    pub points: Vec<(u64, Num)>,
    /// Only steps that this divides are kept; 0 stands for 1.
    pub every: u64,
}

impl ThinCurve {
    /// Adds a point.
    pub fn push(&mut self, step: u64, value: Num) {
        let keeps = |every: u64, step: u64| step.is_multiple_of(every.max(1));
        if !keeps(self.every, step) {
            return;
        }
        self.points.push((step, value));
        if self.points.len() > THIN {
            self.every = 2 * self.every.max(1);
            let every = self.every;
            self.points.retain(|(step, _)| keeps(every, *step));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stays_bounded_and_extremes_survive() {
        let mut series = Series::default();
        for step in 0..1_000_000 {
            series.push(step, if step == 123_457 { 99.0 } else { 1.0 });
        }
        assert!(
            series.held() <= RECENT + BUCKETS,
            "{} values held",
            series.held()
        );
        assert_eq!(series.range(), Some((1.0, 99.0)));
        assert_eq!(series.recent().len(), RECENT);
        let points: u64 = series.all().iter().map(|b| b.points).sum();
        assert_eq!(points, 1_000_000);
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_ends() {
        let mut curve = ThinCurve::default();
        (0..5_000).for_each(|step| curve.push(step, Num(step as f64)));
        assert!(curve.points.len() <= THIN, "{}", curve.points.len());
        assert_eq!(curve.points[0], (0, Num(0.0)));
        assert!(curve.points.last().is_some_and(|it| it.0 > 4_950));
    }

    #[test]
    fn what_is_not_finite_is_kept_apart() {
        let mut series = Series::default();
        series.push(0, 7.0);
        series.push(1, f64::NAN);
        series.push(2, 6.0);
        assert_eq!(series.not_finite.map(|(step, _)| step), Some(1));
        assert_eq!(series.all().len(), 2);
        assert!(
            series.all()[1].gap,
            "the line breaks where a value is missing"
        );
    }

    #[test]
    fn a_run_that_was_away_leaves_a_gap() {
        let mut series = Series::default();
        (0..10)
            .chain(50..60)
            .for_each(|step| series.push(step, 1.0));
        assert_eq!(
            series
                .all()
                .iter()
                .filter(|b| b.gap)
                .map(|b| b.first)
                .collect::<Vec<_>>(),
            [50]
        );
    }

    #[test]
    fn many_gaps_do_not_grow_it() {
        let mut series = Series::default();
        (0..100_000).for_each(|i| series.push(i * 2, 1.0));
        assert!(series.held() <= RECENT + BUCKETS);
    }
}
