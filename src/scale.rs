//! A linear or logarithmic scale places values between its two ends. Charts, pages and estimates share it.

/// A scale from its lower to its upper end.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub low: f64,
    pub high: f64,
    /// True if the scale is logarithmic.
    pub log: bool,
}

impl Scale {
    /// Returns the position of a value between the ends, from 0 to 1: 0.5 where the ends are equal, 0 for NaN.
    pub fn share(self, value: f64) -> f64 {
        let scaled = |value: f64| {
            if self.log {
                value.max(f64::MIN_POSITIVE).ln()
            } else {
                value
            }
        };
        let low = scaled(self.low);
        let length = scaled(self.high) - low;
        match (scaled(value) - low) / length {
            _ if length.is_nan() || length <= 0.0 => 0.5,
            share if share.is_nan() => 0.0,
            share => share.clamp(0.0, 1.0),
        }
    }

    /// Returns the value at a share of the scale, where 0 is its lower and 1 its upper end.
    pub fn value(self, share: f64) -> f64 {
        if self.log {
            self.low * (self.high / self.low).powf(share)
        } else {
            self.low + share * (self.high - self.low)
        }
    }
}
