//! Splits texts at names in braces, and writes figures with their units: `{{run.step_ms}}` is a name, `12.34 ms` its figure.

use crate::course::metric;
use protocol::units::show;

/// A piece of a text: words, or a name in braces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPiece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Splits a text at `{{` and `}}`. Braces without a partner are text.
pub fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else {
            break;
        };
        if !before.is_empty() {
            found.push(TextPiece::Text(before));
        }
        found.push(TextPiece::Name(name.trim()));
        rest = tail;
    }
    if !rest.is_empty() {
        found.push(TextPiece::Text(rest));
    }
    found
}

/// Returns the size of a difference between two values of a metric, with its unit. Two shares differ by percentage points.
pub fn difference(name: &str, signed: f64) -> String {
    let text = measured(name, signed.abs());
    match text.strip_suffix(" %") {
        Some(points) => format!("{points} percentage points"),
        None => text,
    }
}

/// Returns the value of a metric with its unit. Times below 0.1 ms are in µs.
pub fn measured(name: &str, value: f64) -> String {
    let (mut decimals, mut unit) = metric::decimals_and_unit(name);
    let mut x = value;
    if unit == "ms" && x.abs() < 0.1 && x != 0.0 {
        x *= 1e3;
        decimals = 1;
        unit = "µs";
    }
    // The spread of a time is larger than its fourth digit.
    if unit == "ms" && x.abs() >= 100.0 {
        decimals = decimals.min(1);
    } else if unit == "ms" && x.abs() >= 10.0 {
        decimals = decimals.min(2);
    }
    let smallest = 0.1_f64.powi(i32::try_from(decimals).unwrap_or(1));
    // As in the panels, only a whole is shown as 100 %.
    if unit == "%" && x.abs() < 100.0 {
        x = x.clamp(smallest - 100.0, 100.0 - smallest);
    }
    match unit {
        "ms" | "µs" | "%" | "MiB" if x != 0.0 && x.abs() < smallest => {
            format!("< {smallest:.decimals$} {unit}")
        }
        "ms" | "µs" | "%" | "MiB" => format!("{} {unit}", show(x, decimals)),
        _ => show(x, decimals),
    }
}
