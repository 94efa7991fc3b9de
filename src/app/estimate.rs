//! The range that the learner estimates before a figure is measured. Keys place it on the stage's scale, move it and widen it in
//! steps. The measurement then shows whether the range holds the figure.

use crate::course::Estimate;

/// The number of steps of the scale.
pub const STEPS: u16 = 60;

/// A range on the scale, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSteps {
    pub low: u16,
    pub high: u16,
}

/// The width of a range when it is placed, in steps.
const PLACED: u16 = 6;

impl Default for RangeSteps {
    /// Returns the range that the first key places, in the middle of the scale.
    fn default() -> Self {
        let low = (STEPS - PLACED) / 2;
        let high = low + PLACED;
        Self { low, high }
    }
}

/// The largest number of points for a range that contains the measured figure. A wider range earns fewer.
pub const POINTS: u32 = 10;

impl RangeSteps {
    /// Centres the range on a value, as far as the scale of `estimate` goes.
    pub fn centre(&mut self, estimate: &Estimate, value: f64) {
        let middle = (estimate.scale().share(value) * f64::from(STEPS)).round() as i32;
        self.shift(middle - i32::from(self.low.midpoint(self.high)));
    }

    /// Moves the range by `by` steps, as far as the scale goes. Its width stays.
    pub fn shift(&mut self, by: i32) {
        let steps = by.clamp(-i32::from(self.low), i32::from(STEPS - self.high)) as i16;
        self.low = self.low.saturating_add_signed(steps);
        self.high = self.high.saturating_add_signed(steps);
    }

    /// Widens the range by `by` steps on each side; a negative number narrows it. The range keeps at least one step.
    pub fn widen(&mut self, by: i32) {
        let (low, high) = (i32::from(self.low) - by, i32::from(self.high) + by);
        if low < high {
            self.low = low.clamp(0, i32::from(STEPS) - 1) as u16;
            self.high = high.clamp(1, i32::from(STEPS)) as u16;
        }
    }

    /// Returns the ends of the range in the unit of the estimated figure.
    pub fn values(self, estimate: &Estimate) -> (f64, f64) {
        let value = |step: u16| estimate.scale().value(f64::from(step) / f64::from(STEPS));
        (value(self.low), value(self.high))
    }
}

/// Returns the points of a range: 0 if it does not contain the measured figure `truth`, else more for a narrower range.
pub fn points(estimate: &Estimate, (low, high): (f64, f64), truth: f64) -> u32 {
    if !(low..=high).contains(&truth) {
        return 0;
    }
    let width = estimate.scale().share(high) - estimate.scale().share(low);
    ((f64::from(POINTS) * (1.0 - width)).round() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_stays_on_the_scale() {
        let mut range = RangeSteps::default();
        assert_eq!(range, RangeSteps { low: 27, high: 33 });
        range.shift(100);
        assert_eq!(range, RangeSteps { low: 54, high: 60 });
        range.widen(100);
        assert_eq!(range, RangeSteps { low: 0, high: 60 });
        range.widen(-29);
        assert_eq!(range, RangeSteps { low: 29, high: 31 });
        range.widen(-1);
        assert_eq!(range, RangeSteps { low: 29, high: 31 }, "something remains");
        range.shift(-100);
        assert_eq!(range.low, 0);
    }

    #[test]
    fn a_narrow_range_that_holds_the_figure_earns_more() {
        let estimate = Estimate {
            from: 0.0,
            to: 100.0,
            ..Estimate::default()
        };
        let ranges = [(0.0, 100.0), (40.0, 60.0), (49.0, 51.0), (51.0, 60.0)];
        let earned = ranges.map(|range| points(&estimate, range, 50.0));
        assert_eq!(earned, [1, 8, 10, 0]);
    }

    #[test]
    fn the_scale_is_logarithmic_where_the_stage_says_so() {
        let estimate = Estimate {
            from: 0.1,
            to: 1000.0,
            log: true,
            ..Estimate::default()
        };
        let (low, high) = RangeSteps { low: 15, high: 30 }.values(&estimate);
        assert!(
            (low - 1.0).abs() < 1e-9 && (high - 10.0).abs() < 1e-9,
            "{low} {high}"
        );
        assert!((estimate.scale().share(10.0) - 0.5).abs() < 1e-9);
        assert_eq!(estimate.scale().share(f64::NAN), 0.0);
        let linear = Estimate {
            from: 0.0,
            to: 100.0,
            ..Estimate::default()
        };
        assert_eq!(
            RangeSteps { low: 30, high: 60 }.values(&linear),
            (50.0, 100.0)
        );
    }
}
