//! Writes numbers as people read them: digits, percentages, times, bytes and rates with their units.

use std::fmt;

/// The smallest number that is written with an exponent because its digits would fill the screen. No measurement is as large.
const LARGE: f64 = 1e15;

/// A number that is formatted like an f64, but with an exponent if its digits would fill the screen.
pub struct Digits(pub f64);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.abs() >= LARGE && self.0.is_finite() {
            write!(f, "{:.1e}", self.0)
        } else {
            self.0.fmt(f)
        }
    }
}

/// Returns a number with `decimals` decimals and separated thousands: `12,345.7`. A number that is not 0 but would read 0 has an exponent.
pub fn show(x: f64, decimals: usize) -> String {
    if !x.is_finite() {
        return x.to_string();
    }
    let least = 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(9));
    if x != 0.0 && !(least..LARGE).contains(&x.abs()) {
        return format!("{x:.1e}");
    }
    let plain = format!("{:.decimals$}", x.abs());
    let whole = plain.find('.').unwrap_or(plain.len());
    let mut text = if x < 0.0 { "-" } else { "" }.to_owned();
    for (index, digit) in plain.char_indices() {
        if index > 0 && index < whole && (whole - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a parity, the largest difference of the logits from the reference's divided by the largest logit: `0.42`, `2.1e-6`.
pub fn parity(difference: f64) -> String {
    if difference > 0.0 && difference < 0.01 {
        format!("{difference:.1e}")
    } else {
        number(difference)
    }
}

/// Returns a number in at most about six characters.
pub fn number(x: f64) -> String {
    match x.abs() {
        _ if !x.is_finite() => x.to_string(),
        0.0 => "0".to_owned(),
        a if !(1e-3..1e7).contains(&a) => format!("{x:.1e}"),
        a if a >= 1000.0 => show(x, 0),
        a if a >= 100.0 => format!("{x:.1}"),
        a if a >= 0.1 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}

/// Returns both bounds of a range with equally many decimals, so that the smaller one has three digits: `0.0667` and `0.4667`. Whole bounds
/// have no decimals.
pub fn bounds(low: f64, high: f64) -> [String; 2] {
    let smaller = [low, high]
        .into_iter()
        .map(f64::abs)
        .filter(|size| *size > 0.0)
        .fold(f64::INFINITY, f64::min);
    let decimals = if low.fract() == 0.0 && high.fract() == 0.0 {
        0
    } else {
        (2.0 - smaller.log10().floor()).clamp(0.0, 4.0) as usize
    };
    [low, high].map(|bound| show(bound, decimals))
}

/// Returns a number with `count` digits, or with more if there are more before the point. Thousands are separated.
pub fn digits(x: f64, count: usize) -> String {
    let whole = x.abs().max(1.0).log10() as usize + 1;
    let decimals = count.saturating_sub(whole);
    if x.abs() < 1.0 {
        format!("{x:.decimals$}")
    } else {
        show(x, decimals)
    }
}

/// Returns a value as text, or a dash for `None`.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// Returns a percentage that reads 100 only if it is at least 100.
pub fn percent(x: f64) -> String {
    match x {
        _ if !x.is_finite() => x.to_string(),
        _ if x.abs() >= LARGE => format!("{x:.1e}"),
        _ if x >= 100.0 => format!("{x:.0}"),
        _ if x >= 99.9 => "99.9".to_owned(),
        _ => format!("{x:.1}"),
    }
}

/// Returns a percentage with its sign: `+69.3`, `-0.2`.
pub fn signed_percent(x: f64) -> String {
    let sign = if x < 0.0 { '-' } else { '+' };
    format!("{sign}{}", percent(x.abs()))
}

/// Returns milliseconds with about three significant digits, without the unit.
pub fn ms(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => "NaN".to_owned(),
        a if a >= 1e7 => format!("{x:.1e}"),
        a if a >= 1000.0 => show(x, 0),
        a if a >= 100.0 => format!("{x:.1}"),
        a if a >= 1.0 || a == 0.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

/// Returns milliseconds as a time with its unit; a time below 0.1 ms is in microseconds.
pub fn duration(x: f64) -> String {
    match x.abs() * 1e3 {
        us if us > 0.0 && us < 10.0 => format!("{:.2} µs", x * 1e3),
        us if us > 0.0 && us < 100.0 => format!("{:.1} µs", x * 1e3),
        _ => format!("{} ms", ms(x)),
    }
}

/// Returns a number of bytes in the unit that reads best: `1.5 GiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = n as f64;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{n} B")
    } else {
        format!("{scaled:.1} {}", UNITS[unit])
    }
}

/// Returns the power of ten and the prefix in which a rate reads best: `(1e9, "G")`.
pub fn prefix(x: f64) -> (f64, &'static str) {
    match x.abs() {
        a if a >= 1e12 => (1e12, "T"),
        a if a >= 1e9 => (1e9, "G"),
        _ => (1e6, "M"),
    }
}

/// Returns a rate in `unit` with the prefix that reads best: `98.0 GFLOP/s`, `3.35 TB/s`.
pub fn rate(x: f64, unit: &str) -> String {
    let (power, prefix) = prefix(x);
    format!("{} {prefix}{unit}", number(x / power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_significant_digits() {
        assert_eq!(show(-1_234_567.891, 2), "-1,234,567.89");
        assert_eq!(
            (show(0.0001, 2), show(0.0, 2)),
            ("1.0e-4".to_owned(), "0.00".to_owned())
        );
        assert_eq!(
            [1235.4, 123.45, 12.345, 1.2345, 0.0].map(|x| digits(x, 4)),
            ["1,235", "123.5", "12.35", "1.234", "0.000"]
        );
        assert_eq!(
            [f64::NAN, 0.0, 12_345.0, 0.5].map(number),
            ["NaN", "0", "12,345", "0.50"]
        );
        assert_eq!([99.96, 100.0].map(percent), ["99.9", "100"]);
        assert_eq!([99.96, -0.2].map(signed_percent), ["+99.9", "-0.2"]);
    }

    #[test]
    fn both_bounds_of_a_range_have_equally_many_decimals() {
        assert_eq!(bounds(0.0667, 0.46667), ["0.0667", "0.4667"]);
        assert_eq!(bounds(1.667, 11.667), ["1.67", "11.67"]);
        assert_eq!(bounds(0.0, 10.0), ["0", "10"]);
        assert_eq!(bounds(5.0, 792.0), ["5", "792"]);
        assert_eq!(bounds(0.0, 7.4), ["0.00", "7.40"]);
        assert_eq!(bounds(f64::NAN, 1.0), ["NaN", "1.00"]);
    }

    #[test]
    fn quantities_have_their_units() {
        assert_eq!(
            [0.0052, 0.052, 0.52, 5200.0].map(duration),
            ["5.20 µs", "52.0 µs", "0.520 ms", "5,200 ms"]
        );
        assert_eq!([12, 1536 << 20].map(bytes), ["12 B", "1.5 GiB"]);
        assert_eq!(
            [3.35e12, 98e9].map(|x| rate(x, "B/s")),
            ["3.35 TB/s", "98.00 GB/s"]
        );
    }
}
