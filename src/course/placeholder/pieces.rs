//! Texts with names in braces, and numbers as a learner reads them.

use crate::course::metric;
use protocol::units::show;

/// A text and the names in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPiece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Splits at `{{` and `}}`; braces without a partner are text.
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

/// How far apart two values of a metric are, with the unit: two shares are apart by percentage points.
pub fn apart(name: &str, x: f64) -> String {
    let said = measured(name, x.abs());
    let share = said.strip_suffix(" %");
    share.map_or_else(
        || said.clone(),
        |points| format!("{points} percentage points"),
    )
}

/// A metric's value with its unit; short times in µs.
pub fn measured(name: &str, x: f64) -> String {
    let (decimals, unit) = metric::form(name);
    let (x, decimals, unit) = if unit == "ms" && x.abs() < 0.1 && x != 0.0 {
        (x * 1e3, 1, "µs")
    } else {
        (x, decimals, unit)
    };
    // Four digits of a time are more than its spread leaves.
    let decimals = match x.abs() {
        _ if unit != "ms" => decimals,
        x if x >= 100.0 => decimals.min(1),
        x if x >= 10.0 => decimals.min(2),
        _ => decimals,
    };
    let least = 0.1_f64.powi(i32::try_from(decimals).unwrap_or(1));
    // As in the panels, only a whole reads 100 %.
    let x = match unit {
        "%" if x.abs() < 100.0 => x.clamp(least - 100.0, 100.0 - least),
        _ => x,
    };
    match unit {
        "ms" | "µs" | "%" | "MiB" if x != 0.0 && x.abs() < least => {
            format!("< {least:.decimals$} {unit}")
        }
        "ms" | "µs" | "%" | "MiB" => format!("{} {unit}", show(x, decimals)),
        _ => show(x, decimals),
    }
}
