//! Describes the fault of a kernel that ran, in one sentence: what went wrong, at which element, and what may be the cause.

use protocol::{KernelError, KernelFault, KernelFaultKind, Num};

/// Rounds an expected number to f32. The reference computes in f64, but a kernel can only store f32.
pub(super) fn as_f32_holds_it(Num(expected): Num) -> Num {
    Num(f64::from(expected as f32))
}

/// Returns a sentence about a fault. `array_length` is true if the kernel compares its index with `arrayLength`.
pub(super) fn sentence(fault: &KernelFault, array_length: bool) -> String {
    let name = &fault.buffer;
    let index = fault.at.unwrap_or_default();
    let place = fault.place.as_ref().map(|place| {
        let KernelError {
            line, column, text, ..
        } = place;
        format!("line {line}, column {column}: `{text}`")
    });
    match (fault.kind, place) {
        (KernelFaultKind::Wrong, _) => wrong(fault),
        (KernelFaultKind::Unwritten, _) => format!(
            "never writes {} of the {} elements of `{name}`, first `{name}[{index}]`",
            fault.count, fault.of
        ),
        (KernelFaultKind::OutOfBounds, Some(place)) => format!(
            "{place} accesses element {index}, but `{name}` has length {}; \
             compare the index with the size first",
            fault.of
        ),
        (KernelFaultKind::OutOfBounds, None) => {
            let advice = if array_length {
                "a buffer may be longer than its tensor, \
                 so compare with the size and not with arrayLength"
            } else {
                "compare the index with the size before writing"
            };
            format!(
                "writes out of bounds: `{name}[{index}]`, but `{name}` has length {}; {advice}",
                fault.of
            )
        }
        (KernelFaultKind::WroteInput, place) => {
            let subject = place.map_or_else(String::new, |place| format!("{place} "));
            format!("{subject}writes to `{name}[{index}]`, which may only be read")
        }
        (KernelFaultKind::ReadsPastEnd, _) => format!(
            "reads past the end of a buffer: with other numbers there, `{name}[{index}]` changes; \
             compare the index with the size before reading"
        ),
        (KernelFaultKind::Races, None) => format!(
            "two runs on the same numbers differ, first in `{name}[{index}]`: invocations race. \
             Is a workgroupBarrier() missing, or do two invocations write the same element?"
        ),
        (
            KernelFaultKind::Races
            | KernelFaultKind::Barrier
            | KernelFaultKind::ReadsUnwritten
            | KernelFaultKind::Open
            | KernelFaultKind::NotUnderstood,
            Some(place),
        ) => format!("{place}: {}", fault.reason),
        (
            KernelFaultKind::Barrier
            | KernelFaultKind::ReadsUnwritten
            | KernelFaultKind::Open
            | KernelFaultKind::NotUnderstood,
            None,
        ) => fault.reason.clone(),
        (KernelFaultKind::Endless, Some(place)) => format!(
            "{place} does not end within {} iterations; the loop needs a condition \
             that changes inside it, or a `break` that can be reached",
            fault.limit
        ),
        (KernelFaultKind::Endless, None) => format!(
            "does not end: the kernel was still running after {}. \
             The condition of a loop stays true, or the kernel is far too slow",
            fault.reason
        ),
        (KernelFaultKind::TooMuch, _) => {
            format!("{}, and the check was stopped", fault.reason)
        }
        (KernelFaultKind::Device, _) => format!("the driver refused the kernel: {}", fault.reason),
        (KernelFaultKind::Lost, _) => {
            format!("the device was lost while the kernel ran: {}", fault.reason)
        }
    }
}

/// Returns a sentence about an output whose error is too large.
fn wrong(fault: &KernelFault) -> String {
    let value = |x: Option<Num>| x.map_or(f64::NAN, |x| x.0);
    let (found, expected) = distinct(value(fault.found), value(fault.expected));
    let mut text = format!(
        "`{}[{}]` is {found} and should be {expected}; ",
        fault.buffer,
        fault.at.unwrap_or_default(),
    );
    text += &match fault.of {
        1 => "it is the only element".to_owned(),
        of => format!("{} of {of} elements are wrong", fault.count),
    };
    if let (Some(Num(error)), Some(allowed)) = (fault.error, fault.allowed)
        && error.is_finite()
        && allowed.is_finite()
    {
        let distance = (value(fault.found) - value(fault.expected)).abs();
        text += &match allowed {
            0.0 => format!(", off by {distance:.1e} where no rounding occurs"),
            _ => {
                let bound = distance * allowed / error;
                format!(", off by {distance:.1e} where rounding explains {bound:.1e}")
            }
        };
    }
    if fault.unsteady {
        text += "; and two runs differ: do invocations race?";
    }
    text
}

/// Returns two numbers with six digits, or with as many more as they need to differ.
fn distinct(found: f64, expected: f64) -> (String, String) {
    let with_digits = |digits| (number(found, digits), number(expected, digits));
    (6..=17)
        .map(with_digits)
        .find(|(found, expected)| found != expected)
        .unwrap_or_else(|| with_digits(6))
}

/// Returns a number with this many significant digits, without trailing zeros.
fn number(x: f64, digits: usize) -> String {
    let size = x.abs();
    if !x.is_finite() || x == 0.0 {
        return x.to_string();
    }
    if !(1e-3..1e6).contains(&size) {
        let decimals = digits - 2;
        return format!("{x:.decimals$e}");
    }
    let decimals = (digits - 1).saturating_sub(size.max(1.0).log10() as usize);
    let text = format!("{x:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expected_value_is_one_that_an_f32_holds() {
        for expected in [1.2315e-292, -3e-50, 1e-42, 0.1, 1e300, f64::NAN] {
            let Num(stored) = as_f32_holds_it(Num(expected));
            let in_f32 = f64::from(stored as f32);
            assert_eq!(in_f32.to_bits(), stored.to_bits(), "{stored}");
            let fault = KernelFault {
                expected: Some(Num(stored)),
                found: Some(Num(2.0)),
                ..KernelFault::default()
            };
            let text = sentence(&fault, false);
            assert!(!text.contains("e-292") && !text.contains("e-50"), "{text}");
        }
        assert_eq!(as_f32_holds_it(Num(1.2315e-292)), Num(0.0));
    }

    #[test]
    fn two_numbers_have_as_many_digits_as_they_need_to_differ() {
        for (found, expected, texts) in [
            (1.01768_f32, 0.01768_f32, ("1.01768", "0.01768")),
            (-1.111_25, -1.111_251, ("-1.11125", "-1.111251")),
            (1e-9, 1.001e-9, ("1.0000e-9", "1.0010e-9")),
            (f32::INFINITY, 2.0, ("inf", "2")),
            (0.5, 0.5, ("0.5", "0.5")),
        ] {
            let (found_text, expected_text) = distinct(found.into(), expected.into());
            assert_eq!((found_text.as_str(), expected_text.as_str()), texts);
        }
    }
}
