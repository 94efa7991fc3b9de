//! The fields of an event of a Chrome trace.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The fields of an event that are read.
#[derive(Deserialize)]
pub(super) struct ChromeEvent<'a> {
    #[serde(borrow, default)]
    pub(super) ph: Cow<'a, str>,
    pub(super) cat: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) pid: Option<&'a RawValue>,
    pub(super) tid: Option<&'a RawValue>,
    pub(super) ts: Option<&'a RawValue>,
    pub(super) dur: Option<&'a RawValue>,
    pub(super) id: Option<&'a RawValue>,
    pub(super) args: Option<&'a RawValue>,
}

/// The arguments of an event that are read.
#[derive(Default, Deserialize)]
pub(super) struct Args<'a> {
    #[serde(borrow)]
    pub(super) correlation: Option<&'a RawValue>,
    pub(super) device: Option<&'a RawValue>,
    pub(super) stream: Option<&'a RawValue>,
    pub(super) bytes: Option<&'a RawValue>,
    pub(super) grid: Option<&'a RawValue>,
    pub(super) kernel_details: Option<&'a RawValue>,
    pub(super) block: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) labels: Option<&'a RawValue>,
    #[serde(rename = "Seq")]
    pub(super) sequence: Option<&'a RawValue>,
    #[serde(rename = "Collective name")]
    pub(super) collective: Option<&'a RawValue>,
    #[serde(rename = "Process Group Name")]
    pub(super) group: Option<&'a RawValue>,
    #[serde(rename = "Process Group Ranks")]
    pub(super) ranks: Option<&'a RawValue>,
}

/// The member `distributedInfo` of a file of a distributed run.
#[derive(Deserialize)]
pub(super) struct Distributed {
    pub(super) rank: Option<u64>,
    pub(super) world_size: Option<u64>,
}

/// Returns a number or a text as an identifier, without quotes: `7`, `"7"` and `"Spans"` become `7`, `7` and `Spans`. Returns an empty text
/// without a value.
pub(super) fn label(raw: Option<&RawValue>) -> Cow<'_, str> {
    let Some(raw) = raw else {
        return Cow::Borrowed("");
    };
    match raw.get().strip_prefix('"') {
        None => Cow::Borrowed(raw.get()),
        Some(inner) if !inner.contains('\\') => {
            Cow::Borrowed(inner.strip_suffix('"').unwrap_or(inner))
        }
        Some(_) => Cow::Owned(serde_json::from_str(raw.get()).unwrap_or_default()),
    }
}

/// Returns a whole number, which may be written as a text or with `.0`; `None` for anything else. A negative number becomes the unsigned
/// number with its bits.
pub(super) fn whole(raw: Option<&RawValue>) -> Option<u64> {
    let text = label(raw);
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    let signed = || digits.parse().ok().map(i64::cast_unsigned);
    digits.parse().ok().or_else(signed)
}

/// Returns a size in x, y and z; `None` for anything but an array of three numbers.
pub(super) fn three(raw: Option<&RawValue>) -> Option<[u32; 3]> {
    let sizes: Vec<f64> = serde_json::from_str(raw?.get()).ok()?;
    let [x, y, z] = sizes[..] else { return None };
    Some([x as u32, y as u32, z as u32])
}

/// Converts decimal microseconds to whole nanoseconds, rounded half up, without floating point. `None` for a text that is not a number.
pub(super) fn nanoseconds(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = |number: &str| number.len() < 30 && number.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !is_plain(whole) || !part.bytes().all(|b| b.is_ascii_digit()) {
        let micros: f64 = text.parse().ok()?;
        return (micros.abs() < 1e25).then(|| (micros * 1e3).round() as i128);
    }
    let digit = |i: usize| part.as_bytes().get(i).map_or(0, |b| i128::from(b - b'0'));
    let mut nanos = whole.parse::<i128>().ok()? * 1000 + digit(0) * 100 + digit(1) * 10 + digit(2);
    if digit(3) >= 5 {
        nanos += 1;
    }
    Some(if text.starts_with('-') { -nanos } else { nanos })
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn microseconds_become_whole_nanoseconds_exactly() {
        for (text, expected) in [
            ("4456641320622.455", Some(4_456_641_320_622_455)),
            ("1790857026000000.001", Some(1_790_857_026_000_000_001)),
            ("0.0005", Some(1)),
            ("-1.5", Some(-1500)),
            ("7", Some(7000)),
            ("1.5e3", Some(1_500_000)),
            ("", None),
            ("x", None),
            ("1e300", None),
            ("NaN", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text}");
        }
    }
}
