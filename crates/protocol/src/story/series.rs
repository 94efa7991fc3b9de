//! A figure over the steps of a run, in bounded memory: the recent past point by point, the whole run in buckets. A run of ten hours takes
//! no more memory than one of ten minutes.

use std::collections::VecDeque;

use crate::Num;

/// The number of points of the recent past.
const RECENT: usize = 512;
/// The largest number of buckets for the whole run. When it is reached, neighbours merge, and each bucket then has twice as many points.
const BUCKETS: usize = 1024;

/// Some neighbouring points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The steps of the first and of the last point.
    pub first: u64,
    pub last: u64,
    pub low: f64,
    pub high: f64,
    pub mean: f64,
    /// The number of points.
    pub points: u64,
    /// True if steps are missing between this bucket and the one before.
    pub gap: bool,
}

impl Bucket {
    /// Returns the bucket of a single point.
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

/// Returns true if `step` comes directly after the step `before`.
fn follows(step: u64, before: u64) -> bool {
    before.checked_add(1) == Some(step)
}

/// The recorded values of one figure.
#[derive(Clone, Debug, Default)]
pub struct Series {
    recent: VecDeque<(u64, f64)>,
    all: Vec<Bucket>,
    /// The number of points of a full bucket; 0 before the first point.
    per_bucket: u64,
    /// The first value that is not finite, and its step.
    pub not_finite: Option<(u64, f64)>,
    first: Option<(u64, f64)>,
    last: Option<(u64, f64)>,
}

impl Series {
    /// Adds a point. A value that is not finite is only recorded in `not_finite`, because it cannot be drawn.
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

    /// Merges every two buckets.
    fn halve(&mut self) {
        // The new size follows from the number of points, not from the old size: many gaps in a run must not make later buckets coarser.
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

    /// Returns the value at a step, in the far past the mean of its bucket; `None` for a step without a finite value.
    pub fn at(&self, step: u64) -> Option<f64> {
        if let Some((_, value)) = self.recent.iter().find(|(other, _)| *other == step) {
            return Some(*value);
        }
        self.all
            .iter()
            .find(|bucket| (bucket.first..=bucket.last).contains(&step))
            .map(|bucket| bucket.mean)
    }

    /// Returns the whole run at low detail, oldest first.
    pub fn all(&self) -> &[Bucket] {
        &self.all
    }

    /// Returns the recent past at full detail, oldest first.
    pub fn recent(&self) -> impl ExactSizeIterator<Item = (u64, f64)> + '_ {
        self.recent.iter().copied()
    }

    /// Returns the latest points, at most `points` of them, each in a bucket of its own.
    pub fn latest(&self, points: usize) -> Vec<Bucket> {
        let skip = self.recent.len().saturating_sub(points);
        let mut previous = None;
        self.recent()
            .skip(skip)
            .map(|(step, value)| {
                let before = previous.replace(step);
                let gap = before.is_some_and(|before| !follows(step, before));
                Bucket::new(step, value, gap)
            })
            .collect()
    }

    /// Returns the first point, finite or not.
    pub fn first(&self) -> Option<(u64, f64)> {
        self.first
    }

    /// Returns the latest point, finite or not.
    pub fn last(&self) -> Option<(u64, f64)> {
        self.last
    }

    /// Returns true if there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the lowest and the highest finite value of the whole run.
    pub fn range(&self) -> Option<(f64, f64)> {
        let low = self.all.iter().map(|bucket| bucket.low).reduce(f64::min)?;
        let high = self.all.iter().map(|bucket| bucket.high).reduce(f64::max)?;
        Some((low, high))
    }
}

/// The largest number of points of a thin curve. When it is exceeded, every second point is removed.
const THIN: usize = 400;

/// Values at equally spaced steps, finite or not, for a page that shows the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThinCurve {
    pub points: Vec<(u64, Num)>,
    /// The distance of two points in steps. Before the first thinning it is 0, which means 1.
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

    fn assert_bounded(series: &Series) {
        assert!(series.recent().len() <= RECENT && series.all().len() <= BUCKETS);
    }

    #[test]
    fn memory_stays_bounded_and_extremes_survive() {
        let mut series = Series::default();
        for step in 0..1_000_000 {
            series.push(step, if step == 123_457 { 99.0 } else { 1.0 });
        }
        assert_bounded(&series);
        assert_eq!(series.range(), Some((1.0, 99.0)));
        assert_eq!(series.recent().len(), RECENT);
        let points: u64 = series.all().iter().map(|bucket| bucket.points).sum();
        assert_eq!(points, 1_000_000);
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_ends() {
        let mut curve = ThinCurve::default();
        (0..5_000).for_each(|step| curve.push(step, Num(step as f64)));
        assert!(curve.points.len() <= THIN, "{}", curve.points.len());
        assert_eq!(curve.points[0], (0, Num(0.0)));
        assert!(curve.points.last().is_some_and(|(step, _)| *step > 4_950));
    }

    /// Returns the first steps of the buckets that do not continue the bucket before.
    fn gaps(series: &Series) -> Vec<u64> {
        series
            .all()
            .iter()
            .filter(|bucket| bucket.gap)
            .map(|bucket| bucket.first)
            .collect()
    }

    #[test]
    fn a_value_that_is_not_finite_breaks_the_line() {
        let mut series = Series::default();
        series.push(0, 7.0);
        series.push(1, f64::NAN);
        series.push(2, 6.0);
        assert_eq!(series.not_finite.map(|(step, _)| step), Some(1));
        assert_eq!(gaps(&series), [2]);
    }

    #[test]
    fn missing_steps_break_the_line() {
        let mut series = Series::default();
        for step in (0..10).chain(50..60) {
            series.push(step, 1.0);
        }
        assert_eq!(gaps(&series), [50]);
    }

    #[test]
    fn memory_stays_bounded_with_a_gap_after_each_step() {
        let mut series = Series::default();
        (0..100_000).for_each(|index| series.push(index * 2, 1.0));
        assert_bounded(&series);
    }
}
