//! A range that the learner estimates before the figure is measured: placed on the stage's scale, moved and widened in steps, then
//! compared with the measurement.

use crate::course::Estimate;

/// Steps of the scale.
pub const STEPS: u16 = 60;

/// A range on the scale, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSteps {
    pub low: u16,
    pub high: u16,
}

/// How wide a range is when it is placed.
const PLACED: u16 = 6;

impl Default for RangeSteps {
    /// Where the first key places it: in the middle of the scale.
    fn default() -> Self {
        let low = (STEPS - PLACED) / 2;
        let high = low + PLACED;
        Self { low, high }
    }
}

/// The most points of a range that contains the measured figure; a wider range earns fewer.
pub const POINTS: u32 = 10;

impl RangeSteps {
    /// Moves the range round a value, as far as the scale goes.
    pub fn centre(&mut self, of: &Estimate, value: f64) {
        let middle = (of.share(value) * f64::from(STEPS)).round() as i32;
        self.shift(middle - i32::from(self.low.midpoint(self.high)));
    }

    /// Moves the range, its width kept.
    pub fn shift(&mut self, by: i32) {
        let by = by.clamp(-i32::from(self.low), i32::from(STEPS - self.high));
        self.low = self.low.saturating_add_signed(by as i16);
        self.high = self.high.saturating_add_signed(by as i16);
    }

    /// Widens the range on both sides, or narrows it; one step remains.
    pub fn widen(&mut self, by: i32) {
        let (low, high) = (i32::from(self.low) - by, i32::from(self.high) + by);
        if low < high {
            self.low = low.clamp(0, i32::from(STEPS) - 1) as u16;
            self.high = high.clamp(1, i32::from(STEPS)) as u16;
        }
    }

    /// The range in the figure's own unit.
    pub fn values(self, of: &Estimate) -> (f64, f64) {
        (
            value(of, f64::from(self.low) / f64::from(STEPS)),
            value(of, f64::from(self.high) / f64::from(STEPS)),
        )
    }
}

/// The points of a range: 0 where it does not contain the measured figure, else the more the narrower it is.
pub fn points(of: &Estimate, (low, high): (f64, f64), truth: f64) -> u32 {
    if !(low..=high).contains(&truth) {
        return 0;
    }
    let width = of.share(high) - of.share(low);
    ((f64::from(POINTS) * (1.0 - width)).round() as u32).max(1)
}

/// The value at a share of the scale.
fn value(of: &Estimate, share: f64) -> f64 {
    if of.log {
        of.from * (of.to / of.from).powf(share)
    } else {
        of.from + share * (of.to - of.from)
    }
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
    fn a_narrow_range_that_holds_earns_more() {
        let of = Estimate {
            from: 0.0,
            to: 100.0,
            ..Estimate::default()
        };
        let earned = [(0.0, 100.0), (40.0, 60.0), (49.0, 51.0), (51.0, 60.0)];
        let earned = earned.map(|range| points(&of, range, 50.0));
        assert_eq!(earned, [1, 8, 10, 0]);
    }

    #[test]
    fn the_scale_is_logarithmic_where_the_stage_says_so() {
        let of = Estimate {
            from: 0.1,
            to: 1000.0,
            log: true,
            ..Estimate::default()
        };
        let (low, high) = RangeSteps { low: 15, high: 30 }.values(&of);
        assert!(
            (low - 1.0).abs() < 1e-9 && (high - 10.0).abs() < 1e-9,
            "{low} {high}"
        );
        assert!((of.share(10.0) - 0.5).abs() < 1e-9);
        assert_eq!(of.share(f64::NAN), 0.0);
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
